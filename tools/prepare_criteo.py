#!/usr/bin/env python3
"""Prepares the real Criteo data for flux: checked, split into train and test.

    tools/prepare_criteo.py train.txt OUT      the Kaggle set: its last part is the test set
    tools/prepare_criteo.py FOLDER OUT         the Terabyte set: day_0.gz .. day_23.gz, or unpacked;
                                               the last days are the test set

Every line is checked; the first bad one is named by file, line and column, with exit code 2. OUT
gets train/, test/ and data.yaml, the section of a job that reads them. Files of the Terabyte set
that are already in the wanted form are linked, not copied. Run it again after it was stopped: what
is finished is not made again. Memory does not grow with the data. docs/using/real_data.md has more.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prepare_common import (
    Chunk,
    Finished,
    Problem,
    Progress,
    Task,
    check_at_least_one,
    check_file,
    claim,
    describe,
    find_flux,
    parse_range,
    place_checked,
    read_chunks,
    run_each,
    run_flux,
    run_main,
    tell_section,
    whole_file,
    yaml_text,
)

DENSE = 13
SLOTS = 26
FIELDS = 1 + DENSE + SLOTS
DAYS = 24
# Nothing in it is tried twice (the second +), which doubles its speed: about 250 MB/s per core.
NUMBER = rb"-?+\d{1,20}+(?:\.\d{1,20}+)?+"
TOKEN = rb"[0-9a-fA-F]{1,8}+"
LINE = rb"[01]" + rb"\t(?:%b)?+" % NUMBER * DENSE + rb"\t(?:%b)?+" % TOKEN * SLOTS + rb"\r?+\n"
LINES = re.compile(rb"(?:%b)*+" % LINE)
MAKING = ".making"  # folder for text on its way to blocks


class Form(NamedTuple):
    """How outputs are written."""

    packed: bool
    flux: str | None  # not None: block files, which it makes

    @property
    def suffix(self) -> str:
        return ".blocks" if self.flux else ".tsv.gz" if self.packed else ".tsv"


class Part(NamedTuple):
    """An output of the Kaggle set: so many lines, behind those of the part before."""

    name: str
    lines: int


def check(path: Path, chunk: Chunk) -> None:
    """Refuses the first line that is no record."""
    if LINES.fullmatch(chunk.data):
        return
    line_of = re.compile(LINE)
    for number, line in enumerate(chunk.data.split(b"\n"), chunk.line):
        if not line_of.fullmatch(line + b"\n"):
            column, what = explain(line.removesuffix(b"\r"))
            raise Problem(f"{path}:{number}:{column}: {what}")


def explain(line: bytes) -> tuple[int, str]:
    """Column (from 1, in bytes) and nature of what is wrong in a line."""
    fields = line.split(b"\t")
    if len(fields) != FIELDS:
        hint = " (train.txt has labels, test.txt has none)" if len(fields) == FIELDS - 1 else ""
        return len(line) + 1, (f"{len(fields)} fields{hint}; expected {FIELDS} between tabs: "
                               "label, I1..I13, C1..C26")
    column = 1
    for at, field in enumerate(fields):
        shown = printable(field[:30])
        if at == 0 and field not in (b"0", b"1"):
            return column, f"label is '{shown}'; expected 0 or 1"
        if 0 < at <= DENSE and field and not re.fullmatch(NUMBER, field):
            return column, f"I{at} is '{shown}'; expected a number, or nothing when it is missing"
        if at > DENSE and field and not re.fullmatch(TOKEN, field):
            return column, (f"C{at - DENSE} is '{shown}'; expected 1 to 8 hexadecimal digits, or "
                            "nothing when it is missing")
        column += len(field) + 1
    return column, "not a line of text"


def printable(field: bytes) -> str:
    text = field.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def to_blocks(flux: str, source: Path, target: Path) -> None:
    run_flux(flux, "data", "convert", str(source), "--to", "blocks", "--out", str(target))


def section(out: Path, form: Form) -> str:
    globs = [f"  {name}: {yaml_text(f'{out / name}/*{form.suffix}')}\n"
             for name in ("train", "test")]
    if not form.flux:
        return "data:\n  format: criteo_tsv\n" + "".join(globs)
    # flux itself says how its blocks are read: of a record that says nothing.
    sample = out / MAKING / "sample.tsv"
    with whole_file(sample) as write:
        write(b"\t".join([b"0"] * FIELDS) + b"\n")
    told = run_flux(form.flux, "data", "convert", str(sample), "--to", "blocks",
                    "--out", str(sample.with_suffix(".blocks")))
    return re.sub(r"(?m)^  train: .*\n", lambda _: "".join(globs), told)


# The Kaggle set.


class Lines:
    """The lines of a file, some at a time; those that are only skipped are not checked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chunks = read_chunks(path)
        self._rest: Chunk | None = None

    def take(self, count: int, checked: bool) -> Iterator[bytes]:
        while count > 0:
            chunk = self._rest or next(self._chunks, None)
            self._rest = None
            if chunk is None:
                raise Problem(f"{self._path}: has become shorter while it was read")
            lines = chunk.data.count(b"\n")
            if lines > count:
                cut = after_lines(chunk.data, count)
                self._rest = Chunk(chunk.line + count, chunk.data[cut:])
                chunk, lines = Chunk(chunk.line, chunk.data[:cut]), count
            if checked:
                check(self._path, chunk)
            count -= lines
            yield chunk.data


def after_lines(data: bytes, count: int) -> int:
    at = 0
    for _ in range(count):
        at = data.index(b"\n", at) + 1
    return at


def plan_parts(lines: int, share: float, part_lines: int) -> list[Part]:
    """Train parts, then test parts: at least one line each."""
    if lines < 2:
        raise Problem("a single line cannot be split into train and test")
    test = min(max(round(lines * share), 1), lines - 1)
    parts = []
    for folder, total in (("train", lines - test), ("test", test)):
        for n, first in enumerate(range(0, total, part_lines)):
            parts.append(Part(f"{folder}/part-{n:04}", min(part_lines, total - first)))
    return parts


def prepare_kaggle(source: Path, out: Path, share: float, part_lines: int, form: Form) -> None:
    count = Progress(f"{source}: counted")
    for chunk in read_chunks(source):
        count.add(chunk.data)
    count.tell("in all")
    lines = Lines(source)
    for part in plan_parts(count.lines, share, part_lines):
        target = out / (part.name + form.suffix)
        if target.exists():
            for _ in lines.take(part.lines, checked=False):
                pass
            print(f"{target}: finished before", flush=True)
            continue
        progress = Progress(str(target))
        text = out / MAKING / (part.name + ".tsv") if form.flux else target
        with whole_file(text, form.packed and not form.flux) as write:
            for data in lines.take(part.lines, checked=True):
                write(data)
                progress.add(data)
        if form.flux:
            to_blocks(form.flux, text, target)
            text.unlink()
        progress.tell("written")


# The Terabyte set.


def find_days(folder: Path, wanted: list[int]) -> dict[int, Path]:
    days = {}
    for day in wanted:
        plain, packed = folder / f"day_{day}", folder / f"day_{day}.gz"
        if plain.exists() and packed.exists():
            raise Problem(f"{plain}: there is {packed.name} too; remove one of them")
        if plain.exists() or packed.exists():
            days[day] = plain if plain.exists() else packed
    missing = [day for day in wanted if day not in days]
    if not days:
        kaggle = folder / "train.txt"
        hint = f"; for the Kaggle set name the file {kaggle}" if kaggle.exists() else ""
        raise Problem(f"{folder}: no day_0.gz .. day_{DAYS - 1}.gz in it, nor unpacked ones{hint}")
    if missing:
        names = ", ".join(f"day_{day}.gz" for day in missing)
        raise Problem(f"{folder}: {names} missing; --days FIRST-LAST takes a part of the days")
    return days


def prepare_day(source: Path, target: Path, form: Form) -> str:
    """Checks a day, and links, writes or converts it."""
    if not form.flux:
        return place_checked(source, target, check, form.packed)
    progress = check_file(source, check)
    to_blocks(form.flux, source, target)
    return f"{target}: {progress.lines:,} lines, converted"


def prepare_terabyte(days: dict[int, Path], out: Path, test_days: int, form: Form,
                     jobs: int) -> None:
    test = set(sorted(days)[-test_days:])
    tasks = []
    for day, source in days.items():
        folder = "test" if day in test else "train"
        tasks.append(Task(source, out / folder / f"day_{day:02}{form.suffix}", form))
    run_each(prepare_day, tasks, jobs, Finished(out))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "prepare_criteo.py", description="Prepares the Kaggle or the Terabyte set of Criteo.")
    parser.add_argument("input", type=Path, help="train.txt, or the folder with day_0.gz ..")
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("--gz", action="store_true", help="write gzip files")
    parser.add_argument("--blocks", action="store_true", help="write block files (fastest)")
    parser.add_argument("--test-share", type=float, default=1 / 7,
                        help="Kaggle: share of the lines, the last ones, for testing (1/7: a day)")
    parser.add_argument("--part-lines", type=int, default=2_000_000,
                        help="Kaggle: lines in a file (2000000)")
    parser.add_argument("--days", default=f"0-{DAYS - 1}", help="Terabyte: which days (0-23)")
    parser.add_argument("--test-days", type=int, default=1,
                        help="Terabyte: so many of the last days are for testing (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1,
                        help="Terabyte: days at a time")
    parser.add_argument("--flux", help="the flux binary, for --blocks")
    return parser.parse_args()


def check_options(options: argparse.Namespace) -> None:
    if options.gz and options.blocks:
        raise Problem("--gz and --blocks: block files are not compressed; choose one")
    if not 0 < options.test_share < 1:
        raise Problem(f"--test-share {options.test_share}: expected a number between 0 and 1")
    check_at_least_one(options, "part_lines", "test_days", "jobs")


def main() -> None:
    options = parse_arguments()
    check_options(options)
    form = Form(options.gz, find_flux(options.flux) if options.blocks else None)
    settings: dict[str, object] = {"form": form.suffix}
    if options.input.is_dir():
        wanted = parse_range(options.days, "--days", 0, DAYS - 1)
        if options.test_days >= len(wanted):
            raise Problem(f"--test-days {options.test_days} of {len(wanted)} day(s) leaves none "
                          "to train on")
        days = find_days(options.input, wanted)
        claim(options.out, settings | {"days": [str(path.resolve()) for path in days.values()],
                                       "test days": options.test_days})
        prepare_terabyte(days, options.out, options.test_days, form, options.jobs)
    else:
        claim(options.out, settings | {"input": describe([options.input]),
                                       "test share": options.test_share,
                                       "part lines": options.part_lines})
        prepare_kaggle(options.input, options.out, options.test_share, options.part_lines, form)
    text = section(options.out, form)
    shutil.rmtree(options.out / MAKING, ignore_errors=True)
    tell_section(options.out, text)


if __name__ == "__main__":
    run_main("prepare_criteo", main)
