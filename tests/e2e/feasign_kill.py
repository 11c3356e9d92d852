"""A worker and a server of a cluster that reads feasign are killed: every example counts once."""

from __future__ import annotations

import os
import signal
import unittest

from _cluster import ClusterCase
from _feasign import job_text, write_lines

EPOCHS = 40


class FeasignKill(ClusterCase):
    def setUp(self) -> None:
        super().setUp()
        write_lines(self.folder / "train.txt", self.records, 1)
        write_lines(self.folder / "test.txt", 50, 2)
        (self.folder / "job.yaml").write_text(job_text(batch=self.batch))

    def job(self, **fields: object) -> list[str]:
        return ["job.yaml", *(flag for name, value in fields.items()
                              for flag in ("--set", f"{name}={value}"))]

    def kill(self, name: str) -> None:
        running = self.start_training(*self.cluster(epochs=EPOCHS))
        pids = self.pids(running)
        os.kill(pids[name], signal.SIGKILL)
        done = running.finish()
        self.assertEqual(done.code, 0, done.text)
        self.assertIn(f"{name} ended: killed by signal 9 (Killed); started again", done.text)
        self.assert_exact("out", self.records * EPOCHS)
        self.assert_gone(pids)

    def test_worker(self) -> None:
        self.kill("worker-1")

    def test_server(self) -> None:
        self.kill("server-1")


if __name__ == "__main__":
    unittest.main()
