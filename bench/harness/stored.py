"""Reports that were kept as JSON, read back, so that today's rules can be put to old samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.machine import Machine
from harness.micro import Micro
from harness.ratio import Measure, Ratio, Side
from harness.report import TABLES, Report
from harness.rows import RoleUse, Row, Sample, Series, Table, Wire
from harness.targets import Target

PLAIN = ("versions", "gemm", "first_line_s", "warnings")

Fields = dict[str, Any]  # of JSON


def sample_of(fields: Fields) -> Sample:
    roles = tuple(RoleUse(**one) for one in fields.get("roles", []))
    wire = Wire(**fields["wire"]) if fields.get("wire") else None
    return Sample(**{**fields, "roles": roles, "wire": wire})


def series_of(fields: Fields) -> Series:
    row = Row(*(fields[name] for name in ("key", "system", "setup", "threads")))
    samples = [sample_of(one) for one in fields["samples"]]
    return Series(row, samples, fields["failure"], fields.get("skipped", ""))


def _side_of(fields: Fields) -> Side:
    seeds = fields["seeds"]
    speeds = tuple(fields["speeds"])
    return Side(
        speeds, fields["threads"], None if seeds is None else tuple(seeds), fields["quality"]
    )


def target_of(fields: Fields) -> Target:
    found = fields.get("ratio")
    ratio = found and Ratio(
        _side_of(found["ours"]),
        _side_of(found["theirs"]),
        Measure(**found["measure"]) if found["measure"] else None,
        found["own"],
        found["peer"],
    )
    return Target(**{**fields, "ratio": ratio or None})


def table_of(rows: list[Fields]) -> Table:
    table = Table()
    for one in rows:
        table.add(series_of(one))
    return table


def report_of(fields: Fields) -> Report:
    """All of it, with the targets as they were judged then."""
    names = ("date", "examples", "test_examples", "repeat", "transform")
    report = Report(machine=Machine(**fields["machine"]), **{name: fields[name] for name in names})
    for name in PLAIN:
        setattr(report, name, fields[name])
    for name, key in TABLES.items():
        setattr(report, name, table_of(fields.get(key, [])))
    report.targets = [target_of(one) for one in fields["targets"]]
    report.shares = [
        (name, threads, precision, share) for name, threads, precision, share in fields["shares"]
    ]
    report.micro = [Micro(**one) for one in fields["micro"]]
    return report


def load(path: Path) -> Report:
    return report_of(json.loads(path.read_text()))
