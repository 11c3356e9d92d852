"""word2vec from text to vectors: words of one topic of a made language end up side by side."""

from __future__ import annotations

import json
import math
import unittest
from pathlib import Path

from _support import Case
from _words import FOLDER, JOB, make_corpus

SENTENCES, VOCABULARY, TOPICS = 40_000, 2_000, 20
QUERIES = 150
PRECISION = 0.80  # of the 10 nearest words; by chance 1 / TOPICS
SMALLER = ("tables.0.dim=64", "epochs=4")


def read_vectors(path: Path) -> tuple[list[str], list[list[float]]]:
    lines = path.read_text().splitlines()
    count, dim = map(int, lines[0].split())
    words, vectors = [], []
    for line in lines[1:]:
        word, *numbers = line.split()
        assert len(numbers) == dim
        vector = [float(number) for number in numbers]
        norm = math.sqrt(sum(x * x for x in vector)) or 1.0
        words.append(word)
        vectors.append([x / norm for x in vector])
    assert len(words) == count
    return words, vectors


def precision_at_10(path: Path, truth: dict[str, str]) -> float:
    """Share of the nearest words that are of a word's own topic, for some of all words."""
    words, vectors = read_vectors(path)
    known = [i for i, word in enumerate(words) if truth[word] != "-"]
    hits = 0
    queries = known[:: max(1, len(known) // QUERIES)]
    for q in queries:
        scores = [(sum(map(float.__mul__, vectors[q], vectors[i])), i) for i in known if i != q]
        nearest = sorted(scores, reverse=True)[:10]
        hits += sum(truth[words[i]] == truth[words[q]] for _, i in nearest)
    return hits / (10 * len(queries))


class Word2vec(Case):
    def make_corpus(self, sentences: int) -> dict[str, str]:
        return make_corpus(self, sentences, VOCABULARY, TOPICS)

    def run_model(self, output: str, *arguments: str) -> Path:
        sets = [word for value in (*SMALLER, f"output={output}") for word in ("--set", value)]
        self.flux("run", JOB, *sets, *arguments)
        out = self.folder / output / "vectors.txt"
        self.flux("vectors", JOB, *sets, "--out", str(out))
        return out

    def test_words_of_a_topic_are_neighbours(self) -> None:
        truth = self.make_corpus(SENTENCES)
        vectors = self.run_model("out/w")
        self.assert_exact("out/w", SENTENCES * 4)
        found = precision_at_10(vectors, truth)
        print(f"precision at 10: {found:.3f}")
        self.assertGreaterEqual(found, PRECISION)

    def test_a_cluster_trains_it_too(self) -> None:
        truth = self.make_corpus(SENTENCES // 2)
        vectors = self.run_model("out/c", "--servers", "2", "--workers", "2")
        self.assert_exact("out/c", SENTENCES // 2 * 4)
        self.assertGreaterEqual(precision_at_10(vectors, truth), 0.4)

    def test_the_same_bits_every_time(self) -> None:
        self.make_corpus(2000)
        deterministic = ("--set", "deterministic=true")
        first = self.run_model("out/1", *deterministic).read_text()
        self.assertEqual(first, self.run_model("out/2", *deterministic).read_text())

    def test_a_model_has_one_loss_whoever_evaluates_it(self) -> None:
        self.make_corpus(1000)
        self.assertIn("the job is right", self.flux("run", JOB, "--smoke", "3").out)
        same = ("--set", "output=out", "--set", "epochs=1", "--set", "deterministic=true",
                "--set", f"data.test={FOLDER}/train.txt")
        evaluated = []
        for fresh in (["--fresh"], []):
            self.flux("run", JOB, *same, *fresh)
            evaluated.append(self.summary("out")["test"])
        evaluated.append(json.loads(self.flux("eval", JOB, *same, "--json").out))
        self.assertGreater(evaluated[0]["loss"], 0)
        for other in evaluated[1:]:
            self.assertAlmostEqual(other["loss"], evaluated[0]["loss"], delta=1e-9)

    def test_what_is_wrong_is_said(self) -> None:
        folder = self.folder / FOLDER
        folder.mkdir(parents=True)
        (folder / "train.txt").write_text("a b c\n")
        self.assert_refused(self.flux("run", JOB, code=None), "vocab.txt")
        (folder / "vocab.txt").write_text("a 1\nb two\n")
        self.assert_refused(self.flux("run", JOB, code=None), "vocab.txt:2:3", "'two' is no count")
        self.assert_refused(
            self.flux("data", "vocab", str(folder / "train.txt"), "--out", "v", code=None),
            "no word comes at least 5 times", "--min-count")
        (folder / "vocab.txt").write_text("a 1\nb 2\n")
        self.assert_refused(self.flux("vectors", JOB, code=None), "no checkpoint")
        odd = self.flux("check", JOB, "--set", "tables.0.dim=101", code=None)
        self.assert_refused(odd, "word2vec.yaml:", "skip_gram_loss", "must be even, got 101")


if __name__ == "__main__":
    unittest.main()
