"""The supervisor keeps as many roles as are wanted, whatever becomes of them."""

from __future__ import annotations

import json
import os
import signal
import time
import unittest
from collections.abc import Callable
from typing import Any

from _cluster import ClusterCase
from _support import DEADLINE_S, Running

EPOCHS = 60
ENDLESS = 20000


class Keeper(ClusterCase):
    def wait_status(self, running: Running, seen: Callable[[dict[str, Any]], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not seen(self.status()):
            self.assertFalse(running.ended_within(0.05), "".join(running.lines))
            self.assertLess(time.monotonic(), deadline)

    def stop(self, running: Running) -> str:
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.code, 130, done.text)
        self.assertIn("lost 0 · doubled 0", done.text)
        return done.text

    def test_kill_points_of_newcomers(self) -> None:
        """Several orders for one server: each start carries one, and nobody is refused for it."""
        done = self.flux("drill", *self.job(epochs=EPOCHS), "--run", "--servers", "2",
                         "--workers", "2", "--threads", "1", "--at",
                         "install_begin,install_mid,install_end", "--every", "500ms", "--at-wait",
                         "3s", "--times", "5")
        self.assertNotIn("exit code 2", done.text)
        self.assertNotIn("not started again", done.text)
        self.assertRegex(done.text, r"server-\d ended: killed by signal 9 .*started again")
        self.assert_exact("out", self.records * EPOCHS)

    def test_hung_processes_are_replaced(self) -> None:
        running = self.start_training(*self.cluster(epochs=ENDLESS, workers=2))
        before = self.pids(running)
        for name in ("worker-1", "server-1"):
            os.kill(before[name], signal.SIGSTOP)
        self.wait_status(running, lambda now: any(
            w["name"] == "worker-1" and w["pid"] != before["worker-1"] for w in now["workers"])
            and any(s["name"] == "server-1" and s["pid"] != before["server-1"]
                    and s["shards"] + s["backups"] > 0 for s in now["servers"]))
        text = self.stop(running)
        for name in ("worker-1", "server-1"):
            self.assertRegex(text, f"{name} was lost 10 s ago and has not come back")
            self.assertRegex(text, f"{name} ended: killed by signal 9 .*started again")
        self.assert_gone(before)

    def test_a_long_pause_in_a_drill(self) -> None:
        """The paused process is replaced: for the drill the pause is over, and that one is back."""
        running = self.start_training(*self.cluster("--drillable", epochs=ENDLESS, workers=2))
        done = self.flux("drill", "out", "--pause", "worker:1", "--pause-for", "1h", "--every",
                         "200ms", "--times", "1", "--no-wait")
        for what in ("noticed", "over", "back", "new examples are applied"):
            self.assertRegex(done.out, f"fault 1: pause worker: {what}")
        found = json.loads((self.folder / "out/drill.json").read_text())
        self.assertEqual(found["workers_restarted_unasked"], 0)
        self.stop(running)

    def test_stop_after_everything_went_back(self) -> None:
        """What was in flight when the only server died is of a later epoch than what follows."""
        running = self.start_training(*self.cluster(
            "--set", "replicas=1", "--set", "checkpoint.every_s=0", epochs=ENDLESS, servers=1))
        self.wait_status(running, lambda now: now["section"] > 1)
        os.kill(self.pids(running)["server-0"], signal.SIGKILL)
        self.assertIsNotNone(running.wait_line("every shard is served again"))
        self.wait_status(running, lambda now: now["state"] == "training"
                         and now["examples_applied"] > 0)
        self.stop(running)

    def test_a_short_pause_is_harmless(self) -> None:
        running = self.start_training(*self.cluster(epochs=ENDLESS, workers=2))
        pid = self.pids(running)["worker-1"]
        os.kill(pid, signal.SIGSTOP)
        self.assertIsNotNone(running.wait_line("lost worker-1"))
        self.wait_status(running, lambda now: [w["name"] for w in now["workers"]] == ["worker-0"])
        os.kill(pid, signal.SIGCONT)
        self.wait_status(running, lambda now: "worker-1" in [w["name"] for w in now["workers"]])
        self.assertNotIn("has not come back", self.stop(running))

    def test_somebody_stays(self) -> None:
        """The last of each kind cannot be drained, and is replaced when it goes nevertheless."""
        running = self.start_training(*self.cluster(epochs=ENDLESS, servers=1, workers=1,
                                                    replicas=2))
        self.assertRegex("".join(running.lines), "warning: replicas: 2, but .* no second server")
        self.assertRegex(self.flux("status", "out").out,
                         r"(?m)^1 server\(s\) · 1 worker\(s\) · 8 shards, replicas 2, 8 without a")
        self.assert_refused(self.flux("drain", "out", "worker-0", code=None), "only worker",
                            "flux scale", "flux stop")
        self.assert_refused(self.flux("drain", "out", "server-0", code=None), "only server")
        pids = self.pids(running)
        os.kill(pids["worker-0"], signal.SIGTERM)
        self.wait_status(running, lambda now: [w["name"] for w in now["workers"]] == ["worker-1"])
        self.stop(running)

    def test_a_server_that_a_signal_stops(self) -> None:
        running = self.start_training(*self.cluster(epochs=ENDLESS))
        pid = self.pids(running)["server-1"]
        os.kill(pid, signal.SIGTERM)
        self.wait_status(running, lambda now: any(
            s["name"] == "server-1" and s["pid"] != pid and s["shards"] + s["backups"] > 0
            for s in now["servers"]))
        self.assertRegex(self.stop(running), r"server-1 ended: exit code 130.*started again")

    def test_down_and_up_again(self) -> None:
        """Whoever is asked to leave by the first number is replaced for the second."""
        running = self.start_training(*self.cluster(epochs=ENDLESS, workers=2))
        for number in ("1", "2"):
            self.flux("scale", "out", "--workers", number)
        self.wait_status(running, lambda now: now["wanted_workers"] == 2 and
                         [w["name"] for w in now["workers"]] == ["worker-0", "worker-2"])
        self.flux("drain", "out", "worker-2")  # one less is wanted from now on
        self.wait_status(running, lambda now: now["wanted_workers"] == 1 and
                         [w["name"] for w in now["workers"]] == ["worker-0"])
        self.flux("scale", "out", "--workers", "2", "--servers", "3")
        self.wait_status(running, lambda now: len(now["workers"]) == 2 and
                         len(now["servers"]) == 3)
        self.stop(running)

    def test_a_run_that_never_trains_leaves_the_summary(self) -> None:
        """No host can be reached: it waits, and a stop leaves what the run before has said."""
        self.flux(*self.cluster(servers=1, workers=1, epochs=2))
        before = self.summary("out")
        ssh = self.folder / "ssh"
        ssh.write_text("#!/bin/sh\necho 'no route to host'\nexit 255\n")
        ssh.chmod(0o755)
        (self.folder / "hosts.txt").write_text("node-1\n")
        running = self.start(*self.cluster("--hosts", "hosts.txt", "--ssh", str(ssh), "--listen",
                                           "tcp:127.0.0.1:0", servers=1, workers=1, epochs=3))
        self.assertIsNotNone(running.wait_line("no host is left: tried again in 2 s"))
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.code, 130, done.text)
        self.assertIn("no route to host", done.text)
        self.assertEqual(self.summary("out"), before)


if __name__ == "__main__":
    unittest.main()
