"""Criteo TSV to libsvm text, and the AUC of xLearn's predictions.

Tokens are numbered from 0 in the order of their first appearance in the training data, so that
the peer's arrays have no holes; a token that only the test data has is left out, as it has no
weight. Dense features come first and have their value, tokens have 1.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from peers.metrics import exact_auc

DENSE = 13


class Numbers:
    """Column numbers of tokens, which differ by slot."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, str], int] = {}

    def of(self, slot: int, token: str, *, learn: bool) -> int | None:
        if learn:
            return self.known.setdefault((slot, token), DENSE + len(self.known))
        return self.known.get((slot, token))


def to_libsvm(line: str, transform: str, numbers: Numbers, *, learn: bool) -> str:
    fields = line.rstrip("\r\n").split("\t")
    parts = [fields[0]]
    for index, text in enumerate(fields[1 : 1 + DENSE]):
        if text and transform == "log1p":
            text = f"{math.log1p(max(float(text), 0.0)):.6g}"
        if text and text != "0":
            parts.append(f"{index}:{text}")
    for slot, token in enumerate(fields[1 + DENSE :]):
        number = numbers.of(slot, token, learn=learn) if token else None
        if number is not None:
            parts.append(f"{number}:1")
    return " ".join(parts) + "\n"


def convert(train: Path, test: Path, out: Path, transform: str) -> None:
    """Both files at once, as they share the numbers."""
    numbers = Numbers()
    for source, learn in ((train, True), (test, False)):
        with source.open() as text, (out / f"{source.stem}.svm").open("w") as target:
            target.writelines(to_libsvm(line, transform, numbers, learn=learn) for line in text)


def auc_of(text: Path, predictions: Path) -> float:
    with text.open() as file:
        labels = [float(line[0] == "1") for line in file]
    return exact_auc(labels, [float(line) for line in predictions.read_text().split()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("convert")
    verb.add_argument("--train", type=Path, required=True)
    verb.add_argument("--test", type=Path, required=True)
    verb.add_argument("--out", type=Path, required=True, help="folder")
    verb.add_argument("--dense", choices=("log1p", "none"), required=True)
    verb = verbs.add_parser("auc")
    verb.add_argument("--text", type=Path, required=True, help="the Criteo TSV of the test")
    verb.add_argument("--predictions", type=Path, required=True)
    args = parser.parse_args()
    if args.verb == "convert":
        convert(args.train, args.test, args.out, args.dense)
    else:
        print(json.dumps({"auc": auc_of(args.text, args.predictions)}))


if __name__ == "__main__":
    main()
