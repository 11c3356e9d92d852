"""Batches that kill workers, and batches whose gradients are not numbers, in a cluster of real
processes: set aside, named with file and offset in skipped.tsv, counted; the job completes."""

from __future__ import annotations

import re
import unittest
from typing import NamedTuple

from _cluster import ClusterCase
from _support import DENSE, Done, make_records, sets

BATCH = 5

# The logit is a sum of finite products that overflows where the dense features are large.
JOB = f"""
name: overflow
output: out
shards: 8
skip_limit: 0.01
data: {{train: train.tsv, batch: {BATCH}, shuffle: false, dense_transform: none}}
tables:
  - {{name: weight, dim: 1, init: zero, optimizer: {{rule: sgd, lr: 1.0e-6}}}}
model:
  layers:
    - {{name: sparse, op: embedding, table: weight, combine: sum}}
    - {{name: linear, op: fc, inputs: dense, units: 1}}
    - {{name: twice, op: add, inputs: [linear, linear]}}
    - {{name: four, op: add, inputs: [twice, twice]}}
    - {{name: eight, op: add, inputs: [four, four]}}
    - {{name: sixteen, op: add, inputs: [eight, eight]}}
    - {{name: logit, op: add, inputs: [sparse, sixteen]}}
    - {{name: loss, op: logistic_loss, inputs: [logit, label]}}
dense_optimizer: {{rule: sgd, lr: 1.0e-6}}
"""


class Skipped(NamedTuple):
    """One line of skipped.tsv."""

    name: str
    batch: str
    place: str
    why: str

    def bytes(self) -> tuple[int, int]:
        found = re.search(r"train\.tsv:(\d+)\.\.(\d+) \(", self.place)
        assert found is not None, self.place
        return int(found[1]), int(found[2])

    def records(self) -> tuple[int, int]:
        found = re.search(r"\(records (\d+) to (\d+)", self.place)
        assert found is not None, self.place
        return int(found[1]), int(found[2])


class Poison(ClusterCase):
    batch = BATCH

    def skipped(self) -> list[Skipped]:
        text = (self.folder / "out/skipped.tsv").read_text()
        return [Skipped(*line.split("\t")) for line in text.splitlines()]

    def assert_counted(self, done: Done, expected: int, skipped: int) -> None:
        self.assertEqual(done.code, 0, done.text)
        line = f"{expected - skipped:,}/{expected:,} applied once · skipped {skipped} · " \
               "lost 0 · doubled 0"
        self.assertIn(line, done.text)
        found = self.summary("out")
        wanted = {"state": "complete", "expected": expected, "applied_once": expected - skipped,
                  "lost": 0, "doubled": 0, "skipped": skipped}
        self.assertEqual({name: found[name] for name in wanted}, wanted)

    def test_a_batch_that_kills_workers(self) -> None:
        done = self.flux(*self.cluster("--die-on", "7:1", epochs=1, data__shuffle=False))
        self.assert_counted(done, self.records, BATCH)
        [skipped] = self.skipped()
        self.assertEqual(skipped.name, "pass-0")
        self.assertEqual(skipped.batch, "pass 0 phase 0 epoch 0 block 7 batch 1")
        self.assertEqual(skipped.why, "every worker that trained it alone died")
        begin, end = skipped.bytes()
        data = (self.folder / "train.tsv").read_bytes()
        first, last = skipped.records()
        self.assertEqual(last - first + 1, BATCH)
        self.assertLessEqual(data[:begin].count(b"\n"), first - 1)
        self.assertGreaterEqual(data[:end].count(b"\n"), last)
        deaths = len(re.findall(r"(?m)^worker-\d ended: killed by signal 9", done.text))
        self.assertGreaterEqual(deaths, 2 + 3, "twice with others, three times alone")
        self.assertLessEqual(deaths, 8, "innocent blocks are not tried alone for long")

    def test_batches_that_are_not_numbers(self) -> None:
        records = make_records(self.records, seed=1)
        bad = (120, 1040)
        for at in bad:  # two of one batch, one of each label: one of them is infinitely wrong
            for label in (0, 1):
                records[at + label] = records[at]._replace(label=label, dense=["3e38"] * DENSE)
        text = [record.line() for record in records]
        (self.folder / "train.tsv").write_text("".join(text))
        (self.folder / "job.yaml").write_text(JOB)
        done = self.flux("run", "job.yaml", "--threads", "1", "--servers", "2", "--workers", "2")
        self.assert_counted(done, self.records, BATCH * len(bad))
        skipped = sorted(self.skipped(), key=lambda one: one.records())
        self.assertEqual(len(skipped), len(bad))
        for at, one in zip(bad, skipped, strict=True):
            first, last = one.records()
            self.assertTrue(first <= at + 1 <= last, one)
            begin, end = one.bytes()
            offset = len("".join(text[:at]))
            self.assertTrue(begin <= offset < end, one)
            self.assertRegex(one.why, "nan|inf")

    def test_too_many_of_them(self) -> None:
        """What the message says of checkpoints, and the next run of what was skipped, is true."""
        records = make_records(self.records, seed=1)
        for at in (120, 1040):
            for label in (0, 1):
                records[at + label] = records[at]._replace(label=label, dense=["3e38"] * DENSE)
        (self.folder / "train.tsv").write_text("".join(record.line() for record in records))
        (self.folder / "job.yaml").write_text(JOB)
        command = ("run", "job.yaml", "--threads", "1", *sets(skip_limit=0.001))
        done = self.flux(*command, code=2)
        self.assertIn("raise skip_limit; no checkpoint was saved before it", done.err)
        self.assertEqual(self.manifests("out"), [])
        done = self.flux(*command, code=2)
        self.assertIn(f"; {BATCH} already skipped", done.out)
        self.assertNotIn("already applied", done.out)


if __name__ == "__main__":
    unittest.main()
