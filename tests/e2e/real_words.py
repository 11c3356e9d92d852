"""tools/prepare_words.py against a stand-in for the 1-billion-word set."""

from __future__ import annotations

import collections
import gzip
import random
import unittest

from _prepare import PrepareCase

TRAIN = "set/training-monolingual.tokenized.shuffled/news.en-{:05}-of-00100"
HELDOUT = "set/heldout-monolingual.tokenized.shuffled/news.en.heldout-{:05}-of-00050"
JOB = """name: words
output: model
threads: 1
shards: 2
tables:
  - {name: vector, dim: 8, init: uniform, init_scale: 0.005, optimizer: {rule: sgd, lr: 1}}
model:
  layers:
    - {name: loss, op: skip_gram_loss, table: vector, window: 5, per_pair: 5, share: 4}
"""


class Words(PrepareCase):
    def setUp(self) -> None:
        super().setUp()
        draw = random.Random(1)
        words = [f"w{n}" for n in range(60)] + ["Stra\u00dfe", ",", "."]
        self.shards: dict[str, str] = {}
        for name in [TRAIN.format(n) for n in (1, 2, 3)] + [HELDOUT.format(0)]:
            lines = [" ".join(draw.choices(words, k=draw.randint(3, 12))) for _ in range(100)]
            self.shards[name] = "\n".join(lines) + "\n"
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.shards[name])
        self.train = "".join(text for name, text in self.shards.items() if "training" in name)

    def prepare(self, *options: str) -> str:
        return self.tool("words", "set", "out", "--shards", "1-3", *options).out

    def check_vocabulary(self, least: int) -> None:
        counts = collections.Counter(self.train.split())
        expected = {word: n for word, n in counts.items() if n >= least}
        lines = (self.folder / "out/vocab.txt").read_text().splitlines()
        self.assertEqual({word: int(n) for word, n in map(str.split, lines)}, expected)

    def test_shards_are_linked_and_words_counted(self) -> None:
        told = self.prepare("--min-count", "7")
        linked = sorted((self.folder / "out/train").iterdir())
        self.assertEqual([path.resolve().name for path in linked],
                         [f"news.en-{n:05}-of-00100" for n in (1, 2, 3)])
        self.assertEqual("".join(path.read_text() for path in linked), self.train)
        self.assertEqual(len(list((self.folder / "out/heldout").iterdir())), 1)
        self.check_vocabulary(7)
        section = (self.folder / "out/data.yaml").read_text()
        self.assertIn(section, told)
        (self.folder / "job.yaml").write_text(section + JOB)
        self.flux("run", "job.yaml")
        self.assertEqual(self.summary("model")["applied_once"], 300)

    def test_compressed(self) -> None:
        self.prepare("--gz")
        packed = sorted((self.folder / "out/train").iterdir())
        self.assertEqual(b"".join(gzip.decompress(path.read_bytes()) for path in packed).decode(),
                         self.train)
        self.check_vocabulary(5)

    def test_what_is_finished_is_not_made_again(self) -> None:
        self.prepare("--gz")
        shard = self.folder / "out/train/news.en-00002-of-00100.txt.gz"
        before = self.stamps(self.folder / "out/train")
        told = self.prepare("--gz")
        self.assertEqual(told.count("finished before"), 5)
        self.assertEqual(self.stamps(self.folder / "out/train"), before)
        # A changed source, and with it the vocabulary, is made again; the others are not.
        changed = self.shards[TRAIN.format(2)] + "zebra zebra zebra zebra zebra\n"
        (self.folder / TRAIN.format(2)).write_text(changed)
        self.assertEqual(self.prepare("--gz").count("finished before"), 3)
        self.assertEqual(gzip.decompress(shard.read_bytes()).decode(), changed)
        self.assertIn("zebra 5\n", (self.folder / "out/vocab.txt").read_text())

    def test_a_wrong_layout_is_named(self) -> None:
        (self.folder / "set.tar.gz").write_bytes(b"")
        for arguments, words in (
                (["nowhere", "out"], ("nowhere/training", "no such folder", "r13output")),
                (["set.tar.gz", "out"], ("set.tar.gz: a file; unpack it",)),
                (["set", "out"], ("news.en-00004-of-00100 and 95 more missing",)),
                (["set", "out", "--shards", "0-3"], ("--shards 0-3: write it as 1-99",)),
                (["set", "out", "--shards", "3-1"], ("--shards 3-1",)),
                (["set", "out", "--shards", "1", "--heldout", "1"],
                 ("news.en.heldout-00001-of-00050 missing",)),
                (["set", "out", "--shards", "1", "--min-count", "0"], ("--min-count 0",))):
            with self.subTest(arguments=arguments):
                self.refused("words", *arguments, words=words)
        self.assertFalse((self.folder / "out").exists())

    def test_damaged_shards_are_named(self) -> None:
        path = self.folder / TRAIN.format(2)
        good = path.read_bytes()
        for data, words in (
                (b"a b\nc \xff d\n" + good, ("00002-of-00100:2:3: byte 0xff is not UTF-8",)),
                (b"a b\nc d \xc3", ("00002-of-00100:2:5: byte 0xc3 is not UTF-8",)),
                (good + b"a\0b\n", ("00002-of-00100:101:2: a NUL byte",)),
                (b"", ("00002-of-00100: empty",)),
                (b"x" * (6 << 20), ("00002-of-00100:1: a line of more than",)),
                (gzip.compress(good)[:-9], ("00002-of-00100: gzip data is damaged",))):
            with self.subTest(words=words):
                path.write_bytes(data)
                self.refused("words", "set", "out", "--shards", "1-3", words=words)
                self.assertFalse((self.folder / "out/vocab.txt").exists())
                self.assertFalse((self.folder / "out/train/news.en-00002-of-00100.txt").exists())


if __name__ == "__main__":
    unittest.main()
