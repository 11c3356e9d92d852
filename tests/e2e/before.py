"""Commands that look at a job before it is trained, and those that tell about commands."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import unittest
from xml.etree import ElementTree

from _support import SMALLEST_MODEL, SOURCE, Case, example, sets, write_data


class Before(Case):
    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "train.tsv", 3000)
        write_data(self.folder / "test.tsv", 500, seed=9)
        self.fields = sets(data__train="train.tsv", data__test="test.tsv", output="out",
                           data__batch=50, shards=4)

    def test_smoke(self) -> None:
        told = self.flux("run", example("ctr_dnn"), "--smoke", "3", *self.fields).out
        self.assertIn("150 examples read, trained and counted once", told)
        self.assertIn("150 test examples evaluated: auc 0.", told)
        self.assertIn("the job is right as far as 3 batches can tell", told)
        self.assertFalse((self.folder / "out").exists(), "the output folder is not touched")

    def test_smoke_tells_of_every_head(self) -> None:
        self.flux("data", "gen", "feasign", "--kind", "tasks", "--examples", "2000", "--out",
                  "tasks.txt")
        told = self.flux("run", str(SOURCE / "models/mmoe.yaml"), "--smoke", "2",
                         *sets(data__train="tasks.txt", data__test="tasks.txt")).out
        self.assertRegex(told, r"400 test examples evaluated: loss \d\.")
        for head in ("click", "buy"):
            self.assertRegex(told, rf"(?m)^good: {head}\S*: auc 0\.")

    def test_smoke_of_a_loss_without_a_label(self) -> None:
        self.flux("data", "gen", "corpus", "--examples", "2000", "--out", "corpus.txt")
        self.flux("data", "vocab", "corpus.txt", "--out", "vocab.txt")
        told = self.flux("run", str(SOURCE / "models/word2vec.yaml"), "--smoke", "2",
                         *sets(data__train="corpus.txt", data__vocabulary="vocab.txt")).out
        self.assertRegex(told, r"100 training examples evaluated: loss \d")

    def test_smoke_for_programs(self) -> None:
        (self.folder / "here").mkdir()
        done = self.flux("run", example("ctr_dnn"), "--smoke", "3", *self.fields, "--json",
                         "--summary", "here/summary.json")
        events = [json.loads(line) for line in done.out.splitlines()]
        kinds = [event["event"] for event in events]
        for kind in ("started", "message", "checkpoint", "pass_done", "evaluated", "finished"):
            self.assertIn(kind, kinds)
        self.assertEqual((kinds[-1], kinds.count("finished")), ("finished", 1))
        summary = json.loads((self.folder / "here/summary.json").read_text())
        self.assertEqual(summary, events[-1]["summary"])
        self.assertEqual((summary["state"], summary["applied_once"]), ("complete", 150))
        told = [event["text"] for event in events if event["event"] == "message"]
        self.assertIn("the job is right as far as 3 batches can tell", told)
        self.assertNotIn("flux-trial", "".join(told), "a folder that is gone when it is read")
        self.assertFalse((self.folder / "out").exists())

    def test_a_failed_smoke_for_programs(self) -> None:
        (self.folder / "bad.tsv").write_text("1\tnonsense\n")
        done = self.flux("run", example("lr"), "--smoke", "3", "--json", "--summary", "s.json",
                         *self.fields, *sets(data__train="bad.tsv"), code=2)
        last = json.loads(done.out.splitlines()[-1])
        self.assertEqual(last["event"], "error")
        self.assertIn("bad.tsv:1:", last["message"])
        self.assertFalse((self.folder / "s.json").exists())
        self.assert_refused(self.flux("run", example("lr"), "--smoke", "3", "--summary", "no/s",
                                      *self.fields, code=None), "--summary no/s: its folder")
        for flag in (["--json"], ["--summary", "s.json"]):  # it has neither events nor an end
            self.assertEqual(self.flux("run", example("lr"), "--dry-run", *flag, *self.fields,
                                       code=None).code, 2)

    def test_smoke_says_what_is_wrong(self) -> None:
        (self.folder / "bad.tsv").write_text("1\tnonsense\n")
        told = self.flux("run", example("lr"), "--smoke", "3",
                         *self.fields, *sets(data__train="bad.tsv"), code=2)
        self.assertIn("flux: smoke test:", told.err)
        self.assertIn("smoke test: bad.tsv:1:", told.err)

    def test_mistakes_are_named_by_the_files_of_the_job(self) -> None:
        lines = (self.folder / "train.tsv").read_text().splitlines(keepends=True)
        (self.folder / "a.tsv").write_text("".join(lines[:40]))
        (self.folder / "b.tsv").write_text("".join([*lines[:20], "nonsense\n", *lines[20:40]]))
        train = sets(data__train="a.tsv,b.tsv")
        for mode in (["--smoke", "3"], ["--dry-run"]):
            told = self.flux("run", example("lr"), *mode, *self.fields, *train, code=2)
            self.assertIn("b.tsv:21:", told.err)
            self.assertNotIn("flux-trial", told.err)
        for test in ("b.tsv", "a.tsv"):  # with the test data, too
            told = self.flux("run", example("lr"), "--smoke", "3", *self.fields,
                             *sets(data__train="a.tsv", data__test=test),
                             code=2 if test == "b.tsv" else 0)
            self.assertEqual("b.tsv:21:" in told.err, test == "b.tsv")

    def test_bad_records_are_set_aside_as_in_the_run(self) -> None:
        lines = (self.folder / "train.tsv").read_text().splitlines(keepends=True)
        for day in ("mon", "tue"):
            bad = ["nonsense\n", *lines[:40], "1\n"]
            (self.folder / f"{day}.tsv").write_text("".join(bad))
        with open(example("lr")) as file:
            job = re.sub(r"(?m)^  train:.*\n", "", file.read())
        (self.folder / "job.yaml").write_text(
            job + "passes: [{name: mon, train: mon.tsv}, {name: tue, train: tue.tsv}]\n")
        (self.folder / "test.tsv").write_text("".join([*lines[:30], "word\n"]))
        fields = [*self.fields[2:], *sets(data__bad_records=2)]  # of each pass
        self.flux("run", "job.yaml", *fields)
        for mode in (["--smoke", "3"], ["--dry-run"]):
            told = self.flux("run", "job.yaml", *mode, *fields).err
            for place in ("mon.tsv:1:9: ", "mon.tsv:42:2: ", "tue.tsv:1:9: ", "test.tsv:31:5: "):
                self.assertIn(f"flux: set aside: {place}", told)
            self.assertEqual(told.count("set aside"), 5, told)
            self.assertNotIn("flux-trial", told)
            fewer = [*fields, *sets(data__bad_records=1)]
            self.assert_refused(self.flux("run", "job.yaml", *mode, *fewer, code=None),
                                "mon.tsv:1:", "data.bad_records")

    def test_bad_records_are_counted_by_pass(self) -> None:
        """Three in one pass are too many where two are allowed, however few the others have."""
        lines = (self.folder / "train.tsv").read_text().splitlines(keepends=True)
        for day, bad in (("mon", 3), ("tue", 0), ("wed", 0)):
            (self.folder / f"{day}.tsv").write_text("".join(lines[:40] + ["word\n"] * bad))
        with open(example("lr")) as file:
            job = re.sub(r"(?m)^  train:.*\n", "", file.read())
        passes = ", ".join(f"{{name: {day}, train: {day}.tsv}}" for day in ("mon", "tue", "wed"))
        (self.folder / "job.yaml").write_text(f"{job}passes: [{passes}]\n")
        fields = [*self.fields[2:], *sets(data__bad_records=2)]
        for mode in ([], ["--smoke", "3"], ["--dry-run"]):
            self.assert_refused(self.flux("run", "job.yaml", *mode, *fields, code=None),
                                "mon.tsv:41:5: ", "this and 2 more bad records")

    def test_dry_run(self) -> None:
        write_data(self.folder / "big.tsv", 6000, seed=3)
        told = self.flux("run", example("lr"), "--dry-run", *self.fields,
                         *sets(data__train="big.tsv", epochs=2)).out
        found = re.search(r"data +about ([\d,]+) examples", told)
        assert found is not None, told
        self.assertAlmostEqual(int(found[1].replace(",", "")), 6000, delta=60)
        self.assertIn("each trained 2 times", told)
        for word in ("rows over all tables", "servers together", "time    about"):
            self.assertIn(word, told)
        self.assertFalse((self.folder / "out").exists())

    def test_dry_run_of_all_there_is(self) -> None:
        text = (self.folder / "train.tsv").read_bytes()
        with gzip.open(self.folder / "train.tsv.gz", "wb") as file:
            file.write(text)
        self.flux("run", example("lr"), *self.fields)
        rows = self.summary("out")["rows"]
        for name in ("train.tsv", "train.tsv.gz"):
            told = self.flux("run", example("lr"), "--dry-run", *self.fields,
                             *sets(data__train=name)).out
            self.assertIn("data    3,000 examples", told)
            self.assertIn("60 batches of 50", told)
            self.assertIn(f"about {rows:,} rows", told, "all ids were seen")

    def test_formats_that_are_not_only_lines(self) -> None:
        lines = [f"{i % 2},{i % 7},0.{i}\n" for i in range(120)]
        for name, part in (("a.csv", lines[:60]), ("b.csv", lines[60:])):
            (self.folder / name).write_text("label,user,price\n" + "".join(part))
        csv = ("{format: csv, train: [a.csv, b.csv], slots: [{name: user}], dense: [price], "
               "batch: 10}")
        self.job("csv.yaml", csv)
        section = self.flux("data", "convert", "--job", "csv.yaml", "--to", "blocks",
                            "--out", "a.blocks").out.split("data:", 1)[1]
        self.job("blocks.yaml", section)
        for name in ("csv.yaml", "blocks.yaml"):
            told = self.flux("run", name, "--smoke", "4").out
            self.assertIn("40 examples read, trained and counted once", told)
            told = self.flux("run", name, "--dry-run").out
            self.assertRegex(told, r"data +120 examples")
        with (self.folder / "a.csv").open("a") as file:
            file.write("1,x,0.5\n")
        self.assertIn("the job is right", self.flux(
            "run", "csv.yaml", "--smoke", "100", *sets(data__bad_records=1)).out)

    def job(self, name: str, data: str) -> None:
        text = f"data: {data}\noutput: out\n" + SMALLEST_MODEL
        (self.folder / name).write_text(text)

    def test_graph(self) -> None:
        told = self.flux("graph", example("ctr_dnn")).out
        root = ElementTree.fromstring(told)  # noqa: S314
        boxes = root.findall("{http://www.w3.org/2000/svg}g")
        lines = self.flux("check", example("ctr_dnn")).out.splitlines()[1:]
        self.assertEqual(len(boxes), len(lines), "a box for each node")
        self.flux("graph", example("ctr_dnn"), "--out", "net.svg")
        self.assertEqual((self.folder / "net.svg").read_text(), told)

    def complete(self, line: str) -> list[str]:
        """What bash offers after this line."""
        script = self.flux("completion", "bash").out
        words = line.split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        code = (f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _flux\n"
                'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.split()

    def test_bash_completion(self) -> None:
        self.assertEqual(self.complete("flux ev"), ["eval"])
        self.assertEqual(self.complete("flux run job.yaml --dry"), ["--dry-run"])
        self.assertEqual(self.complete("flux data gen "), ["criteo", "feasign", "corpus", "--help"])
        self.assertIn("--examples", self.complete("flux data gen criteo --"))
        self.assertNotIn("--chaos", self.complete("flux run --"), "hidden ones stay hidden")
        self.assertEqual(self.complete("flux models xd"), ["xdeepfm"])
        self.assertEqual(self.complete("flux eval job.yaml --checkpoint "), ["newest", "best"])
        self.assertIn("tasks", self.complete("flux data gen feasign --kind "))

    def test_other_shells(self) -> None:
        for shell in ("zsh", "fish"):
            script = self.flux("completion", shell).out
            self.assertIn("dry-run", script)
            if shutil.which(shell):
                subprocess.run([shell, "-n", "-c", script], check=True)
        self.assertIn("did you mean 'bash'", self.flux("completion", "bahs", code=2).err)

    def test_man_pages_and_help_agree(self) -> None:
        shown = self.flux("run", "--help").out
        page = self.flux("man", "run").out
        self.assertTrue(page.startswith(".TH FLUX-RUN 1"))
        flags = set(re.findall(r"(?m)^  (--[a-z-]+)", shown))
        told = {flag.replace("\\", "") for flag in re.findall(r"\\fB(\\-\\-[a-z\\-]+)\\fR", page)}
        self.assertEqual({flag for flag in flags if flag != "--help"} - told, set())
        top = self.flux("man").out
        for command in ("run", "data gen criteo", "completion"):
            self.assertIn(f"\\fB{command}\\fR", top)
        self.assertIn("no command 'rum', did you mean", self.flux("man", "rum", code=2).err)
        self.assertIn("\\fB\\-\\-fresh\\fR\n", page, "a switch takes no value")
        self.assertIn("\\fB\\-\\-help\\fR\n", page)
        self.assertIn("\\fB\\-\\-threads\\fR \\fIINT\\fR\n", page)
        self.assertIn(" From 0 to 4096.\n", page)
        self.assertIn("\\fB\\-\\-hosts\\fR \\fIFILE\\fR\n", page)
        self.assertEqual(self.flux("man", "data", "convert").out,
                         self.flux("man", "data convert").out)
        group = self.flux("man", "data").out
        self.assertIn("\\fBdata convert\\fR", group)
        self.assertNotIn("\\fBrun\\fR", group)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-ww", "-Tascii"], input=page, text=True,
                                  capture_output=True, check=True)
            self.assertEqual(done.stderr, "")

    def test_fish_knows_switches(self) -> None:
        script = self.flux("completion", "fish").out
        run = "complete -c flux -n '__fish_seen_subcommand_from run'"
        self.assertIn(f"{run} -l fresh -d ", script)
        self.assertIn(f"{run} -l help -d ", script)
        self.assertIn(f"{run} -l threads -r -d ", script)

    def test_help_shows_defaults_and_no_examples_of_others(self) -> None:
        self.assertIn("flux run examples/ctr_dnn/job.yaml", self.flux("--help").out)
        drill = " ".join(self.flux("drill", "--help").out.split())
        self.assertNotIn("examples/ctr_dnn", drill)
        for words in ("500ms, 2m (default: 30s)", "length of a pause (default: 30s)",
                      "length of a partition (default: 5s)", "stays armed (default: 15s)"):
            self.assertIn(words, drill)
        self.assertIn("(default: 300)", self.flux("stop", "--help").out)


if __name__ == "__main__":
    unittest.main()
