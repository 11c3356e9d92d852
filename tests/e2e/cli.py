"""The command line: exit codes, messages, plain lines in a pipe, a bar on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import unittest

from _support import FLUX, SOURCE, Case, example, sets, write_data

BAR = "\r\x1b[K["
COMMANDS = ("run", "check", "eval", "predict", "inspect", "schema", "data")


class Cli(Case):
    def job(self, **fields: object) -> list[str]:
        settings = sets(data__train="train.tsv", output="out", data__batch=10, shards=4)
        return [example("counting"), *settings, *sets(**fields)]  # the last one counts

    def test_help_and_version(self) -> None:
        done = self.flux("--help")
        for name in COMMANDS:
            self.assertRegex(done.out, rf"(?m)^  {name}\b")
        self.assertEqual(done.err, "")
        self.assertRegex(self.flux("--version").out, r"\Aflux \d+\.\d+\.\d+\n\Z")
        for name in COMMANDS:
            self.assertNotEqual(self.flux(name, "--help").out, "")
        for flag in ("--set", "--threads", "--fresh", "--summary"):
            self.assertIn(flag, self.flux("run", "--help").out)

    def test_help_of_a_command(self) -> None:
        for words in ([], ["run"], ["data", "head"]):
            self.assertEqual(self.flux("help", *words).out, self.flux(*words, "--help").out)
        for words in (["rnu"], ["data", "haed"]):
            self.assert_refused(self.flux("help", *words, code=None), "did you mean")

    def test_options_that_need_others(self) -> None:
        job = self.job()
        for options, words in (
                (["--http", "127.0.0.1:0"], "--http: is for a cluster"),
                (["--drillable"], "--drillable: is for a cluster"),
                (["--hosts", job[0]], "--hosts: is for a cluster"),
                (["--listen", "tcp:127.0.0.1:0"], "--listen: is for roles on other hosts"),
                (["--servers", "1", "--listen", "tcp:127.0.0.1:0"], "--hosts FILE"),
                (["--servers", "1", "--ssh", "ssh"], "--hosts FILE")):
            with self.subTest(options):
                self.assert_refused(self.flux("run", *job, *options, code=None), words)

    def test_wrong_command_lines(self) -> None:
        for arguments, words in (
                ([], ["no command", "run", "predict"]),
                (["rnu", "job.yaml"], ["unknown command 'rnu'", "did you mean 'run'?"]),
                (["evaluate"], ["unknown command 'evaluate'"]),
                (["run"], ["job"]),
                (["run", "job.yaml", "--frehs"], ["--frehs"]),
                (["run", "job.yaml", "--threads", "many"], ["--threads", "many"]),
                (["run", "job.yaml", "--threads", "-1"], ["--threads"]),
                (["run", "job.yaml", "--set"], ["--set"]),
                (["run", "job.yaml", "another.yaml"], ["another.yaml"]),
                (["data"], ["no command", "head, stats, validate", "flux data --help"]),
                (["data", "haed", "a.tsv"],
                 ["unknown command 'haed', did you mean 'head'?", "flux data --help"]),
                (["data", "gen", "critoe", "--out", "x"],
                 ["unknown command 'critoe', did you mean 'criteo'?"]),
                (["data", "head", "a.tsv", "-n", "-1"], ["--records", "-1 not in range 0 to"]),
                (["data", "gen", "criteo"], ["--out"]),
                (["data", "gen", "criteo", "--examples", "0", "--out", "x"], ["--examples"]),
                (["inspect"], ["path"])):
            with self.subTest(arguments=arguments):
                done = self.flux(*arguments, code=None)
                self.assert_refused(done, *words)
                self.assertRegex(done.err, r"try 'flux( [a-z]+)* --help'\n\Z")
                self.assertEqual(done.out, "")

    def test_wrong_jobs_and_settings(self) -> None:
        (self.folder / "bad.yaml").write_text("name: x\nepoch: 3\n")
        write_data(self.folder / "train.tsv", 20)
        for arguments, words in (
                (["run", "nowhere.yaml"], ["nowhere.yaml", "No such file"]),
                (["run", "."], ["."]),
                (["check", "bad.yaml"], ["bad.yaml:2:1", "epoch", "did you mean 'epochs'?"]),
                (["run", *self.job(), "--set", "epochs"], ["--set epochs", "'='"]),
                (["run", *self.job(), "--set", "epochs=two"], ["--set epochs=two"]),
                (["run", *self.job(), "--set", "data.bacth=3"], ["did you mean 'batch'?"]),
                (["run", *self.job(data__train="nowhere.tsv")], ["nowhere.tsv"]),
                (["run", *self.job(data__train="nowhere*.tsv")], ["nowhere*.tsv"]),
                (["run", *self.job(output="train.tsv")], ["train.tsv"]),
                (["eval", *self.job()], ["nothing to evaluate on", "data.test"]),
                (["eval", *self.job(data__test="train.tsv", output="none")],
                 ["no checkpoint in none/checkpoints", "flux run"]),
                (["predict", *self.job(output="none"), "--input", "train.tsv"],
                 ["no checkpoint in none/checkpoints"]),
                (["inspect", "nowhere"], ["nowhere does not exist"]),
                (["inspect", "."], ["no checkpoint in ."])):
            with self.subTest(arguments=arguments):
                done = self.flux(*arguments, code=None)
                self.assert_refused(done, *words)

    def test_missing_test_data_is_told_before_training(self) -> None:
        write_data(self.folder / "train.tsv", 20)
        done = self.flux("run", *self.job(data__test="nowhere.tsv"), code=None)
        self.assert_refused(done, "nowhere.tsv")
        self.assertEqual(list((self.folder / "out").rglob("manifest.json")), [])

    def test_fresh_keeps_the_model_if_there_is_no_data(self) -> None:
        write_data(self.folder / "train.tsv", 20)
        self.flux("run", *self.job())
        for fields in ({"data__train": "nowhere.tsv"}, {"data__test": "nowhere.tsv"}):
            done = self.flux("run", *self.job(**fields), "--fresh", code=None)
            self.assert_refused(done, "nowhere.tsv")
        self.assertIn("nothing to train", self.flux("run", *self.job()).out)

    def test_long_number_is_no_checkpoint(self) -> None:
        folder = self.folder / ("9" * 40)
        folder.mkdir()
        (folder / "manifest.json").write_text("{}")
        self.assert_refused(self.flux("inspect", folder.name, code=None), "not named like")

    def test_check_and_schema(self) -> None:
        for name in ("counting", "ctr_dnn", "lr"):
            self.assertIn("good", self.flux("check", example(name)).out)
        golden = (SOURCE / "tests/golden/job_schema.json").read_text()
        self.assertEqual(self.flux("schema").out.strip(), golden.strip())

    def test_run_again(self) -> None:
        write_data(self.folder / "train.tsv", 200)
        first = self.flux("run", *self.job(data__test="train.tsv"))
        self.assertNotIn("nothing to train", first.out)
        again = self.flux("run", *self.job(data__test="train.tsv"))
        self.assertIn("every pass of this job is closed: nothing to train", again.out)
        self.assertIn("resumed from out/checkpoints/", again.out)
        self.assertIn("test: 200 examples", again.out)

    def test_leftovers_are_removed_though_nothing_is_trained(self) -> None:
        """What a kill after the last checkpoint leaves behind; a person's own files stay."""
        write_data(self.folder / "train.tsv", 20)
        self.flux("run", *self.job())
        ours = ("curve.tsv.tmp", "curve.svg.tmp", "summary.json.tmp",
                "geometry/pass-00000.json.tmp")
        for name in (*ours, "notes.tmp"):
            (self.folder / "out" / name).write_text("half")
        self.assertIn("nothing to train", self.flux("run", *self.job()).out)
        left = [path.name for path in (self.folder / "out").rglob("*.tmp")]
        self.assertEqual(left, ["notes.tmp"])

    def test_output_in_use(self) -> None:
        write_data(self.folder / "train.tsv", 1000)
        command = ["run", *self.job(epochs=60000)]
        running = self.start(*command)
        self.assertIsNotNone(running.wait_line("batches of"))
        for extra in ([], ["--fresh"]):
            done = self.flux(*command, *extra, code=None)
            self.assert_refused(done, "output folder out is in use by process "
                                f"{running.process.pid}", "--set output=DIR")
        self.assertIsNone(running.process.poll(), "the first was disturbed")
        running.kill()
        self.flux("run", *self.job(epochs=1), "--fresh")  # the lock went with its holder

    def test_pipe_gets_plain_lines(self) -> None:
        write_data(self.folder / "train.tsv", 500)
        done = self.flux("run", *self.job(epochs=20))
        for line in done.out.split("\n"):
            self.assertTrue(line.isprintable() or line == "", repr(line))
        self.assertIn("10,000/10,000 applied once", done.out)
        self.assertEqual(done.err, "")

    def test_terminal_gets_a_bar(self) -> None:
        write_data(self.folder / "train.tsv", 1000)
        ours, its = pty.openpty()
        process = subprocess.Popen(
            [str(FLUX), "run", *self.job(epochs=60000)], cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=its, stderr=its)
        self.addCleanup(process.kill)
        os.close(its)
        text = ""
        while BAR not in text:
            text += os.read(ours, 4096).decode()
        process.terminate()
        while True:
            try:
                text += os.read(ours, 4096).decode()
            except OSError:  # the other side is closed
                break
        os.close(ours)
        self.assertEqual(process.wait(60), 130, text)
        self.assertRegex(text, r"\r\x1b\[K\[#*\.*\] +\d+\.\d%  [\d,]+ examples/s")
        # Lines that stay are not torn by the bar.
        self.assertRegex(text, r"(?m)^(\r\x1b\[K)?examples [\d,]+/[\d,]+ applied once")

    def test_output_that_cannot_be_written(self) -> None:
        write_data(self.folder / "train.tsv", 20)
        for arguments in (["--help"], ["--version"], ["schema"], ["models"], ["man"],
                          ["check", example("lr")], ["graph", example("lr")],
                          ["data", "head", "train.tsv"], ["data", "stats", "train.tsv"],
                          ["run", *self.job()]):
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                done = subprocess.run(
                    [str(FLUX), *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                    stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, r"\Aflux: (standard output cannot be written|"
                                 r".*No space left on device)")

    def test_summary_that_cannot_be_written(self) -> None:
        write_data(self.folder / "train.tsv", 50)
        done = self.flux("run", *self.job(), "--summary", "/dev/full/x.json", code=None)
        self.assert_refused(done, "/dev/full/x.json")


if __name__ == "__main__":
    unittest.main()
