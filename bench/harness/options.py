"""The command line of the benchmark: its parts, and how much of each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from harness import machine, threads
from harness.flux import ROOT

PARTS = ("ctr", "models", "lr", "fm", "words", "parquet", "cluster", "counting", "micro", "start")
ON_REQUEST = ("lr_policy", "threads", "old")  # flux beside itself: only when named
NEEDS_FLUX = frozenset(  # and its data
    {"ctr", "models", "lr", "fm", "cluster", "start", "lr_policy", "old"}
)
EXAMPLES, TEST_EXAMPLES, REPEAT = 1_000_000, 100_000, 7
QUICK_EXAMPLES, QUICK_TEST_EXAMPLES, QUICK_REPEAT = 100_000, 20_000, 1


def parts_of(text: str) -> frozenset[str]:
    parts = frozenset(text.split(","))
    known = (*PARTS, *ON_REQUEST)
    if unknown := parts - set(known):
        names = ", ".join(sorted(unknown))
        raise argparse.ArgumentTypeError(f"no part {names}: choose from {','.join(known)}")
    return parts


def threads_of(text: str) -> list[int]:
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        counts = []
    cores = machine.describe().cores
    if not counts or not all(1 <= count <= cores for count in counts):
        raise argparse.ArgumentTypeError(f"{text}: a list of numbers from 1 to {cores}, e.g. 2,1")
    return sorted(set(counts), reverse=True)


def counts_of(text: str) -> list[int]:
    """Of the part threads: more than the machine has cores are welcome."""
    words = text.split(",")
    if not all(word.isdigit() and int(word) > 0 for word in words):
        raise argparse.ArgumentTypeError(f"{text}: a list of positive numbers, e.g. 1,2,4")
    return sorted({int(word) for word in words})


def arguments(description: str | None, words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--only",
        type=parts_of,
        default=frozenset(PARTS),
        help=f"parts of {','.join((*PARTS, *ON_REQUEST))}; the last {len(ON_REQUEST)} only when "
        "named",
    )
    parser.add_argument("--quick", action="store_true", help="few examples, one run per row")
    parser.add_argument("--repeat", type=int, help=f"runs per row (default {REPEAT})")
    parser.add_argument("--threads", type=threads_of, default=None, help="default 2,1")
    counts = ",".join(str(count) for count in threads.COUNTS)
    parser.add_argument(
        "--thread-counts",
        type=counts_of,
        default=list(threads.COUNTS),
        help=f"of the part threads (default {counts})",
    )
    parser.add_argument("--old", type=Path, help="binary of an older flux, for the part old")
    parser.add_argument("--peers-only", action="store_true", help="leave flux out")
    parser.add_argument("--check", action="store_true", help="fail when a target is missed")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="folder of the binary")
    parser.add_argument("--cache", type=Path, default=ROOT / ".bench", help="peers and data")
    parser.add_argument("--data", type=Path, help="folder with train.tsv and test.tsv to use")
    parser.add_argument(
        "--dense",
        choices=("log1p", "none"),
        default="log1p",
        help="what the peers do to dense values; must be what the example jobs do",
    )
    parser.add_argument("--results", type=Path, help="default bench/results for a full run")
    return parser.parse_args(words)
