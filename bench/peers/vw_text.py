"""Criteo TSV to vowpal wabbit's own text format, and the AUC of its predictions."""

from __future__ import annotations

import argparse
import json
import math
import string
from pathlib import Path

from peers.metrics import exact_auc

DENSE = 13
NAMESPACES = string.ascii_uppercase  # one per categorical slot


def to_vw(line: str, transform: str) -> str:
    """One example; missing fields are left out, which is how the format says missing."""
    fields = line.rstrip("\r\n").split("\t")
    parts = ["1 |d" if fields[0] == "1" else "-1 |d"]
    for index, text in enumerate(fields[1 : 1 + DENSE]):
        if text and transform == "log1p":
            text = f"{math.log1p(max(float(text), 0.0)):.6g}"
        if text:
            parts.append(f"{index}:{text}")
    parts += [
        f"|{name} {token}"
        for name, token in zip(NAMESPACES, fields[1 + DENSE :], strict=True)
        if token
    ]
    return " ".join(parts) + "\n"


def convert(text: Path, out: Path, transform: str) -> None:
    with text.open() as source, out.open("w") as target:
        target.writelines(to_vw(line, transform) for line in source)


def auc_of(text: Path, predictions: Path) -> float:
    with text.open() as file:
        labels = [float(line[0] == "1") for line in file]
    scores = [float(line.split()[0]) for line in predictions.read_text().splitlines()]
    return exact_auc(labels, scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("convert")
    verb.add_argument("--text", type=Path, required=True)
    verb.add_argument("--out", type=Path, required=True)
    verb.add_argument("--dense", choices=("log1p", "none"), required=True)
    verb = verbs.add_parser("auc")
    verb.add_argument("--text", type=Path, required=True)
    verb.add_argument("--predictions", type=Path, required=True)
    args = parser.parse_args()
    if args.verb == "convert":
        convert(args.text, args.out, args.dense)
    else:
        print(json.dumps({"auc": auc_of(args.text, args.predictions)}))


if __name__ == "__main__":
    main()
