#!/usr/bin/env python3
"""Faults against real jobs, one scenario for each promise, each figure beside its target.

    tests/chaos/chaos.py --flux build/flux [--only NAME,...] [--short] [--seed S] [--mode MODE]

Every scenario runs a job undisturbed (once for each shape), then the same job under `flux drill`,
and compares: lost and doubled examples (these must be 0, or the scenario fails), recovery times,
goodput and AUC (recorded beside their targets; a miss is said, and fails only with --strict, as a
busy machine misses them too). `--short` makes few faults, for `make test`, and compares with no
undisturbed run; without it the counts are those that are promised. Results: chaos.md and chaos.json
in --results, where a scenario that is not run keeps its former ones.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import scenarios
from figures import Figure
from jobs import Runner
from network import SkippedError

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Outcome:
    name: str
    promise: str
    figures: list[Figure] = field(default_factory=list)
    line: str = ""
    failure: str = ""
    skipped: str = ""  # why
    seconds: float = 0.0

    @property
    def state(self) -> str:
        if self.failure:
            return "FAILED"
        if self.skipped:
            return "skipped"
        return "missed" if any(f.met is False for f in self.figures) else "met"


def run_one(scenario: scenarios.Scenario, runner: Runner, count: int) -> Outcome:
    outcome = Outcome(scenario.name, scenario.promise)
    begin = time.monotonic()
    try:
        result = scenario.run(runner, count)
        outcome.figures, outcome.line = result.figures, result.line
        wrong = [f"{f.name} is {f.shown()}, must be {f.target}"
                 for f in result.figures if f.must and f.met is False]
        outcome.failure = "; ".join(wrong)
    except SkippedError as error:
        outcome.skipped = str(error)
    except scenarios.FailedError as error:
        outcome.failure = str(error)
    outcome.seconds = time.monotonic() - begin
    return outcome


def as_json(outcome: Outcome, count: int) -> dict[str, Any]:
    return {"name": outcome.name, "promise": outcome.promise, "state": outcome.state,
            "failure": outcome.failure, "skipped": outcome.skipped, "count": count,
            "seconds": round(outcome.seconds, 1), "line": outcome.line,
            "figures": [{"name": f.name, "shown": f.shown(), "value": f.value,
                         "target": f.target, "met": f.met} for f in outcome.figures]}


def table(results: list[dict[str, Any]]) -> str:
    lines = ["# Chaos", "",
             "Real processes on one machine; each scenario is described in "
             "`tests/chaos/scenarios.py`. Times are seconds. Not judged: the undisturbed run was "
             "no measure (a goodput above 110 %: the machine was busier then; an AUC whose runs "
             "differ by more than the target).", "",
             "| scenario | figure | measured | target | |", "|---|---|---|---|---|"]
    for one in results:
        name = f"{one['name']} x{one['count']}"
        if one["failure"]:
            text = one["failure"].splitlines()[0][:200].replace("|", "/")
            lines.append(f"| {name} | | {text} | | FAILED |")
        if one.get("skipped"):
            lines.append(f"| {name} | | not run: {one['skipped']} | | skipped |")
        for figure in one["figures"]:
            mark = {True: "met", False: "missed", None: "not judged"}[figure["met"]]
            cells = [name, figure["name"], figure["shown"], figure["target"], mark]
            lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "Accounting lines:", ""]
    lines += [f"- {one['name']}: {one['line']}" for one in results if one["line"]]
    return "\n".join(lines) + "\n"


def write_results(folder: Path, new: list[dict[str, Any]]) -> None:
    """What was not run this time stays as it was, also what could not be run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "chaos.json"
    known = {one["name"]: one for one in json.loads(path.read_text())} if path.exists() else {}
    known.update({one["name"]: one for one in new
                  if not one.get("skipped") or one["name"] not in known})
    results = [known[s.name] for s in scenarios.ALL if s.name in known]
    path.write_text(json.dumps(results, indent=1) + "\n")
    (folder / "chaos.md").write_text(table(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [s.name for s in scenarios.ALL]
    parser.add_argument("--flux", type=Path, default=ROOT / "build/flux")
    parser.add_argument("--only", default="", help="comma-separated: " + ", ".join(names))
    parser.add_argument("--short", action="store_true", help="few faults: for make test")
    parser.add_argument("--times", type=int, help="faults (or pairs of runs, or seeds) of each")
    parser.add_argument("--strict", action="store_true", help="a missed time is a failure too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", default="async", choices=("async", "sync"))
    parser.add_argument("--results", type=Path, help="folder for chaos.md and chaos.json")
    parser.add_argument("--scratch", type=Path, help="kept afterwards; default: removed")
    arguments = parser.parse_args()
    arguments.only = [name for name in arguments.only.split(",") if name]
    if unknown := set(arguments.only) - set(names):
        parser.error(f"no scenario {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    return arguments


def main() -> int:
    arguments = parse()
    flux = arguments.flux.resolve()
    if not flux.exists():
        sys.exit(f"chaos: {flux} is not there: make build")
    scratch = arguments.scratch or Path(tempfile.mkdtemp(prefix="flux_chaos."))
    scratch.mkdir(parents=True, exist_ok=True)
    runner = Runner(flux, ROOT, scratch.resolve(), arguments.seed, arguments.mode,
                    0.0 if arguments.short else 60.0)
    chosen = [s for s in scenarios.ALL if not arguments.only or s.name in arguments.only]
    if arguments.short and not arguments.only:
        chosen = [s for s in chosen if s.short is not None]
    outcomes = []
    try:
        for scenario in chosen:
            print(f"== {scenario.name}: {scenario.promise}", flush=True)
            few = scenario.short if arguments.short else None
            count = int(arguments.times or few or scenario.full)
            outcome = run_one(scenario, runner, count)
            for figure in outcome.figures:
                print(f"   {figure.name}: {figure.shown()} (target {figure.target})")
            why = outcome.failure or outcome.skipped
            print(f"   {outcome.line}\n   {outcome.state} in {outcome.seconds:.0f} s"
                  f"{': ' + why if why else ''}", flush=True)
            outcomes.append(outcome)
            if arguments.results:
                write_results(arguments.results, [as_json(outcome, count)])
    finally:
        if not arguments.scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    bad = {"FAILED", "missed"} if arguments.strict else {"FAILED"}
    return 1 if any(o.state in bad for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
