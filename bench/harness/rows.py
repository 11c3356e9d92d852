"""Rows of the table and the samples taken for them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from harness.machine import QUIET_CORES
from harness.ratio import AUC, Measure, Ratio, Side, spread


@dataclass(frozen=True)
class Row:
    key: str  # what targets refer to, e.g. "torch_fp32"
    system: str
    setup: str
    threads: int


@dataclass(frozen=True)
class RoleUse:
    """What one process of a run used, seen from outside."""

    role: str  # server, worker, coordinator, run
    name: str
    cpu_s: float
    peak_rss_bytes: int
    gb_s: float  # integral of its resident memory over its life, in 10^9 bytes x seconds


@dataclass(frozen=True)
class Wire:
    """Bytes between workers and servers, as the servers counted them."""

    form: str  # of numbers on the wire: fp32, fp16, bf16
    to_servers: int
    from_servers: int


@dataclass(frozen=True)
class Sample:
    """One run of one row."""

    examples_per_s: float
    wall_s: float
    peak_rss_bytes: int
    others_cores: float
    auc: float | None = None
    extra: dict[str, object] = field(default_factory=dict)
    roles: tuple[RoleUse, ...] = ()
    wire: Wire | None = None
    seed: int | None = None  # None: the program has one of its own, which it does not tell

    def cpu_s(self, *roles: str) -> float | None:
        """CPU seconds of all processes of these roles; None when there is none."""
        found = [use.cpu_s for use in self.roles if use.role in roles]
        return sum(found) if found else None

    def gb_s(self, *roles: str) -> float | None:
        found = [use.gb_s for use in self.roles if use.role in roles]
        return sum(found) if found else None

    def peak_of(self, role: str) -> int | None:
        """Peak memory of the largest process of a role."""
        found = [use.peak_rss_bytes for use in self.roles if use.role == role]
        return max(found) if found else None


@dataclass(frozen=True)
class Case:
    """A row and how to take one sample of it; the argument is the round, from 1."""

    row: Row
    measure: Callable[[int], Sample]
    rounds: int | None = None  # in which it takes part, from the first; None: in all


@dataclass
class Series:
    """All samples of one row, or why there is none."""

    row: Row
    samples: list[Sample] = field(default_factory=list)
    failure: str = ""
    skipped: str = ""  # why it cannot be measured on this machine

    def middle(self, value: Callable[[Sample], float | None]) -> float | None:
        """Median over the samples that have the value."""
        found = [one for sample in self.samples if (one := value(sample)) is not None]
        return median(found) if found else None

    def speed(self) -> float:
        return median(sample.examples_per_s for sample in self.samples)

    def best(self) -> float:
        return max(sample.examples_per_s for sample in self.samples)

    def quartiles(self) -> tuple[float, float]:
        return spread([sample.examples_per_s for sample in self.samples])

    def auc(self) -> float | None:
        values = [sample.auc for sample in self.samples if sample.auc is not None]
        return median(values) if values else None

    def side(self, divisor: float = 1.0) -> Side:
        """As one side of a ratio, its speeds divided by something, such as cores."""
        seeds = [sample.seed for sample in self.samples if sample.seed is not None]
        return Side(
            speeds=tuple(sample.examples_per_s / divisor for sample in self.samples),
            threads=self.row.threads,
            seeds=tuple(seeds) if len(seeds) == len(self.samples) else None,
            quality=self.auc(),
        )

    def peak_rss_bytes(self) -> int:
        return max(sample.peak_rss_bytes for sample in self.samples)

    def others_cores(self) -> float:
        return max(sample.others_cores for sample in self.samples)

    def noise(self) -> str:
        """Cores used by others in the worst run, marked where they are too many."""
        others = self.others_cores()
        return f"{others:.2f} !" if others > QUIET_CORES else f"{others:.2f}"

    def shown_quartiles(self) -> str:
        low, high = self.quartiles()
        return f"{low:,.0f} to {high:,.0f}"


class Table:
    """Series in the order of their rows, found by key and threads."""

    def __init__(self) -> None:
        self.series: list[Series] = []

    def add(self, series: Series) -> None:
        self.series.append(series)

    def find(self, key: str, threads: int) -> Series | None:
        """The series, if it has samples."""
        for series in self.series:
            if series.row.key == key and series.row.threads == threads and series.samples:
                return series
        return None

    def ratio(
        self, key: str, to: str, threads: int, measure: Measure | None = AUC
    ) -> Ratio | None:
        """Of speeds at the same number of threads; None if either is missing."""
        one, other = self.find(key, threads), self.find(to, threads)
        return Ratio(one.side(), other.side(), measure) if one and other else None

    def over_one_thread(self, key: str, threads: int) -> Ratio | None:
        """Of a row's speed to its own with one thread, whose AUC is the measure, too."""
        one, alone = self.find(key, threads), self.find(key, 1)
        if threads == 1 or not one or not alone:
            return None
        return Ratio(one.side(), alone.side(), peer="its own with 1 thread,")

    def threads(self) -> list[int]:
        """Thread counts present, most first."""
        return sorted({series.row.threads for series in self.series}, reverse=True)
