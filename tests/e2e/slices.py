"""Metrics by slice against plain counts over the lines and predictions."""

from __future__ import annotations

import json
import math
import random
import unittest
from typing import NamedTuple

from _support import Case

JOB = """
name: slices
output: out
data:
  format: feasign
  train: train.txt
  test: test.txt
  batch: 20
  slots: [{name: user}, {name: place}]
shards: 4
metrics: {slices: [place, user], values: 5}
tables:
  - {name: w, dim: 1, init: zero, optimizer: {rule: adagrad, lr: 0.1}}
model:
  layers:
    - {name: y, op: embedding, table: w, combine: sum}
    - {name: loss, op: logistic_loss, inputs: [y, label]}
"""


class Line(NamedTuple):
    label: int
    user: int
    place: int | None

    def text(self) -> str:
        place = "" if self.place is None else f" place:{self.place}"
        return f"{self.label} user:{self.user}{place}\n"


def make(count: int, seed: int) -> list[Line]:
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        place = draw.choice([None, 3, 4, 17])
        user = draw.randrange(1, 40)
        rate = 0.2 + 0.5 * (user % 2) + (0.1 if place == 3 else 0)
        lines.append(Line(int(draw.random() < rate), user, place))
    return lines


def auc(pairs: list[tuple[float, int]]) -> float:
    """By comparing every positive with every negative."""
    positive = [p for p, label in pairs if label == 1]
    negative = [p for p, label in pairs if label == 0]
    right = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    return right / len(positive) / len(negative)


def slice_names(lines: list[Line]) -> list[list[str]]:
    """The slices that each line belongs to: the five smallest users, all places."""
    users = sorted({line.user for line in lines})[:5]
    names = []
    for line in lines:
        user = f"user={line.user}" if line.user in users else "user=other"
        names.append([user, "place=none" if line.place is None else f"place={line.place}"])
    return names


class Slices(Case):
    def setUp(self) -> None:
        super().setUp()
        self.train, self.test = make(3000, 1), make(1500, 2)
        for name, lines in (("train", self.train), ("test", self.test)):
            (self.folder / f"{name}.txt").write_text("".join(line.text() for line in lines))
        (self.folder / "job.yaml").write_text(JOB)

    def check_held_out(self) -> None:
        self.flux("predict", "job.yaml", "--out", "p.txt")
        predictions = [float(line) for line in (self.folder / "p.txt").read_text().split()]
        parts: dict[str, list[tuple[float, int]]] = {}
        for line, names, prediction in zip(self.test, slice_names(self.test), predictions,
                                           strict=True):
            for name in names:
                parts.setdefault(name, []).append((prediction, line.label))
        rows = {row["slice"]: row for row in self.summary("out")["test"]["heads"] if row["slice"]}
        self.assertEqual(set(rows), set(parts))
        for name, pairs in parts.items():
            self.assertEqual(rows[name]["examples"], len(pairs), name)
            self.assertAlmostEqual(rows[name]["auc"], auc(pairs), delta=1e-4, msg=name)
            self.assertAlmostEqual(rows[name]["label_mean"],
                                   sum(label for _, label in pairs) / len(pairs), delta=1e-12)
            loss = -sum(math.log(p if label else 1 - p) for p, label in pairs) / len(pairs)
            self.assertAlmostEqual(rows[name]["log_loss"], loss, delta=1e-4, msg=name)

    def check_progressive(self) -> None:
        """What does not depend on the order of training: counts and rates."""
        parts: dict[str, list[int]] = {}
        for line, names in zip(self.train, slice_names(self.train), strict=True):
            for name in names:
                parts.setdefault(name, []).append(line.label)
        rows = {row["slice"]: row for row in self.summary("out")["train"]["heads"] if row["slice"]}
        self.assertEqual(set(rows), set(parts))
        for name, labels in parts.items():
            self.assertEqual(rows[name]["examples"], len(labels), name)
            self.assertAlmostEqual(rows[name]["label_mean"], sum(labels) / len(labels), delta=1e-12)

    def test_one_process(self) -> None:
        done = self.flux("run", "job.yaml", "--threads", "2")
        self.assertIn("test place=3: ", done.out)
        self.assertIn("while training user=other: ", done.out)
        self.check_held_out()
        self.check_progressive()
        self.assertIn("user=other", (self.folder / "out/report.html").read_text())

    def test_workers_together(self) -> None:
        self.flux("run", "job.yaml", "--threads", "2", "--servers", "1", "--workers", "2")
        self.check_held_out()
        self.check_progressive()

    def test_events(self) -> None:
        done = self.flux("run", "job.yaml", "--json")
        events = [json.loads(line) for line in done.out.splitlines()]
        evaluated = [event for event in events if event["event"] == "evaluated"][-1]
        self.assertIn("place=17", [row["slice"] for row in evaluated["test"]["heads"]])

    def test_refused(self) -> None:
        (self.folder / "job.yaml").write_text(JOB.replace("[place, user]", "[plaec]"))
        done = self.flux("check", "job.yaml", code=None)
        self.assert_refused(done, "'plaec' is no slot", "did you mean 'place'")


if __name__ == "__main__":
    unittest.main()
