"""Two networks over the same rows: each batch once in each phase, whatever is killed, and what they
learn against a plain reference."""

from __future__ import annotations

import math
import os
import signal
import unittest

from _cluster import ClusterCase
from _support import Case, Record, write_data

COUNTING = """
name: phases
output: out
data: {train: train.tsv, batch: 5, key_per_example: true}
epochs: EPOCHS
shards: 8
mode: MODE
tables:
  - {name: counts, dim: 1, init: zero, optimizer: {rule: sgd, lr: 0.1}}
  - {name: own, dim: 2, init: zero, optimizer: {rule: sgd, lr: 0.1}}
phases:
  - name: join
    layers:
      - {name: e, op: embedding, table: counts, combine: sum}
      - {name: y, op: fc, inputs: e, units: 1}
      - {name: loss, op: logistic_loss, inputs: [y, label]}
  - name: update
    dense_optimizer: {rule: sgd, lr: 0.01}
    layers:
      - {name: e, op: embedding, table: counts, combine: sum}
      - {name: o, op: embedding, table: own, combine: sum}
      - {name: all, op: concat, inputs: [e, o]}
      - {name: y, op: fc, inputs: all, units: 1}
      - {name: loss, op: logistic_loss, inputs: [y, label]}
checkpoint: {every_s: 0.02}
"""
RECORDS = 700


class Phases(ClusterCase):
    records = RECORDS

    def write_job(self, epochs: int, mode: str = "async") -> None:
        text = COUNTING.replace("EPOCHS", str(epochs)).replace("MODE", mode)
        (self.folder / "job.yaml").write_text(text)

    def assert_each_phase(self, epochs: int) -> None:
        """The counters of each phase's own shards, and of the rows of both, are exact."""
        self.assert_exact("out", 2 * epochs * RECORDS)
        wanted = [{"name": name, "expected": epochs * RECORDS, "applied_once": epochs * RECORDS,
                   "lost": 0, "doubled": 0, "skipped": 0} for name in ("join", "update")]
        self.assertEqual(self.summary("out")["phases"], wanted)

    def kill_in_phase(self, phase: int, epochs: int, *cluster: str) -> bool:
        """False: the job came to its end before it was killed in that phase."""
        self.write_job(epochs)
        running = self.start("run", "job.yaml", "--fresh", *cluster)
        self.assertIsNotNone(running.wait_line(" examples x "))
        while True:
            if running.ended_within(0.005):
                return False
            applied = [int(text.split('"examples": ')[1].split(",")[0])
                       for text in self.manifests("out") if '"open_pass": "pass-0"' in text]
            if applied and max(applied) > phase * epochs * RECORDS:
                break
        return "model:" not in running.kill().text

    def test_killed_in_each_phase(self) -> None:
        for phase in (0, 1):
            with self.subTest(phase=phase):
                epochs = next(epochs for epochs in (200, 800, 3200, 12800)
                              if self.kill_in_phase(phase, epochs))
                again = self.flux("run", "job.yaml")
                self.assertIn("already applied", again.out)
                self.assertIn("phase update: examples", again.out)
                self.assert_each_phase(epochs)

    def test_a_cluster_that_loses_a_worker_and_a_server_in_each_phase(self) -> None:
        epochs = 60
        for mode in ("async", "half_async", "sync"):
            with self.subTest(mode=mode):
                self.write_job(epochs, mode)
                running = self.start_training("run", "job.yaml", "--fresh", "--threads", "1",
                                              "--servers", "2", "--workers", "2")
                pids = self.pids(running)
                os.kill(pids["worker-1"], signal.SIGKILL)
                status = self.status()
                while status["state"] in ("training", "loading") and status["section"] < epochs:
                    status = self.status()
                if status["state"] == "training":  # in the second phase
                    os.kill(self.pids(running)["server-1"], signal.SIGKILL)
                done = running.finish()
                self.assertEqual(done.code, 0, done.text)
                self.assert_each_phase(epochs)


REFERENCE = """
name: reference
output: out
deterministic: true
precision: fp32
data: {train: train.tsv, test: train.tsv, batch: 10, shuffle: false}
epochs: 2
shards: 4
tables:
  - {name: w, dim: 1, init: zero, optimizer: {rule: sgd, lr: 0.5}}
dense_optimizer: {rule: sgd, lr: 0.1}
phases:
  - name: join
    layers:
      - {name: e, op: embedding, table: w, combine: sum}
      - {name: y, op: fc, inputs: e, units: 1, bias: false, init: constant, init_scale: 0.5}
      - {name: loss, op: logistic_loss, inputs: [y, label]}
  - name: update
    dense_optimizer: {rule: sgd, lr: 0.02}
    layers:
      - {name: e, op: embedding, table: w, combine: sum}
      - {name: y, op: fc, inputs: e, units: 1, bias: false, init: constant, init_scale: 2.0}
      - {name: loss, op: logistic_loss, inputs: [y, label]}
"""


class Linear:
    """logit = a * (sum of the rows of an example's ids)."""

    def __init__(self, a: float, lr: float) -> None:
        self.a, self.lr = a, lr

    def predict(self, rows: dict[tuple[int, str], float], record: Record) -> float:
        e = sum(rows.get(key, 0.0) for key in enumerate(record.ids))
        return 1 / (1 + math.exp(-self.a * e))

    def train(self, rows: dict[tuple[int, str], float], batch: list[Record], row_lr: float) -> None:
        gradient: dict[tuple[int, str], float] = {}
        a_gradient = 0.0
        for record in batch:
            d = (self.predict(rows, record) - record.label) / len(batch)
            a_gradient += d * sum(rows.get(key, 0.0) for key in enumerate(record.ids))
            for key in enumerate(record.ids):
                gradient[key] = gradient.get(key, 0.0) + d * self.a
        for key, g in gradient.items():
            rows[key] = rows.get(key, 0.0) - row_lr * g
        self.a -= self.lr * a_gradient


class Reference(Case):
    def test_two_phases_learn_what_plain_loops_learn(self) -> None:
        records = write_data(self.folder / "train.tsv", 200)
        (self.folder / "job.yaml").write_text(REFERENCE)
        done = self.flux("run", "job.yaml")
        self.assertIn("test join: 200 examples", done.out)
        rows: dict[tuple[int, str], float] = {}
        networks = {"join": Linear(0.5, 0.1), "update": Linear(2.0, 0.02)}
        for network in networks.values():
            for _ in range(2):
                for first in range(0, len(records), 10):
                    network.train(rows, records[first:first + 10], 0.5)
        for name, network in networks.items():
            self.flux("predict", "job.yaml", "--phase", name, "--out", "p.txt")
            found = [float(line) for line in (self.folder / "p.txt").read_text().split()]
            self.assertEqual(len(found), len(records))
            for record, prediction in zip(records, found, strict=True):
                self.assertAlmostEqual(prediction, network.predict(rows, record), delta=2e-5)

    def test_tools_show_both(self) -> None:
        write_data(self.folder / "train.tsv", 200)
        (self.folder / "job.yaml").write_text(REFERENCE)
        shown = self.flux("check", "job.yaml").out
        self.assertLess(shown.index("phase join:"), shown.index("phase update:"))
        self.flux("graph", "job.yaml", "--out", "g.svg")
        picture = (self.folder / "g.svg").read_text()
        for name in ("join/y", "update/y"):
            self.assertIn(name, picture)
        self.assertIn("phase update: 1 dense parameters",
                      self.flux("run", "job.yaml", "--dry-run").out)
        self.assertIn("good: phase update: examples",
                      self.flux("run", "job.yaml", "--smoke", "3").out)
        self.flux("run", "job.yaml")
        done = self.flux("predict", "job.yaml", "--phase", "updat", code=None)
        self.assert_refused(done, "did you mean 'update'", "join, update")


SOME_SLOTS = """
name: groups
output: out
deterministic: true
data:
  format: feasign
  train: train.txt
  batch: 50
  slots:
    [{name: f0}, {name: f1}, {name: f2}, {name: f3}, {name: f4}, {name: f5}, {name: f6}, {name: f7}]
shards: 8
tables:
  - {name: weight, dim: 1, init: zero, optimizer: {rule: adagrad, lr: 0.1}}
  - {name: small, dim: 2, slots: [f0, f1, f2], init: uniform, optimizer: {rule: adagrad, lr: 0.05}}
  - {name: large, dim: 4, slots: [f3, f4, f5, f6, f7], init: zero, optimizer: {rule: sgd, lr: 0.1}}
phases:
  - name: join
    layers:
      - {name: wide, op: embedding, table: weight, combine: sum}
      - {name: b, op: embedding, table: large, combine: concat}
      - {name: rest, op: fc, inputs: b, units: 1}
      - {name: logit, op: add, inputs: [wide, rest]}
      - {name: loss, op: logistic_loss, inputs: [logit, label]}
  - name: update
    layers:
      - {name: a, op: embedding, table: small, combine: concat}
      - {name: b, op: embedding, table: large, combine: concat}
      - {name: both, op: concat, inputs: [a, b]}
      - {name: y, op: fc, inputs: both, units: 1}
      - {name: loss, op: logistic_loss, inputs: [y, label]}
"""


class SomeSlots(Case):
    """Phases that have some of the tables, over tables that have some of the slots."""

    def test_a_cluster_trains_what_one_process_does(self) -> None:
        self.flux("data", "gen", "feasign", "--kind", "fields", "--examples", "2000",
                  "--out", "train.txt")
        (self.folder / "job.yaml").write_text(SOME_SLOTS)
        hashes = set()
        for cluster in ((), ("--servers", "2", "--workers", "1")):
            self.flux("run", "job.yaml", "--fresh", *cluster)
            summary = self.summary("out")
            self.assertEqual((summary["lost"], summary["doubled"]), (0, 0))
            for phase in summary["phases"]:
                self.assertEqual((phase["applied_once"], phase["lost"], phase["doubled"]),
                                 (2000, 0, 0))
            hashes.add(summary["model_hash"])
        self.assertEqual(len(hashes), 1)


if __name__ == "__main__":
    unittest.main()
