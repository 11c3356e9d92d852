"""What the tests of clusters share: jobs as processes, who runs, and that nobody is left over."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from _support import DEADLINE_S, Case, Running, example, sets, write_data

ROW = r"^ +[\d,]+ +\d+\.\d+ "
CHAOS = "seed={},request=0.25,reply=0.25,double=0.25,reorder=0.25,delay_ms=5,timeout_ms=60"
MODES = ("async", "half_async", "sync")


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


class ClusterCase(Case):
    """Counting jobs: one key per example, so that every lost or doubled one is seen."""

    records = 1500
    batch = 5

    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "train.tsv", self.records)

    def job(self, **fields: object) -> list[str]:
        return [example("counting"),
                *sets(data__train="train.tsv", output="out", data__batch=self.batch, shards=8,
                      checkpoint__every_s=0, **fields)]

    def cluster(self, *extra: str, servers: int = 2, workers: int = 3,
                **fields: object) -> list[str]:
        return ["run", *self.job(**fields), "--threads", "1", "--servers", str(servers),
                "--workers", str(workers), *extra]

    def record(self) -> dict[str, Any]:
        """What the coordinator says about itself, as soon as it does."""
        path = self.folder / "out/cluster/coordinator.json"
        deadline = time.monotonic() + DEADLINE_S
        while not path.exists():
            self.assertLess(time.monotonic(), deadline, "no coordinator")
            time.sleep(0.005)
        loaded = json.loads(path.read_text())
        assert isinstance(loaded, dict)
        return loaded

    def status(self) -> dict[str, Any]:
        loaded = json.loads(self.flux("status", "out", "--json").out)
        assert isinstance(loaded, dict)
        return loaded

    def pids(self, running: Running) -> dict[str, int]:
        """Process of every role of a cluster that trains, the supervisor's included."""
        status = self.status()
        found = {member["name"]: member["pid"] for member in status["workers"] + status["servers"]}
        found["coordinator"] = self.record()["pid"]
        found["supervisor"] = running.process.pid
        return found

    def assert_gone(self, pids: dict[str, int]) -> None:
        deadline = time.monotonic() + 20
        for name, pid in pids.items():
            while alive(pid):
                self.assertLess(time.monotonic(), deadline, f"{name} is left over")
                time.sleep(0.005)

    def train_under_kills(self, *victims: str, epochs: int, **fields: object) -> None:
        """One victim after the other, each as soon as the one before is noticed, while the job
        trains: every example counts once."""
        running = self.start_training("run", *self.job(epochs=epochs, **fields), "--threads", "1",
                                      "--servers", "2", "--workers", "3")
        pids = self.pids(running)
        for victim in victims:
            os.kill(pids[victim], signal.SIGKILL)
            line = f"{victim} ended: killed by signal 9 \\(Killed\\); started again"
            self.assertIsNotNone(running.wait_line(line), "".join(running.lines))
        done = running.finish()
        self.assertEqual(done.code, 0, done.text)
        self.assert_exact("out", self.records * epochs)
        self.assert_gone(pids)

    def start_training(self, *arguments: str) -> Running:
        running = self.start(*arguments)
        self.assertIsNotNone(running.wait_line(ROW), "".join(running.lines))
        return running


class JobKillCase(ClusterCase):
    """Roles of a cluster are killed while it runs a job of the test's own: each example once."""

    job_file = "job.yaml"

    def job(self, **fields: object) -> list[str]:
        return [self.job_file, *sets(**fields)]
