"""The part words: word2vec beside gensim, on the same sentences of a made language.

Both are run in turn, and each round gives a ratio of its own; the median of these is judged, so
that what the machine does meanwhile hits both sides of a ratio.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness import process
from harness.cases import last_json
from harness.data import peer_env
from harness.errors import BenchError
from harness.flux import ROOT, read_summary
from harness.ratio import Measure, Ratio, Side
from harness.targets import Target, at_least
from harness.text import markdown

DIM, EPOCHS = 100, 3
SENTENCES, QUICK_SENTENCES = 600_000, 60_000
RATIO = 2.0
QUALITY_SLACK = 0.005  # two runs of one program differ by about as much
PRECISION = Measure("precision at 10", slack=QUALITY_SLACK, digits=3)


@dataclass(frozen=True)
class Trained:
    words_per_s: float
    cpu_s: float
    precision: float
    mrr: float
    seed: int | None = None


@dataclass(frozen=True)
class Round:
    gensim: Trained
    flux: Trained


def _side(runs: Sequence[Trained], threads: int) -> Side:
    return Side(
        speeds=tuple(run.words_per_s for run in runs),
        threads=threads,
        seeds=tuple(run.seed for run in runs if run.seed is not None) or None,
        quality=median(run.precision for run in runs),
    )


def ratio_of(rounds: Sequence[Round], threads: int) -> Ratio:
    flux, gensim = [one.flux for one in rounds], [one.gensim for one in rounds]
    return Ratio(_side(flux, threads), _side(gensim, threads), PRECISION)


class WordBench:
    """Corpus, vocabulary and truth in a folder, and one run of each program."""

    def __init__(self, binary: Path, python: Path, folder: Path, threads: int) -> None:
        self.binary, self.python, self.folder, self.threads = binary, python, folder, threads
        self.words = 0

    def prepare(self, sentences: int) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        gen = ["data", "gen", "corpus", "--examples", str(sentences)]
        corpus, truth = self.folder / "corpus.txt", self.folder / "truth.tsv"
        process.run([str(self.binary), *gen, "--out", str(corpus), "--truth", str(truth)])
        vocab = ["data", "vocab", str(corpus), "--out", str(self.folder / "vocab.txt")]
        process.run([str(self.binary), *vocab])
        with corpus.open("rb") as file:
            self.words = sum(len(line.split()) for line in file)

    def _quality(self, vectors: Path) -> tuple[float, float]:
        command = [str(self.python), "-m", "peers.word_quality", "--vectors", str(vectors)]
        command += ["--truth", str(self.folder / "truth.tsv")]
        result = last_json(process.run(command, env=peer_env()).output)
        return float(str(result["precision_at_10"])), float(str(result["mrr"]))

    def gensim(self, seed: int) -> Trained:
        out = self.folder / "gensim.txt"
        command = [str(self.python), "-m", "peers.gensim_words", "--out", str(out)]
        command += ["--corpus", str(self.folder / "corpus.txt"), "--threads", str(self.threads)]
        command += ["--epochs", str(EPOCHS), "--dim", str(DIM), "--seed", str(seed)]
        env = {**peer_env(), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        result = last_json(process.run(command, cores=self.threads, env=env).output)
        if not result["compiled"]:
            raise BenchError("gensim runs without its compiled part: its figures mean nothing")
        speed = float(str(result["words"])) / float(str(result["wall_s"]))
        return Trained(speed, float(str(result["cpu_s"])), *self._quality(out), seed)

    def flux(self, seed: int) -> Trained:
        output, out = self.folder / "output", self.folder / "flux.txt"
        summary = self.folder / "summary.json"
        shutil.rmtree(output, ignore_errors=True)
        fields = {
            "data.train": self.folder / "corpus.txt",
            "data.vocabulary": self.folder / "vocab.txt",
            "output": output,
            "epochs": EPOCHS,
            "tables.0.dim": 2 * DIM,
            "seed": seed,
        }
        job = [str(ROOT / "models" / "word2vec.yaml")]
        job += [word for name, value in fields.items() for word in ("--set", f"{name}={value}")]
        run = [str(self.binary), "run", *job, "--fresh", "--threads", str(self.threads)]
        outcome = process.run([*run, "--summary", str(summary)], cores=self.threads)
        found = read_summary(summary)
        if (found["lost"], found["doubled"], found["skipped"]) != (0, 0, 0):
            raise BenchError("flux lost sentences, or counted some twice")
        seconds = float(str(found["examples"])) / float(str(found["examples_per_s"]))
        process.run([str(self.binary), "vectors", *job, "--out", str(out)])
        speed = self.words * EPOCHS / seconds
        return Trained(speed, outcome.cpu_s, *self._quality(out), seed)


def run(bench: WordBench, sentences: int, repeat: int) -> list[Round]:
    bench.prepare(sentences)
    rounds = []
    for number in range(1, repeat + 1):
        one = Round(bench.gensim(number), bench.flux(number))
        rounds.append(one)
        print(
            f"[{number}/{repeat}] gensim {one.gensim.words_per_s:,.0f} words/s, precision "
            f"{one.gensim.precision:.3f}; flux {one.flux.words_per_s:,.0f} words/s, precision "
            f"{one.flux.precision:.3f}; {ratio_of([one], bench.threads).text()}",
            flush=True,
        )
    return rounds


def judge(rounds: Sequence[Round], threads: int) -> list[Target]:
    ours = median(one.flux.precision for one in rounds)
    theirs = median(one.gensim.precision for one in rounds)
    return [
        at_least("word2vec words/s / gensim", RATIO, ratio_of(rounds, threads)),
        Target(
            "word2vec precision at 10 not below gensim's",
            f">= {theirs:.3f} - {QUALITY_SLACK}",
            f"{ours:.3f}",
            ours >= theirs - QUALITY_SLACK,
        ),
    ]


def render(rounds: Sequence[Round], words: int, threads: int, version: str) -> str:
    """The page results/words.md."""
    rows = [["system", "words/s", "CPU s", "precision at 10", "MRR"]]
    for name in ("gensim", "flux"):
        runs: list[Trained] = [getattr(one, name) for one in rounds]
        rows.append(
            [
                name if name == "flux" else f"gensim {version}",
                f"{median(run.words_per_s for run in runs):,.0f}",
                f"{median(run.cpu_s for run in runs):.1f}",
                f"{median(run.precision for run in runs):.3f}",
                f"{median(run.mrr for run in runs):.3f}",
            ]
        )
    table = markdown(rows, frozenset(range(1, 5)))
    return (
        f"# word2vec beside gensim\n\n{words:,} words, {EPOCHS} epochs, vectors of {DIM}, "
        f"window 5, 5 negatives, {threads} threads; medians of {len(rounds)} rounds.\n\n{table}\n\n"
        f"Median of the rounds' ratios of words/s: {ratio_of(rounds, threads).text()}. CPU of "
        "gensim is of training alone, of flux of the whole process.\n"
    )
