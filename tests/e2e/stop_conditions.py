"""Jobs that end before their data does: by a limit, by time, or because a metric gets no better."""

from __future__ import annotations

import json
import unittest

from _support import Case, example, sets, write_data

RECORDS = 1000


class Stop(Case):
    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "train.tsv", RECORDS)

    def job(self, **fields: object) -> list[str]:
        return ["run", example("counting"), "--threads", "1",
                *sets(data__train="train.tsv", output="out", data__batch=5, shards=4, epochs=10,
                      **fields)]

    def assert_stopped(self, words: str) -> None:
        """Stopped by that condition; what was trained is in the model once, the rest is left."""
        found = self.summary("out")
        self.assertEqual((found["state"], found["lost"], found["doubled"]), ("stopped", 0, 0))
        self.assertIn(words, found["stopped_by"])
        self.assertEqual(found["applied_once"], found["expected"])
        self.assertEqual(found["expected"] + found["untrained"], 10 * RECORDS)

    def test_limits_in_every_mode(self) -> None:
        for mode in ("async", "half_async", "sync"):
            for limit, least in (("stop__examples", 2500), ("stop__steps", 500)):
                with self.subTest(mode=mode, limit=limit):
                    done = self.flux(*self.job(mode=mode, **{limit: least}), "--fresh")
                    self.assert_stopped(limit.replace("__", "."))
                    self.assertIn("stopped by stop.", done.out)
                    trained = self.summary("out")["expected"]
                    self.assertGreaterEqual(trained, 2500)
                    self.assertLess(trained, 10 * RECORDS)

    def test_a_job_that_was_stopped_says_so_and_goes_on_if_it_may(self) -> None:
        done = self.flux(*self.job(stop__examples=2500))
        self.assertIn("stop.examples: the 2,500 that were asked for are applied", done.out)
        self.assertNotIn("2,500 are applied", done.out)  # what was under way is applied, too
        trained = self.summary("out")["expected"]
        again = self.flux(*self.job(stop__examples=2500))
        self.assertIn("the last run was stopped by stop.examples", again.out)
        self.assert_stopped("stop.examples")
        self.assertEqual(self.summary("out")["expected"], trained)
        self.flux(*self.job())
        self.assert_exact("out", 10 * RECORDS)

    def test_time(self) -> None:
        self.flux(*self.job(stop__seconds=0.0001))
        self.assert_stopped("stop.seconds: the 0.0001 s that were asked for are over")

    def test_events_and_report_name_the_condition(self) -> None:
        done = self.flux(*self.job(stop__examples=2500), "--json")
        events = [json.loads(line) for line in done.out.splitlines()]
        stopped = [event for event in events if event["event"] == "stopped"]
        self.assertEqual(len(stopped), 1)
        self.assertIn("stop.examples", stopped[0]["by"])
        self.assertEqual(stopped[0]["untrained"], self.summary("out")["untrained"])
        self.assertIn("stop.examples", (self.folder / "out/report.html").read_text())


class Converges(Case):
    def passes(self, count: int, **stop: object) -> str:
        write_data(self.folder / "test.tsv", 400, 99)
        lines = []
        for i in range(count):
            write_data(self.folder / f"p{i}.tsv", 400, i)
            lines.append(f"  - {{name: p{i}, train: p{i}.tsv}}")
        fields = ", ".join(f"{name}: {value}" for name, value in stop.items())
        return "\n".join([
            "name: converge", "output: out", "deterministic: true", "shards: 4",
            "data: {test: test.tsv, batch: 20}", f"stop: {{{fields}}}",
            "checkpoint: {every_s: 0, keep: 1}",
            "tables:", "  - {name: w, dim: 1, init: zero, optimizer: {rule: sgd, lr: 0.2}}",
            "model:", "  layers:",
            "    - {name: y, op: embedding, table: w, combine: sum}",
            "    - {name: loss, op: logistic_loss, inputs: [y, label]}",
            "passes:", *lines, ""])

    def test_no_better_by_min_delta(self) -> None:
        """With an improvement that is never enough, the first pass stays the best."""
        (self.folder / "job.yaml").write_text(
            self.passes(6, metric="auc", min_delta=0.9, patience=2))
        done = self.flux("run", "job.yaml")
        self.assertIn("test auc has not improved", done.out)
        found = self.summary("out")
        self.assertEqual((found["state"], found["expected"]), ("stopped", 3 * 400))
        self.assertEqual((found["untrained"], found["passes_left"]), (0, 3))
        self.assertIn("looks; 3 passes were not begun\n", done.out)
        best = json.loads((self.folder / "out/best.json").read_text())
        self.assertEqual((best["pass"], best["metric"]), ("p0", "auc"))
        self.assertEqual(found["best"], best["checkpoint"])
        kept = [path.name for path in self.checkpoints("out") if (path / "manifest.json").exists()]
        self.assertEqual(len(kept), 2, "the best, and the newest")
        again = self.flux("run", "job.yaml")
        self.assertIn("the last run was stopped by stop.metric", again.out)
        self.assertEqual(self.summary("out")["expected"], 3 * 400)

    def test_the_only_phase_and_head_may_be_named(self) -> None:
        for names in ({"head": "loss"}, {"phase": "train"}, {"head": "loss", "phase": "train"}):
            with self.subTest(names):
                (self.folder / "job.yaml").write_text(
                    self.passes(6, metric="auc", min_delta=0.9, patience=2, **names))
                done = self.flux("run", "job.yaml", "--fresh")
                self.assertNotIn("to stop by", done.out + done.err)
                self.assertEqual(self.summary("out")["expected"], 3 * 400)

    def test_a_wrong_head_is_refused_before_anything_is_trained(self) -> None:
        (self.folder / "job.yaml").write_text(self.passes(2, metric="auc", head="los"))
        self.assert_refused(self.flux("check", "job.yaml", code=None),
                            "job.yaml:6:21: there is no loss 'los', did you mean 'loss'?")

    def test_the_best_can_be_used(self) -> None:
        (self.folder / "job.yaml").write_text(
            self.passes(6, metric="auc", min_delta=0.9, patience=2))
        self.flux("run", "job.yaml")
        best = json.loads((self.folder / "out/best.json").read_text())
        newest = self.summary("out")["test"]
        folder = best["checkpoint"]
        number = folder.split("/")[-1]
        for which in ("best", number, number.lstrip("0"), folder, folder + "/",
                      str(self.folder / folder)):
            with self.subTest(which):
                found = json.loads(
                    self.flux("eval", "job.yaml", "--json", "--checkpoint", which).out)
                self.assertEqual(found["heads"][0]["auc"], best["value"])
        for which in ([], ["--checkpoint", "newest"]):
            self.assertEqual(
                json.loads(self.flux("eval", "job.yaml", "--json", *which).out), newest)
        predicted = {which: self.flux("predict", "job.yaml", "--checkpoint", which).out
                     for which in ("best", "newest", number)}
        self.assertEqual(predicted["best"], predicted[number])
        self.assertNotEqual(predicted["best"], predicted["newest"])
        (self.folder / "words.txt").write_text("a 1\n")
        for which in ("0", "99999", "bestest", "out", "out/checkpoints", "-1", "out/absent"):
            for command in (["eval"], ["predict"], ["vectors", "--vocabulary", "words.txt"]):
                done = self.flux(command[0], "job.yaml", *command[1:], f"--checkpoint={which}",
                                 code=None)
                self.assert_refused(done, f"--checkpoint {which}: ", f"{number} (best)",
                                    "(newest)")

    def test_a_job_without_a_best(self) -> None:
        (self.folder / "job.yaml").write_text(self.passes(1))
        self.assert_refused(self.flux("eval", "job.yaml", "--checkpoint", "best", code=None),
                            "train the job first")
        self.flux("run", "job.yaml")
        self.assert_refused(self.flux("eval", "job.yaml", "--checkpoint", "best", code=None),
                            "--checkpoint best: the job names none", "(newest)")

    def test_a_fresh_run_forgets_the_best(self) -> None:
        (self.folder / "job.yaml").write_text(
            self.passes(6, metric="auc", min_delta=0.9, patience=2))
        self.flux("run", "job.yaml")
        self.assertTrue((self.folder / "out/best.json").exists())
        (self.folder / "job.yaml").write_text(self.passes(6))
        self.flux("run", "job.yaml", "--fresh")
        self.assert_refused(self.flux("eval", "job.yaml", "--checkpoint", "best", code=None),
                            "--checkpoint best: the job names none", "(newest)")

    def test_the_best_follows_the_values_that_were_told(self) -> None:
        (self.folder / "job.yaml").write_text(self.passes(5, metric="log_loss", patience=2))
        done = self.flux("run", "job.yaml", "--json")
        events = [json.loads(line) for line in done.out.splitlines()]
        losses = [event["test"]["heads"][0]["log_loss"] for event in events
                  if event["event"] == "evaluated"]
        best, waited, expected = float("inf"), 0, 5
        for i, loss in enumerate(losses):
            best, waited = (loss, 0) if loss < best else (best, waited + 1)
            if waited == 2:
                expected = i + 1
                break
        self.assertEqual(len(losses), expected)
        told = json.loads((self.folder / "out/best.json").read_text())
        self.assertEqual(told["value"], best)
        self.assertEqual(told["pass"], f"p{losses.index(best)}")


if __name__ == "__main__":
    unittest.main()
