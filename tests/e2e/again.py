"""A complete job run again: what it left stays, and figures are the same wherever they are told."""

from __future__ import annotations

import json
import re
import unittest

from _support import SOURCE, Case, sets, write_data

JOB = """
name: two_tables
output: out
data: {train: train.tsv, test: test.tsv, batch: 20}
shards: 4
tables:
  - {name: weight, dim: 1}
  - {name: vector, dim: 4}
model:
  layers:
    - {name: linear, op: embedding, table: weight, combine: sum}
    - {name: vectors, op: embedding, table: vector, combine: concat}
    - {name: pairs, op: fm, inputs: vectors}
    - {name: logit, op: add, inputs: [linear, pairs]}
    - {name: loss, op: logistic_loss, inputs: [logit, label]}
"""


class Again(Case):
    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "train.tsv", 300)
        write_data(self.folder / "test.tsv", 200, seed=2)
        (self.folder / "job.yaml").write_text(JOB)
        self.first = self.flux("run", "job.yaml")

    def left(self) -> dict[str, str]:
        names = ("report.html", "curve.svg", "curve.tsv")
        return {name: (self.folder / "out" / name).read_text() for name in names}

    def test_what_is_told_of_the_training_stays(self) -> None:
        before, trained = self.left(), self.summary("out")
        self.assertIn("polyline", before["curve.svg"])
        self.assertIn("nothing to train", self.flux("run", "job.yaml").out)
        self.assertEqual(self.left(), before)
        found = self.summary("out")
        self.assertEqual(found["examples"], 0, "of this run")
        for name in ("train_auc", "train_logloss", "train", "test", "rows", "model_hash"):
            self.assertEqual(found[name], trained[name], name)

    def test_another_test_is_told_with_the_curve_of_then(self) -> None:
        before, trained = self.left(), self.summary("out")
        write_data(self.folder / "other.tsv", 100, seed=3)
        self.flux("run", "job.yaml", *sets(data__test="other.tsv"))
        found = self.summary("out")
        self.assertEqual(found["test"]["examples"], 100)
        self.assertAlmostEqual(found["train_auc"], trained["train_auc"], delta=1e-5)
        self.assertAlmostEqual(found["train_logloss"], trained["train_logloss"], delta=1e-5)
        charts = [self.left()["report.html"].count("<svg"), before["report.html"].count("<svg")]
        self.assertEqual(charts[0], charts[1])
        self.assertIn("polyline", self.left()["curve.svg"])

    def test_events_and_other_files_tell_the_same(self) -> None:
        trained = self.summary("out")
        done = self.flux("run", "job.yaml", "--json", "--summary", "other.json")
        finished = [json.loads(line) for line in done.out.splitlines()][-1]
        other = json.loads((self.folder / "other.json").read_text())
        for name in ("train_auc", "train_logloss", "train"):
            self.assertEqual(finished["summary"][name], trained[name], name)
            self.assertEqual(other[name], trained[name], name)

    def test_one_number_of_rows(self) -> None:
        """Rows are those of all tables, each counted."""
        rows = f"{self.summary('out')['rows']:,} rows"
        self.assertIn(f" ({rows})", self.first.out)
        self.assertIn(f", {rows} (", self.flux("run", "job.yaml").out)
        shown = self.flux("inspect", "out").out
        found = re.search(r"shards, (.*), 0 dense parameters, ", shown)
        assert found is not None, shown
        self.assertEqual(found[1], rows)

    def test_more_epochs_are_not_taken_silently(self) -> None:
        done = self.flux("run", "job.yaml", *sets(epochs=3))
        self.assertIn("nothing to train", done.out)
        self.assertIn("was trained 1 x (phases times epochs); the job file says 3 x", done.out)
        self.assertNotIn("the job file says", self.flux("run", "job.yaml").out)

    def test_a_dry_run_says_what_the_run_would_refuse(self) -> None:
        self.assertIn("a dry run", self.flux("run", "job.yaml", "--dry-run").out)
        other = sets(tables__vector__dim=5)
        for more in ([], ["--dry-run"]):
            done = self.flux("run", "job.yaml", *other, *more, code=None)
            self.assert_refused(done, "tables.vector.dim: 4 in the checkpoint, 5 in the job",
                                "give the job another folder with --set output=DIR, ", "--fresh")
        self.flux("run", "job.yaml", *other, "--dry-run", "--fresh")
        self.flux("run", "job.yaml", *other, *sets(output="other"), "--dry-run")

    def test_who_only_looks_is_not_advised_to_start_over(self) -> None:
        done = self.flux("eval", "job.yaml", *sets(tables__vector__dim=5), code=None)
        self.assert_refused(done, "tables.vector.dim: 4 in the checkpoint", "--set output=DIR")
        self.assertNotIn("--fresh", done.err)

    def test_one_thing_is_not_many(self) -> None:
        self.assertIn(": 1 pass closed, ", self.flux("run", "job.yaml").out)
        write_data(self.folder / "one.tsv", 1)
        done = self.flux("run", "job.yaml", *sets(data__train="one.tsv", output="one"))
        self.assertIn("1 example x 1, 1 block, 1 batch of 20", done.out)

    def test_a_phase_of_a_job_without(self) -> None:
        self.assert_refused(self.flux("predict", "job.yaml", "--phase", "x", code=None),
                            "--phase x: the job has one network and no phases")


class Shipped(unittest.TestCase):
    def test_no_two_jobs_write_to_one_folder(self) -> None:
        jobs = [*SOURCE.glob("models/*.yaml"), *SOURCE.glob("examples/*/job.yaml")]
        found = [re.search(r"(?m)^output: (\S+)", job.read_text()) for job in jobs]
        outputs = [match[1] for match in found if match is not None]
        self.assertEqual(len(outputs), len(jobs))
        self.assertEqual(len(set(outputs)), len(outputs))


if __name__ == "__main__":
    unittest.main()
