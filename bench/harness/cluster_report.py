"""The cluster section of the report: speed and traffic, then what each role costs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from harness import cluster
from harness.rows import Sample, Series, Table
from harness.text import markdown

FIGURES = (
    *("system", "set-up", "ex/s median", "quartiles", "test AUC"),
    *("server CPU s/M", "worker CPU s/M", "B/ex to", "B/ex from", "server MiB", "worker MiB"),
    "noise",
)
RATIOS = ("set-up", "against", "ratio of ex/s")
COSTS = (
    *("set-up", "ex/s", "server core-s", "worker core-s", "rest core-s", "all core-s"),
    *("server GB-s", "worker GB-s", "rest GB-s", "all GB-s"),
)
# Rows of the second table: those in fp32 that differ only in who runs where.
COST_KEYS = ("embedded_fp32", "cluster_fp32", "cluster_two")

# What each row is held against: the same arithmetic in one process. The wire's form is not that.
ONE_PROCESS = {
    "embedded_fp32": "embedded_fp32",
    "embedded_bf16": "embedded_bf16",
    "cluster_fp32": "embedded_fp32",
    "cluster_bf16": "embedded_bf16",
    "cluster_wire_fp16": "embedded_fp32",
    "cluster_wire_bf16": "embedded_fp32",
    "cluster_two": "embedded_fp32",
}


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _mib(series: Series, role: str) -> str:
    peak = series.middle(lambda sample: sample.peak_of(role))
    return _number(None if peak is None else peak / 2**20, ",.0f")


def _to_servers(sample: Sample) -> float | None:
    return sample.wire.to_servers if sample.wire else None


def _from_servers(sample: Sample) -> float | None:
    return sample.wire.from_servers if sample.wire else None


def _worker_cpu(series: Series, examples: int) -> float | None:
    """Of one process that has all roles it is the CPU of all of them: shown as the worker's."""
    value = cluster.per_million(series, examples, "worker")
    return cluster.per_million(series, examples, *cluster.ALL_ROLES) if value is None else value


def figure_cells(series: Series, examples: int) -> tuple[str, ...]:
    row = series.row
    if not series.samples:
        why = "skipped" if series.skipped else "failed"
        return (row.system, row.setup, why, *[""] * (len(FIGURES) - 3))
    sent = series.middle(_to_servers)
    got = series.middle(_from_servers)
    return (
        row.system,
        row.setup,
        f"{series.speed():,.0f}",
        series.shown_quartiles(),
        _number(series.auc(), ".5f"),
        _number(cluster.per_million(series, examples, "server"), ".2f"),
        _number(_worker_cpu(series, examples), ".2f"),
        _number(None if sent is None else sent / examples, ",.0f"),
        _number(None if got is None else got / examples, ",.0f"),
        _mib(series, "server"),
        _mib(series, "worker"),
        series.noise(),
    )


def ratio_lines(table: Table) -> list[tuple[str, ...]]:
    """Each row beside Paddle, beside the same arithmetic in one process, beside its own thread."""
    lines: list[tuple[str, ...]] = []
    for series in table.series:
        row = series.row
        compared = []
        if row.key != cluster.PADDLE:
            compared.append(("Paddle", table.ratio(row.key, cluster.PADDLE, row.threads)))
        one_process = ONE_PROCESS.get(row.key, row.key)
        if one_process != row.key:
            compared.append(("one process", table.ratio(row.key, one_process, row.threads)))
        compared.append(("its own with 1 thread", table.over_one_thread(row.key, row.threads)))
        lines += [(row.setup, name, ratio.text()) for name, ratio in compared if ratio]
    return lines


def cost_cells(series: Series, examples: int) -> tuple[str, ...]:
    """Core-seconds and GB-seconds per million examples, by role."""
    separate: tuple[tuple[str, ...], ...] = (("server",), ("worker",), cluster.OVERHEAD_ROLES)
    if series.row.key.startswith("embedded"):  # one process, so only the sum says anything
        separate = ((), (), ())
    groups = (*separate, cluster.ALL_ROLES)
    return (
        series.row.setup,
        f"{series.speed():,.0f}",
        *(_number(cluster.per_million(series, examples, *roles), ".2f") for roles in groups),
        *(_number(cluster.gb_s_per_million(series, examples, *roles), ".2f") for roles in groups),
    )


def _reasons(all_series: Sequence[Series]) -> list[str]:
    """Why rows have no figures; those that failed alike are named together."""
    text = []
    failures: dict[str, list[str]] = {}
    for series in all_series:
        name = f"{series.row.system}, {series.row.setup}"
        if series.skipped:
            text.append(f"skipped: {name}: {series.skipped}")
        if series.failure:
            failures.setdefault(series.failure, []).append(name)
    for failure, names in failures.items():
        text += [f"failed: {'; '.join(names)}", "```", failure, "```"]
    return text


def render(table: Table, examples: int) -> list[str]:
    """Lines of the section; none if the part was not run."""
    if not table.series:
        return []
    text = [
        "## Cluster: 1 server + 1 worker against Paddle's parameter server and one process",
        "x N: threads of each worker; all processes of a row share as many cores as threads train. "
        "CPU: seconds of all processes of a role per million examples; of one process, with all "
        "roles, under worker. B/ex: bytes on the wire to and from the servers per example trained. "
        "Paddle's time is training alone, from memory.",
        "",
    ]
    rows = [figure_cells(series, examples) for series in table.series]
    text += [markdown([FIGURES, *rows], frozenset(range(2, len(FIGURES)))), ""]
    if lines := ratio_lines(table):
        text += ["## Ratios of the cluster part", "", markdown([RATIOS, *lines], frozenset()), ""]
    text += _reasons(table.series)
    costs = [one for one in table.series if one.row.key in COST_KEYS and one.samples]
    if costs:
        cells = [cost_cells(series, examples) for series in costs]
        text += [
            "## Cost of roles",
            "Per million examples, fp32, whole run (start, training, checkpoint, test): seconds of "
            "CPU, and resident memory in 10^9 bytes over time. rest: coordinator and supervisor. "
            "How to plan with it: docs/operating/planning.md.",
            "",
            markdown([COSTS, *cells], frozenset(range(1, len(COSTS)))),
            "",
        ]
    return text
