"""Rows of the table and the samples taken for them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True)
class Row:
    key: str  # what targets refer to, e.g. "torch_fp32"
    system: str
    setup: str
    threads: int


@dataclass(frozen=True)
class Sample:
    """One run of one row."""

    examples_per_s: float
    wall_s: float
    peak_rss_bytes: int
    others_cores: float
    auc: float | None = None
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A row and how to take one sample of it; the argument is the round, from 1."""

    row: Row
    measure: Callable[[int], Sample]


@dataclass
class Series:
    """All samples of one row, or why there is none."""

    row: Row
    samples: list[Sample] = field(default_factory=list)
    failure: str = ""

    def speed(self) -> float:
        return median(sample.examples_per_s for sample in self.samples)

    def best(self) -> float:
        return max(sample.examples_per_s for sample in self.samples)

    def auc(self) -> float | None:
        values = [sample.auc for sample in self.samples if sample.auc is not None]
        return median(values) if values else None

    def peak_rss_bytes(self) -> int:
        return max(sample.peak_rss_bytes for sample in self.samples)

    def others_cores(self) -> float:
        return max(sample.others_cores for sample in self.samples)


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

    def ratio(self, key: str, to: str, threads: int) -> float | None:
        """Ratio of median speeds at the same number of threads; None if either is missing."""
        one, other = self.find(key, threads), self.find(to, threads)
        return one.speed() / other.speed() if one and other else None

    def threads(self) -> list[int]:
        """Thread counts present, most first."""
        return sorted({series.row.threads for series in self.series}, reverse=True)
