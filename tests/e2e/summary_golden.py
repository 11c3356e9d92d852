"""--summary: the keys and types of the golden file, documented, with plausible values."""

from __future__ import annotations

import json
import os
import re
import signal
import unittest
import unittest.mock

from _support import SOURCE, Case, example, sets, write_data

GOLDEN: dict[str, str] = json.loads((SOURCE / "tests/golden/summary_keys.json").read_text())
ROW = r"^ +[\d,]+ +\d+\.\d+ "


def fits(value: object, kind: str) -> bool:
    if value is None:
        return kind.endswith(" or null")
    types = {"string": (str,), "integer": (int,), "number": (int, float),
             "list": (list,), "object": (dict,)}
    return type(value) in types[kind.removesuffix(" or null")]


class SummaryGolden(Case):
    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "train.tsv", 1000)

    def check(self, name: str) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.folder / name).read_text())
        self.assertEqual(list(found), list(GOLDEN))
        for key, value in found.items():
            self.assertTrue(fits(value, GOLDEN[key]), f"{key}: {value!r} is no {GOLDEN[key]}")
        return found

    def command(self, **fields: object) -> list[str]:
        return ["run", example("lr"), "--summary", "end.json", "--threads", "2",
                *sets(data__train="train.tsv", output="out", data__batch=5, shards=4,
                      precision="fp32", **fields)]

    def test_the_instruction_set_is_capped_and_named(self) -> None:
        with unittest.mock.patch.dict(os.environ, FLUX_ISA="avx2"):
            said = self.flux(*self.command(epochs=1, data__test="train.tsv")).text
            self.assertEqual(self.check("end.json")["isa"], "avx2")
            self.assertIn("fp32 on avx2", said)
        with unittest.mock.patch.dict(os.environ, FLUX_ISA="avx51"):
            refused = self.flux("models", code=2).text
        self.assertIn("FLUX_ISA: instruction set 'avx51' is unknown", refused)
        self.assertIn("allowed: avx2, avx512, bf16, amx", refused)

    def test_complete(self) -> None:
        self.flux(*self.command(epochs=2, data__test="train.tsv"))
        found = self.check("end.json")
        self.assertEqual(found, self.summary("out"))
        exact = {"job": "lr", "state": "complete", "examples": 2000, "expected": 2000,
                 "applied_once": 2000, "lost": 0, "doubled": 0, "skipped": 0, "threads": 2,
                 "precision": "fp32", "resumed_from": None}
        self.assertEqual({key: found[key] for key in exact}, exact)
        numbers = {key: float(value) for key, value in found.items()
                   if isinstance(value, (int, float))}
        self.assertTrue(4 << 20 < numbers["peak_rss_bytes"] < 4 << 30, numbers["peak_rss_bytes"])
        self.assertTrue(0 < numbers["train_s"] <= numbers["wall_s"])
        self.assertAlmostEqual(numbers["examples_per_s"], 2000 / numbers["train_s"], delta=1)
        self.assertTrue(0.5 < numbers["auc"] < 1 and 0 < numbers["logloss"] < 0.7)
        self.assertTrue(0.4 < numbers["train_auc"] < 1 and 0 < numbers["train_logloss"] < 1)
        self.assertEqual((found["mode"], found["wire"]), ("async", "none"))
        roles = found["roles"]
        assert isinstance(roles, list) and len(roles) == 1
        role = roles[0]
        self.assertEqual(list(role), ["role", "name", "cpu_s", "peak_rss_bytes", "bytes_in",
                                      "bytes_out"])
        self.assertEqual((role["role"], role["bytes_in"]), ("embedded", 0))
        self.assertEqual(role["peak_rss_bytes"], found["peak_rss_bytes"])
        tokens = {(slot, token) for line in (self.folder / "train.tsv").read_text().splitlines()
                  for slot, token in enumerate(line.split("\t")[14:])}
        self.assertEqual(found["rows"], len(tokens))
        self.assertRegex(str(found["model_hash"]), r"^[0-9a-f]{16}$")

        hash_before = found["model_hash"]
        self.flux(*self.command(epochs=2, data__test="train.tsv"))
        again = self.check("end.json")
        self.assertEqual((again["examples"], again["expected"]), (0, 2000))
        self.assertEqual(again["model_hash"], hash_before)
        self.assertEqual(again["auc"], found["auc"])
        self.assertRegex(str(again["resumed_from"]), r"^out/checkpoints/\d{6}$")

    def test_stopped(self) -> None:
        running = self.start(*self.command(epochs=1000, data__test="train.tsv"))
        self.assertIsNotNone(running.wait_line(ROW))
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().code, 130)
        found = self.check("end.json")
        self.assertEqual((found["state"], found["auc"], found["logloss"]), ("stopped", None, None))
        self.assertEqual(found["examples"], found["expected"])

    def test_documented(self) -> None:
        page = (SOURCE / "docs/using/summary.md").read_text()
        table = re.findall(r"^\| `(\w+)` \| ([a-z ]+) \| \S", page, re.MULTILINE)
        self.assertEqual(table, list(GOLDEN.items()))


if __name__ == "__main__":
    unittest.main()
