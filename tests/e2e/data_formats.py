"""Every format to every other: the same bytes whatever the way, and the same weights; and every
model on every format that can hold its data (the table of docs/using/formats.md)."""

from __future__ import annotations

import gzip
import itertools
import random
import re
import shutil
import unittest

from _parquet import READY
from _support import SOURCE, Case, Done, sets
from _words import make_corpus

ALL = ("blocks", "criteo_tsv", "csv", "feasign", "libffm", "libsvm", "multislot", "parquet", "vw")
FORMATS = tuple(name for name in ALL if READY or name != "parquet")  # that are tried here
JOB = """
name: lr
output: out
deterministic: true
precision: fp32
{data}
epochs: 2
shards: 4
tables:
  - {{name: weight, dim: 1, init: uniform, init_scale: 0.1, optimizer: {{rule: sgd, lr: 0.5}}}}
model:
  layers:
    - {{name: sparse, op: embedding, table: weight, combine: sum}}
{layers}
"""
SPARSE_ONLY = "    - {name: loss, op: logistic_loss, inputs: [sparse, label]}"
WEIGHTED = "    - {name: loss, op: logistic_loss, inputs: [sparse, label, weight]}"
WITH_DENSE = """\
    - {name: linear, op: fc, inputs: dense, units: 1}
    - {name: logit, op: add, inputs: [sparse, linear]}
    - {name: loss, op: logistic_loss, inputs: [logit, label]}"""


def one_slot_lines(count: int) -> str:
    """Weights, searches and values: what libsvm can hold."""
    draw = random.Random(3)
    lines = []
    for i in range(count):
        words = [f"features:{draw.randrange(200)}:{draw.randrange(1, 9) / 4}"
                 for _ in range(draw.randrange(6))]
        lines.append(" ".join([str(draw.randrange(2)), f"w={draw.randrange(1, 5) / 2}",
                               f"sid=q{i // 7}", *words]))
    return "\n".join(lines) + "\n"


def slots_lines(count: int) -> str:
    """Several slots with any number of keys and values: what libffm can hold."""
    draw = random.Random(4)
    lines = []
    for _ in range(count):
        words = [f"user:{draw.randrange(1, 50)}"] * draw.randrange(2)
        words += [f"tags:{draw.randrange(90)}:{draw.randrange(1, 9) / 4}"
                  for _ in range(draw.randrange(5))]
        lines.append(" ".join([str(draw.randrange(2)), *words]))
    return "\n".join(lines) + "\n"


class DataFormats(Case):
    def job(self, name: str, data: str, layers: str) -> str:
        path = self.folder / f"{name}.yaml"
        path.write_text(JOB.format(data=data.rstrip(), layers=layers))
        return path.name

    def trained(self, name: str, job: str) -> tuple[str, float]:
        """The hash of all weights, and the AUC on all examples."""
        self.flux("run", job, *sets(output=name))
        result = self.summary(name)
        self.assertEqual((result["lost"], result["doubled"]), (0, 0))
        return str(result["model_hash"]), float(result["auc"])

    def convert(self, job: str, to: str, out: str) -> str | None:
        """The data section that reads it; None: the format says that it cannot hold the data."""
        done = self.flux("data", "convert", "--job", job, "--to", to, "--out", out, code=None)
        if done.code != 0:
            self.assert_refused(done, f"--to {to}: the format cannot hold")
            self.assertFalse((self.folder / out).exists())
            self.assertFalse(list(self.folder.glob(f"{out}*")), "something is left over")
            return None
        return done.out + f"  test: [{out}]\n"

    def converted(self, given: str, to: str, out: str) -> Done:
        """Without a job."""
        return self.flux("data", "convert", given, "--to", to, "--out", out)

    def check_pairs(self, source: str, layers: str, refused: set[str]) -> None:
        first = self.job("source", source, layers)
        want = self.trained("out_source", first)
        jobs = {}
        for to in FORMATS:
            section = self.convert(first, to, f"a.{to}")
            self.assertEqual(section is None, to in refused, to)
            if section is None:
                continue
            jobs[to] = self.job(f"job_{to}", section, layers)
            self.assertEqual(self.trained(f"out_{to}", jobs[to]), want, to)
        for given, to in itertools.product(jobs, jobs):
            with self.subTest(given=given, to=to):
                self.assertIsNotNone(self.convert(jobs[given], to, f"b.{given}.{to}"))
                self.assertEqual((self.folder / f"b.{given}.{to}").read_bytes(),
                                 (self.folder / f"a.{to}").read_bytes())

    def test_criteo_data(self) -> None:
        self.flux("data", "gen", "criteo", "--examples", "500", "--out", "a.tsv")
        self.check_pairs("data: {train: [a.tsv], test: [a.tsv], batch: 50}", WITH_DENSE,
                         {"libsvm", "libffm"})

    def test_one_slot_with_weights_searches_and_values(self) -> None:
        (self.folder / "a.txt").write_text(one_slot_lines(500))
        self.check_pairs("data: {format: feasign, train: [a.txt], test: [a.txt], batch: 50, "
                         "weights: true, group: sid, slots: [{name: features, values: true}]}",
                         WEIGHTED, {"criteo_tsv", "libffm", "multislot", "vw"})

    def test_several_slots_with_values(self) -> None:
        (self.folder / "a.txt").write_text(slots_lines(500))
        self.check_pairs("data: {format: feasign, train: [a.txt], test: [a.txt], batch: 50, "
                         "slots: [{name: user}, {name: tags, values: true}]}", SPARSE_ONLY,
                         {"criteo_tsv", "libsvm", "multislot"})

    def test_what_was_converted_is_converted_as_it_is_without_a_job(self) -> None:
        (self.folder / "one.txt").write_text(one_slot_lines(500))
        (self.folder / "slots.txt").write_text(slots_lines(500))
        one = ("weights: true, group: sid, slots: [{name: features, values: true}]", WEIGHTED,
               ("blocks", "csv", "feasign", "libsvm"))
        slots = ("slots: [{name: user}, {name: tags, values: true}]", SPARSE_ONLY,
                 ("blocks", "csv", "feasign", "vw"))
        for source, (declared, layers, formats) in (("one", one), ("slots", slots)):
            job = self.job(source, f"data: {{format: feasign, train: [{source}.txt], test: "
                           f"[{source}.txt], batch: 50, {declared}}}", layers)
            want = self.trained(f"out_{source}", job)
            for first, second in itertools.product(formats, formats):
                with self.subTest(source=source, first=first, second=second):
                    once = self.converted(f"{source}.txt", second, f"once.{second}")
                    self.converted(f"{source}.txt", first, f"first.{first}")
                    twice = self.converted(f"first.{first}", second, f"twice.{second}")
                    self.assertEqual(once.out, twice.out.replace("twice", "once"))
                    self.assertEqual((self.folder / f"twice.{second}").read_bytes(),
                                     (self.folder / f"once.{second}").read_bytes())
                    self.assertEqual("are taken as they are" in twice.err, first != "blocks")
                    self.assertNotIn("are taken as they are", once.err)
            section = f"{twice.out}  batch: 50\n  test: [twice.{second}]\n"
            self.assertEqual(self.trained("out_twice", self.job("twice", section, layers)), want)
            shutil.rmtree(self.folder / "out_twice")

    def test_auto_says_where_keys_look_converted(self) -> None:
        (self.folder / "a.txt").write_text(slots_lines(500))
        self.converted("a.txt", "csv", "a.csv")
        data = "slots: [{name: user, values: true}, {name: tags, values: true}], train: [a.csv]"
        job = self.job("auto", f"data: {{{data}}}", SPARSE_ONLY)
        says = "come from it, say data.raw_keys: true"
        self.assertIn(says, self.flux("data", "validate", "--job", job).err)
        job = self.job("auto", f"data: {{{data}, raw_keys: true}}", SPARSE_ONLY)
        self.assertNotIn(says, self.flux("data", "validate", "--job", job).err)

    def test_a_group_that_is_a_slot_is_held_where_the_slot_is(self) -> None:
        (self.folder / "a.txt").write_text(slots_lines(500))
        job = self.job("source", "data: {format: feasign, train: [a.txt], test: [a.txt], batch: "
                       "50, group: user, slots: [{name: user}, {name: tags, values: true}]}",
                       SPARSE_ONLY)
        want = self.trained("out_source", job)
        head = self.summary("out_source")["test"]["heads"][0]
        self.assertGreater(head["groups"], 20)
        for to in ("csv", "libffm", "vw"):
            section = self.convert(job, to, f"a.{to}")
            assert section is not None
            self.assertIn("group: sid" if to == "csv" else "group: user", section)
            self.assertEqual(self.trained(f"out_{to}", self.job(to, section, SPARSE_ONLY)), want)
            got = self.summary(f"out_{to}")["test"]["heads"][0]
            self.assertEqual(got["groups"], head["groups"], to)
            self.assertAlmostEqual(got["gauc"], head["gauc"], places=9)

    def test_the_format_is_known_by_the_lines_and_said(self) -> None:
        (self.folder / "a.txt").write_text(slots_lines(500))
        data = ("slots: [{name: user}, {name: tags, values: true}], train: [a.txt], "
                "test: [a.txt], batch: 50}")
        want = self.trained("out_named", self.job("named", "data: {format: feasign, " + data,
                                                  SPARSE_ONLY))
        for name, text in (("auto", "data: {format: auto, "), ("left_out", "data: {")):
            job = self.job(name, text + data, SPARSE_ONLY)
            done = self.flux("run", job, *sets(output=f"out_{name}"))
            self.assertIn("data.format auto: the lines of a.txt are feasign", done.err)
            self.assertEqual(self.summary(f"out_{name}")["model_hash"], want[0])
        done = self.flux("run", "auto.yaml", *sets(output="out_c"), "--servers", "1",
                         "--workers", "2")
        self.assert_exact("out_c", 1000)

    def test_a_format_that_is_not_clear_is_refused(self) -> None:
        (self.folder / "a.txt").write_text("some words\n")
        job = self.job("auto", "data: {format: auto, slots: [{name: user}], train: [a.txt]}",
                       SPARSE_ONLY)
        self.assert_refused(self.flux("run", job, code=None), "data.format is auto",
                            "its format is not clear")
        (self.folder / "a.txt").write_text("1 |usr 1\n")  # known, but not what the job declares
        done = self.flux("run", job, code=2)
        self.assertIn("data.format auto: the lines of a.txt are vw", done.err)
        self.assertIn("flux: a.txt:1:4: no slot or dense feature 'usr' is declared", done.err)


# What each model cannot be fed with: libsvm has one slot, libffm and vw one label.
NOT_HELD = {"mmoe": {"libsvm", "libffm", "vw"}, "ple": {"libsvm", "libffm", "vw"}}
ELSEWHERE = {"word2vec"}  # reads sentences, as they are
# Suit the one slot of libsvm, too: a factorization machine then pairs the keys of that slot.
ONE_SLOT = {"fm": sets(model__layers__emb__combine="sequence", model__layers__emb__length=6),
            "lr": []}
EXAMPLE_NOT_HELD = {"libffm", "libsvm"}  # have no dense numbers
EXAMPLES = ("ctr_dnn", "dcn_v2", "deepfm", "fm", "lr")  # read criteo_tsv


class Matrix(Case):
    """A cell is a run of the model on the same examples in another format: the same numbers."""

    def model_job(self, model: str) -> tuple[str, str]:
        """Its job, and the kind of its data."""
        text = (SOURCE / "models" / f"{model}.yaml").read_text()
        kind = re.search(r"data/made/(\w+)/train.txt", text)
        assert kind is not None
        path = self.folder / f"{model}.yaml"
        path.write_text(text)
        return path.name, kind[1]

    def run_cell(self, job: str, name: str, path: str, *more: str) -> tuple[object, ...]:
        self.flux("run", job, "--fresh",
                  *sets(output=name, data__train=path, data__test=path, data__batch=100,
                        deterministic=True, precision="fp32", epochs=1), *more)
        result = self.summary(name)
        self.assertEqual((result["lost"], result["doubled"]), (0, 0))
        return result["model_hash"], result["auc"], result["logloss"], result["train_logloss"]

    def columns(self, section: str) -> list[str]:
        found = re.search(r"columns: (\[.*\])", section)
        return [] if found is None else ["--set", f"data.columns={found[1]}"]

    def row(self, model: str) -> None:
        job, kind = self.model_job(model)
        path = f"{kind}.txt"
        if not (self.folder / path).exists():
            self.flux("data", "gen", "feasign", "--kind", kind, "--examples", "1200",
                      "--out", path)
        want = self.run_cell(job, f"{model}_feasign", path)
        for to in FORMATS:
            if to in ("criteo_tsv", "feasign"):
                continue
            out = f"{model}.{to}"
            done = self.flux("data", "convert", "--job", job, path, "--to", to, "--out", out,
                             code=None)
            held = to not in NOT_HELD.get(model, {"libsvm"})
            self.assertEqual(done.code, 0 if held else 2, done.text)
            if not held:
                continue
            raw = [] if to == "blocks" else ["--set", "data.raw_keys=true"]
            got = self.run_cell(job, f"{model}_{to}", out, "--set", f"data.format={to}", *raw,
                                *self.columns(done.out))
            self.assertEqual(got, want, f"{model} on {to}")

    def test_every_model_on_every_format(self) -> None:
        names = {path.stem for path in (SOURCE / "models").glob("*.yaml")} - ELSEWHERE
        self.assertGreater(len(names), 10)
        for model in sorted(names):
            with self.subTest(model=model):
                self.row(model)

    def test_one_slot_in_libsvm(self) -> None:
        (self.folder / "one.txt").write_text(re.sub(r" (w|sid)=\S+", "", one_slot_lines(1200)))
        for model, changes in ONE_SLOT.items():
            with self.subTest(model=model):
                one = ["--set", "data.slots=[{name: features, values: true}]", *changes]
                job, _ = self.model_job(model)
                want = self.run_cell(job, f"{model}_one", "one.txt", *one)
                self.flux("data", "convert", "--job", job, *one, "one.txt", "--to", "libsvm",
                          "--out", f"{model}.libsvm")
                got = self.run_cell(job, f"{model}_libsvm", f"{model}.libsvm", *one, "--set",
                                    "data.format=libsvm", "--set", "data.raw_keys=true")
                self.assertEqual(got, want)

    def test_sentences(self) -> None:
        """The same words in lines of text, plain and packed."""
        make_corpus(self, 1000, 200, 10)
        folder = self.folder / "data/made/corpus"
        packed = gzip.compress((folder / "train.txt").read_bytes(), 1, mtime=0)
        (folder / "train.gz").write_bytes(packed)
        hashes = set()
        for name in ("train.txt", "train.gz"):
            self.flux("run", str(SOURCE / "models/word2vec.yaml"),
                      *sets(output=f"out_{name}", deterministic=True, epochs=1,
                            data__train=f"data/made/corpus/{name}"))
            self.assert_exact(f"out_{name}", 1000)
            hashes.add(self.summary(f"out_{name}")["model_hash"])
        self.assertEqual(len(hashes), 1)

    def example_row(self, name: str) -> None:
        """An example on criteo_tsv, and on what is converted from it."""
        text = (SOURCE / "examples" / name / "job.yaml").read_text()
        (self.folder / f"{name}.yaml").write_text(text)
        before, behind = re.split(r"^data:\n(?:(?:  .*)?\n)+", text, flags=re.MULTILINE)
        want = self.run_cell(f"{name}.yaml", f"{name}_criteo_tsv", "criteo.tsv")
        for to in FORMATS:
            out = f"{name}.{to}"
            done = self.flux("data", "convert", "--job", f"{name}.yaml", "criteo.tsv", "--to", to,
                             "--out", out, code=None)
            self.assertEqual(done.code, 0 if to not in EXAMPLE_NOT_HELD else 2, done.text)
            if done.code != 0:
                continue
            (self.folder / f"{name}_{to}.yaml").write_text(f"{before}{done.out}\n{behind}")
            got = self.run_cell(f"{name}_{to}.yaml", f"{name}_{to}", out)
            self.assertEqual(got, want, f"examples/{name} on {to}")

    def test_every_example_on_every_format(self) -> None:
        self.flux("data", "gen", "criteo", "--examples", "1200", "--out", "criteo.tsv")
        for name in EXAMPLES:
            with self.subTest(example=name):
                self.example_row(name)

    def test_the_table_of_the_docs_says_so(self) -> None:
        text = (SOURCE / "docs" / "using" / "formats.md").read_text()
        rows = dict(re.findall(r"^\| `([\w/]+)` \|(.*)\|$", text.split("## Formats and models")[1],
                               re.MULTILINE))
        head = re.search(r"^\| model \|(.*)\|$", text, re.MULTILINE)
        assert head is not None
        formats = [name.strip(" `") for name in head[1].split("|")]
        models = {path.stem for path in (SOURCE / "models").glob("*.yaml")}
        want = {name: {to: "yes" for to in ALL
                       if to != "criteo_tsv" and to not in NOT_HELD.get(name, {"libsvm"})}
                for name in models - ELSEWHERE}
        want["word2vec"] = {"sentences": "yes"}
        for name in ONE_SLOT:
            want[name]["libsvm"] = "one slot"
        for name in EXAMPLES:
            want[f"examples/{name}"] = {to: "yes" for to in ALL if to not in EXAMPLE_NOT_HELD}
        told = {}
        for name, row in rows.items():
            cells = [cell.strip() for cell in row.split("|")]
            told[name] = {to: cell for to, cell in zip(formats, cells, strict=True) if cell != "-"}
        self.assertEqual(told, want)


if __name__ == "__main__":
    unittest.main()
