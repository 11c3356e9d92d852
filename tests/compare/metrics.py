"""Cases for the metrics: random examples, and what scikit-learn and numpy say about them.

    metrics.py --cases 200 --seed 1 --out FILE

writes a text file that metrics_test --cases=FILE reads; `make compare` does both. The
small file tests/golden/metric_cases.txt was made with --cases 12 --rows 60 --seed 7.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import (
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    roc_auc_score,
)

Floats = Any  # arrays of float64; numpy is not there when this is checked
Ints = Any
BUCKETS = 1 << 17
BINS = 20
KS = (1, 5, 10)


@dataclass
class Case:
    """Examples as float64 that are exact in float32; groups are None where there are none."""

    predictions: Floats
    labels: Floats
    weights: Floats
    groups: Ints


def exact(values: Floats) -> Floats:
    """Rounded to float32."""
    return values.astype(np.float32).astype(np.float64)


def draw(random: np.random.Generator, rows: int) -> Case:
    """Skewed predictions with ties and both ends; labels that follow them, more or less."""
    hidden = random.normal(-1.5, 1.2, rows)
    logits = hidden + random.normal(0, 0.8, rows)
    predictions = 1 / (1 + np.exp(-logits))
    tied = random.random(rows) < 0.3
    predictions[tied] = np.round(predictions[tied], 1)
    labels = (random.random(rows) < 1 / (1 + np.exp(-hidden))).astype(np.float64)
    labels[:2] = (0, 1)
    weighted = random.random() < 0.5
    weights = random.exponential(2, rows) if weighted else np.ones(rows)
    grouped = random.random() < 0.7
    groups = random.integers(0, max(2, rows // 12), rows) if grouped else None
    return Case(exact(predictions), labels, exact(weights), groups)


def bucket_error(case: Case) -> dict[str, float]:
    """The rule of docs/using/metrics.md, over all buckets; nothing where no stretch counts."""
    at = np.minimum((case.predictions * BUCKETS).astype(np.int64), BUCKETS - 1)
    show = np.bincount(at, case.weights, BUCKETS)
    click = np.bincount(at, case.weights * case.labels, BUCKETS)
    begin, n, predicted, clicked, error, counted = -1.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(BUCKETS):
        low = i / BUCKETS
        if abs(low - begin) > 0.01:
            begin, n, predicted, clicked = low, 0.0, 0.0, 0.0
        n += show[i]
        predicted += low * show[i]
        clicked += click[i]
        if n <= 0 or predicted <= 0:
            continue
        p = predicted / n
        if math.sqrt((1 - p) / (p * n)) < 0.05:
            error += abs(clicked / n / p - 1) * n
            counted += n
            begin = -1.0
    return {"bucket_error": float(error / counted)} if counted > 0 else {}


def calibration_error(case: Case) -> float:
    """Bins by the weight of what lies below; equal predictions together."""
    values, which = np.unique(case.predictions, return_inverse=True)
    weight = np.bincount(which, case.weights)
    clicks = np.bincount(which, case.weights * case.labels)
    below = np.concatenate(([0.0], np.cumsum(weight)[:-1]))
    bins = np.minimum(BINS - 1, (BINS * below / weight.sum()).astype(np.int64))
    total = np.bincount(bins, weight, BINS)
    gap = np.abs(np.bincount(bins, weight * values, BINS) - np.bincount(bins, clicks, BINS))
    return float(gap[total > 0].sum() / total.sum())


def first_k(case: Case, rows: Ints, k: int) -> tuple[float, float]:
    """Weight, and weight of positives, among the first k; ties at the border by their share."""
    p = case.predictions[rows]
    above = (p[None, :] > p[:, None]).sum(axis=1)
    tied = (p[None, :] == p[:, None]).sum(axis=1)
    share = np.clip((k - above) / tied, 0, 1) * case.weights[rows]
    return float(share.sum()), float((share * case.labels[rows]).sum())


def group_metrics(case: Case) -> dict[str, float]:
    """GAUC, mean AUC and the first k; nothing without groups."""
    if case.groups is None:
        return {}
    areas, impressions = [], []
    at: dict[int, list[list[float]]] = {k: [[], []] for k in KS}
    for group in np.unique(case.groups):
        rows = np.flatnonzero(case.groups == group)
        labels, weights = case.labels[rows], case.weights[rows]
        if 0 < labels.sum() < len(rows):
            areas.append(roc_auc_score(labels, case.predictions[rows], sample_weight=weights))
            impressions.append(weights.sum())
        for k in KS:
            taken, hits = first_k(case, rows, k)
            at[k][0].append(hits / taken)
            if labels.sum() > 0:
                at[k][1].append(hits / float((weights * labels).sum()))
    out: dict[str, float] = {}
    if areas:
        out["gauc"] = float(np.average(areas, weights=impressions))
        out["uauc"] = float(np.mean(areas))
    for k, (precision, recall) in at.items():
        out[f"precision@{k}"] = float(np.mean(precision))
        out[f"recall@{k}"] = float(np.mean(recall))
    return out


def expected(case: Case) -> dict[str, float]:
    """Every metric by its name in flux."""
    y, p, w = case.labels, case.predictions, case.weights
    return {
        "auc": float(roc_auc_score(y, p, sample_weight=w)),
        "log_loss": float(log_loss(y, p, sample_weight=w)),
        "label_mean": float(np.average(y, weights=w)),
        "prediction_mean": float(np.average(p, weights=w)),
        "copc": float((w * y).sum() / (w * p).sum()),
        "mae": float(mean_absolute_error(y, p, sample_weight=w)),
        "rmse": math.sqrt(mean_squared_error(y, p, sample_weight=w)),
        **bucket_error(case),
        "calibration_error": calibration_error(case),
        **group_metrics(case),
    }


def write(case: Case, lines: list[str]) -> None:
    """One case: its size, a line per example, a line per metric."""
    lines.append(f"case {len(case.labels)} {0 if case.groups is None else 1}")
    groups = np.zeros(len(case.labels), np.int64) if case.groups is None else case.groups
    for p, y, w, g in zip(case.predictions, case.labels, case.weights, groups, strict=True):
        lines.append(f"{np.float32(p)!s} {int(y)} {np.float32(w)!s} {g}")
    values = expected(case)
    lines.append(f"values {len(values)}")
    lines.extend(f"{name} {value!r}" for name, value in values.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--rows", type=int, default=3000, help="at most so many in a case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    lines: list[str] = []
    for _ in range(arguments.cases):
        write(draw(random, int(random.integers(8, arguments.rows + 1))), lines)
    arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
