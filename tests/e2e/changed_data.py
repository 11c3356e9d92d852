"""Data that is not what the pass was cut from: named, exit code 2, whoever finds out and when."""

from __future__ import annotations

import gzip
import os
import unittest
from collections.abc import Callable
from pathlib import Path

from _support import Case

JOB = """
name: changed
output: out
epochs: 60000
shards: 4
data: {format: feasign, train: a.txt, batch: 100, slots: [{name: user}]}
tables:
  - {name: weight, dim: 1, optimizer: {rule: sgd, lr: 0.5}}
model:
  layers:
    - {name: sparse, op: embedding, table: weight, combine: sum}
    - {name: loss, op: logistic_loss, inputs: [sparse, label]}
"""
LINES = [f"{i % 2} user:{i % 97 + 100}\n" for i in range(20000)]
CLUSTER = ("--servers", "1", "--workers", "2", "--threads", "1")


def replace(path: Path, text: str) -> None:
    aside = path.with_suffix(".aside")
    aside.write_text(text)
    aside.rename(path)


class ChangedData(Case):
    def setUp(self) -> None:
        super().setUp()
        self.data = self.folder / "a.txt"
        self.data.write_text("".join(LINES))
        (self.folder / "job.yaml").write_text(JOB)

    def check(self, change: Callable[[], object], *expected: str,
              arguments: tuple[str, ...] = ()) -> None:
        running = self.start("run", "job.yaml", "--fresh", "--json", *arguments)
        self.assertIsNotNone(running.wait_line('"event":"progress"'))
        change()
        done = running.finish()
        self.assertEqual(done.code, 2, done.out)
        for text in expected:
            self.assertIn(text, done.out)

    def test_another_file_of_the_same_size(self) -> None:
        other = "".join(LINES).replace("user:1", "user:2")
        for arguments in ((), CLUSTER):
            self.data.write_text("".join(LINES))
            self.check(lambda: replace(self.data, other), "a.txt: has other content", "--fresh",
                       arguments=arguments)

    def test_overwritten_in_place(self) -> None:
        def overwrite() -> None:
            with self.data.open("r+") as file:
                file.write("1 user:999\n")

        self.check(overwrite, "a.txt: ", "--fresh")

    def test_cut_short(self) -> None:
        half = len("".join(LINES)) // 2
        for arguments in ((), CLUSTER):
            self.data.write_text("".join(LINES))
            self.check(lambda: os.truncate(self.data, half), "a.txt: ", "--fresh",
                       arguments=arguments)

    def test_removed(self) -> None:
        self.check(self.data.unlink, "a.txt: No such file")

    def test_packed(self) -> None:
        (self.folder / "job.yaml").write_text(JOB.replace("a.txt", "a.gz"))
        packed = self.folder / "a.gz"
        for arguments in ((), CLUSTER):
            packed.write_bytes(gzip.compress("".join(LINES).encode()))
            other = "".join(LINES).replace("user:1", "user:2").encode()
            (self.folder / "b.gz").write_bytes(gzip.compress(other))
            self.check(lambda: (self.folder / "b.gz").rename(packed), "a.gz",
                       "start afresh", arguments=arguments)

    def test_the_same_text_written_anew_may_stay(self) -> None:
        (self.folder / "job.yaml").write_text(JOB.replace("60000", "300"))
        running = self.start("run", "job.yaml", "--fresh", "--json")
        self.assertIsNotNone(running.wait_line('"event":"progress"'))
        replace(self.data, "".join(LINES))
        self.assertEqual(running.finish().code, 0)
        summary = self.summary("out")
        self.assertEqual(summary["applied_once"], 300 * len(LINES))

    def test_named_twice_through_a_link(self) -> None:
        (self.folder / "b.txt").symlink_to("a.txt")
        (self.folder / "job.yaml").write_text(JOB.replace("a.txt", "[a.txt, b.txt]"))
        self.assert_refused(self.flux("run", "job.yaml", code=None), "b.txt", "same file as a.txt")
        (self.folder / "job.yaml").write_text(JOB.replace("a.txt", "[a.txt, ./a.txt]"))
        self.assert_refused(self.flux("run", "job.yaml", code=None), "same file as a.txt")


class Labels(Case):
    """A log loss is of probabilities."""

    def setUp(self) -> None:
        super().setUp()
        (self.folder / "job.yaml").write_text(JOB.replace("60000", "1"))

    def test_others_are_refused(self) -> None:
        for label in ("2", "-1", "1.5"):
            with self.subTest(label):
                lines = [*LINES[:500], f"{label} user:7\n", *LINES[500:1000]]
                (self.folder / "a.txt").write_text("".join(lines))
                words = ("a.txt:501:1: ", f"label 'label' is {label}", "0, 1 or a probability")
                self.assert_refused(self.flux("run", "job.yaml", "--fresh", code=None), *words)
                told = self.flux("data", "validate", "--job", "job.yaml", code=2).err
                for word in words:
                    self.assertIn(word, told)

    def test_probabilities_are_taken_and_numbers_with_another_loss(self) -> None:
        (self.folder / "a.txt").write_text("0.25 user:7\n1 user:8\n" * 100)
        self.flux("run", "job.yaml", "--fresh")
        (self.folder / "a.txt").write_text("7 user:7\n-3 user:8\n" * 100)
        self.flux("run", "job.yaml", "--fresh", code=2)
        (self.folder / "job.yaml").write_text(
            JOB.replace("60000", "1").replace("logistic_loss", "mse_loss"))
        self.flux("run", "job.yaml", "--fresh")

    def test_they_are_bad_records(self) -> None:
        (self.folder / "a.txt").write_text("".join([*LINES[:1000], "3 user:1\n"]))
        self.flux("run", "job.yaml", "--fresh", "--set", "data.bad_records=1")
        self.assertEqual(self.summary("out")["skipped"], 1)
        told = (self.folder / "out/bad_records/pass-00000.tsv").read_text()
        self.assertIn("a.txt:1001:1: label 'label' is 3", told)

    def test_a_weight_that_is_too_large(self) -> None:
        (self.folder / "a.txt").write_text("1 w=2 user:7\n0 user:8\n" * 100)
        (self.folder / "t.txt").write_text("1 w=2 user:7\n0 w=1048577 user:8\n")
        sets = ("--set", "data.weights=true", "--set", "data.test=t.txt")
        for more in ((), CLUSTER):
            done = self.flux("run", "job.yaml", "--fresh", *sets, *more, code=2)
            self.assertIn("t.txt:2:1: weight 1048577 is larger than 1048576", done.err)

    def test_in_block_files(self) -> None:
        (self.folder / "a.txt").write_text("".join([*LINES[:1000], "3 user:1\n"]))
        self.flux("data", "convert", "a.txt", "--out", "a.blocks")
        (self.folder / "job.yaml").write_text(
            JOB.replace("a.txt", "a.blocks").replace("feasign", "blocks"))
        self.assert_refused(self.flux("run", "job.yaml", code=None), "a.blocks: record 1001",
                            "label 'label' is 3")


if __name__ == "__main__":
    unittest.main()
