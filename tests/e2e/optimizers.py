"""Every update rule trains tables and dense layers; schedules go on where a killed run was."""

from __future__ import annotations

import unittest

from _support import Case, example, sets, write_data

RECORDS = 2000
# All that go downhill; without l1 group_ftrl is ftrl.
RULES = ("sgd", "momentum", "adagrad", "adagrad_shared", "adam", "adam_shared", "adamw", "ftrl",
         "group_ftrl, l1: 0.01", "rmsprop")
SCHEDULE = "{kind: cosine, warmup_batches: 300, batches: 8000, end: 0.1}"


class Optimizers(Case):
    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "train.tsv", RECORDS)

    def command(self, output: str, **fields: object) -> list[str]:
        settings: dict[str, object] = {"deterministic": True, "data__train": "train.tsv",
                                       "data__test": "train.tsv",
                                       "output": output, "data__batch": 2, "shards": 4,
                                       "checkpoint__every_s": 0}
        for layer in ("fc1", "fc2", "fc3"):
            settings[f"model__layers__{layer}__units"] = 8
        return ["run", example("ctr_dnn"), *sets(**(settings | fields))]

    def hash_of(self, output: str, examples: int) -> object:
        self.assert_exact(output, examples)
        return self.summary(output)["model_hash"]

    def test_every_rule_trains(self) -> None:
        hashes = set()
        for number, rule in enumerate(RULES):
            with self.subTest(rule=rule):
                output, optimizer = f"out{number}", f"{{rule: {rule}}}"
                self.flux(*self.command(output, tables__embedding__optimizer=optimizer,
                                        dense_optimizer=optimizer))
                hashes.add(self.hash_of(output, RECORDS))
        self.assertEqual(len(hashes), len(RULES), "two rules made the same model")

    def test_a_schedule_goes_on_after_a_kill(self) -> None:
        epochs = 12
        fields = {"epochs": epochs, "checkpoint__every_s": 0.02, "lr_schedule": SCHEDULE,
                  "model__layers__fc1__init": "he", "model__layers__fc2__lr_scale": 0.5}
        self.flux(*self.command("whole", **fields))
        undisturbed = self.hash_of("whole", RECORDS * epochs)
        killed = self.start(*self.command("killed", **fields))
        self.wait_checkpoint("killed", killed)
        self.assertNotIn("model:", killed.kill().text)
        self.flux(*self.command("killed", **fields))
        self.assertIsNotNone(self.summary("killed")["resumed_from"])
        self.assertEqual(self.hash_of("killed", RECORDS * epochs), undisturbed)
        self.flux(*self.command("plain", **(fields | {"lr_schedule": "{kind: constant}"})))
        self.assertNotEqual(self.hash_of("plain", RECORDS * epochs), undisturbed)

    def test_another_layout_of_rules_is_no_resume(self) -> None:
        self.flux(*self.command("out", model__layers__fc2__lr_scale=0.5))
        done = self.flux(*self.command("out", epochs=2), code=None)
        self.assert_refused(done, "dense_optimizer.ranges", "--fresh")


if __name__ == "__main__":
    unittest.main()
