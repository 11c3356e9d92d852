"""Models whose shapes are right and that are wrong all the same: refused, or warned about."""

from __future__ import annotations

import unittest

from _support import Case

JOB = """name: odd
output: out
data: {{format: feasign, train: d.txt, test: d.txt, batch: 10, slots: [{{name: u}}], dense: [x]}}
tables: [{{name: emb, dim: 4}}]
model:
  layers:
    - {{name: e, op: embedding, table: emb}}
{layers}"""
LOGIT = "    - {name: z, op: fc, inputs: e, units: 1}\n"
LOSS = "    - {name: loss, op: logistic_loss, inputs: [z, label]}\n"
WAYS = (["check", "job.yaml"], ["run", "job.yaml", "--smoke", "2"],
        ["run", "job.yaml", "--dry-run"], ["run", "job.yaml"])


class OddModels(Case):
    def write(self, layers: str, labels: list[str] | None = None) -> None:
        (self.folder / "job.yaml").write_text(JOB.format(layers=layers))
        lines = [f"{label} u:{i} x:1\n" for i, label in enumerate(labels or ["0", "1"] * 20)]
        (self.folder / "d.txt").write_text("".join(lines))

    def test_a_label_above_a_prediction_is_refused(self) -> None:
        self.write("    - {name: x, op: concat, inputs: [e, label]}\n"
                   + LOGIT.replace("inputs: e", "inputs: x") + LOSS)
        for way in WAYS:
            told = self.flux(*way, code=2).err
            self.assertIn("job.yaml:8:7: node 'x' (concat): 'label' is a label", told)

    def test_more_parameters_than_memory_are_refused(self) -> None:
        self.write("    - {name: c1, op: cin, inputs: [e, e], units: 4096}\n"
                   "    - {name: c2, op: cin, inputs: [c1, c1], units: 4096}\n"
                   "    - {name: s, op: reduce_sum, inputs: c2}\n"
                   + LOGIT.replace("inputs: e", "inputs: s") + LOSS)
        for way in WAYS:
            told = self.flux(*way, code=2).err
            self.assertIn("job.yaml:9:7: node 'c2' (cin): has 68,719,476,736 of the model's", told)

    def test_a_second_sigmoid_is_warned_about(self) -> None:
        self.write(LOGIT.replace("units: 1", "units: 1, activation: sigmoid") + LOSS)
        for way in WAYS:
            told = self.flux(*way).err
            self.assertEqual(
                1, told.count("warning: job.yaml:9:7: node 'loss' (logistic_loss): 'z' is already"))

    def test_a_label_that_is_no_class_is_named_by_its_line(self) -> None:
        self.write(LOGIT.replace("units: 1", "units: 3")
                   + LOSS.replace("logistic_loss", "softmax_cross_entropy"),
                   ["0", "1", "2", "3"] * 10)
        for way in WAYS[1:]:
            told = self.flux(*way, code=2).err
            self.assertIn("d.txt:4:1: label 'label' is 3, but its loss needs the number of one of "
                          "3 classes, from 0 to 2", told)

    def test_hinge_loss_takes_what_logistic_loss_takes(self) -> None:
        self.write(LOGIT + LOSS.replace("logistic_loss", "hinge_loss"), ["1", "-1"] * 20)
        told = self.flux("run", "job.yaml", code=2).err
        self.assertIn("d.txt:2:1: label 'label' is -1, but its loss needs 0, 1", told)

    def test_smoke_says_that_numbers_below_zero_become_zero(self) -> None:
        self.write(LOGIT + "    - {name: w, op: fc, inputs: dense, units: 1}\n"
                   "    - {name: y, op: add, inputs: [z, w]}\n" + LOSS.replace("[z,", "[y,"))
        (self.folder / "d.txt").write_text("".join(
            f"{i % 2} u:{i} x:{-1 if i < 3 else i}\n" for i in range(40)))
        note = "note: dense values below 0 (3 of 'x') become 0 by data.dense_transform"
        self.assertIn(note, self.flux("run", "job.yaml", "--smoke", "9").out)
        job = (self.folder / "job.yaml").read_text()
        for transform in ("none", "log1p"):  # it is said what is meant
            (self.folder / "job.yaml").write_text(
                job.replace("dense: [x]", f"dense: [x], dense_transform: {transform}"))
            self.assertNotIn("note:", self.flux("run", "job.yaml", "--smoke", "9").out)


if __name__ == "__main__":
    unittest.main()
