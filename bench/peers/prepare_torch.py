"""Parses a Criteo TSV once into the arrays that the in-memory rows train from."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from peers import criteo

ARRAYS = ("labels", "dense", "ids")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder for the arrays")
    parser.add_argument("--dense", choices=criteo.TRANSFORMS, required=True)
    args = parser.parse_args()
    parts = [criteo.parse(lines, args.dense) for lines in criteo.batches(args.text, 10_000)]
    args.out.mkdir(parents=True, exist_ok=True)
    for name, column in zip(ARRAYS, zip(*parts, strict=True), strict=True):
        np.save(args.out / f"{name}.npy", np.concatenate(column))


if __name__ == "__main__":
    main()
