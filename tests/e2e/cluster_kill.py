"""Any one process of a cluster is killed: repaired while training goes on, nobody left over."""

from __future__ import annotations

import os
import signal
import time
import unittest

from _cluster import ClusterCase
from _support import Done

EPOCHS = 80


class Kill(ClusterCase):
    def resume(self) -> None:
        """Running it again completes the job, every example counted once an epoch."""
        self.flux(*self.cluster(epochs=EPOCHS))
        self.assert_exact("out", self.records * EPOCHS)

    def kill(self, name: str) -> tuple[Done, dict[str, int]]:
        running = self.start_training(*self.cluster(epochs=EPOCHS))
        pids = self.pids(running)
        os.kill(pids[name], signal.SIGKILL)
        return running.finish(), pids

    def assert_repaired(self, name: str) -> None:
        """It is started again, nobody else is touched, and every example is counted once."""
        done, pids = self.kill(name)
        self.assertEqual(done.code, 0, done.text)
        self.assertIn(f"{name} ended: killed by signal 9 (Killed); started again", done.text)
        self.assertEqual(done.text.count("started again"), 1, done.text)
        self.assert_exact("out", self.records * EPOCHS)
        self.assert_gone(pids)

    def test_worker(self) -> None:
        self.assert_repaired("worker-1")

    def test_server(self) -> None:
        self.assert_repaired("server-1")

    def test_coordinator(self) -> None:
        self.assert_repaired("coordinator")

    def test_supervisor(self) -> None:
        done, pids = self.kill("supervisor")
        self.assertEqual(done.code, -signal.SIGKILL)
        self.assert_gone(pids)
        self.assert_refused(self.flux("status", "out", code=None), "does not run", "is gone")
        self.resume()

    def test_stop_and_resume(self) -> None:
        running = self.start_training(*self.cluster(epochs=EPOCHS))
        pids = self.pids(running)
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.code, 130, done.text)
        self.assertIn("stopped; to go on: ", done.text)
        self.assertIn("lost 0 · doubled 0", done.text)
        self.assert_gone(pids)
        self.assertEqual(len(self.checkpoints("out")), 1)
        self.resume()
        self.assertNotEqual(self.summary("out")["resumed_from"], None)

    def test_second_signal_ends_at_once(self) -> None:
        running = self.start_training(*self.cluster(epochs=5000))
        pids = self.pids(running)
        os.kill(pids["coordinator"], signal.SIGSTOP)  # so that it cannot end before the second
        running.signal(signal.SIGINT)
        self.assertIsNotNone(running.wait_line("again to stop at once"))
        time.sleep(0.6)  # sooner, two signals are one wish
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().code, 130)
        self.assert_gone(pids)


if __name__ == "__main__":
    unittest.main()
