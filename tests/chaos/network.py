"""Real networks that are cut between hosts: tests/netns, run and judged as a chaos scenario."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from figures import Figure, Outcome, at_least, at_most, in_time
from jobs import JobError, Runner

DEADLINE_S = 3600
SKIPPED = 77
EXAMPLES = 20_000


class SkippedError(Exception):
    """It cannot be run here, for this reason."""


def networks_cut(runner: Runner, cuts: int) -> Outcome:
    """Hosts are network namespaces; pairs of all roles, both ways and one way."""
    switch = runner.flux.parent / "bin/netns_switch"
    if not switch.exists():
        raise SkippedError(f"{switch.name} is not built: make netns builds it")
    found = runner.scratch / "netns.json"
    done = subprocess.run(
        [sys.executable, "-B", str(runner.source / "tests/netns/netns.py"), "--flux",
         str(runner.flux), "--switch", str(switch), "--examples", str(EXAMPLES), "--cuts",
         str(cuts), "--only-cuts", "--found", str(found)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE_S)
    if done.returncode == SKIPPED:
        raise SkippedError(done.stdout.strip().removeprefix("netns: skipped: "))
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise JobError(f"netns.py: exit code {done.returncode}\n{tail}")
    result = json.loads(found.read_text())
    return Outcome(judged(runner, result, cuts),
                   f"{len(result['healed'])} cuts · {result['examples']:,} examples · lost "
                   f"{result['lost']} · double {result['doubled']} · longest stall in a cut "
                   f"{max(result['stalls'], default=0.0):.2f} s")


def judged(runner: Runner, found: dict[str, Any], cuts: int) -> list[Figure]:
    healed = found["healed"]
    two_writers = len(found["differed"]) + found["lost"] + found["doubled"]
    return [at_least("cuts made", len(healed), cuts, must=not healed),
            at_most("lost", found["lost"], 0, must=True),
            at_most("doubled", found["doubled"], 0, must=True),
            at_most("signs of two writers", two_writers, 0, must=True),
            in_time(runner, "healed, max s after", max(healed, default=0.0), 2.0)]
