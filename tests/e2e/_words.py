"""A made corpus with its vocabulary, where models/word2vec.yaml looks for them."""

from __future__ import annotations

from _support import SOURCE, Case

JOB = str(SOURCE / "models" / "word2vec.yaml")
FOLDER = "data/made/corpus"


def make_corpus(case: Case, sentences: int, vocabulary: int, topics: int) -> dict[str, str]:
    """Which topic each word belongs to."""
    case.flux("data", "gen", "corpus", "--examples", str(sentences), "--vocabulary",
              str(vocabulary), "--topics", str(topics), "--out", f"{FOLDER}/train.txt",
              "--truth", f"{FOLDER}/truth.tsv")
    case.flux("data", "vocab", f"{FOLDER}/train.txt", "--out", f"{FOLDER}/vocab.txt")
    text = (case.folder / FOLDER / "truth.tsv").read_text()
    return dict(line.split("\t") for line in text.splitlines())
