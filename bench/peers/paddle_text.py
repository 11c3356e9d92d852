"""Criteo TSV to Paddle's MultiSlot text: for each slot its number of values, then the values.

Plain Python, and Python 3.10, which is what the environment of Paddle has.
"""

from __future__ import annotations

import argparse
import math
from contextlib import ExitStack
from pathlib import Path

DENSE = 13
SLOTS = 26
FIELDS = 1 + DENSE + SLOTS


def key_of(slot: int, token: str) -> int:
    """Key of a token; the same token differs by slot. A missing one is token 0 of its slot."""
    return (slot + 1) << 32 | int(token or "0", 16)


def to_multi_slot(line: str, transform: str) -> str:
    """One example: label, dense values, then one key for each of the slots."""
    fields = line.rstrip("\r\n").split("\t")
    if len(fields) != FIELDS:
        raise ValueError(f"a line has {len(fields)} fields, not {FIELDS}")
    dense = [float(text or 0) for text in fields[1 : 1 + DENSE]]
    if transform == "log1p":
        dense = [math.log1p(max(value, 0.0)) for value in dense]
    parts = [f"1 {fields[0]} {DENSE}", *(f"{value:.6g}" for value in dense)]
    parts += [f"1 {key_of(slot, token)}" for slot, token in enumerate(fields[1 + DENSE :])]
    return " ".join(parts) + "\n"


def convert(text: Path, out: Path, transform: str, parts: int) -> None:
    """Deals the examples out to `parts` files, as Paddle gives whole files to its threads."""
    with text.open() as source, ExitStack() as stack:
        files = [stack.enter_context((out / f"part-{n}").open("w")) for n in range(parts)]
        for number, line in enumerate(source):
            files[number % parts].write(to_multi_slot(line, transform))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder for the parts")
    parser.add_argument("--dense", choices=("log1p", "none"), required=True)
    parser.add_argument("--parts", type=int, required=True)
    args = parser.parse_args()
    convert(args.text, args.out, args.dense, args.parts)


if __name__ == "__main__":
    main()
