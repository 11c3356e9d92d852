"""Where a person sends things: pipes, devices, links, full disks, and readers beside a run."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
import unittest
from pathlib import Path

from _support import DEADLINE_S, FLUX, Case, Done, write_data


class OddOutputs(Case):
    def job(self, **settings: object) -> list[str]:
        fields: dict[str, object] = {
            "data.train": "train.tsv", "data.test": "train.tsv", "output": "out", "shards": 4,
            "data.batch": 20}
        fields.update({key.replace("__", "."): value for key, value in settings.items()})
        out = [str(self.source / "examples" / "lr" / "job.yaml")]
        for key, value in fields.items():
            out += ["--set", f"{key}={value}"]
        return out

    @property
    def source(self) -> Path:
        return Path(os.environ["FLUX_SOURCE_DIR"])

    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "train.tsv", 400)

    def test_predictions_into_a_pipe_and_behind_a_link(self) -> None:
        self.flux("run", *self.job())
        os.mkfifo(self.folder / "pipe")
        got: list[str] = []
        reader = threading.Thread(
            target=lambda: got.extend((self.folder / "pipe").read_text().splitlines()))
        reader.start()
        self.flux("predict", *self.job(), "--out", "pipe")
        reader.join(60)
        self.assertEqual(len(got), 400)
        os.symlink("real.txt", self.folder / "link.txt")
        self.flux("predict", *self.job(), "--out", "link.txt")
        self.assertTrue((self.folder / "link.txt").is_symlink())
        self.assertEqual((self.folder / "real.txt").read_text().splitlines(), got)

    def test_made_data_on_standard_output(self) -> None:
        for kind in (["criteo"], ["feasign", "--kind", "tasks"], ["corpus"]):
            make = ["data", "gen", *kind, "--examples", "300"]
            self.flux(*make, "--out", "made.txt")
            plain = (self.folder / "made.txt").read_text()
            for out in ("-", "/dev/stdout"):
                with self.subTest(kind=kind[0], out=out):
                    done = self.flux(*make, "--out", out)
                    self.assertEqual(done.out, plain)
                    self.assertIn("300 ", done.err, "what is told is not among the lines")
        self.assertFalse((self.folder / "-").exists())
        self.assert_refused(self.flux("data", "gen", "criteo", "--hours", "2", "--out", "-",
                                      code=None), "--out has to be a folder")

    def test_a_full_disk_is_told(self) -> None:
        self.flux("run", *self.job())
        done = self.flux("predict", *self.job(), "--out", "/dev/full", code=None)
        self.assert_refused(done, "/dev/full", "No space left", code=1)

    def limited(self, *arguments: str) -> Done:
        """Runs flux where a file may have 8 KiB, as under `ulimit -f` or a quota."""
        limit = 8 << 10
        done = subprocess.run(
            [str(FLUX), *arguments], cwd=self.folder, capture_output=True, text=True,
            timeout=DEADLINE_S,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        return Done(done.returncode, done.stdout, done.stderr)

    def test_a_file_that_may_not_grow_is_told(self) -> None:
        (self.folder / "words.txt").write_text(" ".join(f"word{i}" for i in range(2000)))
        convert = ("data", "convert", "train.tsv", "--to")
        commands = [(*convert, "csv", "--out", "a.csv"), (*convert, "feasign", "--out", "a.gz"),
                    (*convert, "blocks", "--out", "a.blocks"),
                    ("data", "gen", "criteo", "--examples", "1000", "--out", "a.tsv"),
                    ("data", "vocab", "words.txt", "--min-count", "1", "--out", "v.txt")]
        if (FLUX.parent / "flux_parquet.so").exists():
            commands.append((*convert, "parquet", "--out", "a.parquet"))
        for command in commands:
            with self.subTest(" ".join(command)):
                self.assert_refused(self.limited(*command), f"{command[-1]}.tmp",
                                    "File too large", code=1)
                self.assertEqual(list(self.folder.glob(f"{command[-1]}*")), [], "left over")

    def test_readers_beside_a_run(self) -> None:
        running = self.start("run", *self.job(epochs=3000, checkpoint__every_s=0.02,
                                              checkpoint__keep=1))
        self.wait_checkpoint("out", running, '"open_pass"')
        for _ in range(10):
            self.flux("eval", *self.job())
        running.signal(signal.SIGHUP)
        done = running.finish()
        self.assertIn("lost 0 · doubled 0", done.text)

    def test_a_bad_test_file_leaves_a_counted_model(self) -> None:
        good = (self.folder / "train.tsv").read_text()
        (self.folder / "bad.tsv").write_text(good + "nonsense\n")  # behind what is looked at first
        done = self.flux("run", *self.job(data__test="bad.tsv"), code=None)
        self.assert_refused(done, "bad.tsv:401:9", "the model is saved")
        self.assertIn("400/400 applied once", done.out)
        self.flux("eval", *self.job())

    def test_fresh_forgets_only_for_good_data(self) -> None:
        self.flux("run", *self.job())
        (self.folder / "empty.tsv").write_text("")
        done = self.flux("run", *self.job(data__train="empty.tsv"), "--fresh", code=None)
        self.assert_refused(done, "empty.tsv")
        self.flux("eval", *self.job())
        (self.folder / "bad.tsv").write_text("nonsense\n" + (self.folder / "train.tsv").read_text())
        for more in ((), ("--servers", "1", "--workers", "1")):
            done = self.flux("run", *self.job(data__train="bad.tsv"), "--fresh", *more, code=None)
            self.assertEqual(done.code, 2, done.text)
            self.assertIn("bad.tsv:1:9: ", done.text)
            self.flux("eval", *self.job())

    def test_data_changed_in_place(self) -> None:
        running = self.start("run", *self.job(epochs=3000, checkpoint__every_s=0.02))
        self.wait_checkpoint("out", running, '"open_pass"')
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().code, 130)
        train = self.folder / "train.tsv"
        good = train.read_text()
        train.write_text(good.replace("\n0\t", "\n1\t"))
        done = self.flux("run", *self.job(epochs=3000), code=None)
        self.assert_refused(done, "train.tsv: its content has changed")
        train.write_text(good)  # written again, but the same
        again = self.start("run", *self.job(epochs=3000, checkpoint__every_s=0))
        self.assertIsNotNone(again.wait_line("already applied"))
        again.signal(signal.SIGINT)
        self.assertIn("lost 0 · doubled 0", again.finish().text)


if __name__ == "__main__":
    unittest.main()
