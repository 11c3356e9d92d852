"""Jobs for the tests of the guard: small data, models and what makes them sick."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from _support import Case

SLOTS = 8
WARNED = "warning: "

LINEAR = """
  layers:
    - {name: sparse, op: embedding, table: weight, combine: sum}
    - {name: logit, op: fc, inputs: sparse, units: 1}
    - {name: loss, op: LOSS, inputs: [logit, label]}
"""
DEEP = """
  layers:
    - {name: emb, op: embedding, table: vector, combine: concat}
    - {name: h1, op: fc, inputs: emb, units: 32, activation: relu}
    - {name: h2, op: fc, inputs: h1, units: 16, activation: relu}
    - {name: logit, op: fc, inputs: h2, units: 1}
    - {name: loss, op: LOSS, inputs: [logit, label]}
"""
TWO_HEADS = """
  layers:
    - {name: emb, op: embedding, table: vector, combine: concat}
    - {name: h1, op: fc, inputs: emb, units: 32, activation: relu}
    - {name: a, op: fc, inputs: h1, units: 1}
    - {name: b, op: fc, inputs: h1, units: 1}
    - {name: click, op: logistic_loss, inputs: [a, label0]}
    - {name: buy, op: logistic_loss, inputs: [b, label1]}
"""
RULE = "{rule: adagrad, lr: RATE, initial_accumulator: 1.0e-6}"


def job(name: str, *, net: str = LINEAR, rate: float = 0.05, rule: str = RULE, dense: float = 0.001,
        dense_rule: str = "adam", batch: int = 200, loss: str = "logistic_loss",
        init: str = "init_scale: 0.05", train: str = "train.txt", test: str = "test.txt",
        labels: str = "", extra: str = "threads: 2\nshards: 4") -> str:
    """The text of a job over the slots f0 to f7."""
    table = "weight" if "table: weight" in net else "vector"
    size = "dim: 1, init: zero" if table == "weight" else f"dim: 8, init: uniform, {init}"
    slots = ", ".join(f"{{name: f{n}}}" for n in range(SLOTS))
    return (f"name: {name}\noutput: out/{name}\n{extra}\n"
            f"data: {{format: feasign, train: {train}, test: {test}, batch: {batch}, "
            f"{labels}slots: [{slots}]}}\n"
            f"tables:\n  - {{name: {table}, {size}, optimizer: "
            f"{rule.replace('RATE', repr(rate))}}}\n"
            f"model:{net.replace('LOSS', loss)}"
            f"dense_optimizer: {{rule: {dense_rule}, lr: {dense!r}}}\n")


def relabel(source: Path, target: Path, label: Callable[[str], str]) -> None:
    """The same lines with other labels."""
    lines = []
    for line in source.read_text().splitlines():
        first, rest = line.split(" ", 1)
        lines.append(f"{label(first)} {rest}\n")
    target.write_text("".join(lines))


def shuffled(source: Path, target: Path) -> None:
    """The same lines, each with the label of another."""
    lines = source.read_text().splitlines()
    labels = [line.split(" ", 1)[0] for line in lines]
    random.Random(1).shuffle(labels)
    given = iter(labels)
    relabel(source, target, lambda _: next(given))


class GuardCase(Case):
    def make_data(self, examples: int, kind: str = "fields", prefix: str = "") -> None:
        for name, count, seed in (("train", examples, 1), ("test", 10_000, 2)):
            self.flux("data", "gen", "feasign", "--kind", kind, "--examples", str(count),
                      "--seed", str(seed), "--out", f"{prefix}{name}.txt")

    def path(self, name: str) -> Path:
        return self.folder / name

    def warned(self, name: str, text: str) -> set[str]:
        """Trains the job and returns the ids of its warnings, which every place must agree on."""
        self.path(f"{name}.yaml").write_text(text)
        done = self.flux("run", f"{name}.yaml")
        summary = self.summary(f"out/{name}")
        warnings = summary["warnings"]
        told = [line for line in done.err.splitlines() if line.startswith(WARNED)]
        self.assertEqual(len(told), len(warnings), done.err)
        suspect = any(warning["active"] for warning in warnings)
        self.assertEqual(summary["quality"], "suspect" if suspect else "ok")
        self.assertEqual("QUALITY SUSPECT" in done.err, suspect, done.err)
        return {warning["id"] for warning in warnings}
