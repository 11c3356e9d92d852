"""The table of rules of the learning rate: which runs there are, and what is made of them."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "bench"))

from harness import lr_policy
from harness.errors import BenchError
from harness.lr_policy import Result, Rule


class LrPolicyTest(unittest.TestCase):
    def test_every_rule_is_compared_with_and_without_warm_up(self) -> None:
        found = lr_policy.rules("1,4")
        self.assertEqual(len(found), len(set(found)))
        changed = {(rule.lr, rule.warmup) for rule in found if rule.workers == "1,4"}
        self.assertEqual(
            changed,
            {("none", 0), ("linear", 0), ("linear", 100), ("sqrt", 0), ("sqrt", 100)},
        )
        self.assertEqual({rule.workers for rule in found}, {"1", "4", "1,4"})

    def test_cells_are_means_and_differences_from_one_worker(self) -> None:
        one, two = Rule("none", 0, "1"), Rule("sqrt", 100, "1,4")
        results = [
            Result("sync", one, 1, 0.70, 0),
            Result("sync", one, 2, 0.72, 0),
            Result("sync", two, 1, 0.72, 1),
            Result("sync", two, 2, 0.76, 2),
        ]
        page = lr_policy.render(results, "2026-01-01")
        self.assertIn(" 0.7100 |", page)
        self.assertIn(" 0.7400 (+0.0300 ± 0.0141) |", page)
        self.assertIn("not finite: 3.", page)

    def test_a_run_without_a_result_is_an_error(self) -> None:
        line = '{"bench": "lr_policy", "auc": 0.5, "refused": 0}'
        self.assertEqual(lr_policy.parse(f"noise\n{line}\n")["auc"], 0.5)
        with self.assertRaises(BenchError):
            lr_policy.parse('{"bench": "other"}')


if __name__ == "__main__":
    unittest.main()
