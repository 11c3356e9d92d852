"""The part old: two binaries of flux beside each other, new and old in turns.

A new binary that is faster because it learns less is not faster: its AUC is held against that of
the old one and against its own with one thread, seed by seed the same for all.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from harness.cluster import shown
from harness.flux import Files, Flux, Shape
from harness.ratio import Ratio
from harness.rows import Case, Row, Sample, Series, Table
from harness.text import markdown

JOBS = ("ctr_dnn", "deepfm")
SHAPES = (Shape(threads=1), Shape(threads=2), Shape(1, 1, 1), Shape(1, 1, 2))
HEAD = ("binary", "set-up", "ex/s median", "quartiles", "test AUC", "runs", "noise")


def key(which: str, job: str, shape: Shape) -> str:
    return f"{which}_{job}_{'cluster' if shape.servers else 'embedded'}"


def _sample(
    flux: Flux, files: Files, shape: Shape, precision: str, cores: int, job: str, seed: int
) -> Sample:
    return flux.train_roles(files, shape, precision, cores, job=job, seed=seed)


def old_cases(new: Flux, old: Flux, files: Files, precision: str, cores: int) -> list[Case]:
    """New and old of a set-up follow one another in each round."""
    cases = []
    for job in JOBS:
        for shape in SHAPES:
            for which, flux in (("new", new), ("old", old)):
                setup = f"{job}, {shown(shape, precision)}"
                row = Row(key(which, job, shape), which, setup, shape.trainers())
                pinned = min(cores, shape.trainers())
                take = partial(_sample, flux, files, shape, precision, pinned, job)
                cases.append(Case(row, take))
    return cases


def ratios(table: Table) -> list[tuple[Row, Ratio]]:
    """New over old for each set-up of which both ran."""
    found = []
    for series in table.series:
        row = series.row
        if not row.key.startswith("new_"):
            continue
        ratio = table.ratio(row.key, row.key.replace("new_", "old_", 1), row.threads)
        alone = table.find(row.key, 1)
        if ratio:
            own = alone.auc() if alone and row.threads > 1 else None
            found.append((row, replace(ratio, own=own, peer="the old one's")))
    return found


def _cells(series: Series) -> tuple[str, ...]:
    row = series.row
    if not series.samples:
        return (row.system, row.setup, "failed", "", "", "", "")
    auc = series.auc()
    return (
        row.system,
        row.setup,
        f"{series.speed():,.0f}",
        series.shown_quartiles(),
        "-" if auc is None else f"{auc:.5f}",
        str(len(series.samples)),
        series.noise(),
    )


def render(table: Table, examples: int, test_examples: int, cores: int, cpu: str) -> str:
    """The page old.md."""
    rows = [HEAD, *(_cells(series) for series in table.series)]
    lines = [(row.setup, ratio.text()) for row, ratio in ratios(table)]
    failures = [
        f"failed: {one.row.system}, {one.row.setup}: {one.failure}"
        for one in table.series
        if one.failure
    ]
    text = [
        "# New beside old",
        "",
        f"{cpu}, {cores} cores. {examples:,} examples to train on, {test_examples:,} to test on; "
        "both binaries run the jobs of the new tree, in turns, with the same seed in a round. A "
        "ratio is one only if the AUC of the new binary is at most 0.001 below that of the old one "
        "and below its own with one thread.",
        "",
        markdown(rows, frozenset(range(2, len(HEAD)))),
        "",
        *failures,
    ]
    if lines:
        head = ("set-up", "ratio of ex/s")
        text += ["## New over old", "", markdown([head, *lines], frozenset())]
    return "\n".join(text) + "\n"
