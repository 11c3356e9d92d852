"""tools/prepare_criteo.py against stand-ins: it writes what was there, checked and split."""

from __future__ import annotations

import fcntl
import gzip
import signal
import subprocess
import unittest
from pathlib import Path

from _prepare import PrepareCase, criteo_lines


class Kaggle(PrepareCase):
    def setUp(self) -> None:
        super().setUp()
        self.lines = criteo_lines(700, 1)
        (self.folder / "train.txt").write_text("".join(self.lines))

    def text(self, folder: str) -> str:
        """All of a folder of the output, in the order of its names."""
        found = []
        for path in sorted((self.folder / folder).iterdir()):
            data = path.read_bytes()
            found.append(gzip.decompress(data) if path.suffix == ".gz" else data)
        return b"".join(found).decode()

    def test_the_last_part_is_the_test_set(self) -> None:
        done = self.tool("criteo", "train.txt", "out", "--part-lines", "250")
        self.assertEqual(self.text("out/train"), "".join(self.lines[:600]))
        self.assertEqual(self.text("out/test"), "".join(self.lines[600:]))
        self.assertEqual(len(list((self.folder / "out/train").iterdir())), 3)
        self.assertIn((self.folder / "out/data.yaml").read_text(), done.out)
        self.assertIn("out/train/part-0002.tsv: 100 lines", done.out)
        self.trains_on("out", 600)

    def test_compressed_in_and_out(self) -> None:
        packed = self.folder / "train.txt.gz"
        packed.write_bytes(gzip.compress("".join(self.lines).encode().removesuffix(b"\n")))
        out = "an odd: name #1"
        self.tool("criteo", "train.txt.gz", out, "--gz", "--test-share", "0.5")
        self.assertEqual(self.text(f"{out}/train"), "".join(self.lines[:350]))
        self.assertEqual(self.text(f"{out}/test"), "".join(self.lines[350:]))
        self.trains_on(out, 350)

    def test_blocks(self) -> None:
        self.tool("criteo", "train.txt", "out", "--blocks", "--part-lines", "400")
        names = sorted(path.name for path in (self.folder / "out/train").iterdir())
        self.assertEqual(names, ["part-0000.blocks", "part-0001.blocks"])
        self.assertEqual(sorted(path.name for path in (self.folder / "out").iterdir()),
                         ["data.yaml", "prepared.json", "test", "train"])
        self.trains_on("out", 600)

    def test_what_is_finished_is_not_made_again(self) -> None:
        options = ["train.txt", "out", "--part-lines", "100", "--gz"]
        self.tool("criteo", *options)
        train, test = self.folder / "out/train", self.folder / "out/test"
        lost = train / "part-0003.tsv.gz"
        expected = lost.read_bytes()
        lost.unlink()
        (train / "part-0003.tsv.gz.tmp").write_bytes(expected[:50])  # of a run that was killed
        before = self.stamps(train, test)
        del before[train / "part-0003.tsv.gz.tmp"]
        done = self.tool("criteo", *options)
        self.assertEqual(lost.read_bytes(), expected)
        after = self.stamps(train, test)
        del after[lost]
        self.assertEqual(after, before)
        self.assertEqual(done.out.count("finished before"), 6)

    def test_killed_and_run_again(self) -> None:
        command = self.command("criteo", "train.txt", "out", "--part-lines", "20")
        running = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.addCleanup(running.kill)
        assert running.stdout is not None
        for line in running.stdout:
            if "part-0001" in line:
                break
        running.send_signal(signal.SIGKILL)
        running.communicate()
        for path in (self.folder / "out").glob("t*/*.tsv"):  # whole, or not there
            self.assertEqual(path.read_text().count("\n"), 20, path)
        self.tool("criteo", "train.txt", "out", "--part-lines", "20")
        self.assertEqual(self.text("out/train") + self.text("out/test"), "".join(self.lines))

    def test_one_run_at_a_time(self) -> None:
        self.tool("criteo", "train.txt", "out")
        with (self.folder / "out/prepared.json").open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.refused("criteo", "train.txt", "out", words=("out: another run is at work",))
        self.tool("criteo", "train.txt", "out")

    def test_damaged_inputs_are_named(self) -> None:
        good = self.lines[0].rstrip("\n").split("\t")

        def changed(at: int, value: str) -> bytes:
            return "\t".join([*good[:at], value, *good[at + 1:]]).encode() + b"\n"

        def column(at: int) -> int:
            return len("\t".join(good[:at])) + 2 if at else 1

        first = "".join(self.lines[:5]).encode()
        bad_lines: list[tuple[bytes, tuple[str, ...]]] = [
            ("\t".join(good[1:]).encode() + b"\n", ("in:6:", "39 fields", "test.txt has none")),
            (changed(39, "ab\t1"), ("in:6:", "41 fields", "expected 40")),
            (changed(0, "2"), ("in:6:1: label is '2'", "0 or 1")),
            (changed(0, "nan"), ("in:6:1: label is 'nan'",)),
            (changed(3, "n/a"), (f"in:6:{column(3)}: I3 is 'n/a'",)),
            (changed(14, "123456789"), (f"in:6:{column(14)}: C1 is '123456789'", "8 hex")),
            (changed(39, "wxyz"), (f"in:6:{column(39)}: C26 is 'wxyz'",)),
            (changed(20, "\r"), ("in:6:", "C7")),
            (b"\n", ("in:6:1: 1 fields", "expected 40")),
            (b"\xff\xfe\n", ("in:6:3: 1 fields",)),
        ]
        files: list[tuple[bytes, tuple[str, ...]]] = [
            (b"", ("in: empty",)),
            (first + b"x" * (6 << 20), ("in:6: a line of more than",)),
            (gzip.compress(first * 1000)[:-2000], ("in: gzip data is damaged after",)),
            (gzip.compress(first)[:-4] + b"\0\0\0\0", ("in: gzip data is damaged after",)),
            (self.lines[0].encode(), ("a single line",)),
        ]
        cases = [(first + bad + first * 5, words) for bad, words in bad_lines] + files
        for number, (data, words) in enumerate(cases):
            with self.subTest(words=words):
                (self.folder / "in").write_bytes(data)
                self.refused("criteo", "in", f"out{number}", words=words)
                self.assertEqual(list((self.folder / f"out{number}").glob("t*/*")), [])

    def test_wrong_options(self) -> None:
        (self.folder / "full").mkdir()
        (self.folder / "full" / "mine").write_text("")
        self.tool("criteo", "train.txt", "made")
        for options, words in (
                (["nowhere.txt", "out"], ("nowhere.txt: No such file",)),
                (["train.txt", "full"], ("full: not empty", "another folder")),
                (["train.txt", "train.txt"], ("train.txt: not a folder",)),
                (["train.txt", "made", "--gz"], ("made: was prepared with other form",)),
                (["train.txt", "made", "--test-share", "0.1"], ("other test share",)),
                (["train.txt", "out", "--test-share", "1"], ("--test-share 1",)),
                (["train.txt", "out", "--part-lines", "0"], ("--part-lines 0", "at least 1")),
                (["train.txt", "out", "--gz", "--blocks"], ("--gz and --blocks",))):
            with self.subTest(options=options):
                self.refused("criteo", *options, words=words)
        self.refused("criteo", "train.txt", "out", "--blocks", "--flux", "none",
                     words=("none: no such program",))


class Terabyte(PrepareCase):
    def setUp(self) -> None:
        super().setUp()
        self.days = ["".join(criteo_lines(60 + day, day)).encode() for day in range(4)]
        self.tera = self.folder / "tera"
        self.tera.mkdir()
        for day, data in enumerate(self.days):
            self.write_day(day, data)

    def write_day(self, day: int, data: bytes) -> None:
        (self.tera / f"day_{day}.gz").write_bytes(gzip.compress(data))

    def prepare(self, out: str, *options: str) -> list[Path]:
        self.tool("criteo", "tera", out, "--days", "0-3", "--jobs", "2", *options)
        return sorted((self.folder / out).glob("t*/*"))

    def test_days_are_linked_or_written(self) -> None:
        linked = self.prepare("linked", "--gz")
        self.assertEqual([path.name for path in linked],
                         ["day_03.tsv.gz", "day_00.tsv.gz", "day_01.tsv.gz", "day_02.tsv.gz"])
        self.assertEqual(linked[1].resolve(), (self.tera / "day_0.gz").resolve())
        plain = self.prepare("plain", "--test-days", "2")
        self.assertEqual([path.read_bytes() for path in plain],
                         [self.days[day] for day in (2, 3, 0, 1)])
        self.trains_on("linked", 60 + 61 + 62)
        self.trains_on("plain", 60 + 61)

    def test_blocks(self) -> None:
        (self.tera / "day_2.gz").unlink()
        (self.tera / "day_2").write_bytes(self.days[2])  # unpacked ones are fine, too
        self.assertEqual(len(self.prepare("out", "--blocks")), 4)
        self.trains_on("out", 60 + 61 + 62)

    def test_a_bad_day_is_mended(self) -> None:
        bad = self.days[1].replace(b"\n", b"\textra\n", 1)
        self.write_day(1, bad)
        options = ["tera", "out", "--days", "0-3", "--jobs", "1"]
        self.refused("criteo", *options, words=("day_1.gz:1:", "41 fields"))
        first = self.folder / "out/train/day_00.tsv"
        made = first.stat().st_mtime_ns
        self.assertFalse((self.folder / "out/train/day_01.tsv").exists())
        self.write_day(1, self.days[1])
        done = self.tool("criteo", *options)
        self.assertIn("day_00.tsv: finished before", done.out)
        self.assertEqual(first.stat().st_mtime_ns, made)
        self.assertEqual((self.folder / "out/train/day_01.tsv").read_bytes(), self.days[1])
        # A source that changed later is prepared again.
        self.write_day(0, self.days[2])
        self.tool("criteo", *options)
        self.assertEqual(first.read_bytes(), self.days[2])

    def test_a_wrong_layout_is_named(self) -> None:
        (self.folder / "empty").mkdir()
        self.refused("criteo", "empty", "out", words=("empty: no day_0.gz .. day_23.gz",))
        (self.folder / "empty/train.txt").write_text("")
        self.refused("criteo", "empty", "out", words=("name the file empty/train.txt",))
        self.refused("criteo", "tera", "out", words=("day_4.gz, day_5.gz", "--days FIRST-LAST"))
        self.refused("criteo", "tera", "out", "--days", "0-24", words=("--days 0-24: write it as",))
        self.refused("criteo", "tera", "out", "--days", "x", words=("--days x",))
        self.refused("criteo", "tera", "out", "--days", "0-3", "--test-days", "4",
                     words=("leaves none to train on",))
        (self.tera / "day_1").write_bytes(b"")
        self.refused("criteo", "tera", "out", "--days", "0-3", words=("day_1.gz too",))


if __name__ == "__main__":
    unittest.main()
