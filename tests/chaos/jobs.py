"""Jobs that chaos scenarios run: data, undisturbed runs, drilled runs.

Models: `counting` (one key per example, so that each lost or doubled example is seen;
`counting_long` with longer epochs), `ctr_dnn` (the example as it is), `ctr` (a small CTR-DNN) and
`lr` (whose AUC hardly differs between runs); the last two also with little data. An undisturbed run
of each shape is made once and kept.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEADLINE_S = 4 * 3600
TRIAL_S = 3.0
LONGER, LONGER_IF_SHORT = 1.2, 1.0  # a drilled job is so much longer than the faults need
TRIES = 3  # and longer still if it ended before all were made
AGE = re.compile(r"have no replica left: .*, ([0-9.]+) s old")


class JobError(Exception):
    """A job that did not do what the scenario needs."""


@dataclass(frozen=True)
class Model:
    """An example job, on so many examples of our own, with these --set."""

    example: str
    examples: int = 1_000_000
    tested: int = 100_000  # examples; 0: not tested
    sets: tuple[str, ...] = ()


COUNTING = ("data.batch=10", "shards=16")
SMALL = ("data.batch=100", "shards=8")
NARROW = ("model.layers.fc1.units=64", "model.layers.fc2.units=32", "model.layers.fc3.units=16")
MODELS = {
    "counting": Model("counting", 20_000, 0, COUNTING),
    "counting_long": Model("counting", tested=0, sets=COUNTING),
    "ctr_dnn": Model("ctr_dnn"),
    "ctr": Model("ctr_dnn", sets=SMALL + NARROW),
    "lr": Model("lr", sets=SMALL),
    "ctr_short": Model("ctr_dnn", 30_000, 10_000, SMALL + NARROW),
    "lr_short": Model("lr", 30_000, 10_000, SMALL),
}


@dataclass(frozen=True)
class Job:
    """What is trained and by how many; `seconds` is how long it should take undisturbed."""

    model: str = "counting"
    servers: int = 2
    workers: int = 3
    seconds: float = 30.0
    sets: tuple[str, ...] = ()
    checkpoint_s: float = 0.0
    fixed_epochs: int = 0  # else as many as the seconds need
    compared: bool = True  # with an undisturbed run of the same shape

    @property
    def counts(self) -> bool:
        return self.model.startswith("counting")

    @property
    def key(self) -> str:
        words = [self.model, f"s{self.servers}", f"w{self.workers}", f"{self.seconds:.0f}s",
                 f"c{self.checkpoint_s}", *self.sets]
        return "-".join(words).replace("=", "_").replace("/", "_").replace(".", "_")


@dataclass
class Result:
    drill: dict[str, Any]
    baseline: dict[str, Any]
    output: str = ""
    content: dict[str, Any] = field(default_factory=dict)  # of the model it should have; or empty
    ages: tuple[float, ...] = ()  # seconds, of the checkpoints that lost shards were loaded from
    rolled_back: bool = False  # some were

    @property
    def summary(self) -> dict[str, Any]:
        found = self.drill["summary"]
        if not isinstance(found, dict):
            raise JobError(f"the job left no summary: {self.drill['line']}")
        return found

    @property
    def repaired(self) -> bool:
        faults = self.drill["faults"]
        return bool(faults) and faults[-1]["recovered_s"] is not None

    def times(self, label: str, column: str) -> dict[str, float]:
        """Seconds; what was never seen of faults that were made took for ever."""
        found = self.drill["recovery"].get(label, {}).get(column)
        if not isinstance(found, dict):
            return {"count": 0, "p50": 0, "p99": 0, "max": 0}
        return {key: math.inf if value is None else value for key, value in found.items()}


@dataclass
class Runner:
    flux: Path
    source: Path
    scratch: Path
    seed: int
    mode: str
    baseline_s: float = 60.0  # at most; 0: no undisturbed run beside a drill
    rates: dict[str, float] = field(default_factory=dict)
    baselines: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def short(self) -> bool:
        return self.baseline_s <= 0

    def call(self, *words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([str(self.flux), *words], cwd=self.scratch, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE_S)
        if code is not None and done.returncode != code:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
            raise JobError(f"flux {' '.join(words)}: exit code {done.returncode}\n{tail}")
        return done

    def data(self, name: str, examples: int, seed: int) -> Path:
        path = self.scratch / f"{name}.tsv"
        if not path.exists():
            self.call("data", "gen", "criteo", "--examples", str(examples), "--seed", str(seed),
                      "--out", str(path))
        return path

    def words(self, job: Job, output: str, epochs: int) -> list[str]:
        """Job file and --set flags."""
        model = MODELS[job.model]
        train = self.data(f"train-{model.examples}", model.examples, 1)
        fields = [f"data.train={train}", f"output={output}", f"epochs={epochs}",
                  f"mode={self.mode}", f"checkpoint.every_s={job.checkpoint_s}", *job.sets,
                  *model.sets]
        if model.tested:
            fields += [f"data.test={self.data(f'test-{model.tested}', model.tested, 2)}"]
        words = [str(self.source / "examples" / model.example / "job.yaml")]
        for one in fields:
            words += ["--set", one]
        return words

    def shape(self, job: Job) -> list[str]:
        return ["--servers", str(job.servers), "--workers", str(job.workers), "--threads", "1"]

    def epochs(self, job: Job, seconds: float) -> int:
        """So many that the job takes about `seconds`, by a trial that is long enough to tell."""
        if job.fixed_epochs:
            return job.fixed_epochs
        key = f"{job.model}-{job.servers}-{job.workers}-{self.mode}"
        count = 4
        while key not in self.rates:
            output = f"trial-{key}"
            self.call("run", *self.words(job, output, count), *self.shape(job), "--fresh")
            trial = self.summary(output)
            if trial["train_s"] >= (1.0 if self.short else TRIAL_S) or count > 1000:
                self.rates[key] = trial["examples_per_s"]
            count = round(count * max(2.0, 1.5 * TRIAL_S / max(trial["train_s"], 0.1)))
        return max(1, round(self.rates[key] * seconds / MODELS[job.model].examples))

    def summary(self, output: str) -> dict[str, Any]:
        loaded = json.loads((self.scratch / output / "summary.json").read_text())
        if not isinstance(loaded, dict):
            raise JobError(f"{output}: no summary")
        return loaded

    def baseline(self, job: Job, epochs: int = 0, again: int = 0) -> tuple[dict[str, Any], str]:
        """The undisturbed run: its summary, and the file. `epochs` 0: a minute's at most.

        One run of each `again` is made and kept.
        """
        longest = job.seconds if self.short else self.baseline_s
        count = epochs or self.epochs(job, min(job.seconds, longest))
        output = f"base-{job.key}-{self.mode}-{count}-{again}"
        if output not in self.baselines:
            self.call("run", *self.words(job, output, count), *self.shape(job), "--fresh")
            self.baselines[output] = self.summary(output)
        return self.baselines[output], f"{output}/summary.json"

    def drill(self, job: Job, *faults: str) -> Result:
        """The same job under faults; again and longer if it ended before all were made.

        For AUC the undisturbed run has to be as long; for the speed a minute of it will do, and in
        a short run none. There the last fault must be seen to be repaired, too.
        """
        wanted = int(faults[faults.index("--times") + 1])
        longer = LONGER_IF_SHORT if self.short else LONGER
        result = None
        for _ in range(TRIES):
            epochs = self.epochs(job, job.seconds * longer)
            base: dict[str, Any] = {}
            path = ""
            if job.compared and not (self.short and job.counts):
                base, path = self.baseline(job, 0 if job.counts else epochs)
            result = self.one_drill(job, epochs, path, base, *faults)
            made = result.drill["faults_made"] + result.drill["faults_left_out"]
            repaired = not self.short or result.repaired
            if (made >= wanted and repaired) or job.fixed_epochs:
                break
            longer *= max(2.0, min(10.0, 1.4 * wanted / max(made, 1)))
        assert result is not None
        return result

    def one_drill(self, job: Job, epochs: int, path: str, base: dict[str, Any],
                  *faults: str) -> Result:
        output = f"drill-{job.key}"
        shutil.rmtree(self.scratch / output, ignore_errors=True)
        against = ["--baseline", path] if path else []
        done = self.call("drill", *self.words(job, output, epochs), "--run", "--fresh",
                         *self.shape(job), "--seed", str(self.seed), *against, "--quiet",
                         "--job-log", f"{output}.log", *faults, code=None)
        found = self.scratch / output / "drill.json"
        if not found.exists() or done.returncode not in (0, 1):
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-5:])
            raise JobError(f"flux drill {' '.join(faults)}: exit code {done.returncode}: {tail}")
        loaded = json.loads(found.read_text())
        log = (self.scratch / f"{output}.log").read_text()
        return Result(loaded, base, output, self.right_content(job, epochs),
                      tuple(float(age) for age in AGE.findall(log)),
                      "have no replica left" in log)

    def right_content(self, job: Job, epochs: int) -> dict[str, Any]:
        """The summary of the same job in one process: rows and hash of what is learned.

        Keys that no two examples share learn the same in any order, so a counting model is equal
        bit by bit, unless the mode merges batches.
        """
        if not job.counts or self.mode != "async":
            return {}
        output = f"right-{job.key}"
        self.call("run", *self.words(job, output, epochs), "--fresh")
        return self.summary(output)
