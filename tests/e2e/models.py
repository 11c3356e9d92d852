"""Every model of models/ from the commands in its head, to a known quality.

The data is made with a known truth, so the most that a model can reach (the oracle's AUC of each
label) is printed by `flux data gen`. QUALITY says how near each head of each model comes to it at
the sizes used here, and what to take out of the model so that it no longer does: the test trains
both. The table of docs/using/models.md has the sizes of the commands in the files.
"""

from __future__ import annotations

import re
import unittest
from pathlib import Path
from typing import NamedTuple

from _support import SOURCE, Case

TRAIN, TEST = 150_000, 30_000


class Quality(NamedTuple):
    kind: str
    share: float  # of the oracle's AUC above 0.5, of every head
    # What takes the model's own part away, as (text, its replacement): then `share` is not reached.
    cut: tuple[tuple[str, str], ...] = ()


def line(name: str, rest: str) -> str:
    return f"    - {{name: {name}, {rest}}}\n"


LINEAR_PAIRS = line("pairs", "op: fc, inputs: emb, units: 1")
LINEAR_NET = (("activation: relu", "activation: none"),)
NO_CROSS = (
    (line("x1", "op: cross, inputs: [emb, emb]"), ""),
    (line("x2", "op: cross, inputs: [emb, x1]"), ""),
    ("inputs: [x2, h2]", "inputs: [emb, h2]"),
)
NO_CIN = (
    (line("cin1", "op: cin, inputs: [emb, emb], units: 16"), ""),
    (line("cin2", "op: cin, inputs: [emb, cin1], units: 16"), ""),
    (line("sum1", "op: reduce_sum, inputs: cin1, over: features"), ""),
    (line("sum2", "op: reduce_sum, inputs: cin2, over: features"), ""),
    (line("sums", "op: concat, inputs: [sum1, sum2]"), ""),
    (line("crossed", "op: fc, inputs: sums, units: 1"), ""),
    ("[wide, crossed, deep]", "[wide, deep]"),
)
MEAN_OF_HISTORY = (
    (line("pairs", "op: attention_features, inputs: [item, history]"), ""),
    (line("a1", "op: fc, inputs: pairs, units: 16, activation: sigmoid, per_position: true"), ""),
    (line("score", "op: fc, inputs: a1, units: 1, per_position: true"), ""),
    (
        "op: attention_pooling, inputs: [score, history, mask]",
        "op: reduce_mean, inputs: [history, mask], over: positions",
    ),
)
NO_PRODUCT = (
    (
        line("product", "op: dot, inputs: [u2, i2]"),
        line("both", "op: concat, inputs: [u2, i2]")
        + line("product", "op: fc, inputs: both, units: 1"),
    ),
)
# One layer as wide as an expert, below both tasks, in the place of experts and gates.
SHARED_BOTTOM = line("bottom", "op: fc, inputs: emb, units: 8, activation: relu")
TOWERS_ON_IT = (("inputs: mix1,", "inputs: bottom,"), ("inputs: mix2,", "inputs: bottom,"))
NO_EXPERTS = (
    (line("experts", "op: experts, inputs: emb, experts: 8, units: 8"), SHARED_BOTTOM),
    (line("g1", "op: fc, inputs: emb, units: 8"), ""),
    (line("g2", "op: fc, inputs: emb, units: 8"), ""),
    (line("mix1", "op: gate, inputs: [g1, experts]"), ""),
    (line("mix2", "op: gate, inputs: [g2, experts]"), ""),
    *TOWERS_ON_IT,
)
NO_EXPERTS_OF_TASKS = (
    (line("shared", "op: experts, inputs: emb, experts: 4, units: 8"), SHARED_BOTTOM),
    (line("g1", "op: fc, inputs: emb, units: 6"), ""),
    (line("g2", "op: fc, inputs: emb, units: 6"), ""),
    (line("own1", "op: experts, inputs: emb, experts: 2, units: 8"), ""),
    (line("own2", "op: experts, inputs: emb, experts: 2, units: 8"), ""),
    (line("mix1", "op: gate, inputs: [g1, shared, own1]"), ""),
    (line("mix2", "op: gate, inputs: [g2, shared, own2]"), ""),
    *TOWERS_ON_IT,
)

# A linear model cannot see pairs: it shows what the others gain.
QUALITY = {
    "lr": Quality("fields", 0.40),
    "fm": Quality("fields", 0.75, ((line("pairs", "op: fm, inputs: emb"), LINEAR_PAIRS),)),
    "ffm": Quality("field_pairs", 0.94, (("op: ffm", "op: fm"), ("dim: 24", "dim: 4"))),
    "wide_deep": Quality("bends", 0.95, LINEAR_NET),
    "ctr_dnn": Quality("bends", 0.95, LINEAR_NET),
    "deepfm": Quality("fields", 0.75, ((line("pairs", "op: fm, inputs: emb"), LINEAR_PAIRS),)),
    "xdeepfm": Quality("crosses", 0.95, NO_CIN),
    "dcn_v2": Quality("crosses", 0.88, NO_CROSS),
    "din": Quality("sequence", 0.88, MEAN_OF_HISTORY),
    "mmoe": Quality("tasks", 0.90, NO_EXPERTS),
    "ple": Quality("tasks", 0.90, NO_EXPERTS_OF_TASKS),
    "dssm": Quality("towers", 0.72, NO_PRODUCT),
}


ELSEWHERE = {"word2vec"}  # has no labels: word2vec.py


class Models(Case):
    def make_data(self, kind: str) -> list[float]:
        """The oracle's AUC of each label of the test data."""
        folder = self.folder / "data" / "made" / kind
        text = ""
        for name, count, seed in (("train", TRAIN, 1), ("test", TEST, 2)):
            text = self.flux("data", "gen", "feasign", "--kind", kind, "--examples", str(count),
                             "--seed", str(seed), "--out", str(folder / f"{name}.txt")).out
        found = re.findall(r"AUC of the hidden truth ([0-9.]+)", text)
        self.assertTrue(found, text)
        return [float(auc) for auc in found]

    def test_every_model_reaches_its_quality(self) -> None:
        names = {path.stem for path in (SOURCE / "models").glob("*.yaml")} - ELSEWHERE
        self.assertEqual(names, set(QUALITY), "a model without a known quality, or the reverse")
        oracle = {kind: self.make_data(kind) for kind in {q.kind for q in QUALITY.values()}}
        for name, quality in QUALITY.items():
            with self.subTest(model=name):
                self.check_model(name, quality, oracle[quality.kind])

    def check_model(self, name: str, quality: Quality, oracle: list[float]) -> None:
        job = SOURCE / "models" / f"{name}.yaml"
        for head, share in self.shares_of(name, job, oracle).items():
            self.assertGreaterEqual(share, quality.share, head)
        self.assertEqual(self.summary(f"out/models/{name}")["warnings"], [])
        if not quality.cut:
            return
        text = job.read_text()
        for old, new in quality.cut:
            self.assertIn(old, text)
            text = text.replace(old, new)
        cut = self.folder / f"{name}_cut.yaml"
        cut.write_text(text.replace(f"output: out/models/{name}\n",
                                    f"output: out/models/{name}_cut\n"))
        for head, share in self.shares_of(f"{name}_cut", cut, oracle).items():
            self.assertLess(share, quality.share, f"{head}: reached without what makes the model")

    def shares_of(self, name: str, job: Path, oracle: list[float]) -> dict[str, float]:
        """Trains the job, which writes to out/models/name; by head: its share of the AUC."""
        self.flux("run", str(job))
        result = self.summary(f"out/models/{name}")
        self.assertEqual((result["lost"], result["doubled"]), (0, 0))
        shares = {}
        for head, best in zip(result["test"]["heads"], oracle, strict=True):
            share = (float(head["auc"]) - 0.5) / (best - 0.5)
            shares[str(head["head"])] = share
            print(f"{name} {head['head']}: AUC {head['auc']:.4f} of {best:.4f}, {share:.3f} of it")
        return shares


if __name__ == "__main__":
    unittest.main()
