"""The parts threads and old of the benchmark: their cases and arithmetic, from made-up samples."""

from __future__ import annotations

import argparse
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from harness import cases, old, options, threads
from harness.flux import Files, Flux, Shape
from harness.rows import Case, Row, Sample, Series, Table

FILES = Files(Path("a"), Path("b"), 7)


def sample(speed: float, auc: float = 0.785, seed: int = 1, content: str | None = "aa") -> Sample:
    summary: dict[str, object] = {} if content is None else {"model_hash": content}
    return Sample(speed, 1.0, 2**20, 0.0, auc, {"summary": summary}, seed=seed)


def table(**by_threads: list[Sample]) -> Table:
    """t1=[...], t2=[...]: the samples of one job by threads."""
    result = Table()
    for name, samples in by_threads.items():
        result.add(Series(Row("fm", "flux", "fm, auto", int(name[1:])), samples))
    return result


def fake_flux(folder: str) -> Flux:
    binary = Path(folder) / "flux"
    binary.touch()
    return Flux(binary, Path(folder) / "scratch")


class Cases(unittest.TestCase):
    def test_more_threads_than_cores_run_once(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            todo = threads.thread_cases(fake_flux(name), FILES, "fm", [4, 1, 2], cores=2)
        found = [(case.row.threads, case.rounds) for case in todo]
        self.assertEqual(found, [(1, None), (2, None), (4, 1)])

    def test_a_round_has_one_seed_and_runs_alternate(self) -> None:
        calls: list[tuple[int, int]] = []

        def train(_: Flux, _job: str, _files: Files, count: int, _how: str, seed: int) -> Sample:
            calls.append((count, seed))
            return sample(1.0, seed=seed)

        rows = Table()
        with (
            tempfile.TemporaryDirectory() as name,
            mock.patch.object(Flux, "train", train),
            redirect_stdout(StringIO()),
        ):
            todo = threads.thread_cases(fake_flux(name), FILES, "fm", [1, 2, 4], cores=2)
            cases.measure_all(todo, 2, rows)
        self.assertEqual(calls, [(1, 1), (2, 1), (4, 1), (1, 2), (2, 2)])

    def test_the_seed_is_said_to_flux(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            text = " ".join(fake_flux(name).command("fm", FILES, 2, "auto", 5))
        self.assertIn("--set seed=5", text)

    def test_data_is_of_its_own(self) -> None:
        self.assertNotIn(threads.TRAIN_SEED, (1, 2))
        self.assertNotEqual(threads.TRAIN_SEED, threads.TEST_SEED)


class SameModel(unittest.TestCase):
    def test_equal_in_each_seed(self) -> None:
        rows = table(
            t1=[sample(1, seed=1, content="aa"), sample(1, seed=2, content="bb")],
            t2=[sample(1, seed=1, content="aa"), sample(1, seed=2, content="bb")],
            t4=[sample(1, seed=1, content="aa")],
        )
        one = threads.same_model(rows, "fm")
        self.assertEqual(one.name, "fm: the same model with 1, 2, 4 threads")
        self.assertEqual((one.measured, one.verdict()), ("equal (2 seeds)", "met"))

    def test_those_that_differ_are_named(self) -> None:
        rows = table(
            t1=[sample(1, content="aa")],
            t2=[sample(1, content="aa")],
            t4=[sample(1, content="cc")],
        )
        one = threads.same_model(rows, "fm")
        self.assertEqual((one.measured, one.met), ("others with 4 threads (1 seed)", False))

    def test_models_of_different_seeds_are_not_compared(self) -> None:
        rows = table(t1=[sample(1, seed=1, content="aa")], t2=[sample(1, seed=2, content="bb")])
        self.assertIsNone(threads.same_model(rows, "fm").met)

    def test_summaries_without_a_hash(self) -> None:
        rows = table(t1=[sample(1, content=None)], t2=[sample(1, content=None)])
        one = threads.same_model(rows, "fm")
        self.assertEqual((one.measured, one.met), ("no hash in the summaries", None))


class Judged(unittest.TestCase):
    def test_auc_is_held_against_one_thread_with_the_same_seeds(self) -> None:
        rows = table(
            t1=[sample(1, 0.7800, 1), sample(1, 0.7900, 2), sample(1, 0.7900, 3)],
            t4=[sample(1, 0.7795, 1)],
            t8=[sample(1, 0.7789, 1)],
        )
        found = {one.name: one for one in threads.judge(rows)}
        four = found["fm: test AUC with 4 threads against 1 thread"]
        eight = found["fm: test AUC with 8 threads against 1 thread"]
        self.assertEqual((four.wanted, four.met), (">= 0.78000 - 0.001", True))
        self.assertFalse(eight.met)

    def test_speed_per_core_of_two_threads_over_one(self) -> None:
        rows = table(
            t1=[sample(100, seed=1), sample(80, seed=2)],
            t2=[sample(190, seed=1), sample(144, seed=2)],
        )
        ratio = threads.per_core(rows, "fm")
        assert ratio
        self.assertEqual(ratio.pairs(), [0.95, 0.9])
        self.assertEqual(
            ratio.text(" per core"),
            "0.93x per core (AUC 0.7850 vs 0.7850, 2 vs 1 threads, seeds 1-2, 2 pairs, quartiles "
            "0.91 to 0.94)",
        )
        self.assertIsNone(threads.per_core(table(t1=[sample(1)]), "fm"))

    def test_no_ratio_where_two_threads_learn_less(self) -> None:
        rows = table(t1=[sample(100, 0.7857)], t2=[sample(190, 0.7609)])
        ratio = threads.per_core(rows, "fm")
        assert ratio
        self.assertIn("0.7609 is 0.0248 below its own with 1 thread, 0.7857", ratio.text())
        page = threads.render(rows, 1000, 100, 2, "a CPU")
        self.assertNotIn("0.95", page)
        self.assertIn("not comparable", page)
        self.assertIn("| equal (1 seed) ", page)

    def test_speed_per_core_counts_cores_that_there_are(self) -> None:
        page = threads.render(table(t1=[sample(100)], t8=[sample(180)]), 1000, 100, 2, "a CPU")
        row = next(line for line in page.splitlines() if line.startswith("| fm      |       8"))
        self.assertEqual(row.split("|")[5].strip(), "90")


class Old(unittest.TestCase):
    def rows(self, new_auc: float, old_auc: float, own: float) -> Table:
        result = Table()
        for which, count, speed, auc in (
            ("new", 1, 100.0, own),
            ("old", 1, 90.0, own),
            ("new", 2, 210.0, new_auc),
            ("old", 2, 140.0, old_auc),
        ):
            row = Row(f"{which}_deepfm_embedded", which, f"deepfm x {count}", count)
            result.add(Series(row, [sample(speed, auc)] * 7))
        return result

    def test_new_and_old_alternate_in_all_shapes(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            flux = fake_flux(name)
            todo = old.old_cases(flux, flux, FILES, "bf16", cores=2)
        self.assertEqual([case.row.system for case in todo], ["new", "old"] * (len(todo) // 2))
        for one, other in zip(todo[::2], todo[1::2], strict=True):
            self.assertEqual(one.row.setup, other.row.setup)
        setups = [case.row.setup for case in todo[::2]]
        for wanted in (
            "ctr_dnn, one process x 2, bf16",
            "deepfm, one process x 2, bf16",
            "deepfm, 1 server + 1 worker x 1, bf16, wire fp32",
            "ctr_dnn, 1 server + 1 worker x 2, bf16, wire fp32",
        ):
            self.assertIn(wanted, setups)
        self.assertEqual(len({(case.row.key, case.row.threads) for case in todo}), len(todo))

    def test_the_job_and_the_seed_reach_the_roles(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            words = fake_flux(name).role_command(FILES, Shape(1, 1, 2), "bf16", "deepfm", 6)
        text = " ".join(words)
        for part in ("examples/deepfm/job.yaml", "--set seed=6", "--workers 1", "--threads 2"):
            self.assertIn(part, text)

    def test_ratio_of_new_over_old(self) -> None:
        found = dict(old.ratios(self.rows(0.7945, 0.7943, 0.7943)))
        by_setup = {row.setup: ratio.text() for row, ratio in found.items()}
        self.assertEqual(
            by_setup["deepfm x 2"],
            "1.50x (AUC 0.7945 vs 0.7943, 2 threads, seed 1, 7 pairs, quartiles 1.50 to 1.50)",
        )
        self.assertTrue(by_setup["deepfm x 1"].startswith("1.11x (AUC"))

    def test_below_the_old_one_or_its_own_thread_there_is_none(self) -> None:
        below_old = old.render(self.rows(0.7920, 0.7943, 0.7925), 1000, 100, 2, "a CPU")
        self.assertIn("AUC 0.7920 is 0.0023 below the old one's 0.7943", below_old)
        self.assertNotIn("1.50x", below_old)
        below_own = old.render(self.rows(0.7873, 0.7873, 0.7943), 1000, 100, 2, "a CPU")
        self.assertIn("AUC 0.7873 is 0.0070 below its own with 1 thread, 0.7943", below_own)
        self.assertNotIn("1.50x", below_own)
        self.assertIn("1.11x", below_own)


class Options(unittest.TestCase):
    def test_defaults(self) -> None:
        args = options.arguments(None, ["--only", "threads,old", "--old", "flux"])
        self.assertEqual(args.thread_counts, [1, 2, 4, 8, 16])
        self.assertEqual(args.only, frozenset({"threads", "old"}))
        self.assertGreaterEqual(options.REPEAT, 7)
        self.assertFalse(options.arguments(None, []).only & {"threads", "old"})

    def test_thread_counts(self) -> None:
        self.assertEqual(options.counts_of("4,1,4"), [1, 4])
        for text in ("", "0", "1,x", "-1"):
            with self.subTest(text), self.assertRaises(argparse.ArgumentTypeError):
                options.counts_of(text)

    def test_an_unknown_part(self) -> None:
        with self.assertRaises(SystemExit), redirect_stderr(StringIO()) as said:
            options.arguments(None, ["--only", "thread"])
        self.assertIn("no part thread", said.getvalue())


class Rounds(unittest.TestCase):
    def test_a_case_may_take_part_in_the_first_rounds_only(self) -> None:
        calls: list[tuple[str, int]] = []

        def take(name: str) -> Case:
            def measure(number: int) -> Sample:
                calls.append((name, number))
                return sample(1.0)

            return Case(Row(name, name, name, 1), measure, 1 if name == "once" else None)

        with redirect_stdout(StringIO()):
            cases.measure_all([take("once"), take("always")], 2, Table())
        self.assertEqual(calls, [("once", 1), ("always", 1), ("always", 2)])


if __name__ == "__main__":
    unittest.main()
