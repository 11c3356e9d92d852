"""Predictions and metrics against plain Python: AUC, log loss, and a whole training of LR."""

from __future__ import annotations

import math
import re
import unittest

from _support import DENSE, SLOTS, Case, Record, example, make_records, sets, write_data

LR_JOB = """
name: lr
output: out
deterministic: true
precision: fp32
data: {train: train.tsv, test: test.tsv, batch: 10, shuffle: false}
epochs: 2
shards: 4
tables:
  - {name: weight, dim: 1, init: zero, optimizer: {rule: sgd, lr: 0.5}}
model:
  layers:
    - {name: sparse, op: embedding, table: weight, combine: sum}
    - {name: linear, op: fc, inputs: dense, units: 1}
    - {name: logit, op: add, inputs: [sparse, linear]}
    - {name: loss, op: logistic_loss, inputs: [logit, label]}
dense_optimizer: {rule: sgd, lr: 0.05}
"""


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def auc_of(labels: list[int], predictions: list[float]) -> float:
    """Share of pairs in the right order, ties half, by ranks."""
    order = sorted(range(len(labels)), key=lambda i: predictions[i])
    rank_sum = 0.0
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and predictions[order[end]] == predictions[order[at]]:
            end += 1
        rank_sum += sum(labels[i] for i in order[at:end]) * (at + 1 + end) / 2
        at = end
    positives = sum(labels)
    return (rank_sum - positives * (positives + 1) / 2) / (positives * (len(labels) - positives))


def log_loss_of(labels: list[int], predictions: list[float]) -> float:
    return -sum(math.log(p if label else 1 - p)
                for label, p in zip(labels, predictions, strict=True)) / len(labels)


class Lr:
    """Logistic regression as a page of Python: the reference for the whole path."""

    def __init__(self, weights: list[float], bias: float) -> None:
        self.sparse: dict[tuple[int, str], float] = {}
        self.dense = list(weights)
        self.bias = bias

    @staticmethod
    def features(record: Record) -> list[float]:
        return [math.log1p(max(float(x), 0)) for x in record.dense]

    def predict(self, record: Record) -> float:
        logit = self.bias + sum(w * x for w, x in zip(self.dense, self.features(record),
                                                      strict=True))
        return sigmoid(logit + sum(self.sparse.get(key, 0.0) for key in enumerate(record.ids)))

    def train(self, batch: list[Record], sparse_lr: float, dense_lr: float) -> None:
        errors = [(self.predict(record) - record.label) / len(batch) for record in batch]
        for record, error in zip(batch, errors, strict=True):
            for key in enumerate(record.ids):
                self.sparse[key] = self.sparse.get(key, 0.0) - sparse_lr * error
            for i, x in enumerate(self.features(record)):
                self.dense[i] -= dense_lr * error * x
            self.bias -= dense_lr * error


class PredictEval(Case):
    def predictions(self, name: str) -> list[float]:
        return [float(line) for line in (self.folder / name).read_text().split()]

    def test_metrics(self) -> None:
        write_data(self.folder / "train.tsv", 2000, seed=1)
        labels = [record.label for record in write_data(self.folder / "test.tsv", 1501, seed=2)]
        # Trained until predictions differ widely: flux sorts them into buckets of 2^-17 and prints
        # six digits, so many pairs of a model that knows nothing yet would be ties.
        job = sets(data__train="train.tsv", data__test="test.tsv", output="out", data__batch=20,
                   epochs=4, shards=8, model__layers__fc1__units=16, model__layers__fc2__units=8,
                   model__layers__fc3__units=8)
        # Only the training: predictions below are to run on 1 and on 2 threads.
        self.flux("run", example("ctr_dnn"), *job, *sets(deterministic=True))
        texts = set()
        auc = 0.0
        for threads in ("1", "2"):
            done = self.flux("predict", example("ctr_dnn"), *job, "--threads", threads,
                             "--out", f"p{threads}.txt")
            self.assertIn("1,501 predictions in", done.out)
            texts.add((self.folder / f"p{threads}.txt").read_text())
            evaluated = self.flux("eval", example("ctr_dnn"), *job, "--threads", threads).out
            found = re.search(
                r"1,501 examples · auc (\S+) · log_loss (\S+) · label_mean (\S+)", evaluated)
            assert found is not None, evaluated
            texts.add(self.flux("predict", example("ctr_dnn"), *job, "--threads", threads).out)
            mine = self.predictions(f"p{threads}.txt")
            self.assertEqual(len(mine), len(labels))
            self.assertAlmostEqual(float(found[1]), auc_of(labels, mine), delta=3e-5)
            self.assertAlmostEqual(float(found[2]), log_loss_of(labels, mine), delta=2e-5)
            self.assertAlmostEqual(float(found[3]), sum(labels) / len(labels), delta=1e-5)
            auc = float(found[1])
            self.assertGreater(max(mine) - min(mine), 0.5, "hardly trained")
            self.assertGreater(auc, 0.6, "nothing was learnt")
        self.assertEqual(len(texts), 1, "the same for any number of threads, file or pipe")
        self.assertEqual(self.summary("out")["examples"], 4 * 2000)
        self.assertAlmostEqual(self.summary("out")["auc"], auc, delta=1e-5)

    def initial_weights(self) -> tuple[list[float], float]:
        """First values of the fc layer, read off predictions of a model that does not learn:
        with all-new ids only the dense part speaks, one feature at a time."""
        none = ["0.0000"] * DENSE
        ids = ["ffffffff"] * SLOTS
        probes = [Record(0, none, ids)]
        for i in range(DENSE):
            probes.append(Record(0, [*none[:i], f"{math.e - 1:.9f}", *none[i + 1:]], ids))
        (self.folder / "probe.tsv").write_text("".join(probe.line() for probe in probes))
        still = sets(output="still", epochs=1, dense_optimizer__lr="1e-30")
        self.flux("run", "lr.yaml", *still)
        self.flux("predict", "lr.yaml", *still, "--input", "probe.tsv", "--out", "probe.txt")
        logits = [math.log(p / (1 - p)) for p in self.predictions("probe.txt")]
        return [logit - logits[0] for logit in logits[1:]], logits[0]

    def test_lr_against_plain_python(self) -> None:
        train = write_data(self.folder / "train.tsv", 795, seed=3)
        test = write_data(self.folder / "test.tsv", 200, seed=4)
        (self.folder / "lr.yaml").write_text(LR_JOB)
        model = Lr(*self.initial_weights())
        for _ in range(2):
            for at in range(0, len(train), 10):
                model.train(train[at:at + 10], sparse_lr=0.5, dense_lr=0.05)
        self.flux("run", "lr.yaml")
        self.flux("predict", "lr.yaml", "--out", "p.txt")
        worst = max(abs(model.predict(record) - p)
                    for record, p in zip(test, self.predictions("p.txt"), strict=True))
        print(f"largest difference of {len(test)} predictions: {worst:.2e}")
        self.assertLess(worst, 1e-4)

    def test_a_model_of_a_later_life(self) -> None:
        """Each run is a new term; its checkpoint is good for eval whatever the term."""
        write_data(self.folder / "train.tsv", 300)
        job = [example("lr"), *sets(data__train="train.tsv", data__test="train.tsv", output="out",
                                    shards=4)]
        self.flux("run", *job)
        self.flux("run", *job, "--fresh")
        self.assertIn("300 examples", self.flux("eval", *job).out)

    def test_order_over_files_and_blocks(self) -> None:
        """One line per record in the order of the files, also with many blocks."""
        write_data(self.folder / "train.tsv", 300)
        job = ["--set", "data.train=train.tsv", *sets(output="out", data__batch=3, shards=4)]
        self.flux("run", example("counting"), *job)
        for name, part in (("a.tsv", slice(0, 211)), ("b.tsv", slice(211, None))):
            lines = [record.line() for record in make_records(300, 1)[part]]
            (self.folder / name).write_text("".join(lines))
        self.flux("predict", example("counting"), *job, "--input", "train.tsv", "--out", "all")
        self.flux("predict", example("counting"), *job, "--input", "a.tsv", "--input", "b.tsv",
                  "--out", "parts")
        labels = [record.label for record in make_records(300, 1)]
        self.assertEqual([int(p > 0.5) for p in self.predictions("all")], labels)
        self.assertEqual(self.predictions("parts"), self.predictions("all"))


WILD_JOB = """
name: wild
output: out
deterministic: true
data: {format: feasign, train: train.txt, dense_transform: none,
       slots: [{name: user}], dense: [p], batch: 10}
shards: 4
tables:
  - {name: w, dim: 4, optimizer: {rule: sgd, lr: 0.01}}
model:
  layers:
    - {name: e, op: embedding, table: w, combine: sum}
    - {name: q, op: square, inputs: dense}
    - {name: x, op: concat, inputs: [e, q]}
    - {name: y, op: fc, inputs: [x], units: 1}
    - {name: loss, op: logistic_loss, inputs: [y, label]}
"""


class WildRecord(Case):
    """A record of which the model computes no number is named; the model is not blamed."""

    def test_it_is_named_by_every_evaluation(self) -> None:
        lines = [f"{i % 2} user:{i} p:0.{i % 7}\n" for i in range(100)]
        (self.folder / "job.yaml").write_text(WILD_JOB)
        (self.folder / "train.txt").write_text("".join(lines))
        self.flux("run", "job.yaml")
        lines[57] = "1 user:5 p:3e38\n0 user:5 p:3e38\n"  # the infinite logit suits one of them
        (self.folder / "test.txt").write_text("".join(lines))
        for command in (["eval"], ["predict"], ["run", "--fresh"]):
            with self.subTest(command[0]):
                done = self.flux(command[0], "job.yaml", *sets(data__test="test.txt"),
                                 *command[1:], code=None)
                self.assertNotEqual(done.code, 0)
                self.assertRegex(done.err, r"the loss at test\.txt:\d+\.\.\d+ \(records 51 to 60")
                self.assertRegex(done.err, r"record test\.txt:\d+\.\.\d+ \(record 5[89]")
                for wrong in ("diverged", "65535", "phase"):
                    self.assertNotIn(wrong, done.err)


if __name__ == "__main__":
    unittest.main()
