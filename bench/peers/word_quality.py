"""How well vectors of words show the topics of a made language; one JSON line.

precision_at_10: of a word's ten nearest (by the cosine), the share that is of its topic; mrr: the
mean of 1 / rank of the first one that is. Over all words that have a topic.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

NEAREST = 10
QUERIES_AT_ONCE = 1000


def read_vectors(path: Path) -> tuple[list[str], Any]:
    with path.open(encoding="utf-8") as file:
        count, dim = map(int, file.readline().split())
        words, vectors = [], np.empty((count, dim), np.float32)
        for i, line in enumerate(file):
            word, *numbers = line.split()
            words.append(word)
            vectors[i] = np.array(numbers, np.float32)
    return words, vectors


def quality(words: list[str], vectors: Any, truth: dict[str, str]) -> dict[str, float]:
    known = [i for i, word in enumerate(words) if truth.get(word, "-") != "-"]
    topics = np.array([int(truth[words[i]]) for i in known])
    chosen = vectors[known]
    chosen /= np.maximum(np.linalg.norm(chosen, axis=1, keepdims=True), 1e-12)
    hits = []
    for begin in range(0, len(known), QUERIES_AT_ONCE):
        rows = np.arange(begin, min(begin + QUERIES_AT_ONCE, len(known)))
        scores = chosen[rows] @ chosen.T
        scores[np.arange(len(rows)), rows] = -2
        nearest = np.argpartition(-scores, NEAREST, axis=1)[:, :NEAREST]
        order = np.argsort(-np.take_along_axis(scores, nearest, 1), axis=1)
        nearest = np.take_along_axis(nearest, order, 1)
        hits.append(topics[nearest] == topics[rows][:, None])
    hit = np.concatenate(hits)
    reciprocal = np.where(hit.any(1), 1 / (hit.argmax(1) + 1), 0)
    return {"precision_at_10": float(hit.mean()), "mrr": float(reciprocal.mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--truth", type=Path, required=True)
    args = parser.parse_args()
    truth = dict(line.split("\t") for line in args.truth.read_text().splitlines())
    print(json.dumps(quality(*read_vectors(args.vectors), truth)))


if __name__ == "__main__":
    main()
