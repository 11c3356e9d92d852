"""Deterministic mode: the same bits every time, stopped, killed and resumed or not."""

from __future__ import annotations

import signal
import unittest

from _support import Case, example, sets, write_data

ROW = r"^ +[\d,]+ +\d+\.\d+ "  # a row of the progress table
RECORDS = 2000
EPOCHS = 12


class Deterministic(Case):
    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "train.tsv", RECORDS)

    def command(self, output: str, **fields: object) -> list[str]:
        return ["run", example("ctr_dnn"),
                *sets(deterministic=True, data__train="train.tsv", data__test="train.tsv",
                      output=output, data__batch=2, epochs=EPOCHS, shards=4,
                      checkpoint__every_s=0.02, model__layers__fc1__units=16,
                      model__layers__fc2__units=8, model__layers__fc3__units=8, **fields)]

    def hash_of(self, output: str) -> object:
        self.assert_exact(output, RECORDS * EPOCHS)
        return self.summary(output)["model_hash"]

    def test_same_bits(self) -> None:
        self.flux(*self.command("one"))
        self.flux(*self.command("two"), "--threads", "2")
        undisturbed = self.hash_of("one")
        self.assertEqual(self.hash_of("two"), undisturbed)

        stopped = self.start(*self.command("stopped"))
        self.assertIsNotNone(stopped.wait_line(ROW))
        stopped.signal(signal.SIGINT)
        done = stopped.finish()
        self.assertEqual(done.code, 130, done.text)
        self.assertLess(self.summary("stopped")["examples"], RECORDS * EPOCHS)
        self.flux(*self.command("stopped"))
        self.assertIsNotNone(self.summary("stopped")["resumed_from"])
        self.assertEqual(self.hash_of("stopped"), undisturbed)

        killed = self.start(*self.command("killed"))
        self.wait_checkpoint("killed", killed)
        self.assertNotIn("model:", killed.kill().text)
        self.flux(*self.command("killed"))
        self.assertIsNotNone(self.summary("killed")["resumed_from"])
        self.assertEqual(self.hash_of("killed"), undisturbed)

    def test_seed_matters(self) -> None:
        for seed in (1, 2):
            self.flux(*self.command(f"seed{seed}", seed=seed))
        self.assertNotEqual(self.hash_of("seed1"), self.hash_of("seed2"))


if __name__ == "__main__":
    unittest.main()
