"""What `make model NAME=...` runs: a model from one command, its data made once."""

from __future__ import annotations

import re
import subprocess
import sys
import unittest

from _support import FLUX, SOURCE, Case


class OneModel(Case):
    def setUp(self) -> None:
        super().setUp()
        (self.folder / "models").symlink_to(SOURCE / "models")

    def model(self, name: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-B", str(SOURCE / "tools/model.py"), name, "--flux", str(FLUX),
             "--examples", "3000"],
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_makes_data_trains_and_ends_with_the_auc_of_each_head(self) -> None:
        last = self.model("mmoe").splitlines()[-1]
        told = re.fullmatch(r"mmoe: AUC on test data: (\w+) (0\.\d{4}), (\w+) (0\.\d{4})", last)
        assert told is not None, last
        heads = self.summary("out/models/mmoe")["test"]["heads"]
        self.assertEqual([told[1], told[3]], [head["head"] for head in heads])
        self.assertEqual([told[2], told[4]], [f"{head['auc']:.4f}" for head in heads])

    def test_data_that_is_there_is_not_made_again(self) -> None:
        first = self.model("lr")
        self.assertIn("data gen feasign", first)
        self.assertRegex(first.splitlines()[-1], r"^lr: AUC on test data: 0\.\d{4}$")
        data = self.folder / "data/made/fields"
        self.assertEqual(sorted(path.name for path in data.iterdir()), ["test.txt", "train.txt"])
        before = [(path, path.stat().st_mtime_ns) for path in sorted(data.iterdir())]
        second = self.model("lr")
        self.assertNotIn("data gen feasign", second)
        self.assertEqual(before, [(path, path.stat().st_mtime_ns) for path, _ in before])

    def test_a_model_that_is_not_there(self) -> None:
        self.assertIn("there is no model 'lrr'; models: ctr_dnn,", self.model("lrr", code=1))


if __name__ == "__main__":
    unittest.main()
