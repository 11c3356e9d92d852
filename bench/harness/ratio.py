"""A ratio of two speeds with what it takes to believe it: the quality of both models, threads,
seeds, pairs. Pure.

A program that learns less may be as fast as it likes: a ratio at a quality that is below the peer's
by more than the slack of its measure is none, is printed as such, and meets no target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

NOT_COMPARABLE = "not comparable"
ROUNDING = 1e-9  # of subtracting two numbers that were written with some digits


@dataclass(frozen=True)
class Measure:
    """What a case calls the quality of a model."""

    name: str
    higher_is_better: bool = True
    slack: float = 0.001
    digits: int = 4

    def behind(self, ours: float, theirs: float) -> float:
        """By how much ours is worse; below zero if it is better."""
        return theirs - ours if self.higher_is_better else ours - theirs

    def comparable(self, ours: float, theirs: float) -> bool:
        return self.behind(ours, theirs) <= self.slack + ROUNDING

    def shown(self, value: float | None) -> str:
        return "not recorded" if value is None else f"{value:.{self.digits}f}"


AUC = Measure("AUC")


@dataclass(frozen=True)
class Side:
    """One side of a ratio: its runs, in the order of the rounds."""

    speeds: tuple[float, ...]  # more is faster
    threads: int | None  # None: what is counted is the CPU time of all threads
    seeds: tuple[int, ...] | None = None  # None: not recorded; none at all: nothing is random
    quality: float | None = None  # median of the runs; None: not recorded, or there is no model


def _threads_of(ours: int | None, theirs: int | None) -> str:
    if ours is None or theirs is None:
        return "CPU of all threads"
    if ours != theirs:
        return f"{ours} vs {theirs} threads"
    return "1 thread" if ours == 1 else f"{ours} threads"


def _seeds(seeds: tuple[int, ...] | None) -> str:
    if seeds is None:
        return "seed not recorded"
    distinct = sorted(set(seeds))
    if not distinct:
        return "no seed"
    if len(distinct) == 1:
        return f"seed {distinct[0]}"
    if distinct[-1] - distinct[0] == len(distinct) - 1:
        return f"seeds {distinct[0]}-{distinct[-1]}"
    return "seeds " + " ".join(str(one) for one in distinct)


def seeds_of(ours: tuple[int, ...] | None, theirs: tuple[int, ...] | None) -> str:
    mine, other = _seeds(ours), _seeds(theirs)
    return mine if mine == other else f"{mine} vs {other}"


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The first and the third quartile; of a single value that value."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high


@dataclass(frozen=True)
class Ratio:
    """Ours over theirs, run by run: what the machine does meanwhile hits both sides of a pair."""

    ours: Side
    theirs: Side
    measure: Measure | None = AUC  # None: nothing is learnt
    own: float | None = None  # quality of the same program with one thread, where that is judged
    peer: str = "the peer's"

    def pairs(self) -> list[float]:
        both = zip(self.ours.speeds, self.theirs.speeds, strict=False)  # a row may have failed
        return [mine / other for mine, other in both]

    def value(self) -> float:
        """Median of the pairs, comparable or not: text() is what may be shown."""
        return median(self.pairs())

    def recorded(self) -> bool:
        """False: whether the ratio may be believed cannot be told."""
        qualities = (self.ours.quality, self.theirs.quality)
        return self.measure is None or None not in qualities

    def reason(self) -> str:
        """Why the two sides cannot be compared; empty if they can."""
        if self.measure is None or self.ours.quality is None:
            return ""
        against = ((self.peer, self.theirs.quality), ("its own with 1 thread,", self.own))
        known = [(quality, whose) for whose, quality in against if quality is not None]
        mine, measure = self.ours.quality, self.measure
        for quality, whose in known:
            if not measure.comparable(mine, quality):
                behind = measure.behind(mine, quality)
                where = "below" if measure.higher_is_better else "above"
                return (
                    f"{measure.name} {measure.shown(mine)} is {behind:.{measure.digits}f} {where} "
                    f"{whose} {measure.shown(quality)}"
                )
        return ""

    def comparable(self) -> bool:
        return not self.reason()

    def circumstances(self) -> str:
        count = len(self.pairs())
        pairs = "1 pair" if count == 1 else f"{count} pairs"
        threads = _threads_of(self.ours.threads, self.theirs.threads)
        return f"{threads}, {seeds_of(self.ours.seeds, self.theirs.seeds)}, {pairs}"

    def qualities(self) -> str:
        if self.measure is None:
            return "no model"
        mine, other = self.ours.quality, self.theirs.quality
        if mine is None and other is None:
            return f"{self.measure.name} not recorded"
        return f"{self.measure.name} {self.measure.shown(mine)} vs {self.measure.shown(other)}"

    def details(self) -> str:
        return f"{self.qualities()}, {self.circumstances()}"

    def text(self, unit: str = "") -> str:
        """The ratio as people read it; no figure where the two cannot be compared."""
        if reason := self.reason():
            return f"{NOT_COMPARABLE}: {reason} ({self.circumstances()})"
        between = ""
        if len(self.pairs()) > 1:
            low, high = spread(self.pairs())
            between = f", quartiles {low:.2f} to {high:.2f}"
        return f"{self.value():.2f}x{unit} ({self.details()}{between})"
