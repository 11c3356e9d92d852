"""A real kernel kills workers because the job's control group has no memory left.

Two workers with large batches need more than the group may use, one fits: who dies is named, comes
back with less in flight, and nothing is lost or doubled. Needs a group that may be made (root).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import unittest
from pathlib import Path

from _support import DEADLINE_S, FLUX, Case, Done, example, sets

MIB = 1 << 20
LIMIT = 400 * MIB
EXAMPLES, BATCH = 100_000, 20_000
# The memory controller's folder and the file of its limit: groups of version 1, then 2.
KINDS = ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
         (Path("/sys/fs/cgroup"), "memory.max"))


def make_group() -> Path | None:
    for parent, limit in KINDS:
        group = parent / f"flux_test_{os.getpid()}"
        if not (parent / "cgroup.procs").exists():
            continue
        with contextlib.suppress(OSError):
            group.mkdir()
            try:
                (group / limit).write_text(str(LIMIT))
                return group
            except OSError:
                group.rmdir()
    return None


def remove_group(group: Path) -> None:
    """Once its last process is gone."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.05)


class KernelOom(Case):
    def run_in(self, group: Path, *arguments: str) -> Done:
        words = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$0" "$@"', str(FLUX)]
        done = subprocess.run([*words, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, encoding="utf-8",
                              timeout=DEADLINE_S)
        return Done(done.returncode, done.stdout, done.stderr)

    def test_workers_that_the_kernel_kills(self) -> None:
        group = make_group()
        if group is None:
            self.skipTest("no control group with a memory limit may be made here")
        self.addCleanup(remove_group, group)
        train = self.folder / "train.tsv"
        self.flux("data", "gen", "criteo", "--examples", str(EXAMPLES), "--out", str(train))
        done = self.run_in(group, "run", example("ctr_dnn"), "--servers", "1", "--workers", "2",
                           "--threads", "1",
                           *sets(data__train=train, data__test=train, data__batch=BATCH, epochs=1,
                                 output="out"))
        self.assertEqual(done.code, 0, done.text)
        self.assertRegex(done.text, r"(?m)^worker-\d ended: killed by signal 9 \(Killed\): out of "
                         r"memory: it used \d+ MiB, all of the job may use 400 MiB; started again "
                         r"with at most \d in flight")
        self.assert_exact("out", EXAMPLES)


if __name__ == "__main__":
    unittest.main()
