"""Data that drifts: a model that keeps learning stays good, one that stopped does not."""

from __future__ import annotations

import gzip
import re
import unittest
from pathlib import Path

from _support import SOURCE, Case

LAST = 40  # the hour that models are asked about
TURN = ["--drift", "0.03", "--churn", "0.01"]


def passes_over(files: list[str]) -> str:
    lines = [f"  - {{name: h{n}, train: {file}}}" for n, file in enumerate(files)]
    return "\n".join(["passes:", *lines, ""])


class Drift(Case):
    def generate(self, out: str, *options: str, kind: str = "fields") -> list[tuple[str, float]]:
        """Path and best AUC of each hour."""
        shape = ["criteo"] if kind == "criteo" else ["feasign", "--kind", kind]
        done = self.flux("data", "gen", *shape, *options, "--out", out)
        found = re.findall(r"^(\S+)  label: [\d.]+ are 1, best AUC ([\d.]+)$", done.out, re.M)
        return [(path, float(auc)) for path, auc in found]

    def train(self, name: str, train: list[str], test: str) -> float:
        """AUC on `test` after the last pass of a factorization machine over `train`."""
        job = (SOURCE / "models" / "fm.yaml").read_text()
        job = re.sub(r"(?m)^  train: .*$", "", job)
        job = re.sub(r"(?m)^  test: .*$", f"  test: {test}", job)
        job = re.sub(r"(?m)^epochs: .*$", "epochs: 1\nthreads: 1\nshards: 4", job)
        job = re.sub(r"(?m)^output: .*$", f"output: out/{name}", job)
        (self.folder / f"{name}.yaml").write_text(job + passes_over(train))
        self.flux("run", f"{name}.yaml")
        self.assert_exact(f"out/{name}", sum(self.lines(file) for file in train))
        value = self.summary(f"out/{name}")["auc"]
        assert isinstance(value, float)
        return value

    def lines(self, file: str) -> int:
        return (self.folder / file).read_text().count("\n")

    def test_a_model_of_the_first_hour_grows_old(self) -> None:
        hours = self.generate("d", *TURN, "--hours", str(LAST + 1), "--examples", "10000")
        files = [path for path, _ in hours]
        self.assertEqual(files[LAST], "d/20260102/16.txt")
        # As many examples as all those hours have, but of the first hour.
        first, = self.generate("first", *TURN, "--hours", "1", "--examples", str(10000 * LAST),
                               "--seed", "2")
        fresh_at_first = self.train("fresh", [first[0]], files[0])
        old = self.train("old", [first[0]], files[LAST])
        learning = self.train("learning", files[:LAST], files[LAST])
        best = hours[LAST][1]
        print(f"at first {fresh_at_first:.4f}, {LAST} hours later: old {old:.4f}, "
              f"learning {learning:.4f}, best {best:.4f}")
        self.assertGreater(fresh_at_first, old + 0.05)
        self.assertGreater(learning, old + 0.05)
        self.assertLess(learning, best + 0.01)
        self.assertGreater(hours[0][1], fresh_at_first - 0.01)

    def test_the_click_rate_has_a_daily_wave(self) -> None:
        hours = self.generate("d", "--hours", "24", "--examples", "2000", "--wave", "1",
                              "--start", "2026-02-28T08", "--gz", kind="criteo")
        rates = []
        for path, _ in hours:
            with gzip.open(self.folder / path, "rt") as text:
                rates.append(sum(line[0] == "1" for line in text) / 2000)
        self.assertEqual(sorted(str(path.relative_to(self.folder))
                                for path in (self.folder / "d").glob("*/*")),
                         [path for path, _ in hours])
        self.assertEqual(Path(hours[-1][0]), Path("d/20260301/07.tsv.gz"))
        self.assertLess(max(rates[:3]), min(rates[10:15]))  # 8 to 10 h, 18 to 22 h
        self.assertLess(rates[0] + 0.15, rates[12])

    def test_wrong_options(self) -> None:
        command = ["data", "gen", "criteo", "--examples", "10", "--out"]
        (self.folder / "file").write_text("")
        for options, words in (
                (["x", "--drift", "0.1"], ["--drift", "--hours"]),
                (["x", "--gz"], ["--gz", "--hours"]),
                (["x", "--hours", "0"], ["--hours"]),
                (["x", "--hours", "many"], ["--hours", "many"]),
                (["x", "--hours", "2", "--start", "yesterday"],
                 ["--start 'yesterday'", "not an hour of a date", "2026-01-31T23"]),
                (["x", "--hours", "2", "--start", "2026-02-30T00"], ["no such day"]),
                (["x", "--hours", "2", "--drift", "nan"], ["--drift nan", "radians per hour"]),
                (["x", "--hours", "2", "--churn", "1.5"], ["--churn 1.5", "0", "to 1"]),
                (["x", "--hours", "2", "--wave", "-1"], ["--wave -1"]),
                (["file", "--hours", "2"], ["file", "name a folder"])):
            with self.subTest(options=options):
                self.assert_refused(self.flux(*command, *options, code=None), *words)
                self.assertFalse((self.folder / "x").exists())


if __name__ == "__main__":
    unittest.main()
