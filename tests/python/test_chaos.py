"""Figures of the chaos scenarios and of the counting part, from made-up results."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/chaos")]

import chaos  # noqa: E402
import figures  # noqa: E402
import jobs  # noqa: E402
import network  # noqa: E402
import scenarios  # noqa: E402
from harness import counting  # noqa: E402


def result(**changes: Any) -> jobs.Result:
    summary = {"lost": 0, "doubled": 0, "applied_once": 100, "expected": 100, "state": "complete",
               "auc": 0.75, **changes}
    times = {"count": 3, "p50": 0.2, "p99": 0.9, "max": 0.9}
    drill = {"summary": summary, "faults_made": 3, "faults_left_out": 0, "worst_stall_s": 0.4,
             "goodput": 0.95, "line": "faults 3", "recovery": {"kill worker": {"recovered": times}}}
    return jobs.Result(drill, {"auc": 0.7502})


class Figures(unittest.TestCase):
    def broken(self, **changes: Any) -> list[str]:
        return [f.name for f in figures.exact(result(**changes), 3) if f.must and not f.met]

    def test_exact(self) -> None:
        self.assertEqual(self.broken(), [])
        self.assertEqual(self.broken(lost=1), ["lost"])
        self.assertEqual(self.broken(doubled=2), ["doubled"])
        self.assertEqual(self.broken(applied_once=99), ["applied once"])
        self.assertEqual(self.broken(state="stopped"), ["complete"])

    def test_times_of_a_label_that_never_came(self) -> None:
        self.assertEqual(figures.recovered(result(), "kill worker", "kill server")["p99"], 0.9)
        self.assertEqual(figures.recovered(result(), "kill server")["max"], 0)

    def test_faults_that_nobody_saw_recover(self) -> None:
        one = result()
        unseen = {"count": 0, "p50": None, "p99": None, "max": None}
        one.drill["recovery"]["kill all"] = {"recovered": unseen}
        self.assertFalse(figures.at_most("", figures.recovered(one, "kill all")["max"], 10.0)
                         .met)

    def test_speed_against_the_rest_of_the_run(self) -> None:
        def figure(rest: int, end: int) -> figures.Figure:
            """100 examples a second until 45 s, while faults come; then `rest` until the end."""
            one = result()
            one.drill["sample_columns"] = ["t", "applied"]
            one.drill["samples"] = [[float(t), 100 * min(t, 45) + rest * max(0, t - 45)]
                                    for t in range(end + 1)]
            one.drill["faults"] = [{"t": 10.0}, {"t": 40.0}]
            return figures.against_rest(one, 0.95)

        self.assertTrue(figure(rest=104, end=100).met)
        self.assertFalse(figure(rest=120, end=100).met)
        self.assertAlmostEqual(figure(rest=200, end=100).value, 0.5, places=2)
        self.assertIsNone(figure(rest=100, end=52).met)

    def test_pauses_are_found_after_each_change(self) -> None:
        one = result()
        one.drill["sample_columns"] = ["t", "state", "applied"]
        still = {3.0: 2, 3.5: 2, 4.5: 2, 8.0: 6}  # stands from 2 to 5 s, nobody looks from 6 to 8 s
        one.drill["samples"] = [[t, "training", still.get(t, int(t))]
                                for t in (1.0, 2.0, 3.0, 3.5, 4.5, 5.0, 6.0, 8.0, 9.0)]
        one.drill["faults"] = [{"t": 0.5}, {"t": 2.5}, {"t": 5.5}]
        self.assertEqual(figures.longest_pauses(one), [1.0, 3.0, 3.0])
        long = jobs.Runner(Path(), ROOT, Path(), 1, "async")
        self.assertEqual(figures.pause_p99(long, one, 1.0).met, False)
        one.drill["samples"][2:] = [[3.0, "saving", 2], [7.0, "training", 2], [7.5, "training", 3]]
        self.assertEqual(figures.longest_pauses(one), [1.0, 0.0, 0.5])
        self.assertEqual(figures.pause_p99(long, one, 1.0).met, True)

    def test_content_is_compared_unless_shards_went_back(self) -> None:
        one = result(model_hash="a", rows=7)
        one.content = {"model_hash": "b", "rows": 7}
        self.assertEqual([f.met for f in figures.same_content(one)], [True, False])
        one.rolled_back = True
        self.assertEqual([f.met for f in figures.same_content(one)], [True, None])
        one.content = {"model_hash": "a", "rows": 7}
        self.assertEqual([f.met for f in figures.same_content(one)], [True, True])

    def test_means_are_judged_if_runs_are_alike(self) -> None:
        calm = [0.75, 0.7501, 0.7499, 0.75, 0.75]

        def met(other: list[float]) -> bool | None:
            return figures.distance_of_means("sync", calm[:len(other)], other)[0].met

        self.assertTrue(met(calm))
        self.assertFalse(met([x - 0.001 for x in calm]))
        self.assertIsNone(met([0.63, 0.64, 0.635, 0.631, 0.638]))
        self.assertIsNone(met([0.75]))

    def test_goodput_above_all_measure_is_not_judged(self) -> None:
        one = result()
        self.assertTrue(figures.goodput(one, 0.9).met)
        one.drill["goodput"] = 2.56
        self.assertIsNone(figures.goodput(one, 0.9).met)
        one.drill["goodput"] = 0.5
        self.assertFalse(figures.goodput(one, 0.9).met)

    def test_a_job_without_a_summary_fails(self) -> None:
        one = result()
        one.drill["summary"] = None
        with self.assertRaises(jobs.JobError):
            figures.exact(one, 3)

    def test_states_and_table(self) -> None:
        good = chaos.Outcome("a", "p", [figures.at_most("t", 0.5, 1)], "line")
        late = chaos.Outcome("b", "p", [figures.at_most("t", 2, 1)])
        bad = chaos.Outcome("c", "p", failure="it | hung\nlong story")
        self.assertEqual([o.state for o in (good, late, bad)], ["met", "missed", "FAILED"])
        text = chaos.table([chaos.as_json(o, 7) for o in (good, late, bad)])
        self.assertIn("| a x7 | t | 0.500 | <= 1 | met |", text)
        self.assertIn("| c x7 | | it / hung | | FAILED |", text)

    def test_results_of_scenarios_that_were_not_run_stay(self) -> None:
        first = chaos.Outcome("worker", "p", [figures.at_most("t", 0.5, 1)], "old")
        other = chaos.Outcome("all", "p", [figures.at_most("t", 0.5, 1)], "kept")
        with tempfile.TemporaryDirectory() as folder:
            chaos.write_results(Path(folder), [chaos.as_json(o, 7) for o in (first, other)])
            first.line = "new"
            chaos.write_results(Path(folder), [chaos.as_json(first, 9)])
            text = (Path(folder) / "chaos.md").read_text()
        self.assertIn("- worker: new", text)
        self.assertIn("- all: kept", text)
        self.assertNotIn("old", text)

    def test_short_runs_have_wide_bounds_that_must_hold(self) -> None:
        none = Path()
        full, short = (jobs.Runner(none, none, none, 1, "async", s) for s in (60.0, 0.0))
        late = figures.in_time(full, "t", 3.0, 2.0)
        self.assertEqual((late.met, late.must), (False, False))
        self.assertTrue(figures.in_time(short, "t", 3.0, 2.0).met)
        far_too_late = figures.in_time(short, "t", float("inf"), 2.0)
        self.assertEqual((far_too_late.met, far_too_late.must), (False, True))
        slow = figures.share_of_speed(short, "s", 0.3, 0.99)
        self.assertEqual((slow.met, slow.must), (False, True))
        self.assertFalse(figures.share_of_speed(full, "s", 0.9, 0.99).met)
        (apart,) = figures.distance_of_means("sync", [0.75], [0.7], short=True)
        self.assertEqual((apart.met, apart.must), (False, True))

    def test_changes_are_counted(self) -> None:
        one = result()
        one.drill["faults"] = [{"kind": f"scale {what}", "what": f"scale to {size} {what}"}
                               for what, size in (("workers", 4), ("workers", 5), ("servers", 3),
                                                  ("workers", 5), ("workers", 1))]
        self.assertEqual(figures.changes_of(one, "workers", 4), 2)
        self.assertEqual(figures.changes_of(one, "servers", 2), 1)

    def test_age_of_what_a_shard_went_back_to(self) -> None:
        log = ("flux: 8 shard(s) have no replica left: server-1 loads them from out/checkpoints/"
               "000003, 4.3 s old\n3 shard(s) have no replica left: server-0 loads them from "
               "nothing: there is no checkpoint yet, they begin anew\n")
        self.assertEqual(jobs.AGE.findall(log), ["4.3"])

    def test_cut_networks(self) -> None:
        runner = jobs.Runner(Path(), Path(), Path(), 1, "async")
        found = {"healed": [0.2, 2.5], "differed": [], "lost": 0, "doubled": 0}
        self.assertEqual([f.name for f in network.judged(runner, found, 2) if not f.met],
                         ["healed, max s after"])
        found["differed"] = ["server-1"]
        self.assertEqual([f.name for f in network.judged(runner, found, 2) if f.must and not f.met],
                         ["signs of two writers"])

    def test_what_cannot_be_run_is_said_and_forgets_nothing(self) -> None:
        known = chaos.Outcome("netns", "p", [figures.at_most("t", 0.5, 1)], "old")
        skipped = chaos.Outcome("netns", "p", skipped="not root")
        self.assertEqual(skipped.state, "skipped")
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "chaos.md"
            chaos.write_results(Path(folder), [chaos.as_json(skipped, 2)])
            self.assertIn("| netns x2 | | not run: not root | | skipped |", page.read_text())
            chaos.write_results(Path(folder), [chaos.as_json(known, 18)])
            chaos.write_results(Path(folder), [chaos.as_json(skipped, 2)])
            self.assertIn("| netns x18 | t | 0.500 | <= 1 | met |", page.read_text())

    def test_all_but_one_have_a_short_form(self) -> None:
        self.assertEqual([s.name for s in scenarios.ALL if s.short is None], ["quality_dnn"])

    def test_every_scenario_has_a_name_of_its_own(self) -> None:
        names = [s.name for s in scenarios.ALL]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(sum(s.full >= 200 for s in scenarios.ALL), 2)

    def test_points_are_those_of_the_binary(self) -> None:
        source = (ROOT / "flux/base/kill_point.cc").read_text()
        for point in (scenarios.DIRECT_POINTS + "," + scenarios.MOVING_POINTS).split(","):
            self.assertIn(f'"{point}"', source)


class Counting(unittest.TestCase):
    def test_counts_become_lost_and_doubled(self) -> None:
        row = counting._row("f", "t", {0: 5, 1: 10, 2: 3, 4: 1})
        self.assertEqual((row.lost, row.once, row.doubled), (5, 10, 6))
        self.assertFalse(row.exact)
        self.assertTrue(counting._row("f", "t", {1: counting.EXAMPLES}).exact)

    def test_table(self) -> None:
        rows = [counting._row("kill", "again", {0: 5, 1: 19_995}, "a note")]
        text = counting.render(rows, "2.6.2")
        self.assertIn("| Paddle | kill | again | 20,000 | 19,995 | 5 | 0 |", text)
        self.assertIn("- Paddle, kill: a note.", text)


if __name__ == "__main__":
    unittest.main()
