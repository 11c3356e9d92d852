"""Ratios: what they name, when they are none, and what is kept of them."""

from __future__ import annotations

import json
import sys
import unittest
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from harness import pages, report, stored, targets, words
from harness.machine import Machine
from harness.ratio import AUC, Measure, Ratio, Side, seeds_of, spread
from harness.rows import Row, Sample, Series

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"


def side(
    quality: float | None = 0.7979,
    threads: int | None = 2,
    speeds: tuple[float, ...] = (10.0,) * 7,
    seeds: tuple[int, ...] | None = (1,) * 7,
) -> Side:
    return Side(speeds, threads, seeds, quality)


class Text(unittest.TestCase):
    def test_names_quality_threads_seeds_and_pairs(self) -> None:
        ratio = Ratio(side(0.7985, speeds=(34.0,) * 7), side())
        self.assertEqual(
            ratio.text(),
            "3.40x (AUC 0.7985 vs 0.7979, 2 threads, seed 1, 7 pairs, quartiles 3.40 to 3.40)",
        )

    def test_median_and_quartiles_are_those_of_the_pairs(self) -> None:
        # The machine gets slower by the round: medians of the sides would say 4 / 2.
        ours, theirs = (8.0, 4.0, 3.0), (4.0, 2.0, 1.0)
        ratio = Ratio(side(speeds=ours), side(speeds=theirs))
        self.assertEqual(ratio.pairs(), [2.0, 2.0, 3.0])
        self.assertEqual(ratio.value(), 2.0)
        self.assertIn("3 pairs, quartiles 2.00 to 2.50)", ratio.text())
        self.assertEqual(spread([1.0, 2.0, 3.0, 4.0, 5.0]), (2.0, 4.0))
        self.assertEqual(spread([7.0]), (7.0, 7.0))

    def test_a_side_that_failed_in_the_middle_has_fewer_pairs(self) -> None:
        ratio = Ratio(side(speeds=(2.0, 4.0, 6.0)), side(speeds=(1.0, 1.0)))
        self.assertEqual(ratio.pairs(), [2.0, 4.0])

    def test_one_pair_has_no_quartiles(self) -> None:
        ratio = Ratio(side(speeds=(20.0,), seeds=(3,)), side(speeds=(10.0,), seeds=(3,)))
        self.assertEqual(ratio.text(), "2.00x (AUC 0.7979 vs 0.7979, 2 threads, seed 3, 1 pair)")

    def test_without_a_model(self) -> None:
        ratio = Ratio(side(None, 1, (2.0,), ()), side(None, 1, (1.0,), ()), measure=None)
        self.assertEqual(ratio.text(), "2.00x (no model, 1 thread, no seed, 1 pair)")
        self.assertTrue(ratio.comparable() and ratio.recorded())

    def test_what_is_not_recorded_is_said(self) -> None:
        nothing = side(None, 2, (1.0,), None)
        self.assertEqual(
            Ratio(nothing, nothing).text(),
            "1.00x (AUC not recorded, 2 threads, seed not recorded, 1 pair)",
        )
        half = Ratio(side(0.78, 2, (1.0,), None), nothing)
        self.assertIn("AUC 0.7800 vs not recorded", half.text())
        self.assertFalse(half.recorded())

    def test_seeds(self) -> None:
        self.assertEqual(seeds_of((1, 2, 3), (1, 2, 3)), "seeds 1-3")
        self.assertEqual(seeds_of((1, 2, 3), (0, 0, 0)), "seeds 1-3 vs seed 0")
        self.assertEqual(seeds_of((5, 1), (5, 1)), "seeds 1 5")
        self.assertEqual(seeds_of((1,), None), "seed 1 vs seed not recorded")


class NotComparable(unittest.TestCase):
    def test_the_row_of_the_issue(self) -> None:
        text = Ratio(side(0.7609, speeds=(47.0,) * 7), side(0.7857)).text()
        wanted = "not comparable: AUC 0.7609 is 0.0248 below the peer's 0.7857"
        self.assertEqual(text, f"{wanted} (2 threads, seed 1, 7 pairs)")

    def test_the_slack_itself_is_allowed(self) -> None:
        for ours, comparable in ((0.7850, True), (0.7840, True), (0.7839, False), (0.79, True)):
            with self.subTest(ours):
                self.assertEqual(Ratio(side(ours), side(0.7850)).comparable(), comparable)

    def test_a_loss_is_worse_above(self) -> None:
        loss = Measure("log loss", higher_is_better=False)
        self.assertTrue(Ratio(side(0.490), side(0.495), loss).comparable())
        worse = Ratio(side(0.4970), side(0.4950), loss)
        self.assertIn("log loss 0.4970 is 0.0020 above the peer's 0.4950", worse.text())

    def test_also_below_its_own_with_one_thread(self) -> None:
        ratio = Ratio(side(0.7609), side(0.7610), own=0.7857)
        self.assertIn("0.0248 below its own with 1 thread, 0.7857", ratio.text())
        self.assertTrue(replace(ratio, own=0.7612).comparable())


class Judged(unittest.TestCase):
    def test_speed_counts_only_at_the_same_quality(self) -> None:
        fast = (40.0,) * 7
        cases = (
            (Ratio(side(0.7985, speeds=fast), side()), "met"),
            (Ratio(side(0.7985), side()), "MISSED"),
            (Ratio(side(0.7609, speeds=fast), side()), "missed (not comparable)"),
            (Ratio(side(None, speeds=fast), side()), "not judged (AUC not recorded)"),
            (Ratio(side(None, speeds=fast), side(None), measure=None), "met"),
            (None, "not measured"),
            (Ratio(side(speeds=()), side()), "not measured"),
        )
        for ratio, verdict in cases:
            with self.subTest(verdict):
                self.assertEqual(targets.at_least("x", 3.0, ratio).verdict(), verdict)

    def test_a_figure_beside_a_ratio_names_the_same(self) -> None:
        ratio = Ratio(side(0.7985), side())
        one = targets.judged("memory", "<= 0.33", ratio, True, "0.24")
        said = "0.24 (AUC 0.7985 vs 0.7979, 2 threads, seed 1, 7 pairs)"
        self.assertEqual((one.measured, one.verdict()), (said, "met"))

    def test_word_vectors_are_held_against_their_own_measure(self) -> None:
        gensim = words.Trained(100.0, 1.0, 0.990, 0.9, 1)
        for precision, verdict in ((0.986, "met"), (0.984, "missed (not comparable)")):
            flux = words.Trained(300.0, 1.0, precision, 0.9, 1)
            one = words.judge([words.Round(gensim, flux)], 2)[0]
            self.assertEqual(one.verdict(), verdict)
            self.assertIn(f"precision at 10 {precision:.3f}", one.measured)


class Kept(unittest.TestCase):
    def test_a_report_read_back_renders_the_same(self) -> None:
        one = report.Report("2026-01-02", Machine("a CPU", 2, 16.0, True), 1000, 100, 7, "log1p")
        for key, auc in (("xlearn", 0.7636), ("flux_fm", 0.7609)):
            samples = [Sample(10.0 * n, 1.0, 2**20, 0.0, auc, seed=n) for n in (1, 2)]
            one.table.add(Series(Row(key, key, key, 2), samples))
        one.targets = targets.judge(one.table, None, frozenset({"fm"}))
        again = stored.report_of(json.loads(json.dumps(report.as_json(one))))
        self.assertEqual(again.targets, one.targets)
        self.assertEqual(report.render(again), report.render(one))
        self.assertIn("seeds 1-2, 2 pairs", report.render(again))

    def test_the_results_of_the_repository_are_by_these_rules(self) -> None:
        """`python3 bench/rewrite.py` mends what this finds."""
        for path in RESULTS.glob("????-??-??.json"):
            for target in stored.load(path).targets:
                if target.ratio and target.met:
                    self.assertTrue(target.ratio.comparable(), (path.name, target.name))
        newest = max(RESULTS.glob("????-??-??.json"))
        latest = (RESULTS / "latest.md").read_text()
        self.assertEqual(report.render(stored.load(newest)), latest)
        for path in RESULTS.glob("*.md"):
            page = path.read_text()
            self.assertEqual(pages.rewritten(path.name, page), page, path.name)


class Pages(unittest.TestCase):
    def test_rows_without_samples_are_judged_by_their_own_cells(self) -> None:
        page = "\n".join(
            [
                "before",
                "| system | set-up | threads | ex/s | ratio | test AUC |",
                "|---|---|---:|---:|---:|---:|",
                "| xLearn | FM | 2 | 100,000 | 1.00x | 0.76364 |",
                "| flux | FM | 2 | 400,000 | 4.00x | 0.76091 |",
                "| xLearn | FM | 1 | 100,000 | 1.00x | 0.76326 |",
                "| flux | FM | 1 | 300,000 | 3.00x | 0.78570 |",
                "| flux | FM | 1 | 300,000 | 3.00x | - |",
                "after",
            ]
        )
        new = pages.rewritten("models.md", page).splitlines()
        self.assertEqual((new[0], new[-1]), ("before", "after"))
        self.assertNotIn("4.00x", new[4])
        self.assertIn("not comparable: AUC 0.7609 is 0.0027 below the peer's 0.7636", new[4])
        known = "AUC 0.7857 vs 0.7633, 1 thread, seed not recorded, 1 pair"
        self.assertIn(f"3.00x ({known})", new[6])
        self.assertIn("3.00x (AUC not recorded vs 0.7633", new[7])
        self.assertEqual(pages.rewritten("models.md", "\n".join(new)).splitlines(), new)

    def test_bars_of_an_absolute_value_are_no_cells(self) -> None:
        line = "| a | |difference| <= 0.1 |"
        seen: list[pages.Cells] = []

        def look(cells: pages.Cells) -> None:
            seen.append(cells)

        self.assertEqual(pages.tables_rewritten(f"{line}\n|---|---|", look), f"{line}\n|---|---|")
        self.assertEqual(seen, [[["a", "|difference| <= 0.1"]]])

    def test_other_pages_are_left_alone(self) -> None:
        page = "| ratio |\n|---|\n| 2 |"
        self.assertEqual(pages.rewritten("chaos.md", page), page)


class Slack(unittest.TestCase):
    def test_it_is_what_the_issue_says(self) -> None:
        self.assertEqual((AUC.name, AUC.slack), ("AUC", 0.001))


if __name__ == "__main__":
    unittest.main()
