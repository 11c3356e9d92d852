"""The part threads: what more threads bring each example job, and whether they change its model.

Each round has a seed of its own for all numbers of threads, so that models, AUCs and speeds are
held against one another seed by seed. Numbers of threads beyond the machine's cores cannot be
fast: they run in the first round only, for the model and its AUC.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median

from harness.flux import Files, Flux
from harness.ratio import AUC, Ratio
from harness.rows import Case, Row, Sample, Series, Table
from harness.targets import Target
from harness.text import markdown

JOBS = ("ctr_dnn", "deepfm", "dcn_v2", "fm", "lr")
COUNTS = (1, 2, 4, 8, 16)
TRAIN_SEED, TEST_SEED = 401, 402  # of the data: made for this part alone
PRECISION = "auto"
HEAD = (
    *("example", "threads", "ex/s median", "quartiles", "ex/s per core", "test AUC", "runs"),
    "noise",
)


def _sample(flux: Flux, files: Files, threads: int, job: str, seed: int) -> Sample:
    return flux.train(job, files, threads, PRECISION, seed)


def thread_cases(
    flux: Flux, files: Files, job: str, counts: Sequence[int], cores: int
) -> list[Case]:
    """One job, fewest threads first: 1 and 2, which make the ratio, follow one another."""
    return [
        Case(
            Row(job, "flux", f"{job}, {PRECISION}", count),
            partial(_sample, flux, files, count, job),
            rounds=None if count <= cores else 1,
        )
        for count in sorted(counts)
    ]


def model_hash(sample: Sample) -> str | None:
    """What the summary says of the content of the model."""
    summary = sample.extra.get("summary")
    found = summary.get("model_hash") if isinstance(summary, dict) else None
    return found if isinstance(found, str) and found else None


def hashes(table: Table, job: str) -> dict[int, dict[int, str]]:
    """seed -> threads -> hash of the model, where both are named."""
    found: dict[int, dict[int, str]] = {}
    for series in table.series:
        if series.row.key == job:
            for sample in series.samples:
                if sample.seed is not None and (value := model_hash(sample)):
                    found.setdefault(sample.seed, {})[series.row.threads] = value
    return found


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(str(one) for one in numbers)


def same_model(table: Table, job: str) -> Target:
    """Whether any number of threads makes the same model, bit by bit, seed by seed."""
    by_seed = {seed: one for seed, one in hashes(table, job).items() if len(one) > 1}
    counts = sorted({count for one in by_seed.values() for count in one})
    name = f"{job}: the same model with {_listed(counts) or 'all numbers of'} threads"
    wanted = "equal hashes"
    if not by_seed:
        return Target(name, wanted, "no hash in the summaries", None)
    fewest = {seed: one[min(one)] for seed, one in by_seed.items()}
    other = sorted(
        {
            count
            for seed, one in by_seed.items()
            for count, value in one.items()
            if value != fewest[seed]
        }
    )
    seeds = f"{len(by_seed)} seed" + ("s" if len(by_seed) > 1 else "")
    if other:
        return Target(name, wanted, f"others with {_listed(other)} threads ({seeds})", False)
    return Target(name, wanted, f"equal ({seeds})", True)


def auc_of(series: Series, seeds: Sequence[int | None]) -> float | None:
    """Median of the runs with these seeds."""
    found = [one.auc for one in series.samples if one.seed in seeds and one.auc is not None]
    return median(found) if found else None


def auc_kept(table: Table, job: str, threads: int) -> Target | None:
    """AUC beside that of one thread with the same seeds; None: there is no such pair."""
    series, alone = table.find(job, threads), table.find(job, 1)
    if threads == 1 or not series or not alone:
        return None
    ours = series.auc()
    theirs = auc_of(alone, [sample.seed for sample in series.samples])
    name = f"{job}: test AUC with {threads} threads against 1 thread"
    if ours is None or theirs is None:
        return Target(name, "-", "AUC not recorded", None)
    return Target(
        name,
        f">= {theirs:.5f} - {AUC.slack}",
        f"{ours:.5f}",
        AUC.comparable(ours, theirs),
    )


def per_core(table: Table, job: str, threads: int = 2, over: int = 1) -> Ratio | None:
    """Examples per second and core at `threads` over those at `over`: 1 is a whole second core."""
    many, few = table.find(job, threads), table.find(job, over)
    if not many or not few:
        return None
    return Ratio(many.side(threads), few.side(over), peer="its own with 1 thread,")


def judge(table: Table) -> list[Target]:
    result: list[Target] = []
    for job in dict.fromkeys(series.row.key for series in table.series):
        result.append(same_model(table, job))
        found = [auc_kept(table, job, threads) for threads in sorted(table.threads())]
        result += [one for one in found if one]
    return result


def _cells(series: Series, cores: int) -> tuple[str, ...]:
    row = series.row
    if not series.samples:
        return (row.key, str(row.threads), "failed", "", "", "", "", "")
    auc = series.auc()
    return (
        row.key,
        str(row.threads),
        f"{series.speed():,.0f}",
        series.shown_quartiles(),
        f"{series.speed() / min(row.threads, cores):,.0f}",
        "-" if auc is None else f"{auc:.5f}",
        str(len(series.samples)),
        series.noise(),
    )


def render(table: Table, examples: int, test_examples: int, cores: int, cpu: str) -> str:
    """The page threads.md."""
    rows = [HEAD, *(_cells(series, cores) for series in table.series)]
    ratios = [
        (job, ratio.text(" per core"))
        for job in dict.fromkeys(series.row.key for series in table.series)
        if (ratio := per_core(table, job))
    ]
    targets = [(one.name, one.wanted, one.measured, one.verdict()) for one in judge(table)]
    failures = [
        f"failed: {one.row.key} with {one.row.threads} threads: {one.failure}"
        for one in table.series
        if one.failure
    ]
    text = [
        "# More threads",
        "",
        f"{cpu}, {cores} cores. {examples:,} examples to train on (seed {TRAIN_SEED}), "
        f"{test_examples:,} to test on (seed {TEST_SEED}), one process, precision {PRECISION}. A "
        "round has one seed for all numbers of threads; more threads than cores run in the first "
        "round only.",
        "",
        markdown(rows, frozenset(range(1, len(HEAD)))),
        "",
        *failures,
    ]
    if ratios:
        text += ["## 2 threads over 1", "", markdown([("example", "ratio"), *ratios], frozenset())]
    head = ("target", "wanted", "measured", "verdict")
    text += ["", "## Models", "", markdown([head, *targets], frozenset({1}))]
    return "\n".join(text) + "\n"
