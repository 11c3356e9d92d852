"""The text that xLearn trains from."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from peers import libsvm_text


def line(label: str, dense: dict[int, str], tokens: dict[int, str]) -> str:
    fields = [
        label,
        *(dense.get(i, "") for i in range(13)),
        *(tokens.get(i, "") for i in range(26)),
    ]
    return "\t".join(fields) + "\n"


class Libsvm(unittest.TestCase):
    def test_tokens_are_numbered_by_slot_in_order_of_appearance(self) -> None:
        numbers = libsvm_text.Numbers()
        first = line("1", {0: "3", 2: "0"}, {0: "aa", 1: "aa"})
        second = line("0", {}, {1: "aa", 25: "bb"})
        texts = [libsvm_text.to_libsvm(one, "none", numbers, learn=True) for one in (first, second)]
        self.assertEqual(texts, ["1 0:3 13:1 14:1\n", "0 14:1 15:1\n"])

    def test_what_only_the_test_has_is_left_out(self) -> None:
        numbers = libsvm_text.Numbers()
        libsvm_text.to_libsvm(line("1", {}, {0: "aa"}), "none", numbers, learn=True)
        text = libsvm_text.to_libsvm(
            line("0", {}, {0: "aa", 1: "zz"}), "none", numbers, learn=False
        )
        self.assertEqual(text, "0 13:1\n")

    def test_dense_values_are_transformed(self) -> None:
        text = libsvm_text.to_libsvm(
            line("1", {0: "1", 1: "-5"}, {}), "log1p", libsvm_text.Numbers(), learn=True
        )
        self.assertEqual(text, "1 0:0.693147\n")

    def test_auc_of_predictions(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            text, predictions = Path(folder, "t.tsv"), Path(folder, "p.txt")
            text.write_text(line("1", {}, {}) + line("0", {}, {}) + line("1", {}, {}))
            predictions.write_text("0.9\n0.5\n0.1\n")
            self.assertEqual(libsvm_text.auc_of(text, predictions), 0.5)


if __name__ == "__main__":
    unittest.main()
