"""Roles that leave, and a job that goes on with another number of them: nothing is done twice."""

from __future__ import annotations

import os
import signal
import time
import unittest

from _cluster import ROW, ClusterCase
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

    def test_what_costs_the_backups_is_told(self) -> None:
        for command in (["scale", "out", "--servers", "1"], ["drain", "out", "server-1"]):
            with self.subTest(command=command[0]):
                running = self.start_training(*self.cluster("--fresh", epochs=20000, replicas=2))
                self.assertEqual(self.flux("drain", "out", "worker-2").err, "")
                done = self.flux(*command)
                self.assertIn("warning: replicas: 2, but there will be 1 server: shards have no "
                              "backup", done.err)
                running.signal(signal.SIGINT)
                self.assertEqual(running.finish().code, 130)

    def test_nobody_starts_roles_of_a_cluster_made_by_hand(self) -> None:
        listen = f"unix:{self.folder}/c.sock"
        coordinator = self.start("coordinator", *self.job(epochs=20000), "--listen", listen)
        self.assertIsNotNone(coordinator.wait_line("listens on"))
        where = ["--coordinator", listen]
        self.start("server", *where, "--listen", f"unix:{self.folder}/s.sock")
        self.start("worker", *where, "--threads", "1")
        self.assertIsNotNone(coordinator.wait_line(ROW))
        done = self.flux("scale", "out", "--workers", "2")
        self.assertIn("started by hand", done.err)
        self.assertIn("start 1 worker (flux worker) yourself", done.err)
        self.assertEqual(self.flux("scale", "out", "--workers", "1").err, "")
        self.flux("stop", "out")
        self.assertEqual(coordinator.finish().code, 130)


if __name__ == "__main__":
    unittest.main()
