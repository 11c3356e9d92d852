"""The report: one readable table, the targets, and the same as JSON. Pure but for write()."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness import cluster_report
from harness.machine import QUIET_CORES, Machine
from harness.micro import Line, Micro, gemm_peaks
from harness.rows import Series, Table
from harness.targets import MODELS, Target
from harness.text import markdown

HEADER = (
    *("system", "set-up", "threads", "ex/s median", "quartiles", "test AUC", "peak MiB"),
    "noise",
)
RATIO_HEADER = ("system", "set-up", "against", "ratio of ex/s")
RIGHT = frozenset(range(2, len(HEADER)))
# The row that ratios refer to, at the same number of threads.
REFERENCE = {
    "vw": "vw",
    "flux_lr": "vw",
    "xlearn": "xlearn",
    "flux_fm": "xlearn",
    **{
        f"{system}_{model}": f"torch_{model}" for model, _ in MODELS for system in ("torch", "flux")
    },
}
DEFAULT_REFERENCE = "torch_fp32"
RATIO_TEXT = (
    "Median of the pairs of a round, at the same number of threads unless said otherwise. Medians "
    "of AUC; where that is more than 0.001 below the other side's there is no ratio."
)
TABLES = {  # field of the report -> its name in the JSON
    "table": "rows",
    "cluster": "cluster_rows",
    "own_threads": "threads_rows",
    "versus_old": "old_rows",
}


@dataclass
class Report:
    date: str
    machine: Machine
    examples: int
    test_examples: int
    repeat: int
    transform: str
    versions: dict[str, str] = field(default_factory=dict)
    table: Table = field(default_factory=Table)
    cluster: Table = field(default_factory=Table)
    own_threads: Table = field(default_factory=Table)  # part threads
    versus_old: Table = field(default_factory=Table)  # part old
    targets: list[Target] = field(default_factory=list)
    gemm: list[Line] = field(default_factory=list)
    shares: list[tuple[str, int, str, float]] = field(default_factory=list)
    micro: list[Micro] = field(default_factory=list)
    first_line_s: list[float] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def doubts(tables: Sequence[Table], shares: Sequence[tuple[str, int, str, float]]) -> list[str]:
    """Why the figures of a finished run may not be believed."""
    warnings = []
    measured = [series for table in tables for series in table.series if series.samples]
    noisy = [series for series in measured if series.others_cores() > QUIET_CORES]
    if noisy:
        warnings.append(
            f"{len(noisy)} of {len(measured)} rows were measured while other processes ran (noise "
            "marked !): neither their ratios nor the verdicts can be relied on"
        )
    over = {f"{precision} at {threads} threads" for _, threads, precision, at in shares if at > 1}
    if over:
        warnings.append(
            f"the GEMM peak of {', '.join(sorted(over))} was disturbed, as a row is above it: "
            "ignore its shares"
        )
    return warnings


def row_cells(series: Series) -> tuple[str, ...]:
    row = series.row
    if not series.samples:
        return (row.system, row.setup, str(row.threads), "failed", "", "", "", "")
    auc = series.auc()
    return (
        row.system,
        row.setup,
        str(row.threads),
        f"{series.speed():,.0f}",
        series.shown_quartiles(),
        "-" if auc is None else f"{auc:.5f}",
        f"{series.peak_rss_bytes() / 2**20:,.0f}",
        series.noise(),
    )


def ratio_lines(report: Report) -> list[tuple[str, ...]]:
    """Each row beside that of its group, and each row of flux beside its own with one thread."""
    lines: list[tuple[str, ...]] = []
    for series in _ordered(report.table):
        row = series.row
        to = REFERENCE.get(row.key, DEFAULT_REFERENCE)
        ratio = report.table.ratio(row.key, to, row.threads)
        reference = report.table.find(to, row.threads)
        if ratio and reference and to != row.key:
            against = f"{reference.row.system}, {reference.row.setup}"
            lines.append((row.system, row.setup, against, ratio.text()))
        alone = report.table.over_one_thread(row.key, row.threads)
        if alone and row.system == "flux":
            lines.append((row.system, row.setup, "its own with 1 thread", alone.text()))
    return lines


def _ordered(table: Table) -> list[Series]:
    """By reference, most threads first."""
    references = list(REFERENCE)
    return sorted(
        table.series,
        key=lambda one: (
            references.index(one.row.key) // 2 + 1 if one.row.key in REFERENCE else 0,
            -one.row.threads,
        ),
    )


def _figures(report: Report) -> list[str]:
    if not report.table.series:
        return []
    head = "noise: cores used by other processes (worst run)."
    rows = [row_cells(series) for series in _ordered(report.table)]
    text = ["## Figures", head, "", markdown([HEADER, *rows], RIGHT), ""]
    for series in report.table.series:
        if series.failure:
            row = series.row
            text.append(f"failed: {row.system}, {row.setup}, threads {row.threads}")
            text += ["```", series.failure, "```"]
    if lines := ratio_lines(report):
        text += ["## Ratios", RATIO_TEXT, "", markdown([RATIO_HEADER, *lines], frozenset()), ""]
    return text


def _targets(report: Report) -> list[str]:
    if not report.targets:
        return []
    rows = [(one.name, one.wanted, one.measured, one.verdict()) for one in report.targets]
    head = ("target", "wanted", "measured", "verdict")
    return ["## Targets", "", markdown([head, *rows], frozenset({1})), ""]


def _gemm(report: Report) -> list[str]:
    if not report.shares:
        return []
    rows = [
        (name, str(threads), precision, f"{share:.0%}")
        for name, threads, precision, share in report.shares
    ]
    head = ("row", "threads", "peak of", "share")
    title = "## Share of the measured GEMM peak (1000 x 400 x 400, random data)"
    peaks = ", ".join(
        f"{precision} {threads} thr. {gflops:.0f} GFLOP/s"
        for (precision, threads), gflops in sorted(gemm_peaks(report.gemm).items())
    )
    return [title, peaks, "", markdown([head, *rows], frozenset({1, 3})), ""]


def _micro(report: Report) -> list[str]:
    text = ["## Micro benchmarks", ""] if report.micro else []
    for one in report.micro:
        text.append(f"### {one.name}")
        shown = one.failure or one.table or "\n".join(json.dumps(line) for line in one.lines)
        text += ["```", shown, "```", ""]
    return text


def render(report: Report) -> str:
    machine = report.machine
    bf16 = "with" if machine.bf16 else "without"
    amx = " and AMX" if machine.amx else ""
    text = [
        f"# Benchmark of {report.date}",
        f"{machine.cpu}, {machine.cores} cores ({bf16} AVX512-BF16{amx}), "
        f"{machine.memory_gib} GiB. "
        f"{report.examples:,} examples to train on, {report.test_examples:,} to test on; "
        f"{report.repeat} runs per row, interleaved; dense values: {report.transform}. "
        + ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items())),
        "",
        *(f"Warning: {warning}." for warning in report.warnings),
    ]
    text += _figures(report) + cluster_report.render(report.cluster, report.examples)
    text += _targets(report) + _gemm(report)
    if report.first_line_s:
        shown = ", ".join(f"{value:.2f}" for value in report.first_line_s)
        text += ["## First progress line on a pipe", f"seconds after start: {shown}", ""]
    return "\n".join(text + _micro(report)).rstrip() + "\n"


def as_json(report: Report) -> dict[str, object]:
    fields = {name: value for name, value in vars(report).items() if name not in TABLES}
    fields["machine"] = asdict(report.machine)
    fields["targets"] = [asdict(one) for one in report.targets]
    fields["micro"] = [asdict(one) for one in report.micro]
    for name, key in TABLES.items():
        fields[key] = _rows(getattr(report, name))
    return fields


def _rows(table: Table) -> list[dict[str, object]]:
    return [
        {
            **asdict(series.row),
            "failure": series.failure,
            "skipped": series.skipped,
            "samples": [asdict(sample) for sample in series.samples],
        }
        for series in table.series
    ]


def scrub(text: str, folders: Sequence[Path]) -> str:
    """Takes the names of folders of this machine out of what is kept."""
    for folder in sorted({str(path) for path in folders}, key=len, reverse=True):
        text = text.replace(folder, "...")
    return text


def write(report: Report, folder: Path, folders: Sequence[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(as_json(report), indent=1) + "\n"
    (folder / f"{report.date}.json").write_text(scrub(text, folders))
    (folder / "latest.md").write_text(scrub(render(report), folders))
