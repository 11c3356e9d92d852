"""The targets of data formats, from a made-up line of formats_bench."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from harness import targets
from harness.micro import Line


class Formats(unittest.TestCase):
    def test_the_slowest_row_of_a_format_counts(self) -> None:
        line: Line = {
            "bench": "formats",
            "criteo feasign": {"mb_per_s": 900.0},
            "short keys feasign": {"mb_per_s": 499.0},
            "criteo blocks": {"mb_per_s": 1500.0},
        }
        judged = {one.name.split()[0]: one.verdict() for one in targets.judge_formats([line])}
        self.assertEqual(judged, {"feasign": "MISSED", "blocks": "met",
                                  "criteo_tsv": "not measured", "multislot": "not measured"})


if __name__ == "__main__":
    unittest.main()
