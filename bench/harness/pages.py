"""Pages of results that were kept without samples: their ratios by today's rules. Pure.

What a table has itself (speed, AUC, threads) is enough to judge its ratios; what it lacks is said
to be not recorded. A page that is rewritten twice is the same as once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from harness import cluster, cluster_report, targets
from harness.ratio import Ratio, Side
from harness.rows import RoleUse, Row, Sample, Series, Table
from harness.text import markdown
from harness.words import PRECISION

Cells = list[list[str]]  # the head first

UNKNOWN = "seed not recorded"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables_rewritten(page: str, change: Callable[[Cells], str | None]) -> str:
    """The page with each table as `change` has it; None: as it was."""
    out: list[str] = []
    block: list[str] = []

    def close() -> None:
        if block:
            # The bars of an absolute value are no borders of cells.
            hidden = [line.replace("|difference|", "\0") for line in block]
            cells = [_cells(line) for number, line in enumerate(hidden) if number != 1]
            changed = change([[cell.replace("\0", "|difference|") for cell in c] for c in cells])
            out.extend(block if changed is None else changed.split("\n"))
            block.clear()

    for line in page.split("\n"):
        if line.startswith("|"):
            block.append(line)
        else:
            close()
            out.append(line)
    close()
    return "\n".join(out)


def _number(cell: str) -> float:
    return float(cell.replace(",", ""))


def _without(cells: Cells, names: Sequence[str]) -> Cells:
    kept = [number for number, name in enumerate(cells[0]) if name not in names]
    return [[line[number] for number in kept] for line in cells]


def models_table(cells: Cells) -> str | None:
    """One run per row; a row without a ratio, or with 1.00x, is what those below it refer to."""
    head = cells[0]
    if head != ["system", "set-up", "threads", "ex/s", "ratio", "test AUC"]:
        return None
    reference: Side | None = None
    rows = [head]
    for line in cells[1:]:
        row = dict(zip(head, line, strict=True))
        auc = float(row["test AUC"]) if row["test AUC"] != "-" else None
        side = Side((_number(row["ex/s"]),), int(row["threads"]), None, auc)
        if row["ratio"] in ("1.00x", "-"):
            reference, row["ratio"] = side, "-"
        elif reference:
            row["ratio"] = Ratio(side, reference).text()
        rows.append(list(row.values()))
    return markdown(rows, frozenset({2, 3, 5}))


def parquet_table(cells: Cells, rounds: int) -> str | None:
    """Without samples: the figure as it was taken, and how."""
    head = cells[0]
    if "flux / it" not in head:
        return None
    at = head.index("flux / it")
    rows = [[*head[:at], "flux / it, CPU", *head[at + 1 :]]]
    for line in cells[1:]:
        text = "-" if line[1].startswith("flux") else f"{line[at]}x ({parquet_note(rounds)})"
        rows.append([*line[:at], text, *line[at + 1 :]])
    return markdown(rows, frozenset({2, 3}))


def parquet_note(rounds: int) -> str:
    return f"no model, 1 thread, {UNKNOWN}, best of {rounds} rounds"


def words_text(ratio: str, ours: float, theirs: float, threads: int, rounds: int) -> str:
    """The ratio of word2vec as it is kept without samples; not a ratio if its quality is lower."""
    side = Side((1.0,) * rounds, threads, None, ours)
    sides = Ratio(side, replace(side, quality=theirs), PRECISION)
    return f"{ratio}x ({sides.details()})" if sides.comparable() else sides.text()


def words_page(page: str) -> str:
    ratio = re.search(r"Median of the rounds' ratios of words/s: ([\d.]+)\. ", page)
    how = re.search(r"(\d+) threads; medians of (\d+) rounds", page)
    precision = {
        name: float(value)
        for name, value in re.findall(r"^\| (\w+)[^|]*\|[^|]*\|[^|]*\| +([\d.]+) \|", page, re.M)
    }
    if not ratio or not how or not {"flux", "gensim"} <= set(precision):
        return page
    text = words_text(
        ratio[1], precision["flux"], precision["gensim"], int(how[1]), int(how[2])
    )
    return page.replace(ratio[0], f"Median of the rounds' ratios of words/s: {text}. ")


def _cluster_keys(threads: int) -> dict[str, tuple[str, int]]:
    """Set-up as it is shown -> key and threads that train."""
    found = {
        cluster.shown(shape, precision): (key, shape.trainers())
        for key, shape, precision in cluster.shapes(threads, bf16=True)
    }
    paddle = cluster.paddle_row(threads)
    return {**found, paddle.setup: (paddle.key, paddle.threads)}


def cluster_series(cells: Cells, examples: int) -> Table:
    """The figures of the cluster part as one sample per row."""
    head, table = cells[0], Table()
    threads = max(int(n) for line in cells[1:] for n in re.findall(r" x (\d+)", line[1]))
    keys = _cluster_keys(threads)
    for line in cells[1:]:
        row = dict(zip(head, line, strict=True))
        key, trainers = keys[row["set-up"]]
        roles = tuple(
            RoleUse(role, role, float(row[f"{role} CPU s/M"]) * examples / 1e6, 0, 0.0)
            for role in ("server", "worker")
            if row[f"{role} CPU s/M"] != "-"
        )
        auc = float(row["test AUC"]) if row["test AUC"] != "-" else None
        sample = Sample(_number(row["ex/s median"]), 0.0, 0, 0.0, auc, roles=roles)
        table.add(Series(Row(key, row["system"], row["set-up"], trainers), [sample]))
    return table


def cluster_page(page: str) -> str:
    """Its ratios become a table of their own, its targets are judged by them."""
    count = re.search(r"([\d,]+) examples to train on", page)
    examples = int(_number(count[1])) if count else 0
    found: list[Table] = []

    def figures(cells: Cells) -> str | None:
        if "/ Paddle" not in cells[0]:
            return None
        table = cluster_series(cells, examples)
        found.append(table)
        kept = _without(cells, ("/ Paddle", "/ one process"))
        lines = [cluster_report.RATIOS, *cluster_report.ratio_lines(table)]
        return "\n".join(
            [
                markdown(kept, frozenset(range(2, len(kept[0])))),
                *("", "## Ratios of the cluster part", ""),
                markdown(lines, frozenset()),
            ]
        )

    def verdicts(cells: Cells) -> str | None:
        if cells[0] != ["target", "wanted", "measured", "verdict"] or not found:
            return None
        judged = {
            one.name: [one.name, one.wanted, one.measured, one.verdict()]
            for one in targets.judge_cluster(found[0], found[0].threads()[0], examples)
        }
        return markdown([judged.get(line[0], line) for line in cells], frozenset({1}))

    return tables_rewritten(tables_rewritten(page, figures), verdicts)


def rewritten(name: str, page: str) -> str:
    """The page of this name; one without ratios is as it was."""
    if name == "models.md":
        return tables_rewritten(page, models_table)
    if name == "words.md":
        return words_page(page)
    if name == "cluster.md":
        return cluster_page(page)
    if name == "parquet.md":
        found = re.search(r"best of (\d+) rounds", page)
        rounds = int(found[1]) if found else 1
        return tables_rewritten(page, lambda cells: parquet_table(cells, rounds))
    return page
