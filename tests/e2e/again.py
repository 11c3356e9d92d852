"""A complete job run again: what it left stays, and figures are the same wherever they are told."""

from __future__ import annotations

import re
import unittest

from _support import Case, sets, write_data

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

    def test_one_number_of_rows(self) -> None:
        """Rows are those of all tables, each counted."""
        rows = f"{self.summary('out')['rows']:,} rows"
        self.assertIn(f" ({rows})", self.first.out)
        self.assertIn(f", {rows} (", self.flux("run", "job.yaml").out)
        shown = self.flux("inspect", "out").out
        found = re.search(r"shards, (.*), 0 dense parameters, ", shown)
        assert found is not None, shown
        self.assertEqual(found[1], rows)


if __name__ == "__main__":
    unittest.main()
