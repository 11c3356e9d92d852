"""A worker and a server of a cluster are killed while it reads, in each format: every example
counts once. feasign_kill.py does so for feasign with everything that a feature may be."""

from __future__ import annotations

import random
import unittest

from _cluster import JobKillCase

EPOCHS = 40
MODEL = """
name: kill
output: out
{data}
shards: 8
threads: 1
checkpoint: {{every_s: 0}}
tables:
  - {{name: weight, dim: 4}}
model:
  layers:
    - {{name: e, op: embedding, table: weight, combine: sum}}
    - {{name: y, op: fc, inputs: e, units: 1}}
    - {{name: loss, op: logistic_loss, inputs: [y, label]}}
"""
SOURCE_DATA = """data:
  format: feasign
  train: lines.txt
  slots: [{slots}]
"""


class FormatKill(JobKillCase):
    def make(self, name: str, slots: list[str]) -> None:
        """Lines of these slots with any number of keys, converted, and the job that reads them."""
        draw = random.Random(5)
        lines = []
        for _ in range(self.records):
            words = [f"{slot}:{draw.randrange(1, 500)}" for slot in slots
                     for _ in range(draw.randrange(4))]
            lines.append(" ".join([str(draw.randrange(2)), *words]))
        (self.folder / "lines.txt").write_text("\n".join(lines) + "\n")
        declared = ", ".join(f"{{name: {slot}}}" for slot in slots)
        source = MODEL.format(data=SOURCE_DATA.format(slots=declared))
        (self.folder / "source.yaml").write_text(source)
        section = self.flux("data", "convert", "--job", "source.yaml", "--to", name,
                            "--out", f"data.{name}", "--set", f"data.batch={self.batch}").out
        job = MODEL.format(data=section)
        (self.folder / "job.yaml").write_text(job)

    def check(self, name: str, slots: list[str]) -> None:
        self.make(name, slots)
        self.train_under_kills("worker-1", "server-1", epochs=EPOCHS)

    def test_multislot(self) -> None:
        self.check("multislot", ["user", "item", "tags"])

    def test_libsvm(self) -> None:
        self.check("libsvm", ["features"])

    def test_libffm(self) -> None:
        self.check("libffm", ["user", "item", "tags"])

    def test_vw(self) -> None:
        self.check("vw", ["user", "item", "tags"])

    def test_csv(self) -> None:
        self.check("csv", ["user", "item", "tags"])

    def test_blocks(self) -> None:
        self.check("blocks", ["user", "item", "tags"])


if __name__ == "__main__":
    unittest.main()
