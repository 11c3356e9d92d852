"""flux data head, stats, validate, convert; and training on what was converted, bit for bit."""

from __future__ import annotations

import json
import unittest
from pathlib import Path

from _support import SOURCE, Case, sets

JOB = """
name: lr
output: out
deterministic: true
precision: fp32
DATA
epochs: 2
shards: 4
tables:
  - {name: weight, dim: 1, init: uniform, init_scale: 0.1, optimizer: {rule: sgd, lr: 0.5}}
model:
  layers:
    - {name: sparse, op: embedding, table: weight, combine: sum}
LAYERS
"""
SPARSE_ONLY = "    - {name: loss, op: logistic_loss, inputs: [sparse, label]}"
WITH_DENSE = """\
    - {name: linear, op: fc, inputs: dense, units: 1}
    - {name: logit, op: add, inputs: [sparse, linear]}
    - {name: loss, op: logistic_loss, inputs: [logit, label]}"""


class DataTools(Case):
    def weights(self, data: str, output: str, layers: str = WITH_DENSE) -> bytes:
        """Trains, and gives what the predictions of the model are."""
        job = self.folder / f"{output}.yaml"
        job.write_text(JOB.replace("DATA", data.rstrip()).replace("LAYERS", layers))
        self.flux("run", job.name, *sets(output=output))
        self.flux("predict", job.name, *sets(output=output), "--out", f"{output}.tsv")
        return (self.folder / f"{output}.tsv").read_bytes()

    def convert(self, source: str, to: str, out: str, *more: str) -> str:
        """The data section of the job that reads it."""
        done = self.flux("data", "convert", source, "--to", to, "--out", out, *more)
        section = done.out
        self.assertTrue(section.startswith(f"data:\n  format: {to}\n"), section)
        return section + f"  batch: 50\n  test: [{out}]\n"

    def test_lines_to_standard_output(self) -> None:
        self.flux("data", "gen", "criteo", "--examples", "2000", "--out", "a.tsv")
        self.convert("a.tsv", "feasign", "a.txt")
        done = self.flux("data", "convert", "a.tsv", "--to", "feasign", "--out", "-")
        self.assertEqual(done.out, (self.folder / "a.txt").read_text())
        self.assertIn("standard output: 2,000 records", done.err)
        self.assertIn("data:\n  format: feasign\n", done.err)
        self.assert_refused(self.flux("data", "convert", "a.tsv", "--out", "-", code=None),
                            "blocks cannot be written to standard output", "name a file")
        self.assertFalse((self.folder / "-").exists())

    def test_criteo_lines_train_to_the_same_weights_in_every_format(self) -> None:
        self.flux("data", "gen", "criteo", "--examples", "2000", "--out", "a.tsv")
        source = "data: {train: [a.tsv], test: [a.tsv], batch: 50}"
        want = self.weights(source, "out_a")
        for to in ("blocks", "feasign"):
            section = self.convert("a.tsv", to, f"a.{to}")
            self.assertEqual(self.weights(section, f"out_{to}"), want)
        # And from the converted to the other.
        section = self.convert("a.blocks", "feasign", "b.feasign")
        self.assertEqual(self.weights(section, "out_b"), want)

    def test_feasign_lines_with_many_keys_too(self) -> None:
        self.flux("data", "gen", "feasign", "--kind", "sequence", "--examples", "2000",
                  "--out", "s.txt")
        guessed = json.loads(self.flux("data", "stats", "s.txt", "--json").out)
        slots = [slot["name"] for slot in guessed["slots"]]
        source = ("data: {format: feasign, train: [s.txt], test: [s.txt], batch: 50, slots: ["
                  + ", ".join(f"{{name: {name}}}" for name in slots) + "]}")
        want = self.weights(source, "out_s", SPARSE_ONLY)
        section = self.convert("s.txt", "blocks", "s.blocks")
        self.assertEqual(self.weights(section, "out_sb", SPARSE_ONLY), want)

    def test_names_of_examples_are_kept(self) -> None:
        """Through every format that has them, back to the first; every third example has none."""
        words = [{f"{i % 2}", f"user:{i + 1}"} | ({f"id=n{i}"} if i % 3 else set())
                 for i in range(40)]
        (self.folder / "a.txt").write_text("".join(" ".join(sorted(w)) + "\n" for w in words))
        data = "data: {format: feasign, train: [a.txt], slots: [{name: user}], raw_keys: true}"
        for to in ("csv", "multislot", "vw", "feasign"):
            job = JOB.replace("DATA", data).replace("LAYERS", SPARSE_ONLY)
            (self.folder / "job.yaml").write_text(job)
            data = self.flux("data", "convert", "--job", "job.yaml", "--to", to,
                             "--out", f"a.{to}").out
        back = (self.folder / "a.feasign").read_text().splitlines()
        self.assertEqual([set(line.split()) for line in back], words)

    def test_stats_count_what_is_there(self) -> None:
        lines = [f"{i % 4 == 0:d} user:{i % 50} tag:{i} tag:{i + 1} price:{i * 0.5}\n"
                 for i in range(400)] + ["1 user:7\n"]
        (self.folder / "a.txt").write_text("".join(lines))
        stats = json.loads(self.flux("data", "stats", "a.txt", "--json").out)
        self.assertEqual(stats["examples"], 401)
        slots = {slot["name"]: slot for slot in stats["slots"]}
        self.assertEqual(slots["user"]["examples"], 401)
        self.assertEqual(slots["tag"]["examples"], 400)
        self.assertEqual(slots["tag"]["keys"], 800)
        self.assertEqual(slots["tag"]["keys_most"], 2)
        self.assertAlmostEqual(slots["user"]["different_keys"], 50, delta=2)
        self.assertAlmostEqual(slots["tag"]["different_keys"], 401, delta=12)
        self.assertEqual(stats["labels"][0]["not_zero"], 101)
        self.assertEqual(stats["dense"][0]["most"], 199.5)

    def test_stats_as_a_person_sees_them(self) -> None:
        """tests/golden/data_stats.txt; all but the 407 different keys (of 401) is exact."""
        lines = [f"{i % 4 == 0:d} w={1 + i % 3} user:{i % 50} tag:{i} tag:{i + 1} "
                 f"price:{i * 0.5} age:{i % 7 - 3}\n" for i in range(400)]
        (self.folder / "a.txt").write_text("".join(lines) + "1 w=2 user:7 city:3\n")
        golden = (SOURCE / "tests/golden/data_stats.txt").read_text()
        self.assertEqual(self.flux("data", "stats", "a.txt").out, golden)

    def test_head_prints_records_that_feasign_takes_back(self) -> None:
        text = "1 w=0.5 user:17 item:9 item:4 price:0.25\n0 w=2 user:18446744073709551615\n"
        (self.folder / "a.txt").write_text(text)
        self.assertEqual(self.flux("data", "head", "a.txt").out, text)
        self.assertEqual(self.flux("data", "head", "a.txt", "-n", "1").out,
                         text.splitlines(keepends=True)[0])

    def test_validate_names_every_bad_record(self) -> None:
        lines = ["1 user:1 item:2\n"] * 3000
        lines[1233] = "1 user:x item:2\n"
        lines[2999] = "user:1 item:2\n"
        path: Path = self.folder / "a.txt"
        job = self.folder / "job.yaml"
        job.write_text(JOB.replace(
            "DATA", "data: {format: feasign, train: [a.txt], dense: [age], slots: "
            "[{name: user}, {name: item}]}").replace("LAYERS", WITH_DENSE))
        path.write_text("".join(lines))
        done = self.flux("data", "validate", "--job", "job.yaml", code=2)
        self.assertIn("a.txt:1234:8: key 'x' of slot 'user'", done.err)
        self.assertIn("a.txt:3000:1: label", done.err)
        self.assertIn("2 of 3,000 records are bad", done.err)
        path.write_text("1 user:1 item:2\n")
        self.assertIn("1 record(s) in 1 file(s) are good",
                      self.flux("data", "validate", "--job", "job.yaml").out)

    def test_what_is_not_clear_is_said(self) -> None:
        (self.folder / "a.txt").write_text("some words\n")
        self.assert_refused(self.flux("data", "head", "a.txt", code=None),
                            "a.txt: its format is not clear", "'some words'", "--job JOB")
        self.assert_refused(self.flux("data", "head", "no.txt", code=None), "no.txt")
        self.assert_refused(self.flux("data", "head", code=None), "name the files")
        (self.folder / "b.txt").write_text("1 user:1\n")
        self.assert_refused(
            self.flux("data", "convert", "b.txt", "--to", "block", "--out", "c", code=None),
            "--to block", "did you mean 'blocks'?")

    def test_cells_of_csv_that_say_nothing(self) -> None:
        (self.folder / "a.csv").write_text('label,user,price\n1,7,NA\n0,,0.5\n1,NA,\n0,9"1,2\n')
        data = ("data:\n  format: csv\n  train: [a.csv]\n  slots: [{name: user, text: true}]\n"
                '  dense: [price]\n  csv: {missing: ["", NA], quote: "", list: ""}')
        job = JOB.replace("DATA", data).replace("LAYERS", WITH_DENSE)
        (self.folder / "job.yaml").write_text(job)
        shown = self.flux("data", "head", "--job", "job.yaml", "-n", "9").out.splitlines()
        prices = [[word for word in line.split() if word.startswith("price:")] for line in shown]
        self.assertEqual([len(line.split()) for line in shown],
                         [2 + len(prices[0]), 1 + len(prices[1]), 1 + len(prices[2]),
                          2 + len(prices[3])], shown)
        self.assertEqual(prices[1], ["price:0.5"])
        self.assertEqual(prices[3], ["price:2"])

    def test_what_is_read_is_not_written_over(self) -> None:
        text = "1 user:1\n0 user:2\n" * 5
        (self.folder / "a.txt").write_text(text)
        (self.folder / "link").symlink_to("a.txt")
        for command in (["convert", "a.txt", "--to", "blocks"],
                        ["convert", "link", "--to", "feasign"],
                        ["vocab", "a.txt", "--min-count", "1"]):
            for out in ("a.txt", "./a.txt", "link"):
                with self.subTest(" ".join([*command, out])):
                    done = self.flux("data", *command, "--out", out, code=None)
                    self.assert_refused(done, f"--out {out}: is ", "which is read")
                    self.assertEqual((self.folder / "a.txt").read_text(), text)


if __name__ == "__main__":
    unittest.main()
