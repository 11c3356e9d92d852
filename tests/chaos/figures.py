"""Figures of chaos scenarios: what was measured, beside what was promised.

A figure that `must` hold fails its scenario. In a short run times and shares must hold too, but
within bounds so wide that a busy machine keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, inf, sqrt
from statistics import mean, variance

from jobs import Result, Runner

COMPARABLE = 1.1  # more goodput than this: the undisturbed run is no measure
AUC_TARGET = 0.0005
LAX = 10.0  # in a short run a time may be so many times its target
LAX_SHARE = 0.4  # and a share of the speed this
# And AUC differ by this: in so few steps it still climbs, and in sync mode each worker more or less
# makes the steps fewer or more.
LAX_AUC = 0.02
BEGINNING = ("starting", "loading", "reading")  # states of a job


def number(value: float) -> str:
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.5f}"


@dataclass
class Figure:
    name: str
    value: float
    target: str
    met: bool | None = None
    must: bool = False

    def shown(self) -> str:
        return number(self.value)


@dataclass
class Outcome:
    figures: list[Figure] = field(default_factory=list)
    line: str = ""


def at_most(name: str, value: float, limit: float, must: bool = False) -> Figure:
    return Figure(name, value, f"<= {number(limit)}", value <= limit, must)


def at_least(name: str, value: float, limit: float, must: bool = False) -> Figure:
    return Figure(name, value, f">= {number(limit)}", value >= limit, must)


def in_time(runner: Runner, name: str, value: float, limit: float) -> Figure:
    return at_most(name, value, LAX * limit if runner.short else limit, must=runner.short)


def share_of_speed(runner: Runner, name: str, value: float, least: float) -> Figure:
    return at_least(name, value, LAX_SHARE if runner.short else least, must=runner.short)


def exact(result: Result, faults: int) -> list[Figure]:
    """What holds after every scenario: all faults were made, and each example counts once."""
    summary = result.summary
    made = result.drill["faults_made"]
    return [
        Figure("faults made", made, f">= {faults}", made >= faults, made == 0),
        at_most("lost", summary["lost"], 0, must=True),
        at_most("doubled", summary["doubled"], 0, must=True),
        at_least("applied once", summary["applied_once"], summary["expected"], must=True),
        Figure("complete", float(summary["state"] == "complete"), "1",
               summary["state"] == "complete", True),
        *same_content(result),
    ]


def same_content(result: Result) -> list[Figure]:
    """Rows and hash of the model are those of an undisturbed run in one process.

    Where a shard went back to a checkpoint, gradients computed before that are applied to older
    rows, as async training allows: each once, but the last bits may differ.
    """
    right = result.content
    if not right:
        return []
    same = result.summary["model_hash"] == right["model_hash"]
    return [Figure("rows", result.summary["rows"], f"{right['rows']:,}",
                   result.summary["rows"] == right["rows"], True),
            Figure("content hash equal", float(same), "1",
                   None if result.rolled_back and not same else same, not result.rolled_back)]


def recovered(result: Result, *labels: str, column: str = "recovered") -> dict[str, float]:
    """Spread of recovery over several labels; the worst of each counts.

    What that is for which fault: docs/using/drill.md."""
    spreads = [result.times(label, column) for label in labels]
    return {key: max((s[key] for s in spreads), default=0.0) for key in ("p50", "p99", "max")}


def goodput(result: Result, share: float, allowed: float = 1.0) -> Figure:
    """Unique examples per second, disturbed over undisturbed; `allowed`: what the faults take."""
    value = float(result.drill["goodput"] or 0)
    figure = at_least("goodput", value, share * allowed)
    # Faults do not make a job faster: then the machine was busier before.
    if value > COMPARABLE or not result.baseline:
        figure.met = None
    return figure


def against_rest(result: Result, share: float) -> Figure:
    """Examples per second while faults come, over those of the same run after the last of them.

    The drill looks at the job many times a second in both parts, and the machine is the same.
    """
    columns = result.drill["sample_columns"]
    t, applied = columns.index("t"), columns.index("applied")
    samples = result.drill["samples"]
    times = [fault["t"] for fault in result.drill["faults"]] or [0.0]
    settled = 5.0  # seconds, after a fault and before the end

    def rate(begin: float, end: float) -> float:
        part = [s for s in samples if begin <= s[t] <= end]
        if len(part) < 2 or part[-1][t] - part[0][t] < 2 * settled:
            return 0.0
        return float((part[-1][applied] - part[0][applied]) / (part[-1][t] - part[0][t]))

    during = rate(times[0], times[-1] + settled)
    rest = rate(times[-1] + settled, samples[-1][t] - settled)
    figure = at_least("speed while faults come, over the rest of the run",
                      during / rest if rest else 0.0, share)
    if not during or not rest:
        figure.met = None
    return figure


def worst_stall(runner: Runner, result: Result, limit: float) -> Figure:
    return in_time(runner, "worst stall, s", result.drill["worst_stall_s"], limit)


def longest_pauses(result: Result) -> list[float]:
    """After each fault, until the next one: the longest time in which nothing new was applied."""
    columns = result.drill["sample_columns"]
    t, applied, state = (columns.index(name) for name in ("t", "applied", "state"))
    begins = [fault["t"] for fault in result.drill["faults"]]
    longest = [0.0] * len(begins)
    moved_t, moved_to, last = 0.0, -1, -1
    for sample in result.drill["samples"]:
        while last + 1 < len(begins) and begins[last + 1] <= sample[t]:
            last += 1
        # Nobody answered ("") or it begins again because of a fault: that is no progress.
        counts = ("training", "", *(BEGINNING if last >= 0 else ()))
        if sample[state] not in counts:
            moved_to = -1
            continue
        if moved_to >= 0 and last >= 0:
            longest[last] = max(longest[last], sample[t] - moved_t)
        if sample[applied] > moved_to:
            moved_t, moved_to = sample[t], sample[applied]
    return longest


def pause_p99(runner: Runner, result: Result, limit: float) -> Figure:
    """Nearest rank, over all faults."""
    pauses = sorted(longest_pauses(result)) or [inf]
    return in_time(runner, "longest pause after a change, p99 s",
                   pauses[ceil(0.99 * len(pauses)) - 1], limit)


def points_hit(result: Result) -> int:
    return len({fault["what"].split()[3].split(":")[0] for fault in result.drill["faults"]
                if fault["kind"].startswith("die at point")})


def changes_of(result: Result, what: str, at_first: int) -> int:
    """Times that another number of workers (or servers) was asked for than before."""
    sizes = [at_first, *(int(fault["what"].split()[2]) for fault in result.drill["faults"]
                         if fault["kind"] == f"scale {what}")]
    return sum(one != other for one, other in pairwise(sizes))


def distance_of_means(mode: str, calm: list[float], hurt: list[float],
                      short: bool = False) -> list[Figure]:
    """Judged only if the runs are alike enough for the difference to mean something."""
    pairs = [h - c for c, h in zip(calm, hurt, strict=True)]  # runs of one seed belong together
    name = f"AUC in {mode}, distance of means"
    if short:
        return [at_most(name, abs(mean(pairs)), LAX_AUC, must=True)]
    distance = at_most(name, abs(mean(pairs)), AUC_TARGET)
    error = sqrt(variance(pairs) / len(pairs)) if len(pairs) > 1 else 1.0
    if error > AUC_TARGET / 2:
        distance.met = None
    return [distance,
            Figure(f"AUC in {mode}, standard error of that", error, f"<= {AUC_TARGET / 2}")]
