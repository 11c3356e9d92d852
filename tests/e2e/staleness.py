"""flux sim --train: gradients of a known age; without age it is a deterministic run, bit by bit."""

from __future__ import annotations

import json
import unittest
from typing import Any

from _support import Case, example, sets, write_data

RECORDS = 2000
PHASES = """
output: out
data: {batch: 50, test: test.tsv}
passes: [{name: a, train: train.tsv}, {name: b, train: test.tsv}]
epochs: 2
shards: 4
lr_schedule: {warmup_batches: 30}
tables:
  - {name: wide, dim: 1}
  - {name: own, dim: 2}
phases:
  - name: join
    layers:
      - {name: e, op: embedding, table: wide, combine: sum}
      - {name: y, op: fc, inputs: e, units: 1}
      - {name: loss, op: logistic_loss, inputs: [y, label]}
  - name: update
    layers:
      - {name: e, op: embedding, table: wide, combine: sum}
      - {name: o, op: embedding, table: own, combine: sum}
      - {name: all, op: concat, inputs: [e, o]}
      - {name: y, op: fc, inputs: all, units: 1}
      - {name: loss, op: logistic_loss, inputs: [y, label]}
"""


class Staleness(Case):
    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "train.tsv", RECORDS)
        write_data(self.folder / "test.tsv", 500, seed=2)

    def fields(self, **more: object) -> list[str]:
        return sets(data__train="train.tsv", data__test="test.tsv", output="out", data__batch=20,
                    shards=4, model__layers__fc1__units=16, model__layers__fc2__units=8,
                    model__layers__fc3__units=8, **more)

    def replay(self, *options: str, **fields: object) -> dict[str, Any]:
        done = self.flux("sim", "--train", example("ctr_dnn"), "--json", *options,
                         *self.fields(**fields))
        found: dict[str, Any] = json.loads(done.out)
        return found

    def test_without_age_it_is_a_deterministic_run(self) -> None:
        more: dict[str, object] = {"epochs": 3, "lr_schedule__warmup_batches": 50}
        self.flux("run", example("ctr_dnn"), *self.fields(deterministic=True, **more))
        summary = self.summary("out")
        found = self.replay("--staleness", "0", **more)
        replay = found["replays"][0]
        self.assertEqual(replay["model_hash"], summary["model_hash"])
        self.assertEqual(replay["test"]["heads"], summary["test"]["heads"])
        self.assertEqual(replay["examples"], RECORDS * 3)
        self.assertIsNone(found["quality_falls_from_workers"])
        ages = summary["pushes"]
        self.assertEqual((ages["age_count"], ages["age_max"]), (RECORDS * 3 // 20, 0))
        self.assertIn("age of gradients", (self.folder / "out/report.html").read_text())

    def test_several_passes_of_several_phases(self) -> None:
        (self.folder / "job.yaml").write_text(PHASES)
        self.flux("run", "job.yaml", "--set", "deterministic=true")
        done = self.flux("sim", "--train", "job.yaml", "--staleness", "3", "--json")
        found = json.loads(done.out)["replays"]
        self.assertEqual(found[0]["model_hash"], self.summary("out")["model_hash"])
        self.assertEqual([r["examples"] for r in found], [2 * 2 * (RECORDS + 500)] * 2)

    def test_the_same_again_and_another_with_age(self) -> None:
        first = self.replay("--staleness", "3,8")
        self.assertEqual([r["staleness"] for r in first["replays"]], [0, 3, 8])
        self.assertEqual([r["age_examples"] for r in first["replays"]], [0, 60, 160])
        self.assertTrue(all(r["examples"] == RECORDS for r in first["replays"]))
        hashes = [r["model_hash"] for r in first["replays"]]
        self.assertEqual(len(set(hashes)), 3)
        again = self.replay("--staleness", "8,3")
        self.assertEqual([r["model_hash"] for r in again["replays"]], hashes)
        other = self.replay("--staleness", "0", "--seed", "7")
        self.assertNotEqual(other["replays"][0]["model_hash"], hashes[0])
        self.assertEqual(other["seed"], 7)

    def test_defences_change_what_is_old_alone(self) -> None:
        def hashes(*options: str) -> list[object]:
            return [r["model_hash"] for r in self.replay("--staleness", "5", *options)["replays"]]

        plain = hashes()
        for option in ("--dense-lr-by-age", "--rows-lr-by-age", "--compensate"):
            tried = hashes(option, "0.5")
            self.assertEqual(tried[0], plain[0], option)
            self.assertNotEqual(tried[1], plain[1], option)

    def test_smaller_pushes(self) -> None:
        found = self.replay("--staleness", "4", "--examples-per-push", "10")
        self.assertEqual(found["examples_per_push"], 10)
        self.assertEqual(found["replays"][1]["batches"], RECORDS // 10)
        self.assertEqual(found["replays"][1]["age_examples"], 40)
        # Keys up and rows down, keys and counts and gradients up, dense values both ways.
        batch = found["batch"]
        self.assertAlmostEqual(batch["row_values"], batch["keys"] * 10)
        self.assertAlmostEqual(
            batch["bytes"], batch["keys"] * 20 + 8 * (batch["row_values"] + batch["dense_values"]))

    def test_for_people(self) -> None:
        done = self.flux("sim", "--train", example("ctr_dnn"), "--staleness", "2",
                         "--threshold", "1", *self.fields())
        self.assertRegex(done.out, r"2,000 examples in batches of 20")
        self.assertIn("quality holds for up to 3 workers", done.out)
        done = self.flux("sim", "--train", example("ctr_dnn"), "--staleness", "2",
                         "--threshold", "0", *self.fields(
                             dense_optimizer__lr=0.3, tables__embedding__optimizer__lr=1))
        self.assertIn("workers", done.out)

    def test_refused(self) -> None:
        train = ["sim", "--train", example("ctr_dnn")]
        for command, says in (
                ([*train, "--staleness", "1,x", *self.fields()], "'x' is no number"),
                ([*train, "--staleness", "100000", "--memory-gb", "0.01", *self.fields()],
                 "batches that wait needs"),
                ([*train, *self.fields(mode="sync")], "add --set mode=async"),
                ([*train, *self.fields(), "--set", "data.test=[]"], "data.test"),
                (["sim", "--staleness", "4"], "--train"),
                ([*train, "--seeds", "1..2"], "--seeds"),
        ):
            done = self.flux(*command, code=2)
            self.assertIn(says, done.text)


if __name__ == "__main__":
    unittest.main()
