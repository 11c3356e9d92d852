#!/usr/bin/env python3
"""Puts today's rules of ratios and targets to results that are kept; measures nothing.

    bench/rewrite.py [--results DIR]

Targets in each DATE.json are judged again from the samples in it, latest.md is rendered from the
newest, and pages that were kept without samples are rewritten from their own tables.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import asdict, replace
from pathlib import Path

from harness import pages, report, stored, targets
from harness.ratio import NOT_COMPARABLE
from harness.targets import Target

ALL = frozenset({"ctr", "models", "lr", "fm", "start"})  # parts whose samples are kept


def _as_kept(old: Target, found: report.Report) -> Target:
    """A target of a part whose samples were not kept."""
    figure = re.fullmatch(r"([\d.]+)x", old.measured)
    if figure and old.name.startswith("Parquet"):
        return replace(old, measured=f"{old.measured} ({pages.parquet_note(found.repeat)})")
    if figure and old.name.startswith("word2vec"):
        quality = next(one for one in found.targets if one.name.startswith("word2vec precision"))
        theirs = float(quality.wanted.removeprefix(">= ").split()[0])
        threads = found.table.threads()[0]
        ours = float(quality.measured)
        text = pages.words_text(figure[1], ours, theirs, threads, found.repeat)
        if text.startswith(NOT_COMPARABLE):
            return replace(old, measured=text, met=False, why=NOT_COMPARABLE)
        return replace(old, measured=text)
    return old


def judged_again(found: report.Report) -> list[Target]:
    """The same targets in the same order."""
    first = sorted(found.first_line_s)[len(found.first_line_s) // 2] if found.first_line_s else None
    lines = [line for one in found.micro for line in one.lines]
    new = targets.judge(found.table, first, ALL)
    if found.cluster.series:
        threads = found.cluster.threads()[0]
        new += targets.judge_cluster(found.cluster, threads, found.examples)
    new += [targets.judge_rpc(lines), *targets.judge_formats(lines)]
    by_name = {one.name: one for one in new if one.measured != "-"}
    return [by_name.get(old.name) or _as_kept(old, found) for old in found.targets]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    folder: Path = parser.parse_args().results
    newest: report.Report | None = None
    for path in sorted(folder.glob("????-??-??.json")):
        fields = json.loads(path.read_text())
        newest = stored.report_of(fields)
        newest.targets = judged_again(newest)
        fields["targets"] = [asdict(one) for one in newest.targets]
        path.write_text(json.dumps(fields, indent=1) + "\n")
    if newest:
        (folder / "latest.md").write_text(report.render(newest))
    for path in sorted(folder.glob("*.md")):
        page = path.read_text()
        if path.name != "latest.md" and (new := pages.rewritten(path.name, page)) != page:
            path.write_text(new)


if __name__ == "__main__":
    main()
