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


# By format: the rest of the data section, what a line is before its labels, and the line itself.
UNLABELLED = {
    "feasign": ("slots: [{name: user}]", "{label} ", "user:{user}"),
    "libsvm": ("slots: [{name: user}]", "{label} ", "{user}:1"),
    "vw": ("slots: [{name: user}]", "{label} ", "|user {user}"),
    "multislot": ("slots: [{name: user}]", "1 {label} ", "1 {user}"),
    "csv": ("slots: [{name: user}]", "{label},", "{user}"),
    "criteo_tsv": ("", "{label}\t", "\t" * 12 + "1\t" + "\t" * 25 + "{user:08x}"),
}


class NoLabels(Case):
    def test_the_same_predictions(self) -> None:
        for name, (fields, label, line) in UNLABELLED.items():
            with self.subTest(name):
                header = ("label,user\n", "user\n") if name == "csv" else ("", "")
                rows = [{"label": i % 2, "user": i % 7 + 1} for i in range(60)]
                (self.folder / "a.txt").write_text(
                    header[0] + "".join((label + line).format(**row) + "\n" for row in rows))
                bare = header[1] + "".join(line.format(**row) + "\n" for row in rows)
                (self.folder / "b.txt").write_text(bare)
                (self.folder / "b.gz").write_bytes(gzip.compress(bare.rstrip("\n").encode()))
                (self.folder / "job.yaml").write_text(
                    f"data: {{format: {name}, train: a.txt, test: a.txt, batch: 20, {fields}}}\n"
                    f"output: out-{name}\n" + SMALLEST_MODEL)
                self.flux("run", "job.yaml")
                labelled = self.flux("predict", "job.yaml").out
                for given in ("b.txt", "b.gz"):
                    done = self.flux("predict", "job.yaml", "--no-labels", "--input", given)
                    self.assertEqual(done.out, labelled)
                done = self.flux("predict", "job.yaml", "--no-labels", "--input", "b.txt",
                                 "--out", "p.txt")
                self.assertEqual(done.out, "60 predictions in p.txt\n", "no metrics")
                if name != "libsvm":  # where a number may be a key
                    self.assert_refused(
                        self.flux("predict", "job.yaml", "--no-labels", "--input", "a.txt",
                                  code=None),
                        "a.txt: its lines have labels; leave out --no-labels")
                if name == "feasign":  # without labels they look like nothing
                    done = self.flux("predict", "job.yaml", "--no-labels", "--input", "b.txt",
                                     *sets(data__format="auto"))
                    self.assertEqual(done.out, labelled)

    def test_messages_are_about_the_lines_that_were_given(self) -> None:
        (self.folder / "a.txt").write_text("".join(LINES))
        (self.folder / "b.txt").write_text("user:1\nuser:2 usr:3\n")
        (self.folder / "job.yaml").write_text(JOB + SMALLEST_MODEL)
        self.flux("run", "job.yaml")
        done = self.flux("predict", "job.yaml", "--no-labels", "--input", "b.txt", code=None)
        self.assert_refused(done, "b.txt:2:8: ", "usr")
        self.assertNotIn("flux-trial", done.err)
        self.flux("data", "convert", "--job", "job.yaml", "--to", "blocks", "--out", "a.blocks")
        done = self.flux("predict", "job.yaml", "--no-labels", "--input", "a.blocks",
                         *sets(data__format="blocks"), code=None)
        self.assert_refused(done, "--no-labels is for lines of ")

    def test_fields_are_counted_with_the_label_that_was_added(self) -> None:
        row = "\t" * 12 + "1\t" + "\t" * 25
        (self.folder / "a.txt").write_text("".join(f"{i % 2}\t{row}{i:08x}\n" for i in range(60)))
        (self.folder / "b.txt").write_text("1\t2\n")
        (self.folder / "job.yaml").write_text(
            "data: {format: criteo_tsv, train: a.txt, batch: 20}\noutput: out\n" + SMALLEST_MODEL)
        self.flux("run", "job.yaml")
        done = self.flux("predict", "job.yaml", "--no-labels", "--input", "b.txt", code=None)
        self.assert_refused(done, "b.txt:1:4: 3 fields; expected 40",
                            "(counted with the labels that --no-labels puts before lines)")

    def test_columns_that_do_not_begin_with_the_labels(self) -> None:
        """What is put before the lines would be read as something else."""
        rows = "".join(f"{i % 7 + 1},{i % 2}\n" for i in range(60))
        (self.folder / "a.csv").write_text("user,label\n" + rows)
        (self.folder / "b.csv").write_text("user\n1\n2\n")
        (self.folder / "job.yaml").write_text(
            "data: {format: csv, train: a.csv, test: a.csv, batch: 20, slots: [{name: user}],\n"
            "       columns: [user, label]}\noutput: out\n" + SMALLEST_MODEL)
        self.flux("run", "job.yaml")
        done = self.flux("predict", "job.yaml", "--no-labels", "--input", "b.csv", code=None)
        self.assert_refused(done, "--no-labels: labels have to be the first of data.columns")

    def test_several_heads(self) -> None:
        (self.folder / "a.txt").write_text("".join(f"{i % 2},{i % 3 % 2} f:{i % 5}\n"
                                                   for i in range(60)))
        (self.folder / "b.txt").write_text("".join(f"f:{i % 5}\n" for i in range(60)))
        (self.folder / "job.yaml").write_text("""
data: {format: feasign, train: a.txt, test: a.txt, labels: [click, buy], slots: [{name: f}]}
output: out
tables: [{name: vector, dim: 4}]
model:
  layers:
    - {name: emb, op: embedding, table: vector, combine: sum}
    - {name: one, op: fc, inputs: emb, units: 1}
    - {name: two, op: fc, inputs: emb, units: 1}
    - {name: click_loss, op: logistic_loss, inputs: [one, click]}
    - {name: buy_loss, op: logistic_loss, inputs: [two, buy]}
""")
        self.flux("run", "job.yaml")
        plain = self.flux("predict", "job.yaml").out
        named = self.flux("predict", "job.yaml", "--header", "--no-labels", "--input", "b.txt").out
        self.assertEqual(named, "click_loss\tbuy_loss\n" + plain)


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
