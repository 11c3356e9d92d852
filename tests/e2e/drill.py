"""flux drill: faults against real jobs, the accounting line, and what it leaves behind."""

from __future__ import annotations

import json
import re
import signal
import time
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from _cluster import ClusterCase, alive
from _support import DEADLINE_S, example, sets

EPOCHS = 400
LINE = r"^faults \d+ · samples [\d,]+/[\d,]+ applied once · lost 0 · double 0 · worst stall \d"


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


class Drill(ClusterCase):
    def drilled(self) -> dict[str, Any]:
        loaded = json.loads((self.folder / "out/drill.json").read_text())
        assert isinstance(loaded, dict)
        return loaded

    def assert_picture(self, faults: int) -> None:
        root = ET.parse(self.folder / "out/timeline.svg").getroot()  # noqa: S314 - our own
        self.assertTrue(root.tag.endswith("svg"))
        marks = [e for e in root.iter() if "l4 8" in e.get("d", "")]
        self.assertEqual(len(marks), faults)

    def wait_stopped(self, pid: int, wanted: bool) -> None:
        """A signal is sent at once, but its process obeys when it next runs."""
        deadline = time.monotonic() + DEADLINE_S
        while stopped(pid) != wanted:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.005)

    def run_job(self, *faults: str) -> list[str]:
        return ["drill", *self.job(epochs=EPOCHS), "--run", "--servers", "2", "--workers", "3",
                "--threads", "1", *faults]

    def test_runs_a_job_and_kills_workers(self) -> None:
        done = self.flux(*self.run_job("--kill", "worker", "--every", "1s", "--times", "2"))
        self.assertRegex(done.out, r"(?m)" + LINE)
        self.assert_exact("out", self.records * EPOCHS)
        found = self.drilled()
        self.assertEqual(found["faults_made"], len(found["faults"]))
        self.assertGreaterEqual(found["faults_made"], 1)
        self.assertEqual(found["end"], "complete")
        for fault in found["faults"]:
            self.assertEqual(fault["kind"], "kill worker")
            self.assertGreater(fault["noticed_s"], 0)
            self.assertGreaterEqual(fault["recovered_s"], fault["noticed_s"])
            self.assertFalse(alive(fault["victims"][0]["pid"]))
        self.assertEqual(found["workers_restarted_unasked"], 0)
        self.assertEqual(found["summary"], self.summary("out"))
        self.assert_picture(found["faults_made"])

    def test_attaches_pauses_and_leaves_the_job_running(self) -> None:
        running = self.start_training(*self.cluster(epochs=20000))
        pids = self.pids(running)
        done = self.flux("drill", "out", "--pause", "worker:1", "--pause-for", "500ms", "--every",
                         "200ms", "--times", "1", "--no-wait")
        self.assertRegex(done.out, r"(?m)^faults 1 · samples [\d,]+/[\d,]+ so far")
        fault = self.drilled()["faults"][0]
        self.assertEqual(fault["victims"], [{"name": "worker-1", "pid": pids["worker-1"]}])
        self.assertGreaterEqual(fault["healed_t"], fault["t"] + 0.5)
        for pid in pids.values():
            self.wait_stopped(pid, False)
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().code, 130)

    def test_an_interrupted_drill_stops_nobody(self) -> None:
        running = self.start_training(*self.cluster(epochs=20000))
        pids = self.pids(running)
        drill = self.start("drill", "out", "--pause", "worker:0", "--pause-for", "1h", "--every",
                           "100ms", "--times", "1")
        self.assertIsNotNone(drill.wait_line(r"fault 1: pause"))
        self.wait_stopped(pids["worker-0"], True)
        self.assert_refused(self.flux("drill", "out", "--kill", "worker", code=None),
                            "is being drilled by process")
        self.assert_refused(self.flux("drill", *self.job(), "--run", "--kill", "worker", code=None),
                            "runs already", "without --run")
        drill.signal(signal.SIGINT)
        self.assertEqual(drill.finish().code, 130)
        self.wait_stopped(pids["worker-0"], False)
        self.assertIsNone(running.process.poll())
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().code, 130)

    def test_a_signal_twice_at_once_stops_the_job_with_a_checkpoint(self) -> None:
        drill = self.start("drill", *self.job(epochs=20000), "--run", "--pause", "worker:0",
                           "--pause-for", "200ms", "--every", "200ms", "--times", "1")
        self.assertIsNotNone(drill.wait_line(r"fault 1: pause"))
        drill.signal(signal.SIGINT)
        self.assertIsNotNone(drill.wait_line("again to stop at once"))
        drill.signal(signal.SIGINT)
        done = drill.finish()
        self.assertEqual(done.code, 130, done.text)
        self.assertEqual(self.summary("out")["state"], "stopped")
        self.assertEqual(len(self.checkpoints("out")), 1)

    def test_a_cut_network_heals(self) -> None:
        done = self.flux(*self.run_job("--partition", "worker:0>server:1", "--partition",
                                       "worker:1-coordinator", "--partition-for", "300ms",
                                       "--every", "700ms", "--times", "2"))
        self.assertRegex(done.out, r"(?m)" + LINE)
        self.assert_exact("out", self.records * EPOCHS)
        self.assertFalse((self.folder / "out/cluster/faults.txt").exists())

    def test_what_is_cut_off_may_vanish(self) -> None:
        """Requests and answers are lost for good: who waits asks again; nothing counts twice."""
        done = self.flux(*self.run_job("--partition", "worker:0-server:1", "--vanish",
                                       "--partition-for", "300ms", "--every", "700ms", "--times",
                                       "2"))
        self.assertRegex(done.out, r"(?m)" + LINE)
        self.assert_exact("out", self.records * EPOCHS)
        self.assertGreaterEqual(self.drilled()["faults_made"], 1)
        self.assertFalse((self.folder / "out/cluster/faults.txt").exists())

    def test_who_is_drained_leaves(self) -> None:
        """A worker and a server, for good; what they had is with others."""
        running = self.start_training(*self.cluster(epochs=20000))
        pids = self.pids(running)
        self.flux("drill", "out", "--drain", "worker:1", "--drain", "server:1", "--every", "300ms",
                  "--times", "2", "--no-wait")
        found = self.drilled()
        self.assertEqual([f["kind"] for f in found["faults"]], ["drain worker", "drain server"])
        self.assertEqual(found["faults_left_out"], 0)
        gone = {name: pids[name] for name in ("worker-1", "server-1")}
        self.assert_gone(gone)
        now = self.status()
        self.assertEqual({w["name"] for w in now["workers"]}, {"worker-0", "worker-2"})
        self.assertEqual([(s["name"], s["shards"]) for s in now["servers"]], [("server-0", 8)])
        self.assertEqual(now["workers_lost"], 0)
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.code, 130, done.text)
        self.assertIn("lost 0 · doubled 0", done.text)
        self.assertNotIn("started again", done.text)

    def test_everything_at_once(self) -> None:
        """The supervisor too; the drill runs the same command again."""
        done = self.flux("drill", example("counting"),
                         *sets(data__train="train.tsv", output="out", data__batch=self.batch,
                               shards=8, checkpoint__every_s=0.2, epochs=EPOCHS),
                         "--run", "--servers", "2", "--workers", "2", "--threads", "1",
                         "--kill", "all", "--every", "1s", "--times", "1")
        self.assertRegex(done.out, r"(?m)" + LINE)
        self.assert_exact("out", self.records * EPOCHS)
        self.assertEqual(self.drilled()["faults"][0]["kind"], "kill all")

    def test_memory_taken_away(self) -> None:
        """Of everybody: each dies of it, or the fault is left out and does not count."""
        done = self.flux(*self.run_job("--oom", "worker:0", "--oom", "server:0", "--oom",
                                       "coordinator", "--every", "700ms", "--times", "3"))
        self.assertRegex(done.out, r"(?m)" + LINE)
        self.assertRegex(done.out, r"oom worker:0.*(cgroup|address space)")
        self.assert_exact("out", self.records * EPOCHS)
        found = self.drilled()
        self.assertGreaterEqual(found["faults_made"], 1)
        self.assertEqual(found["faults_left_out"], 0)
        for fault in found["faults"]:
            self.assertFalse(alive(fault["victims"][0]["pid"]))

    def test_memory_of_one_worker_again_and_again(self) -> None:
        """Each time it is named and holds less, up to the least; a drill does not count."""
        running = self.start_training(*self.cluster("--drillable", epochs=20000,
                                                    push_in_flight=2))
        self.flux("drill", "out", "--oom", "worker:0", "--every", "300ms", "--times", "4",
                  "--no-wait")
        found = self.drilled()
        self.assertEqual((found["faults_made"], found["faults_left_out"]), (4, 0))
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.code, 130, done.text)
        self.assertIn("lost 0 · doubled 0", done.text)
        ends = re.findall(r"(?m)^worker-0 ended: .*: out of memory: it used \d+ MiB.*$", done.text)
        self.assertEqual(len(ends), 4, done.text)
        for end in ends:
            self.assertIn("started again with at most 1 in flight and 1 thread(s)", end)

    def test_the_same_seed_kills_the_same(self) -> None:
        def victims() -> list[str]:
            self.flux(*self.run_job("--fresh", "--kill", "worker", "--every", "600ms", "--times",
                                    "2", "--seed", "11"))
            return [v["name"] for f in self.drilled()["faults"] for v in f["victims"]]
        first, second = victims(), victims()
        shorter = min(len(first), len(second))
        self.assertGreaterEqual(shorter, 1)
        self.assertEqual(first[:shorter], second[:shorter])

    def test_kill_point_by_flag(self) -> None:
        self.assert_refused(self.flux("server", "--listen", "unix:s", "--die-at", "nowhere:1",
                                      code=None), "is no kill point", "before_apply")

    def test_refused_in_plain_words(self) -> None:
        self.assert_refused(self.flux("drill", "nowhere.yaml", "--kill", "worker", code=None))
        self.assert_refused(self.flux("drill", ".", "--kill", "worker", code=None), "does not run")
        self.assert_refused(self.flux("drill", *self.job(), "--run", code=None),
                            "no fault is asked for")
        self.assert_refused(self.flux("drill", *self.job(), "--run", "--kill", "wroker",
                                      code=None), "did you mean 'worker'")
        self.assert_refused(self.flux("drill", *self.job(), "--kill", "all", code=None), "--run")
        self.assert_refused(self.flux("drill", *self.job(), "--run", "--partition",
                                      "worker:0-worker:0", code=None), "cut off from itself")
        self.assert_refused(self.flux("drill", *self.job(), "--run", "--kill", "worker", "--times",
                                      "0", code=None), "--times")
        self.assert_refused(self.flux("drill", *self.job(), "--run", "--kill", "worker", "--out",
                                      "train.tsv/sub", code=None), "--out train.tsv/sub")

    def test_a_job_that_is_not_drillable_says_so(self) -> None:
        running = self.start_training(*self.cluster(epochs=20000))
        self.assert_refused(self.flux("drill", "out", "--partition", "worker:0-server:0",
                                      "--every", "100ms", code=None), "--drillable")
        self.assertIsNone(running.process.poll())
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().code, 130)


if __name__ == "__main__":
    unittest.main()
