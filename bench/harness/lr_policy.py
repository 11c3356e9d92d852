"""The part lr_policy: what a change of the number of workers costs, by rule of the learning rate.

`lr_policy_bench` simulates the workers on one thread, so a seed gives the same run whatever else
the machine does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import mean, stdev

from harness import process
from harness.errors import BenchError
from harness.flux import ROOT, Files
from harness.text import markdown

MODES = ("async", "half_async", "sync")
EXAMPLES, TEST_EXAMPLES = 200_000, 50_000
WARMUP = 100
SEEDS = (1, 2, 3)
SCHEDULES = ("1,2,4,1", "1,4")


@dataclass(frozen=True)
class Rule:
    lr: str
    warmup: int
    workers: str

    def shown(self) -> str:
        if "," not in self.workers:
            return f"none, {self.workers} worker{'s' if self.workers != '1' else ''} all the time"
        if self.lr == "none":
            return "none"
        return (
            f"{self.lr}, warm-up of {self.warmup} batches" if self.warmup else f"{self.lr}, at once"
        )


@dataclass(frozen=True)
class Result:
    mode: str
    rule: Rule
    seed: int
    auc: float
    refused: int


def rules(workers: str) -> list[Rule]:
    """The rules that are compared on this schedule of worker counts, the controls first."""
    constant = [Rule("none", 0, "1"), Rule("none", 0, "4")]
    changed = [Rule(lr, warmup, workers) for lr in ("linear", "sqrt") for warmup in (0, WARMUP)]
    return [*constant, Rule("none", 0, workers), *changed]


def first_lines(source: Path, count: int, out: Path) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as lines, out.open("wb") as part:
        part.writelines(islice(lines, count))
    return out


def parse(output: str) -> dict[str, object]:
    for line in output.splitlines():
        if line.startswith("{"):
            parsed = json.loads(line)
            if isinstance(parsed, dict) and parsed.get("bench") == "lr_policy":
                return parsed
    raise BenchError("lr_policy_bench printed no result")


def run_all(folder: Path, files: Files, cache: Path, seeds: Sequence[int] = SEEDS) -> list[Result]:
    """Every rule in every mode and with every seed; a rule that two schedules share runs once."""
    binary = folder / "lr_policy_bench"
    if not binary.exists():
        raise BenchError("lr_policy_bench is not built: configure with -DFLUX_BENCH=ON")
    train = first_lines(files.train, EXAMPLES, cache / "scratch" / "lr_policy_train.tsv")
    test = first_lines(files.test, TEST_EXAMPLES, cache / "scratch" / "lr_policy_test.tsv")
    job = ROOT / "examples" / "ctr_dnn" / "job.yaml"
    todo = dict.fromkeys(rule for workers in SCHEDULES for rule in rules(workers))
    results = []
    for seed in seeds:
        for mode in MODES:
            for rule in todo:
                command = [str(binary), str(job), str(train), str(test), mode, rule.lr]
                command += [str(rule.warmup), rule.workers, str(seed)]
                line = parse(process.run(command).output)
                one = Result(mode, rule, seed, float(str(line["auc"])), int(str(line["refused"])))
                print(
                    f"{mode}, {rule.workers}, {rule.shown()}, seed {seed}: {one.auc:.5f}",
                    flush=True,
                )
                results.append(one)
    return results


def _cell(aucs: Mapping[int, float], base: Mapping[int, float] | None) -> str:
    """Mean over the seeds; its difference from `base`, seed by seed, and how much that varies."""
    if not aucs:
        return "-"
    shown = f"{mean(aucs.values()):.4f}"
    if not base:
        return shown
    changes = [auc - base[seed] for seed, auc in aucs.items() if seed in base]
    spread = f" ± {stdev(changes):.4f}" if len(changes) > 1 else ""
    return f"{shown} ({mean(changes):+.4f}{spread})" if changes else shown


def _aucs(results: Sequence[Result], mode: str, rule: Rule) -> dict[int, float]:
    return {one.seed: one.auc for one in results if one.mode == mode and one.rule == rule}


def render(results: Sequence[Result], date: str) -> str:
    """The page bench/results/lr_policy.md."""
    seeds = len({one.seed for one in results})
    out = [
        f"# Learning rate and the number of workers, {date}",
        "",
        '`make bench ARGS="--only lr_policy"`. CTR-DNN, precision auto (bf16 if the CPU has it), '
        f"batches of 200, {EXAMPLES:,} examples to train on (1,000 batches), {TEST_EXAMPLES:,} to "
        f"test on; mean test AUC of {seeds} seeds, and in brackets the difference from one worker "
        "all the time, seed by seed, ± its standard deviation. A seed is first values "
        "and the order of the data; so few of them show effects well above that deviation and no "
        "others. `1,2,4,1`: each quarter of the data by so many workers; rules are "
        "those of the job field `on_workers_change`, reference 1. No learning rate was "
        "tuned for any row.",
        "",
        "Workers are simulated one after the other over the real server, net, merge and policy "
        "(`bench/lr_policy_bench.cc`), so that a seed gives the same figures on any machine of the "
        "same kind: async workers are k - 1 pushes late on average, half_async merges two batches "
        "per worker, sync makes one step of all workers' batches. These are figures of the "
        "arithmetic, not of processes.",
    ]
    one_worker = Rule("none", 0, "1")
    for workers in SCHEDULES:
        lines = [["rule", *MODES]]
        for rule in rules(workers):
            cells = [rule.shown()]
            for mode in MODES:
                base = None if rule == one_worker else _aucs(results, mode, one_worker)
                cells.append(_cell(_aucs(results, mode, rule), base))
            lines.append(cells)
        out += ["", f"## Workers {workers}", "", markdown(lines, frozenset({1, 2, 3}))]
    refused = sum(one.refused for one in results)
    out += ["", f"Batches refused because a gradient was not finite: {refused}.", ""]
    return "\n".join(out)
