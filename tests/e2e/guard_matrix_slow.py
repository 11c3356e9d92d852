"""The guard says nothing of any job of models/ and examples/: three seeds, one and four threads."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

from _guard import GuardCase
from _support import SOURCE

EXAMPLES = 100_000
SEEDS = (1, 2, 3)
THREADS = (1, 4)


class GuardMatrix(GuardCase):
    def make_for(self, text: str) -> None:
        """The data that a job reads, where it reads it."""
        for key, examples in (("train", EXAMPLES), ("test", 20_000)):
            found = re.search(rf"(?m)^  {key}: (\S+)", text)
            if found is None or self.path(found[1]).exists():
                continue
            out = found[1]
            seed = "1" if key == "train" else "2"
            kind = Path(out).parent.name
            if kind == "corpus":
                self.flux("data", "gen", "corpus", "--examples", "30000", "--out", out)
                self.flux("data", "vocab", out, "--out", str(Path(out).parent / "vocab.txt"))
                continue
            shape = ["criteo"] if out.endswith(".tsv") else \
                ["feasign", "--kind", "fields" if kind == "phases" else kind]
            self.flux("data", "gen", *shape, "--examples", str(examples), "--seed", seed,
                      "--out", out)

    def test_shipped_jobs_are_not_warned_of(self) -> None:
        jobs = sorted((SOURCE / "models").glob("*.yaml")) + \
            sorted((SOURCE / "examples").glob("*/job.yaml"))
        self.assertGreaterEqual(len(jobs), 18)
        runs = 0
        for file in jobs:
            text = file.read_text()
            self.make_for(text)
            for seed in SEEDS:
                for threads in THREADS:
                    with self.subTest(job=str(file), seed=seed, threads=threads):
                        done = self.flux("run", str(file), "--fresh", "--threads", str(threads),
                                         "--set", f"seed={seed}", "--set", "output=out/run")
                        self.assertEqual(self.summary("out/run")["warnings"], [], done.err)
                        runs += 1
        print(f"{runs} runs without a warning")


if __name__ == "__main__":
    unittest.main()
