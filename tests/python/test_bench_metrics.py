"""Exact AUC against a count of all pairs, and the text that vowpal wabbit reads."""

from __future__ import annotations

import random
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from peers.metrics import exact_auc
from peers.vw_text import auc_of, convert, to_vw


def auc_by_pairs(labels: list[float], scores: list[float]) -> float:
    wins = 0.0
    pairs = 0
    for label, score in zip(labels, scores, strict=True):
        for other_label, other_score in zip(labels, scores, strict=True):
            if label > other_label:
                pairs += 1
                wins += 1.0 if score > other_score else 0.5 if score == other_score else 0.0
    return wins / pairs


class ExactAuc(unittest.TestCase):
    def test_agrees_with_all_pairs_with_and_without_ties(self) -> None:
        draw = random.Random(7)
        for levels in (3, 10, 10**9):
            labels = [float(draw.random() < 0.3) for _ in range(200)]
            scores = [float(draw.randrange(levels)) for _ in range(200)]
            self.assertAlmostEqual(
                exact_auc(labels, scores), auc_by_pairs(labels, scores), places=12
            )

    def test_ends_of_the_scale(self) -> None:
        self.assertEqual(exact_auc([0, 0, 1, 1], [1, 2, 3, 4]), 1.0)
        self.assertEqual(exact_auc([1, 1, 0, 0], [1, 2, 3, 4]), 0.0)
        self.assertEqual(exact_auc([0, 1, 0, 1], [5, 5, 5, 5]), 0.5)

    def test_refuses_one_class_and_unequal_lengths(self) -> None:
        with self.assertRaisesRegex(ValueError, "both positive and negative"):
            exact_auc([1, 1], [0.1, 0.2])
        with self.assertRaisesRegex(ValueError, "2 labels but 1 scores"):
            exact_auc([0, 1], [0.1])


class VwText(unittest.TestCase):
    def line(self, label: str, dense: list[str], tokens: list[str]) -> str:
        return "\t".join([label, *dense, *tokens]) + "\n"

    def test_one_namespace_per_slot_and_missing_left_out(self) -> None:
        line = self.line("1", ["2", ""] + ["0.5"] * 11, ["0a", ""] + ["ff"] * 24)
        text = to_vw(line, "none")
        self.assertTrue(text.startswith("1 |d 0:2 2:0.5 "))
        self.assertIn(" |A 0a |C ff ", text)
        self.assertNotIn("|B", text)
        self.assertTrue(text.endswith(" |Z ff\n"))

    def test_log1p_of_negative_is_zero(self) -> None:
        line = self.line("0", ["-3", "1"] + [""] * 11, ["aa"] * 26)
        self.assertTrue(to_vw(line, "log1p").startswith("-1 |d 0:0 1:0.693147 |A aa "))

    def test_refuses_a_line_with_a_wrong_number_of_slots(self) -> None:
        with self.assertRaises(ValueError):
            to_vw(self.line("0", ["1"] * 13, ["aa"] * 25), "none")

    def test_auc_of_predictions(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            text, out, predictions = (Path(name) / part for part in ("t.tsv", "t.vw", "p"))
            rows = [self.line(label, ["1"] * 13, ["aa"] * 26) for label in "0101"]
            text.write_text("".join(rows))
            convert(text, out, "none")
            self.assertEqual(len(out.read_text().splitlines()), 4)
            predictions.write_text("0.1\n0.9\n0.6\n0.5\n")
            self.assertEqual(auc_of(text, predictions), 0.75)


if __name__ == "__main__":
    unittest.main()
