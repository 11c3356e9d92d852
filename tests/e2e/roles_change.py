"""Roles that leave, and a job that goes on with another number of them: nothing is done twice."""

from __future__ import annotations

import os
import signal
import time
import unittest

from _cluster import ClusterCase
from _support import DEADLINE_S

EPOCHS = 300


class RolesChange(ClusterCase):
    def test_a_worker_that_leaves_hands_back_its_block(self) -> None:
        """SIGTERM: what it has begun is finished, others do the rest, and nothing is redone."""
        running = self.start_training(*self.cluster(epochs=EPOCHS))
        os.kill(self.pids(running)["worker-1"], signal.SIGTERM)
        deadline = time.monotonic() + DEADLINE_S
        now = self.status()
        while "worker-1" in [w["name"] for w in now["workers"]]:
            self.assertLess(time.monotonic(), deadline)
            now = self.status()
        self.assertEqual(now["state"], "training")
        done = running.finish()
        self.assertEqual(done.code, 0, done.text)
        self.assertNotRegex(done.text, "worker-1 ended|lost worker-1")
        self.assert_exact("out", self.records * EPOCHS)
        # Also counted by those who trained: one example that was tried again would be one more.
        self.assertEqual(self.summary("out")["examples"], self.records * EPOCHS)
        self.assertEqual(now["duplicates"], 0)
        self.assertEqual(now["workers_lost"], 0)

    def test_a_checkpoint_on_another_number_of_servers(self) -> None:
        """Every row of this model sees its own example only, so its bits are those of any run."""
        self.flux(*self.cluster(epochs=EPOCHS))
        whole = self.summary("out")
        for servers, stopped in ((2, True), (3, True), (1, False)):
            fresh = ["--fresh"] if servers == 2 else []
            running = self.start_training(*self.cluster(*fresh, servers=servers, epochs=EPOCHS))
            self.assertEqual(len(self.status()["servers"]), servers)
            if stopped:
                running.signal(signal.SIGINT)
            done = running.finish()
            self.assertEqual(done.code, 130 if stopped else 0, done.text)
            self.assertIn("lost 0 · doubled 0", done.text)
            self.assertEqual("resumed from" in done.text, servers != 2, done.text)
        self.assert_exact("out", self.records * EPOCHS)
        parts = self.summary("out")
        self.assertLess(parts["examples"], whole["examples"])
        self.assertEqual(parts["rows"], whole["rows"])
        self.assertEqual(parts["model_hash"], whole["model_hash"])


if __name__ == "__main__":
    unittest.main()
