"""Test data that cannot be read is told before the training, not behind it."""

from __future__ import annotations

import gzip
import json
import unittest

from _support import SMALLEST_MODEL, Case, sets

LINES = "".join(f"{i % 2} user:{i % 7}\n" for i in range(400))
FEASIGN = "data: {format: feasign, train: [a.txt], slots: [{name: user}], batch: 20}\noutput: out"
CSV = "data: {format: csv, train: [a.csv], slots: [{name: user}], batch: 20}\noutput: out"
CLUSTER = ("--servers", "1", "--workers", "1")


class TestLook(Case):
    def setUp(self) -> None:
        super().setUp()
        (self.folder / "a.txt").write_text(LINES)
        (self.folder / "a.csv").write_text("label,user\n" + "1,3\n0,4\n" * 100)
        (self.folder / "job.yaml").write_text(FEASIGN + SMALLEST_MODEL)
        (self.folder / "csv.yaml").write_text(CSV + SMALLEST_MODEL)

    def refused(self, test: str, told: str, *more: str, job: str = "job.yaml") -> None:
        """Exit code 2, the place, and nothing trained; in one process and in a cluster."""
        for cluster in ((), CLUSTER):
            done = self.flux("run", job, *sets(data__test=test), *more, *cluster, code=None)
            self.assertEqual(done.code, 2, done.text)
            self.assertRegex(done.text, told)
            self.assertNotRegex(done.text, r"batches of \d+|model is saved")
            self.assertEqual(list((self.folder / "out").glob("checkpoints/*")), [])

    def test_another_format(self) -> None:
        self.refused("a.csv", r"a\.csv:1:\d+: ")
        (self.folder / "t.txt").write_text("label,user\n" + "word and word\n" * 3)
        self.refused("t.txt", r"t\.txt:2:\d+: ", job="csv.yaml")
        self.flux("data", "convert", "a.txt", "--to", "blocks", "--out", "t.blocks")
        self.refused("t.blocks", r"t\.blocks: .*block")

    def test_columns_that_are_missing(self) -> None:
        (self.folder / "t.csv").write_text("label,item\n1,3\n")
        self.refused("t.csv", r"t\.csv:1:1: its 2nd column 'item' is not declared", job="csv.yaml")
        (self.folder / "t.csv").write_text("label\n1\n")
        self.refused("t.csv", r"t\.csv:1:1: has no column 'user'", job="csv.yaml")

    def test_what_is_no_text_at_all(self) -> None:
        (self.folder / "t.txt").write_text("")
        self.refused("t.txt", r"t\.txt: holds no record")
        (self.folder / "t.gz").write_bytes(gzip.compress(LINES.encode())[:30])
        self.refused("t.gz", r"t\.gz: gzip data is damaged at byte")
        (self.folder / "t.gz").write_text(LINES)
        self.refused("t.gz", r"t\.gz: ")
        (self.folder / "folder").mkdir()
        self.refused("folder", "folder")
        self.refused("a.txt,./a.txt", r"a\.txt: is (the same file as|named twice)")

    def test_the_second_file_of_several(self) -> None:
        (self.folder / "t.txt").write_text("1 user:3\n" * 20 + "1 user:x\n")
        self.refused("a.txt,t.txt", r"t\.txt:21:8: key 'x' of slot 'user'")

    def test_bad_records_that_may_be_set_aside(self) -> None:
        (self.folder / "t.txt").write_text("word\n" * 3 + LINES)
        self.refused("t.txt", r"t\.txt:1:1: (.|\n)*this and 2 more bad records",
                     *sets(data__bad_records=2))
        self.flux("run", "job.yaml", *sets(data__test="t.txt", data__bad_records=3))
        self.assertEqual(json.loads((self.folder / "out/summary.json").read_text())["test"]
                         ["examples"], 400)
        # More than are looked at otherwise: the first good one is looked for.
        (self.folder / "t.txt").write_text("word\n" * 150 + LINES)
        self.flux("run", "job.yaml", "--fresh", *sets(data__test="t.txt", data__bad_records=150))

    def test_only_the_first_records_are_looked_at(self) -> None:
        (self.folder / "t.txt").write_text(LINES + "1 user:x\n")
        done = self.flux("run", "job.yaml", *sets(data__test="t.txt"), code=2)
        self.assertIn("the model is saved", done.err)
        self.assertIn("t.txt:401:8: ", done.err)


if __name__ == "__main__":
    unittest.main()
