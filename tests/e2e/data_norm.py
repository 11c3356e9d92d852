"""The summaries of data_norm hold every example once, in every mode and when a worker is killed."""

from __future__ import annotations

import math
import os
import signal
import unittest

from _cluster import ClusterCase

EPOCHS = 40
RECORDS = 1000
JOB = """
name: norm
output: out
data:
  format: feasign
  train: train.txt
  test: test.txt
  batch: 10
  shuffle: false
  dense_transform: none
  dense: [even, odd]
epochs: EPOCHS
mode: MODE
precision: fp32
dense_optimizer: {rule: sgd, lr: 0.001}
model:
  layers:
    - {name: n, op: data_norm, inputs: dense, decay: 1}
    - {name: y, op: fc, inputs: n, units: 1, bias: false, init: constant, init_scale: 1,
       lr_scale: 1.0e-6}
    - {name: loss, op: logistic_loss, inputs: [y, label]}
checkpoint: {every_s: 0}
"""


def lines() -> list[tuple[int, int]]:
    """`even` is 3 and -3 in turn, so that its mean stays 0 whatever order batches come in."""
    return [(3 if i % 2 == 0 else -3, i % 7) for i in range(RECORDS)]


class DataNorm(ClusterCase):
    def setUp(self) -> None:
        super().setUp()
        text = "".join(f"{i % 3 % 2} even:{even} odd:{odd}\n"
                       for i, (even, odd) in enumerate(lines()))
        (self.folder / "train.txt").write_text(text)
        (self.folder / "test.txt").write_text("0 even:0 odd:0\n0 even:1 odd:0\n0 even:0 odd:1\n")

    def summaries(self) -> tuple[float, float, float]:
        """Scale of `even` and `odd`, mean of `odd`, from predictions at three places."""
        self.flux("predict", "job.yaml", "--out", "p.txt")
        p = [float(line) for line in (self.folder / "p.txt").read_text().split()]
        at = [math.log(value / (1 - value)) for value in p]
        even, odd = at[1] - at[0], at[2] - at[0]
        return even, odd, -at[0] / odd  # the mean of `even` is 0

    def check(self) -> None:
        size = 1e4 + EPOCHS * RECORDS
        squares = 1e4 + EPOCHS * sum(even * even + 1e-4 for even, _ in lines())
        mean = EPOCHS * sum(odd for _, odd in lines()) / size
        even, _, odd_mean = self.summaries()
        self.assertAlmostEqual(even, math.sqrt(size / squares), delta=2e-5)
        self.assertAlmostEqual(odd_mean, mean, delta=2e-4)
        found = self.summary("out")
        self.assertEqual((found["state"], found["lost"], found["doubled"]), ("complete", 0, 0))
        self.assertEqual(found["expected"], EPOCHS * RECORDS)

    def test_every_mode(self) -> None:
        for mode in ("async", "half_async", "sync"):
            with self.subTest(mode=mode):
                text = JOB.replace("EPOCHS", str(EPOCHS)).replace("MODE", mode)
                (self.folder / "job.yaml").write_text(text)
                self.flux("run", "job.yaml", "--fresh", "--threads", "2")
                self.check()

    def test_a_worker_is_killed(self) -> None:
        for mode in ("half_async", "sync"):
            with self.subTest(mode=mode):
                text = JOB.replace("EPOCHS", str(EPOCHS)).replace("MODE", mode)
                (self.folder / "job.yaml").write_text(text)
                running = self.start_training("run", "job.yaml", "--fresh", "--threads", "2",
                                              "--servers", "1", "--workers", "2")
                os.kill(self.pids(running)["worker-1"], signal.SIGKILL)
                done = running.finish()
                self.assertEqual(done.code, 0, done.text)
                self.check()


if __name__ == "__main__":
    unittest.main()
