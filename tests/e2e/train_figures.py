"""Figures while training mean the same as those of the test: heads, weights, losses, phases."""

from __future__ import annotations

import random
import re
import unittest
from typing import Any

from _support import Case

DATA = """
name: figures
output: out
deterministic: true
shards: 4
data:
  format: feasign
  train: train.txt
  test: train.txt
  batch: 50
  labels: LABELS
  slots: [{name: user}, {name: item}]
tables:
"""
TABLES = {
    "w": "  - {name: w, dim: 1, init: zero, optimizer: {rule: sgd, lr: RATE}}\n",
    "v": "  - {name: v, dim: 4, optimizer: {rule: adagrad, lr: RATE}}\n",
}
TWO_HEADS = """
model:
  layers:
    - {name: emb, op: embedding, table: v, combine: sum}
    - {name: view_logit, op: fc, inputs: emb, units: 1}
    - {name: buy_logit, op: fc, inputs: emb, units: 1}
    - {name: view_loss, op: logistic_loss, inputs: [view_logit, view]}
    - {name: buy_loss, op: logistic_loss, inputs: [buy_logit, buy], loss_weight: 3}
"""
ONE = """
model:
  layers:
    - {name: y, op: embedding, table: w, combine: sum}
    - {name: loss, op: LOSS, inputs: [y, label]}
"""
CLASSES = """
model:
  layers:
    - {name: emb, op: embedding, table: v, combine: concat}
    - {name: y, op: fc, inputs: emb, units: 3}
    - {name: loss, op: softmax_cross_entropy, inputs: [y, label]}
"""
TOWERS = """
model:
  layers:
    - {name: u, op: embedding, table: v, slots: [user]}
    - {name: i, op: embedding, table: v, slots: [item]}
    - {name: loss, op: in_batch_softmax, inputs: [u, i]}
"""
PHASES = """
phases:
  - name: join
    layers:
      - {name: y, op: embedding, table: w, combine: sum}
      - {name: loss, op: logistic_loss, inputs: [y, label]}
  - name: apart
    layers:
      - {name: emb, op: embedding, table: v, combine: sum}
      - {name: y, op: fc, inputs: emb, units: 1}
      - {name: loss, op: mse_loss, inputs: [y, label]}
"""
WEIGHTED = """
name: weighted
output: out
deterministic: true
shards: 4
data:
 {format: libsvm, train: train.txt, test: train.txt, batch: 50, weights: true, slots: [{name: key}]}
tables:
  - {name: w, dim: 1, init: zero, optimizer: {rule: sgd, lr: 0.1}}
model:
  layers:
    - {name: y, op: embedding, table: w, combine: sum}
    - {name: loss, op: logistic_loss, inputs: [y, label, weight]}
"""
RECORDS = 2000


class Figures(Case):
    def train(self, model: str, label: str, names: str = "[label]", rate: float = 0.1) -> str:
        """Trains lines with labels of that kind; what the console said."""
        draw = random.Random(5)
        lines = []
        for _ in range(RECORDS):
            user, item = draw.randrange(40), draw.randrange(60)
            view = int(draw.random() < 0.2 + 0.5 * (user % 2))
            kinds = {"two": f"{view},{int(draw.random() < 0.3)}", "one": str(view),
                     "large": str(1000 + 20 * view), "class": str((user + view) % 3)}
            lines.append(f"{kinds[label]} user:{user} item:{item}\n")
        (self.folder / "train.txt").write_text("".join(lines))
        tables = "".join(text for name, text in TABLES.items() if f"table: {name}," in model)
        job = DATA.replace("LABELS", names) + tables.replace("RATE", str(rate)) + model
        (self.folder / "job.yaml").write_text(job)
        return self.flux("run", "job.yaml").out

    def rows(self, part: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.summary("out")[part]["heads"]
        return rows

    def last_row(self, out: str) -> list[str]:
        """Of the table: examples, loss since last and average, AUC, speed, time left."""
        found = re.findall(r"(?m)^ *\d[\d,]* +[-\d.]+ +[-\d.]+ +\S+ +[\d,]+ +\S+$", out)
        self.assertTrue(found, out)
        return str(found[-1]).split()

    def test_heads_have_the_order_of_the_network(self) -> None:
        out = self.train(TWO_HEADS, "two", "[view, buy]")
        found = self.summary("out")
        for part in ("train", "test"):
            self.assertEqual([row["head"] for row in self.rows(part)], ["view_loss", "buy_loss"])
        self.assertLess(out.index("while training view_loss"),
                        out.index("while training buy_loss"))
        view, buy = self.rows("train")
        self.assertEqual(found["train_auc"], view["auc"])
        self.assertNotAlmostEqual(view["auc"], buy["auc"], places=3)
        self.assertAlmostEqual(float(self.last_row(out)[3]), view["auc"], places=6)
        self.assertEqual(found["train"]["examples"], RECORDS)
        self.assertAlmostEqual(found["train"]["loss"], view["log_loss"] + 3 * buy["log_loss"],
                               places=5)
        self.assertRegex(out, r"\n +loss +loss +AUC ")

    def test_numbers(self) -> None:
        out = self.train(ONE.replace("LOSS", "mse_loss"), "large", rate=0.001)
        found = self.summary("out")
        for part in ("train", "test"):
            row = self.rows(part)[0]
            self.assertIsNone(row["log_loss"])
            self.assertIsNone(row["auc"])
            self.assertAlmostEqual(row["label_mean"], self.rows("test")[0]["label_mean"])
        self.assertGreater(self.rows("train")[0]["label_mean"], 1000)
        self.assertIsNone(found["train_auc"])
        self.assertIsNone(found["train_logloss"])
        self.assertEqual(self.last_row(out)[3], "-")
        self.assertAlmostEqual(found["train"]["loss"], self.rows("train")[0]["rmse"] ** 2,
                               delta=1e-4 * found["train"]["loss"])
        self.assertIn(f", RMSE {self.rows('test')[0]['rmse']:.5f}, MAE ", out)
        self.assertIn(" · test RMSE ", out)
        self.assertNotIn("log loss", out)
        self.assertNotIn("diverges", out)

    def test_classes(self) -> None:
        out = self.train(CLASSES, "class")
        self.flux("predict", "job.yaml", "--out", "p.txt")
        predicted = [float(line) for line in (self.folder / "p.txt").read_text().split()]
        labels = [float(line.split()[0])
                  for line in (self.folder / "train.txt").read_text().splitlines()]
        right = sum(p == y for p, y in zip(predicted, labels, strict=True)) / RECORDS
        test, train = self.rows("test")[0], self.rows("train")[0]
        self.assertAlmostEqual(test["accuracy"], right, places=12)
        self.assertTrue(0.2 < train["accuracy"] < 1)
        for name in ("auc", "log_loss", "label_mean", "copc", "rmse", "bucket_error"):
            self.assertIsNone(test[name], name)
            self.assertIsNone(train[name], name)
        self.assertIn(f", accuracy {right:.5f}", out)

    def test_no_label(self) -> None:
        out = self.train(TOWERS, "one")
        found = self.summary("out")["train"]
        self.assertEqual((found["examples"], found["heads"]), (RECORDS, []))
        self.assertTrue(1 < found["loss"] < 5)
        self.assertIsNone(self.summary("out")["train_auc"])
        self.assertNotIn("diverges", out)

    def test_weights_count_alike(self) -> None:
        draw = random.Random(6)
        total, lines = 0.0, []
        for _ in range(RECORDS):
            weight = draw.choice([0.25, 0.5, 2])
            key = draw.randrange(1, 40)
            total += weight
            lines.append(f"{int(draw.random() < 0.2 + 0.5 * (key % 2))}:{weight} {key}:1\n")
        (self.folder / "train.txt").write_text("".join(lines))
        (self.folder / "job.yaml").write_text(WEIGHTED)
        out = self.flux("run", "job.yaml").out
        train, test = self.rows("train")[0], self.rows("test")[0]
        self.assertEqual((train["weight"], test["weight"]), (total, total))
        self.assertAlmostEqual(train["label_mean"], test["label_mean"], places=12)
        # The network's loss is by examples, a log loss by weight.
        self.assertAlmostEqual(self.summary("out")["train"]["loss"] * RECORDS,
                               train["log_loss"] * total, places=2)
        self.assertRegex(out, r"\n +loss +loss +AUC ")

    def test_phases_one_at_a_time(self) -> None:
        out = self.train(PHASES, "one")
        self.assertIn("phase apart\n", out)
        join, apart = self.rows("train")
        self.assertEqual((join["phase"], apart["phase"]), ("join", "apart"))
        found = self.summary("out")
        self.assertEqual((found["examples"], found["train"]["examples"]), (2 * RECORDS,) * 2)
        self.assertEqual(found["train_auc"], join["auc"])
        self.assertAlmostEqual(float(self.last_row(out)[2]), apart["rmse"] ** 2, places=5)


if __name__ == "__main__":
    unittest.main()
