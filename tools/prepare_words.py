#!/usr/bin/env python3
"""Prepares the 1-billion-word set for flux: checked, linked or packed, its words counted.

    tools/prepare_words.py FOLDER OUT

FOLDER is 1-billion-word-language-modeling-benchmark-r13output, unpacked: 99 shards of tokenised,
shuffled sentences to train on and 50 that are held out. All of it is checked to be text; the first
bad byte is named by file, line and column, with exit code 2. OUT gets train/ and heldout/ (links,
or gzip files with --gz), vocab.txt (by `flux data vocab`) and data.yaml, the section of a job that
reads them. Run it again after it was stopped: what is finished is not made again. Memory does not
grow with the data, but in flux with the number of different words. More: docs/using/real_data.md.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from prepare_common import (
    Chunk,
    Finished,
    Problem,
    Task,
    check_at_least_one,
    claim,
    find_flux,
    parse_range,
    place_checked,
    run_each,
    run_flux,
    run_main,
    tell_section,
    yaml_text,
)

TRAIN_FOLDER = "training-monolingual.tokenized.shuffled"
TRAIN = "news.en-{:05}-of-00100"
SHARDS = 99  # 1 to 99; shard 0 was cut into the held-out ones
HELDOUT_FOLDER = "heldout-monolingual.tokenized.shuffled"
HELDOUT = "news.en.heldout-{:05}-of-00050"
HELDOUT_SHARDS = 50


def check(path: Path, chunk: Chunk) -> None:
    """Refuses bytes that are no text: of a damaged file, or of another one."""
    at = chunk.data.find(b"\0")
    what = "a NUL byte"
    try:
        chunk.data.decode()
    except UnicodeDecodeError as error:
        if at < 0 or error.start < at:
            at, what = error.start, f"byte 0x{chunk.data[error.start]:02x} is not UTF-8"
    if at >= 0:
        line = chunk.line + chunk.data.count(b"\n", 0, at)
        column = at - chunk.data.rfind(b"\n", 0, at)
        raise Problem(f"{path}:{line}:{column}: {what}; expected text. Unpack the archive again")


def find_shards(folder: Path, name: str, numbers: list[int]) -> list[Path]:
    found = [folder / name.format(number) for number in numbers]
    if not folder.is_dir():
        raise Problem(f"{folder}: no such folder; expected that of the unpacked "
                      "1-billion-word-language-modeling-benchmark-r13output.tar.gz")
    missing = [path.name for path in found if not path.is_file()]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise Problem(f"{folder}: {missing[0]}{more} missing; unpack the archive again, or take a "
                      "part with --shards FIRST-LAST")
    return found


def prepare_shard(source: Path, target: Path, packed: bool) -> str:
    return place_checked(source, target, check, packed)


def count_words(options: argparse.Namespace, suffix: str, finished: Finished,
                sources: list[Path]) -> Path:
    vocabulary: Path = options.out / "vocab.txt"
    if finished.has(vocabulary, sources):
        return vocabulary
    print(run_flux(find_flux(options.flux), "data", "vocab", f"{options.out}/train/*{suffix}",
                   "--out", str(vocabulary), "--min-count", str(options.min_count),
                   "--threads", str(options.jobs)), end="", flush=True)
    finished.add(vocabulary)
    return vocabulary


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "prepare_words.py", description="Prepares the 1-billion-word set.")
    parser.add_argument("input", type=Path, help="the unpacked r13output folder")
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("--gz", action="store_true", help="write gzip files instead of links")
    parser.add_argument("--shards", default=f"1-{SHARDS}", help="which shards to train on (1-99)")
    parser.add_argument("--heldout", default="0", help="which held-out shards (0; all: 0-49)")
    parser.add_argument("--min-count", type=int, default=5,
                        help="leave words out of the vocabulary that come less often (5)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="shards at a time")
    parser.add_argument("--flux", help="the flux binary, which counts the words")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    check_at_least_one(options, "min_count", "jobs")
    if options.input.is_file():
        raise Problem(f"{options.input}: a file; unpack it (tar xzf) and name the folder")
    find_flux(options.flux)  # told now, not after an hour
    train = find_shards(options.input / TRAIN_FOLDER, TRAIN,
                        parse_range(options.shards, "--shards", 1, SHARDS))
    heldout = find_shards(options.input / HELDOUT_FOLDER, HELDOUT,
                          parse_range(options.heldout, "--heldout", 0, HELDOUT_SHARDS - 1))
    suffix = ".txt.gz" if options.gz else ".txt"
    claim(options.out, {"form": suffix, "min count": options.min_count,
                        "shards": [str(path.resolve()) for path in train + heldout]})
    finished = Finished(options.out)
    run_each(prepare_shard, [
        Task(source, options.out / folder / (source.name + suffix), options.gz)
        for folder, sources in (("train", train), ("heldout", heldout)) for source in sources
    ], options.jobs, finished)
    vocabulary = count_words(options, suffix, finished, train)
    tell_section(options.out, "data:\n  format: sentences\n"
                              f"  train: {yaml_text(f'{options.out}/train/*{suffix}')}\n"
                              f"  vocabulary: {yaml_text(str(vocabulary))}\n")


if __name__ == "__main__":
    run_main("prepare_words", main)
