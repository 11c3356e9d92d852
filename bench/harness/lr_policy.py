"""The part lr_policy: what a change of the number of workers costs, by rule of the learning rate.

`lr_policy_bench` simulates the workers on one thread, so a seed gives the same run whatever else
the machine does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import mean, pstdev

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


def _cell(results: Sequence[Result], keep: Callable[[Result], bool], base: float | None) -> str:
    aucs = [one.auc for one in results if keep(one)]
    if not aucs:
        return "-"
    change = "" if base is None else f" ({mean(aucs) - base:+.4f})"
    return f"{mean(aucs):.4f} ± {pstdev(aucs):.4f}{change}"


def render(results: Sequence[Result], date: str) -> str:
    """The page bench/results/lr_policy.md."""
    seeds = len({one.seed for one in results})
    out = [
        f"# Learning rate and the number of workers, {date}",
        "",
        '`make bench ARGS="--only lr_policy"`. CTR-DNN, batches of 200, '
        f"{EXAMPLES:,} examples to train on (1,000 batches), {TEST_EXAMPLES:,} to test on; {seeds} "
        "seeds: mean of the test AUC ± its standard deviation, and in brackets the difference from "
        "one worker all the time. `1,2,4,1`: each quarter of the data by so many workers; rules "
        "are those of the job field `on_workers_change`, reference 1.",
        "",
        "Workers are simulated one after the other over the real server, net, merge and policy "
        "(`bench/lr_policy_bench.cc`), so that a seed gives the same figures on any machine of the "
        "same kind: async workers are k - 1 pushes late on average, half_async merges two batches "
        "per worker, sync makes one step of all workers' batches. These are figures of the "
        "arithmetic, not of processes.",
    ]
    for workers in SCHEDULES:
        lines = [["rule", *MODES]]
        for rule in rules(workers):
            cells = []
            for mode in MODES:
                base = [o.auc for o in results if o.mode == mode and o.rule == Rule("none", 0, "1")]

                def keep(one: Result, mode: str = mode, rule: Rule = rule) -> bool:
                    return one.mode == mode and one.rule == rule

                first = rule.workers == "1" or not base
                cells.append(_cell(results, keep, None if first else mean(base)))
            lines.append([rule.shown(), *cells])
        out += ["", f"## Workers {workers}", "", markdown(lines, frozenset({1, 2, 3}))]
    refused = sum(one.refused for one in results)
    out += ["", f"Batches refused because a gradient was not finite: {refused}.", ""]
    return "\n".join(out)
