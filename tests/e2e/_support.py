"""What the end-to-end tests share: a scratch folder, made data, and ways to start flux.

Nothing here sleeps in the hope that something has happened: tests wait for a line of output or for
the end of a process, with a deadline so generous that only a hang can miss it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import random
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

FLUX = Path(os.environ["FLUX_BINARY"])
SOURCE = Path(os.environ["FLUX_SOURCE_DIR"])
DEADLINE_S = 300.0
DENSE = 13
SLOTS = 26
# The smallest model of any slots: a job of it needs a data section, and an output to be trained.
SMALLEST_MODEL = """
tables: [{name: weight, dim: 1}]
model:
  layers:
    - {name: sum, op: embedding, table: weight, combine: sum}
    - {name: loss, op: logistic_loss, inputs: [sum, label]}
"""


class Record(NamedTuple):
    label: int
    dense: list[str]
    ids: list[str]

    def line(self) -> str:
        return "\t".join([str(self.label), *self.dense, *self.ids]) + "\n"


def make_records(count: int, seed: int, ids_per_slot: int = 50) -> list[Record]:
    """Criteo-like records whose labels follow a hidden linear model, the same for every seed."""
    truth = random.Random("truth")
    weight = [[truth.gauss(0, 0.6) for _ in range(ids_per_slot)] for _ in range(SLOTS)]
    token = [[f"{truth.getrandbits(32):08x}" for _ in range(ids_per_slot)] for _ in range(SLOTS)]
    draw = random.Random(seed)
    records = []
    for _ in range(count):
        picks = [int(ids_per_slot * draw.random() ** 2) for _ in range(SLOTS)]
        dense = [draw.expovariate(1.0) * 10 for _ in range(DENSE)]
        logit = sum(weight[s][pick] for s, pick in enumerate(picks)) - 0.5
        label = int(draw.random() < 1 / (1 + math.exp(-logit)))
        records.append(Record(label, [f"{x:.4f}" for x in dense],
                              [token[s][pick] for s, pick in enumerate(picks)]))
    return records


def write_data(path: Path, count: int, seed: int = 1) -> list[Record]:
    records = make_records(count, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(record.line() for record in records))
    return records


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


class Running:
    """A flux process whose output is read line by line while it runs."""

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self.process = subprocess.Popen(
            [str(FLUX), *arguments], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8")
        self.lines: list[str] = []
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(line)
        self._queue.put(None)

    def _next(self, deadline: float) -> str | None:
        line = self._queue.get(timeout=max(0.001, deadline - time.monotonic()))
        if line is not None:
            self.lines.append(line)
        return line

    def wait_line(self, pattern: str) -> str | None:
        """The next line that matches, or None if the process ends without one."""
        deadline = time.monotonic() + DEADLINE_S
        while (line := self._next(deadline)) is not None:
            if re.search(pattern, line):
                return line
        self._queue.put(None)  # the end stays known
        return None

    def ended_within(self, seconds: float) -> bool:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def finish(self) -> Done:
        deadline = time.monotonic() + DEADLINE_S
        while self._next(deadline) is not None:
            pass
        code = self.process.wait(DEADLINE_S)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return Done(code, "".join(self.lines), "")

    def kill(self) -> Done:
        """kill -9, at once; harmless if it has ended by itself."""
        self.process.kill()
        return self.finish()


class Case(unittest.TestCase):
    """A test with a scratch folder in which flux is started."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="flux_e2e.")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def flux(self, *arguments: str, code: int | None = 0) -> Done:
        """Runs flux to its end; `code` is the exit code it must have (None: any)."""
        done = subprocess.run(
            [str(FLUX), *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, encoding="utf-8", timeout=DEADLINE_S)
        result = Done(done.returncode, done.stdout, done.stderr)
        if code is not None:
            self.assertEqual(result.code, code, f"flux {' '.join(arguments)}\n{result.text}")
        return result

    def start(self, *arguments: str) -> Running:
        running = Running(arguments, self.folder)
        self.addCleanup(running.process.kill)
        return running

    def wait_checkpoint(self, output: str, running: Running, text: str = "") -> None:
        """Until a manifest with `text` in it is committed; fails if the process ends first."""
        deadline = time.monotonic() + DEADLINE_S
        while not any(text in manifest for manifest in self.manifests(output)):
            self.assertFalse(running.ended_within(0.005), "it ended before its checkpoint")
            self.assertLess(time.monotonic(), deadline)

    def manifests(self, output: str) -> list[str]:
        found = []
        for path in (self.folder / output / "checkpoints").glob("*/manifest.json"):
            with contextlib.suppress(FileNotFoundError):  # removed by its writer meanwhile
                found.append(path.read_text())
        return found

    def summary(self, output: str) -> dict[str, Any]:
        loaded = json.loads((self.folder / output / "summary.json").read_text())
        assert isinstance(loaded, dict)
        return loaded

    def checkpoints(self, output: str) -> list[Path]:
        folder = self.folder / output / "checkpoints"
        return sorted(path for path in folder.iterdir() if path.name[0] != ".")

    def assert_tidy(self, output: str) -> None:
        """No temporary file, and no folder that is neither a checkpoint nor the base of one."""
        for path in (self.folder / output).rglob("*"):
            self.assertFalse(path.name.endswith(".tmp"), path)
        for checkpoint in self.checkpoints(output):
            kinds = [(checkpoint / name).is_file() for name in ("manifest.json", "base.json")]
            self.assertIn(True, kinds, checkpoint)

    def assert_exact(self, output: str, expected: int) -> None:
        """Complete, and the integer counters show each example applied once."""
        found = self.summary(output)
        wanted = {"state": "complete", "expected": expected, "applied_once": expected,
                  "lost": 0, "doubled": 0, "skipped": 0}
        self.assertEqual({name: found[name] for name in wanted}, wanted)

    def assert_refused(self, done: Done, *words: str, code: int = 2) -> None:
        """Refused in plain words: the exit code, 'flux: ' in front, every word, no traces."""
        self.assertEqual(done.code, code, done.text)
        self.assertRegex(done.err, r"\Aflux: ", done.text)
        for word in words:
            self.assertIn(word, done.err)
        for noise in ("terminate called", "std::", "what():", "Assertion", "flux: bug",
                      "Traceback", "Aborted"):
            self.assertNotIn(noise, done.text)


def sets(**fields: object) -> list[str]:
    """--set flags; '__' stands for the dot of a path."""
    flags = []
    for name, value in fields.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        flags += ["--set", f"{name.replace('__', '.')}={text}"]
    return flags


def example(name: str) -> str:
    return str(SOURCE / "examples" / name / "job.yaml")
