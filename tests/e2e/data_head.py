"""flux data head reads what it shows, and what it shows can be read."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import unittest

from _support import SMALLEST_MODEL, Case
from _words import JOB as WORDS
from _words import make_corpus

LINES = [f"{i % 2} user:{i} price:0.5\n" for i in range(20000)]


class DataHead(Case):
    def head(self, *arguments: str) -> list[str]:
        return self.flux("data", "head", *arguments).out.splitlines(keepends=True)

    def test_a_packed_file_that_is_damaged_further_behind(self) -> None:
        text = "".join(LINES).encode()
        packed = {"a.gz": gzip.compress(text, mtime=0)}
        if shutil.which("zstd"):
            packed["a.zst"] = subprocess.run(["zstd", "-c"], input=text, check=True,
                                             capture_output=True).stdout
        for name, data in packed.items():
            with self.subTest(name):
                middle = len(data) // 2
                changed = data[:middle] + b"\xff" * 64 + data[middle + 64:]
                (self.folder / name).write_bytes(changed)
                self.assertEqual(self.head(name, "-n", "7"), LINES[:7])
                (self.folder / name).write_bytes(data[:middle])
                self.assertEqual(self.head(name, "-n", "7"), LINES[:7])
                done = self.flux("data", "head", name, "-n", "20000", code=None)
                self.assert_refused(done, f"{name}: ", "is damaged at byte")
                shown = done.out.splitlines(keepends=True)
                self.assertGreater(len(shown), 100, "what comes before it is shown")
                self.assertEqual(shown, LINES[:len(shown)])

    def test_a_block_file_that_is_damaged_further_behind(self) -> None:
        (self.folder / "a.txt").write_text("".join(LINES))
        self.flux("data", "convert", "a.txt", "--out", "a.blocks")
        first = self.head("a.blocks", "-n", "512")
        data = bytearray((self.folder / "a.blocks").read_bytes())
        data[len(data) * 700 // len(LINES)] ^= 0xff  # of the second chunk: each has 512 records
        (self.folder / "a.blocks").write_bytes(data)
        self.assertEqual(self.head("a.blocks", "-n", "1"), first[:1])
        self.assertEqual(self.head("a.blocks", "-n", "512"), first)
        done = self.flux("data", "head", "a.blocks", "-n", "20000", code=None)
        self.assert_refused(done, "a.blocks: the chunk at byte", "(records 513 to 1024) is damaged")
        self.assertEqual(done.out.splitlines(keepends=True), first, "what comes before it is shown")

    def test_standard_input_is_refused(self) -> None:
        (self.folder / "-").write_text("".join(LINES))
        for command in ("head", "stats", "validate"):
            self.assert_refused(self.flux("data", command, "-", code=None),
                                "standard input is not read", "./-")
        self.assertEqual(self.head("./-", "-n", "1"), LINES[:1])

    def test_a_pipe_that_never_ends(self) -> None:
        (self.folder / "a.txt").write_text("1 user:7\n")
        (self.folder / "job.yaml").write_text(
            "data: {format: feasign, train: [a.txt], slots: [{name: user}], "
            "pipe: [yes, '1 user:7']}" + SMALLEST_MODEL)
        self.assertEqual(self.head("--job", "job.yaml", "-n", "3"), ["1 user:7\n"] * 3)

    def test_over_several_files(self) -> None:
        for name, part in (("a.txt", LINES[:4]), ("b.txt", LINES[4:9]), ("c.txt", ["nonsense\n"])):
            (self.folder / name).write_text("".join(part))
        self.assertEqual(self.head("a.txt", "b.txt", "c.txt", "-n", "9"), LINES[:9])
        self.assertEqual(self.head("a.txt", "-n", "9"), LINES[:4])

    def test_sentences_are_shown_as_they_are(self) -> None:
        make_corpus(self, 1000, 200, 5)
        (self.folder / "s.txt").write_text("the old house\nby the sea\nwithout a newline")
        arguments = ("--job", WORDS, "s.txt")
        self.assertEqual(self.head(*arguments, "-n", "2"), ["the old house\n", "by the sea\n"])
        self.assertEqual(self.head(*arguments)[2:], ["without a newline\n"])
        (self.folder / "s.txt").write_bytes(b"good words\nbad \xff words\n")
        done = self.flux("data", "head", *arguments, code=None)
        self.assert_refused(done, "s.txt:2:5: ")
        self.assertEqual(done.out, "good words\n")
        self.assert_refused(self.flux("data", "stats", *arguments, code=None),
                            "flux data head shows them")

    def test_records_of_numbers_are_feasign_again(self) -> None:
        """Whatever they came from; texts are escaped, so that a line can still be told apart."""
        (self.folder / "a.csv").write_text("label,sid,user,tags,price\n1,7,3,5|9,0.25\n0,8,4,,2\n")
        shown = self.head("a.csv")
        self.assertEqual(shown, ["1 sid=7 user:3 tags:5 tags:9 price:0.25\n",
                                 "0 sid=8 user:4 price:2\n"])
        (self.folder / "b.txt").write_text("".join(shown))
        self.assertEqual(self.head("b.txt"), shown)
        (self.folder / "c.csv").write_text('label,the city\n1,a:b\\c\n0,"x y"\n')
        self.assertEqual(self.head("c.csv"), ["1 the\\x20city:a\\x3ab\\x5cc\n",
                                              "0 the\\x20city:x\\x20y\n"])

    def test_names_of_examples(self) -> None:
        lines = ["1 w=0.5 sid=7 user:3 price:0.25 id=a:7\n", "0 w=1 sid=8 user:4\n"]
        (self.folder / "a.txt").write_text("".join(lines))
        self.assertEqual(self.head("a.txt"), lines)
        (self.folder / "b.txt").write_text("1 0.5 'a7 |user 3\n0 1 |user 4\n")
        self.assertEqual(self.head("b.txt"), ["1 w=0.5 user:3 id=a7\n", "0 w=1 user:4\n"])
        (self.folder / "c.csv").write_text('label,user,id\n1,3,a b\\c\n0,4,\n')
        self.assertEqual(self.head("c.csv"), ["1 user:3 id=a\\x20b\\x5cc\n", "0 user:4\n"])

    def test_a_setting_needs_a_job(self) -> None:
        (self.folder / "a.txt").write_text("".join(LINES[:5]))
        for command in (["head"], ["stats"], ["validate"], ["convert", "--out", "b.blocks"]):
            done = self.flux("data", *command, "a.txt", "--set", "nonsense=1", code=None)
            self.assert_refused(done, "--set nonsense=1: ", "--job JOB")


if __name__ == "__main__":
    unittest.main()
