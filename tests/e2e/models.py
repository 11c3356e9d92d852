"""Every model of models/ from the commands in its head, to a known quality.

The data is made with a known truth, so the most that a model can reach (the oracle's AUC) is
printed by `flux data gen`. QUALITY says how near each model comes to it at the sizes used here; the
table of docs/using/models.md has the sizes of the models' own heads.
"""

from __future__ import annotations

import re
import unittest
from typing import NamedTuple

from _support import SOURCE, Case

TRAIN, TEST = 150_000, 30_000


class Quality(NamedTuple):
    kind: str
    share: float  # of the oracle's AUC above 0.5


# A linear model cannot see pairs: it shows what the others gain.
QUALITY = {
    "lr": Quality("fields", 0.40),
    "fm": Quality("fields", 0.72),
    "ffm": Quality("fields", 0.43),
    "wide_deep": Quality("fields", 0.40),
    "ctr_dnn": Quality("fields", 0.40),
    "deepfm": Quality("fields", 0.74),
    "xdeepfm": Quality("fields", 0.46),
    "dcn_v2": Quality("fields", 0.45),
    "din": Quality("sequence", 0.86),
    "mmoe": Quality("tasks", 0.93),
    "ple": Quality("tasks", 0.93),
    "dssm": Quality("towers", 0.66),
}


ELSEWHERE = {"word2vec"}  # has no labels: word2vec.py


class Models(Case):
    def make_data(self, kind: str) -> float:
        """The oracle's AUC of the first label of the test data."""
        folder = self.folder / "data" / "made" / kind
        text = ""
        for name, count, seed in (("train", TRAIN, 1), ("test", TEST, 2)):
            text = self.flux("data", "gen", "feasign", "--kind", kind, "--examples", str(count),
                             "--seed", str(seed), "--out", str(folder / f"{name}.txt")).out
        found = re.search(r"AUC of the hidden truth ([0-9.]+)", text)
        assert found is not None, text
        return float(found[1])

    def test_every_model_reaches_its_quality(self) -> None:
        names = {path.stem for path in (SOURCE / "models").glob("*.yaml")} - ELSEWHERE
        self.assertEqual(names, set(QUALITY), "a model without a known quality, or the reverse")
        oracle = {kind: self.make_data(kind) for kind in {q.kind for q in QUALITY.values()}}
        for name, quality in QUALITY.items():
            with self.subTest(model=name):
                self.check_model(name, quality, oracle[quality.kind])

    def check_model(self, name: str, quality: Quality, oracle: float) -> None:
        self.flux("run", str(SOURCE / "models" / f"{name}.yaml"))
        result = self.summary(f"out/{name}")
        self.assertEqual((result["lost"], result["doubled"]), (0, 0))
        share = (result["auc"] - 0.5) / (oracle - 0.5)
        print(f"{name}: AUC {result['auc']:.4f} of {oracle:.4f}, {share:.3f} of what there is")
        self.assertGreaterEqual(share, quality.share)


if __name__ == "__main__":
    unittest.main()
