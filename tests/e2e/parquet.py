"""Parquet files: made by pyarrow with every kind of column, and by `flux data convert`.

Needs the plug-in (`make parquet`) and the pyarrow that came with it; without them nothing runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from _bad_parquet import FOREIGN
from _parquet import PYTHON, READY, WHY_NOT
from _support import DEADLINE_S, FLUX, Case, Done

JOB = """
name: lr
output: out
deterministic: true
data: DATA
shards: 4
tables:
  - {name: weight, dim: 1, init: uniform, init_scale: 0.1, optimizer: {rule: sgd, lr: 0.5}}
model:
  layers:
    - {name: sparse, op: embedding, table: weight, combine: sum}
    - {name: linear, op: fc, inputs: dense, units: 1}
    - {name: logit, op: add, inputs: [sparse, linear]}
    - {name: loss, op: logistic_loss, inputs: [logit, label]}
"""
SLOTS = "slots: [{name: user}, {name: tags}, {name: city, text: true}], dense: [price, age]"
DATA = "{format: FORMAT, train: [FILE], test: [FILE], batch: 7, " + SLOTS + "}"

# Rows of 300 examples; the columns are of every type that is read, with nulls.
MAKE = """
import sys
import pyarrow as pa
import pyarrow.parquet as pq
n = 300
rows = [dict(label=i % 2, user=i * 7919, tags=[i, i + 1][: i % 3], city="c%d" % (i % 5),
             price=i / 8, age=i % 90) for i in range(n)]
lines = []
for i, row in enumerate(rows):
    if i % 11 == 0: row["price"] = None
    if i % 13 == 0: row["user"] = None
    if i % 17 == 0: row["tags"] = None
    if i % 19 == 0: row["city"] = None
    words = [str(row["label"])]
    if row["user"] is not None: words.append("user:%d" % row["user"])
    words += ["tags:%d" % tag for tag in row["tags"] or []]
    if row["city"] is not None: words.append("city:" + row["city"])
    if row["price"] is not None: words.append("price:%r" % row["price"])
    words.append("age:%d" % row["age"])
    lines.append(" ".join(words))
open("a.txt", "w").write("\\n".join(lines) + "\\n")
kinds = [dict(label=pa.int8(), user=pa.int64(), tags=pa.list_(pa.uint64()), city=pa.string(),
              price=pa.float64(), age=pa.int32()),
         dict(label=pa.float32(), user=pa.uint64(), tags=pa.list_(pa.int32()),
              city=pa.large_string(), price=pa.float32(), age=pa.uint16()),
         dict(label=pa.bool_(), user=pa.uint32(), tags=pa.large_list(pa.int64()),
              city=pa.dictionary(pa.int32(), pa.string()), price=pa.float32(), age=pa.float64())]
for k, kind in enumerate(kinds):
    columns = {name: pa.array([bool(row[name]) if type == pa.bool_() else row[name]
                               for row in rows], type) for name, type in kind.items()}
    table = pa.table(columns)
    ways = ((1000, "snappy", True, "1.0"), (64, "zstd", False, "2.0"), (5, "none", True, "1.0"),
            (1000, "zstd", True, "1.0"), (90, "zstd", True, "2.0"), (1000, "gzip", True, "2.0"))
    for w, (group, packing, dictionary, pages) in enumerate(ways):
        pq.write_table(table, "a_%d_%d.parquet" % (k, w), row_group_size=group,
                       compression=packing, use_dictionary=dictionary, data_page_version=pages,
                       data_page_size=400, write_page_checksum=w % 2 == 1)
"""

# The keys of a slot with their values; record 8 has a value too few.
VALUED = """
import pyarrow as pa
import pyarrow.parquet as pq
values = [[0.5] * (i % 4) for i in range(20)]
keys = [list(range(len(row))) for row in values]
values[7].pop()
pq.write_table(pa.table(dict(label=[i % 2 for i in range(20)], tags=keys, tags_values=values)),
               "valued.parquet")
"""

# Every 29th label is missing, every 31st record has a value too few; as text those lines are bad,
# too.
SOME_BAD = """
import pyarrow as pa
import pyarrow.parquet as pq
n = 400
labels = [None if i % 29 == 3 else i % 2 for i in range(n)]
keys = [list(range(i, i + 1 + i % 4)) for i in range(n)]
values = [[0.25 * (k % 7) for k in row] for row in keys]
lines = []
for i in range(n):
    if i % 31 == 5: values[i].pop()
    words = ["tags:%d:%r" % pair for pair in zip(keys[i], values[i])]
    bad = labels[i] is None or i % 31 == 5
    lines.append("none" if bad else " ".join([str(labels[i]), *words]))
open("bad.txt", "w").write("\\n".join(lines) + "\\n")
pq.write_table(pa.table(dict(label=labels, tags=keys, tags_values=values)), "bad.parquet",
               row_group_size=150)
"""

# Random columns, some with nulls, written in every way: dictionaries of many widths, some of them
# given up within a column, pages of both versions. plain.parquet has no dictionary.
WAYS = """
import random
import pyarrow as pa
import pyarrow.parquet as pq
random.seed(7)
n = 6000
def column(kinds, nulls):
    runs = [random.randrange(kinds) for _ in range(n // 40)]
    picked = [runs[i // 40] if i // 500 % 2 else random.randrange(kinds) for i in range(n)]
    return [None if random.random() < nulls else one for one in picked]
table = pa.table(dict(
    label=pa.array([i % 2 for i in range(n)], pa.float32()),
    user=pa.array(column(5000, 0), pa.int64()), item=pa.array(column(300, 0.2), pa.uint64()),
    shop=pa.array(column(1, 0), pa.int32()), day=pa.array(column(2, 0.9), pa.uint32()),
    city=pa.array([None if one is None else "c%d" % one for one in column(700, 0.1)]),
    price=pa.array([None if one is None else one / 8 for one in column(3000, 0.01)]),
    age=pa.array(column(90, 0), pa.float32())))
pq.write_table(table, "plain.parquet", use_dictionary=False, compression="none")
ways = [(packing, pages, limit, group) for packing in ("none", "snappy", "zstd")
        for pages in ("1.0", "2.0") for limit, group in ((1 << 20, 10000), (2000, 2500))]
for w, (packing, pages, limit, group) in enumerate(ways):
    pq.write_table(table, "way_%02d.parquet" % w, compression=packing, data_page_version=pages,
                   dictionary_pagesize_limit=limit, row_group_size=group, data_page_size=1500,
                   write_batch_size=333)
"""


@unittest.skipUnless(READY, WHY_NOT)
class Parquet(Case):
    def python(self, program: str) -> None:
        subprocess.run([str(PYTHON), "-c", program], cwd=self.folder, check=True)

    def job(self, file: str, format_: str) -> str:
        text = JOB.replace("DATA", DATA.replace("FORMAT", format_).replace("FILE", file))
        (self.folder / f"{file}.yaml").write_text(text)
        return f"{file}.yaml"

    def predictions(self, job: str) -> bytes:
        self.flux("run", job, "--fresh")
        self.flux("predict", job, "--out", "scores.tsv")
        return (self.folder / "scores.tsv").read_bytes()

    def test_every_type_trains_to_the_weights_of_the_same_text(self) -> None:
        self.python(MAKE)
        want = self.predictions(self.job("a.txt", "feasign"))
        for file in sorted(self.folder.glob("a_*.parquet")):
            with self.subTest(file.name):
                job = self.job(file.name, "parquet")
                self.flux("data", "validate", "--job", job)
                self.assertEqual(self.predictions(job), want)

    def test_dictionaries_are_read_as_plain_values(self) -> None:
        self.python(WAYS)
        want = self.flux("data", "head", "plain.parquet", "-n", "6000").out
        self.assertEqual(want.count("\n"), 6000)
        files = sorted(self.folder.glob("way_*.parquet"))
        self.assertEqual(len(files), 12)
        for file in files:
            with self.subTest(file.name):
                self.flux("data", "validate", file.name)
                self.assertEqual(self.flux("data", "head", file.name, "-n", "6000").out, want)

    def test_converted_to_it_and_back(self) -> None:
        self.flux("data", "gen", "feasign", "--kind", "sequence", "--examples", "2000",
                  "--out", "s.txt")
        self.flux("data", "convert", "s.txt", "--to", "parquet", "--out", "s.parquet")
        self.flux("data", "convert", "s.parquet", "--to", "blocks", "--out", "b.blocks")
        self.flux("data", "convert", "s.txt", "--to", "blocks", "--out", "a.blocks")
        stats = [json.loads(self.flux("data", "stats", name, "--json").out)
                 for name in ("a.blocks", "s.parquet")]
        self.assertEqual(stats[0]["slots"], stats[1]["slots"])
        heads = [self.flux("data", "head", name, "-n", "50").out
                 for name in ("a.blocks", "b.blocks")]
        self.assertEqual(heads[0].count("\n"), 50)
        self.assertEqual(heads[0], heads[1])

    def test_what_is_shown_without_a_job(self) -> None:
        self.python(FOREIGN)
        done = self.flux("data", "head", "some_unread.parquet", "-n", "1")
        self.assertEqual(done.out, "0 user:0 tags:0 city:x age:1 price:0.5\n", "texts as they are")
        self.assertRegex(done.err, r"note: some_unread.parquet: not read.*'when' \(INT64 "
                         r"\(Timestamp.*'vector' \(list of DOUBLE\)\n\Z")
        for name, says in (("large_price", "dense feature 'price' is 1e+300; a float holds"),
                           ("nan_value", "a value of slot 'tags'"),
                           ("large_value", "a value of slot 'tags' is 2e+99; a float holds")):
            shown = self.flux("data", "head", f"{name}.parquet", "-n", "7").out
            self.assertEqual(shown.count("\n"), 7, "only what is shown has to be right")
            done = self.flux("data", "head", f"{name}.parquet", code=2)
            self.assertIn(f"{name}.parquet: record 8: {says}", done.err)
            self.assertEqual(done.out.count("\n"), 7)

    def test_a_record_with_too_few_values_is_named_alone(self) -> None:
        self.python(VALUED)
        data = "{format: parquet, train: [valued.parquet], slots: [{name: tags, values: true}]}"
        layers = JOB.replace("DATA", data).replace(
            "    - {name: linear, op: fc, inputs: dense, units: 1}\n", "").replace(
            "inputs: [sparse, linear]", "inputs: [sparse, sparse]")
        (self.folder / "job.yaml").write_text(layers)
        says = "valued.parquet: record 8: slot 'tags' has 3 keys, but 2 values of them"
        validated = self.flux("data", "validate", "--job", "job.yaml", code=2)
        self.assertIn(says, validated.err)
        self.assertIn("1 of 20 records are bad", validated.err)
        self.assert_refused(self.flux("run", "job.yaml", code=2), says)

    def test_bad_records_are_set_aside_as_those_of_text(self) -> None:
        self.python(SOME_BAD)
        bad = sum(i % 29 == 3 or i % 31 == 5 for i in range(400))
        results = []
        for file, format_ in (("bad.txt", "feasign"), ("bad.parquet", "parquet")):
            data = (f"{{format: {format_}, train: [{file}], batch: 7, bad_records: {bad}, "
                    "slots: [{name: tags, values: true}]}")
            layers = JOB.replace("DATA", data).replace(
                "    - {name: linear, op: fc, inputs: dense, units: 1}\n", "").replace(
                "inputs: [sparse, linear]", "inputs: [sparse, sparse]")
            (self.folder / f"{format_}.yaml").write_text(layers)
            self.flux("run", f"{format_}.yaml", "--set", f"output={format_}", "--set", "epochs=2")
            summary = self.summary(format_)
            results.append([summary[key] for key in ("model_hash", "applied_once", "skipped",
                                                     "lost", "doubled")])
        self.assertEqual(results[0][1:], [2 * (400 - bad), 2 * bad, 0, 0])
        self.assertEqual(results[1], results[0])
        told = (self.folder / "parquet/bad_records/pass-00000.tsv").read_text().splitlines()
        self.assertEqual(len(told), bad)
        self.assertEqual(told[0], "bad.parquet: record 4\tbad.parquet: record 4: label 'label' is "
                         "missing or not a number; it must be a number")
        self.assertRegex(told[1], "record 6: slot 'tags' has 2 keys, but 1 values of them")
        tried = self.flux("run", "parquet.yaml", "--smoke", "3")
        self.assertIn("good: 21 examples read, trained and counted once", tried.out)
        self.assertIn("set aside: bad.parquet: record 4: label 'label' is missing", tried.err)
        done = self.flux("run", "parquet.yaml", "--fresh", "--set", f"data.bad_records={bad - 1}",
                         code=2)
        self.assertIn(f"more than data.bad_records: {bad - 1}", done.err)

    def test_no_flipped_byte_does_harm(self) -> None:
        """Without check sums of pages it may be another number; with them it is never one."""
        self.python(FOREIGN)
        for name in ("packed_0", "packed_1"):
            good = (self.folder / f"{name}.parquet").read_bytes()
            (self.folder / "bad.parquet").write_bytes(good)
            head = ("data", "head", "--job", self.job("bad.parquet", "parquet"), "-n", "20")
            want, refused = self.flux(*head).out, 0
            for at in range(4, len(good), 1 + len(good) // 150):
                bad = good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1:]
                (self.folder / "bad.parquet").write_bytes(bad)
                done = self.flux(*head, code=None)
                self.assertIn(done.code, (0, 2), f"{name}: byte {at}: {done.err}")
                if done.code == 0 and name == "packed_1":
                    self.assertEqual(done.out, want, f"byte {at}")
                refused += done.code == 2
            self.assertGreater(refused, 20, name)

    def test_check_sums_are_made_by_the_plug_in(self) -> None:
        """libparquet calls arrow's function by its name, which the plug-in has to be found for."""
        self.python(FOREIGN)
        out = self.folder / "bindings"
        subprocess.run([str(FLUX), "data", "head", "packed_1.parquet"], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL, timeout=DEADLINE_S,
                       env={**os.environ, "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(out)})
        told = "".join(path.read_text() for path in self.folder.glob("bindings.*"))
        found = re.findall(r"binding file \S*/libparquet\.so\S* \[\d+\] to (\S+) \[\d+\]: "
                           r"normal symbol `\w*arrow8internal5crc32\w*'", told)
        self.assertEqual([Path(name).name for name in found], ["flux_parquet.so"], told[-2000:])

    def test_two_columns_of_one_name_are_not_written(self) -> None:
        (self.folder / "a.txt").write_text("1 x:3:0.5 x_values:4\n0 x:4 x_values:5\n")
        done = self.flux("data", "convert", "a.txt", "--to", "parquet", "--out", "a.parquet",
                         code=2)
        self.assertIn("flux: --to parquet: the format cannot hold the values of slot 'x' beside "
                      "the slot 'x_values'", done.err)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["a.txt"])

    def test_its_own_files_keep_the_keys_of_tables(self) -> None:
        self.flux("data", "gen", "criteo", "--examples", "3000", "--out", "a.tsv")
        self.flux("data", "convert", "a.tsv", "--to", "parquet", "--out", "a.parquet")
        for source in ("a.tsv", "a.parquet"):
            self.flux("data", "convert", source, "--to", "feasign", "--out", f"{source}.txt")
        self.assertEqual((self.folder / "a.tsv.txt").read_bytes(),
                         (self.folder / "a.parquet.txt").read_bytes())
        (self.folder / "job.yaml").write_text(JOB.replace(
            "DATA", "{format: parquet, train: [a.parquet], slots: [{name: C1}], dense: [I1]}"))
        self.assert_refused(self.flux("run", "job.yaml", code=2), "a.parquet", "raw_keys: true")


class WithoutPlugin(Case):
    def test_says_how_to_build_it(self) -> None:
        (self.folder / "a.parquet").write_bytes(b"PAR1" + bytes(20) + b"PAR1")
        alone = shutil.copy(FLUX, self.folder / "flux")  # the plug-in is looked for beside it
        done = subprocess.run([alone, "data", "head", "a.parquet"], cwd=self.folder,
                              capture_output=True, text=True, timeout=DEADLINE_S)
        self.assert_refused(Done(done.returncode, done.stdout, done.stderr),
                            "format parquet needs the plug-in flux_parquet.so", "make parquet")


if __name__ == "__main__":
    unittest.main()
