"""The threads of a worker share each batch: the model has the same bits however many they are.

Every model of models/ and every example, in one process with 1, 3 and 16 threads.
"""

from __future__ import annotations

import unittest
from pathlib import Path

from _support import SOURCE, Case
from _words import JOB as WORDS
from _words import make_corpus

TRAIN, TEST = 6_000, 1_000
KINDS = {
    "fields": ("lr", "fm", "deepfm"),
    "field_pairs": ("ffm",),
    "bends": ("wide_deep", "ctr_dnn"),
    "crosses": ("xdeepfm", "dcn_v2"),
    "sequence": ("din",),
    "tasks": ("mmoe", "ple"),
    "towers": ("dssm",),
}
OVER_CRITEO = {"counting", "ctr_dnn", "dcn_v2", "deepfm", "fm", "lr"}
THREADS = (3, 16)


class Threads(Case):
    def hash_of(self, job: Path | str, threads: int, *more: str) -> object:
        output = f"out/{threads}"
        self.flux("run", str(job), "--fresh", "--threads", str(threads), "--set",
                  f"output={output}", *more)
        result = self.summary(output)
        self.assertEqual((result["lost"], result["doubled"]), (0, 0))
        self.assertIsNotNone(result["model_hash"])
        return result["model_hash"]

    def check(self, job: Path | str, *more: str) -> None:
        one = self.hash_of(job, 1, *more)
        for threads in THREADS:
            self.assertEqual(self.hash_of(job, threads, *more), one, f"{threads} threads")

    def test_models(self) -> None:
        names = {path.stem for path in (SOURCE / "models").glob("*.yaml")} - {"word2vec"}
        self.assertEqual(names, {name for all_names in KINDS.values() for name in all_names})
        for kind, models in KINDS.items():
            data = self.folder / "data" / "made" / kind
            for name, count, seed in (("train", TRAIN, 5), ("test", TEST, 6)):
                self.flux("data", "gen", "feasign", "--kind", kind, "--examples", str(count),
                          "--seed", str(seed), "--out", str(data / f"{name}.txt"))
            for model in models:
                with self.subTest(model=model):
                    self.check(SOURCE / "models" / f"{model}.yaml")

    def test_examples(self) -> None:
        names = {path.parent.name for path in (SOURCE / "examples").glob("*/job.yaml")}
        self.assertEqual(names, OVER_CRITEO | {"phases"})
        for name, count, seed in (("train", TRAIN, 5), ("test", TEST, 6)):
            self.flux("data", "gen", "criteo", "--examples", str(count), "--seed", str(seed),
                      "--out", f"{name}.tsv")
        for example in sorted(OVER_CRITEO):
            with self.subTest(example=example):
                self.check(SOURCE / "examples" / example / "job.yaml", "--set",
                           "data.train=train.tsv", "--set", "data.test=test.tsv")

    def test_phases(self) -> None:
        for name, count, seed in (("train", TRAIN, 5), ("test", TEST, 6)):
            self.flux("data", "gen", "feasign", "--kind", "fields", "--examples", str(count),
                      "--seed", str(seed), "--out", f"data/made/phases/{name}.txt")
        self.check(SOURCE / "examples" / "phases" / "job.yaml")

    def test_word2vec(self) -> None:
        make_corpus(self, 3_000, 500, 5)
        self.check(WORDS, "--set", "tables.0.dim=32", "--set", "epochs=1")


if __name__ == "__main__":
    unittest.main()
