"""Rows, targets and report of the benchmark, from made-up samples."""

from __future__ import annotations

import json
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from harness import cases, micro, report, targets
from harness.errors import BenchError
from harness.machine import Machine
from harness.rows import Case, Row, Sample, Series, Table
from harness.text import markdown

MIB = 2**20


def sample(speed: float, auc: float = 0.78, peak_mib: int = 900) -> Sample:
    return Sample(speed, 10.0, peak_mib * MIB, 0.0, auc)


def series(key: str, threads: int, *samples: Sample) -> Series:
    return Series(Row(key, key.split("_")[0], key, threads), list(samples))


def table(*all_series: Series) -> Table:
    result = Table()
    for one in all_series:
        result.add(one)
    return result


def good_table() -> Table:
    return table(
        series("torch_fp32", 2, sample(40_000, 0.779, 1500)),
        series("torch_bf16", 2, sample(50_000, 0.779, 1500)),
        series("torch_text", 2, sample(27_000, 0.779, 1000)),
        series("flux_fp32", 2, sample(70_000, 0.7795, 300)),
        series("flux_bf16", 2, sample(95_000, 0.7791, 310)),
        series("vw", 2, sample(200_000, 0.748, 100)),
        series("flux_lr", 2, sample(650_000, 0.749, 200)),
    )


class Rows(unittest.TestCase):
    def test_median_best_and_worst_case_memory(self) -> None:
        one = series("x", 1, sample(10, 0.7, 5), sample(30, 0.9, 9), sample(11, 0.8, 7))
        self.assertEqual((one.speed(), one.best()), (11, 30))
        self.assertEqual((one.auc(), one.peak_rss_bytes()), (0.8, 9 * MIB))

    def test_ratio_compares_equal_threads_only(self) -> None:
        rows = table(series("a", 2, sample(30)), series("b", 2, sample(20)), series("b", 1))
        ratio = rows.ratio("a", "b", 2)
        self.assertEqual(ratio and ratio.value(), 1.5)
        self.assertIsNone(rows.ratio("a", "b", 1))
        self.assertEqual(rows.threads(), [2, 1])

    def test_samples_interleave_and_a_failed_row_is_not_tried_again(self) -> None:
        calls: list[str] = []

        def take(name: str, number: int) -> Sample:
            calls.append(f"{name}{number}")
            if name == "bad":
                raise BenchError("it broke")
            return sample(1)

        todo = [Case(Row(n, n, n, 1), partial(take, n)) for n in ("a", "bad", "b")]
        rows = Table()
        with redirect_stdout(StringIO()) as said:
            cases.measure_all(todo, 2, rows)
        self.assertIn("FAILED: it broke", said.getvalue())
        self.assertEqual(calls, ["a1", "bad1", "b1", "a2", "b2"])
        self.assertEqual([one.failure for one in rows.series], ["", "it broke", ""])


class Targets(unittest.TestCase):
    PARTS = frozenset({"ctr", "lr", "start"})

    def verdicts(self, rows: Table, first: float | None) -> dict[str, str]:
        return {one.name: one.verdict() for one in targets.judge(rows, first, self.PARTS)}

    def test_all_met_but_the_reach(self) -> None:
        verdicts = self.verdicts(good_table(), 0.4)
        missed = [name for name, verdict in verdicts.items() if verdict != "met"]
        self.assertEqual(missed, ["bf16 from text / PyTorch bf16 from memory (reach), 2 threads"])
        self.assertEqual(len(verdicts), 9)

    def test_memory_is_held_against_the_leanest_peer(self) -> None:
        rows = good_table()
        rows.add(series("torch_lean", 2, sample(1, 0.7, 900)))
        verdicts = self.verdicts(rows, 0.4)
        name = "peak memory of flux / leanest PyTorch row, threads 2"
        self.assertEqual(verdicts[name], "MISSED")

    def test_precision_is_judged_at_one_thread(self) -> None:
        for bf16, verdict in ((0.7800, "met"), (0.7793, "MISSED")):
            rows = table(
                series("flux_fp32", 1, sample(1, 0.7799)), series("flux_bf16", 1, sample(1, bf16))
            )
            name = "AUC of bf16 against fp32, threads 1"
            self.assertEqual(self.verdicts(rows, None)[name], verdict)

    def test_each_limit_can_be_missed(self) -> None:
        rows = table(
            series("torch_fp32", 2, sample(40_000, 0.780)),
            series("flux_fp32", 2, sample(69_999, 0.7799)),  # below, but not by much
            series("flux_bf16", 2, sample(69_999, 0.7793)),
        )
        verdicts = self.verdicts(rows, 1.01)
        self.assertEqual(verdicts["fp32 from text / PyTorch fp32 from memory, 2 threads"], "MISSED")
        bf16 = "bf16 from text / PyTorch bf16 from memory, 2 threads"
        self.assertEqual(verdicts[bf16], "not measured")
        # Two threads race, so that their AUCs say nothing of the precision.
        self.assertNotIn("AUC of bf16 against fp32, threads 2", verdicts)
        auc = "test AUC CTR-DNN fp32 not below the peer's, threads 2"
        self.assertEqual(verdicts[auc], "MISSED")
        self.assertEqual(verdicts["first progress line of flux run on a pipe"], "MISSED")


class Doubts(unittest.TestCase):
    def test_quiet_run_has_none(self) -> None:
        self.assertEqual(report.doubts([good_table()], [("flux", 2, "fp32", 0.99)]), [])

    def test_noisy_rows_and_impossible_shares_are_named(self) -> None:
        rows = good_table()
        rows.add(series("torch_compile", 2, Sample(1, 1, MIB, 0.5, 0.7), sample(1)))
        noisy, share = report.doubts([rows], [("flux", 2, "fp32", 1.52), ("flux", 2, "bf16", 0.7)])
        self.assertIn("1 of 8 rows", noisy)
        self.assertIn("fp32 at 2 threads", share)
        self.assertNotIn("bf16", share)


class Gemm(unittest.TestCase):
    def test_flops_of_the_net(self) -> None:
        widths = [26 * 10 + 13, 400, 400, 400, 1]
        weights = sum(a * b for a, b in pairwise(widths))
        self.assertEqual(micro.FLOP_PER_EXAMPLE, 6 * weights)

    def test_peak_is_the_best_seen_and_share_uses_its_precision(self) -> None:
        output = "\n".join(
            [
                "a table",
                '{"bench": "gemm", "precision": "fp32", "threads": 2, "gflops": 200}',
                '{"bench": "gemm", "precision": "fp32", "threads": 2, "gflops": 257.76}',
                '{"bench": "relu", "threads": 2}',
                '{"not": "a bench line"}',
                "{broken",
            ]
        )
        text, lines = micro.split_output(output)
        self.assertEqual(text, 'a table\n{"not": "a bench line"}\n{broken')
        peaks = micro.gemm_peaks(lines)
        self.assertEqual(peaks, {("fp32", 2): 257.76})
        shares = micro.shares(good_table(), peaks)
        by_name = {name: share for name, _, _, share in shares}
        self.assertAlmostEqual(by_name["flux, flux_fp32"], 0.7, places=9)
        self.assertNotIn("flux, flux_bf16", by_name)


class Text(unittest.TestCase):
    def a_report(self) -> report.Report:
        machine = Machine("a CPU", 2, 16.0, True)
        one = report.Report("2026-01-02", machine, 1000, 100, 3, "log1p")
        one.table = good_table()
        broken = series("torch_compile", 2)
        broken.failure = "cannot read /somewhere/private/file"
        one.table.add(broken)
        one.targets = targets.judge(one.table, 0.5, Targets.PARTS)
        return one

    def test_figures_and_ratios_to_the_reference_of_their_group(self) -> None:
        lines = report.render(self.a_report()).splitlines()
        flux, ratio = (line for line in lines if line.startswith("| flux") and "flux_fp32" in line)
        self.assertIn(" 70,000 |", flux)
        self.assertIn("0.77950", flux)
        known = "AUC 0.7795 vs 0.7790, 2 threads, seed not recorded, 1 pair"
        self.assertIn(f"| torch, torch_fp32 | 1.75x ({known})", ratio)
        lr = [line for line in lines if "flux_lr" in line]
        self.assertIn("3.25x", lr[1])

    def test_no_ratio_where_less_was_learnt(self) -> None:
        one = self.a_report()
        one.table = table(
            series("xlearn", 2, sample(154_232, 0.76364)),
            series("flux_fm", 2, sample(725_271, 0.76091)),
            series("flux_fm", 1, sample(435_564, 0.78570)),
        )
        one.targets = targets.judge(one.table, None, frozenset({"fm"}))
        text = report.render(one)
        self.assertNotIn("4.70", text)
        self.assertNotIn("1.67", text)
        self.assertIn("not comparable: AUC 0.7609 is 0.0027 below the peer's 0.7636 (", text)
        self.assertIn("AUC 0.7609 is 0.0248 below its own with 1 thread, 0.7857 (2 vs 1", text)
        self.assertIn("| missed (not comparable) |", text)

    def test_columns_line_up(self) -> None:
        text = markdown([("a", "bb"), ("ccc", "1"), ("d", "22")], frozenset({1}))
        self.assertEqual(text, "| a   | bb |\n|-----|---:|\n| ccc |  1 |\n| d   | 22 |")

    def test_what_is_kept_names_no_folder_of_this_machine(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            report.write(self.a_report(), folder, [Path("/somewhere"), Path("/somewhere/private")])
            kept = json.loads((folder / "2026-01-02.json").read_text())
            text = (folder / "latest.md").read_text()
        self.assertIn("cannot read .../file", text)
        failures = [row["failure"] for row in kept["rows"] if row["failure"]]
        self.assertEqual(failures, ["cannot read .../file"])
        self.assertEqual(kept["machine"]["cores"], 2)
        self.assertEqual(len(kept["rows"]), 8)


if __name__ == "__main__":
    unittest.main()
