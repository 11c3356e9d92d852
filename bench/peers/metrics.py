"""Exact AUC in plain Python, so that it needs no package and can be tested anywhere."""

from __future__ import annotations

from collections.abc import Sequence


def exact_auc(labels: Sequence[float], scores: Sequence[float]) -> float:
    """Probability that a positive scores above a negative; ties count one half.

    Raises ValueError unless both classes are present and the lengths agree.
    """
    if len(labels) != len(scores):
        raise ValueError(f"{len(labels)} labels but {len(scores)} scores")
    pairs = sorted(zip(scores, labels, strict=True))
    wins = 0.0
    negatives = 0
    start = 0
    while start < len(pairs):
        end = start
        tied_positives = 0
        while end < len(pairs) and pairs[end][0] == pairs[start][0]:
            tied_positives += pairs[end][1] > 0.5
            end += 1
        tied_negatives = end - start - tied_positives
        wins += tied_positives * (negatives + 0.5 * tied_negatives)
        negatives += tied_negatives
        start = end
    positives = len(pairs) - negatives
    if positives == 0 or negatives == 0:
        raise ValueError("AUC needs both positive and negative labels")
    return wins / (positives * negatives)
