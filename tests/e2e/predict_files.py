"""Where predictions are written, and what they are made of: any packing, any format."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import unittest
from pathlib import Path

from _support import SMALLEST_MODEL, Case, sets

LINES = [f"{i % 2} user:{i % 7} user:{i % 5 + 10} price:{i % 3}.5\n" for i in range(300)]
JOB = """
data: {format: feasign, train: [a.txt], test: [a.txt], slots: [{name: user}], dense: [price],
       batch: 20}
output: out
"""


class PredictFiles(Case):
    def setUp(self) -> None:
        super().setUp()
        (self.folder / "a.txt").write_text("".join(LINES))
        (self.folder / "job.yaml").write_text(JOB + SMALLEST_MODEL)
        self.flux("run", "job.yaml")
        self.plain = self.predict("p.txt").read_text()
        self.assertEqual(len(self.plain.splitlines()), len(LINES))

    def predict(self, out: str, *more: str) -> Path:
        done = self.flux("predict", "job.yaml", "--out", out, *more)
        self.assertIn(f"300 predictions in {out}; ", done.out)
        return self.folder / out

    def test_packed_as_the_name_says(self) -> None:
        self.assertEqual(gzip.decompress(self.predict("p.gz").read_bytes()).decode(), self.plain)
        packed = self.predict("p.zst")
        self.assertEqual(packed.read_bytes()[:4], b"\x28\xb5\x2f\xfd")
        if shutil.which("zstd"):
            done = subprocess.run(["zstd", "-dc", str(packed)], check=True, capture_output=True)
            self.assertEqual(done.stdout.decode(), self.plain)
        self.assertEqual([path.name for path in self.folder.glob("*.tmp")], [])

    def test_standard_output(self) -> None:
        for out in ([], ["--out", "-"]):
            self.assertEqual(self.flux("predict", "job.yaml", *out).out, self.plain)
        self.assertFalse((self.folder / "-").exists())

    def test_data_that_was_converted(self) -> None:
        """Block files say themselves what they are; of text the person says it, or auto."""
        for to in ("blocks", "csv"):
            self.flux("data", "convert", "--job", "job.yaml", "--to", to, "--out", f"a.{to}")
        (self.folder / "b.csv").write_text("label,user,price\n" + "".join(
            f"{i % 2},{i % 7}|{i % 5 + 10},{i % 3}.5\n" for i in range(300)))
        for name, more in (("a.blocks", []), ("a.blocks", sets(data__format="auto")),
                           ("b.csv", sets(data__format="csv")),
                           ("b.csv", sets(data__format="auto")),
                           ("a.csv", sets(data__format="csv", data__raw_keys=True))):
            with self.subTest(f"{name} {more}"):
                out = self.predict("other.txt", "--input", name, *more)
                self.assertEqual(out.read_text(), self.plain)
                test = [*sets(data__test=name), *more]
                self.assertEqual(self.flux("eval", "job.yaml", *test, "--json").out,
                                 self.flux("eval", "job.yaml", "--json").out)
        note = self.flux("predict", "job.yaml", "--input", "a.blocks").err
        self.assertIn("note: a.blocks is of format blocks, where the job says feasign", note)

    def test_what_is_not_said_is_told(self) -> None:
        (self.folder / "b.csv").write_text("label,user,price\n1,3,0.5\n")
        self.assert_refused(self.flux("predict", "job.yaml", "--input", "b.csv", code=None),
                            "b.csv:1:1: ")
        self.assert_refused(self.flux("run", "job.yaml", *sets(data__format="vw"), code=None),
                            "data.format")  # training goes on with what it began with


class Converted(Case):
    def test_block_files_of_criteo_lines(self) -> None:
        """Whose slots no job declares."""
        self.flux("data", "gen", "criteo", "--examples", "500", "--out", "a.tsv")
        (self.folder / "job.yaml").write_text(
            "data: {train: [a.tsv], test: [a.tsv], batch: 20}\noutput: out\n" + SMALLEST_MODEL)
        self.flux("run", "job.yaml")
        self.flux("data", "convert", "a.tsv", "--to", "blocks", "--out", "a.blocks")
        self.assertEqual(self.flux("predict", "job.yaml", "--input", "a.blocks").out,
                         self.flux("predict", "job.yaml").out)


if __name__ == "__main__":
    unittest.main()
