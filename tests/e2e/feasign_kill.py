"""A worker and a server of a cluster that reads feasign are killed: every example counts once."""

from __future__ import annotations

import unittest

from _cluster import JobKillCase
from _feasign import job_text, write_lines

EPOCHS = 40


class FeasignKill(JobKillCase):
    def setUp(self) -> None:
        super().setUp()
        write_lines(self.folder / "train.txt", self.records, 1)
        write_lines(self.folder / "test.txt", 50, 2)
        (self.folder / "job.yaml").write_text(job_text(batch=self.batch))

    def test_worker(self) -> None:
        self.train_under_kills("worker-1", epochs=EPOCHS)

    def test_server(self) -> None:
        self.train_under_kills("server-1", epochs=EPOCHS)


if __name__ == "__main__":
    unittest.main()
