"""data.bad_records: what a format refuses is set aside, named, and counted as skipped."""

from __future__ import annotations

import json
import random
import unittest

from _support import Case, sets

JOB = """
name: bad
output: out
deterministic: true
epochs: 2
shards: 4
data: {format: feasign, train: [a.txt, b.txt], test: [t.txt], batch: 20, slots: [{name: user}],
       EXTRA}
tables:
  - {name: weight, dim: 1, optimizer: {rule: sgd, lr: 0.5}}
model:
  layers:
    - {name: sparse, op: embedding, table: weight, combine: sum}
    - {name: loss, op: logistic_loss, inputs: [sparse, label]}
"""
BAD = ("1 user:x\n", "2,0 user:1\n", "\n", "nan user:5\n", "1 usr:4\n", "1 user:\xff\n")


class BadRecords(Case):
    def setUp(self) -> None:
        super().setUp()
        draw = random.Random(7)
        good = [f"{draw.randrange(2)} user:{draw.randrange(50)}\n" for _ in range(4000)]
        mixed = list(good)
        for i, at in enumerate(sorted(draw.sample(range(4000), 60), reverse=True)):
            mixed.insert(at, BAD[i % len(BAD)])
        self.write("good.txt", good)
        self.write("a.txt", mixed[:2500])
        self.write("b.txt", mixed[2500:])
        self.write("t.txt", [*good[:500], "what\n"])
        self.bad = sum(line in BAD for line in mixed)

    def write(self, name: str, lines: list[str]) -> None:
        (self.folder / name).write_text("".join(lines), encoding="latin-1")

    def job(self, extra: str) -> str:
        (self.folder / "job.yaml").write_text(JOB.replace("EXTRA", extra))
        return "job.yaml"

    def test_none_is_allowed_by_default(self) -> None:
        self.assert_refused(self.flux("run", self.job("shuffle: true"), code=None), "a.txt:")

    def test_they_are_set_aside_and_counted(self) -> None:
        job = self.job("bad_records: 60")
        self.flux("run", job)
        summary = json.loads((self.folder / "out/summary.json").read_text())
        self.assertEqual(summary["skipped"], 2 * self.bad)
        self.assertEqual(summary["applied_once"], 2 * 4000)
        self.assertEqual(summary["expected"], 2 * (4000 + self.bad))
        self.assertEqual((summary["lost"], summary["doubled"]), (0, 0))
        told = (self.folder / "out/bad_records/pass-00000.tsv").read_text().splitlines()
        self.assertEqual(len(told), self.bad)
        for line in told:
            place, why = line.split("\t", 1)
            path, number = why.split(":")[:2]
            self.assertIn(f"(record {number})", place)
            begin, end = place.removeprefix(path + ":").split(" ")[0].split("..")
            text = (self.folder / path).read_bytes()[int(begin):int(end)]
            self.assertIn(text.decode("latin-1"), BAD)

    def test_files_without_a_good_record_are_counted_too(self) -> None:
        for name in ("0.txt", "c.txt", "z.txt"):
            self.write(name, ["1 user:x\n"] * 70)
        job = self.job("bad_records: 300")
        self.flux("run", job, *sets(data__train="[0.txt, a.txt, c.txt, b.txt, z.txt]"))
        summary = json.loads((self.folder / "out/summary.json").read_text())
        bad = self.bad + 3 * 70
        self.assertEqual([summary[k] for k in ("expected", "applied_once", "skipped", "lost",
                                               "doubled")],
                         [2 * (4000 + bad), 2 * 4000, 2 * bad, 0, 0])
        told = (self.folder / "out/bad_records/pass-00000.tsv").read_text().splitlines()
        self.assertEqual(len(told), bad)

    def test_one_more_stops_before_anything_is_trained(self) -> None:
        done = self.flux("run", self.job("bad_records: 59"), code=None)
        self.assert_refused(done, "a.txt:", "more than data.bad_records: 59")
        self.assertFalse((self.folder / "out/summary.json").exists())

    def test_in_a_cluster_and_with_one_key_per_example(self) -> None:
        self.flux("run", self.job("bad_records: 60"), "--servers", "2", "--workers", "2",
                  *sets(**{"data.key_per_example": "true", "deterministic": "false"}))
        summary = json.loads((self.folder / "out/summary.json").read_text())
        self.assertEqual([summary[k] for k in ("applied_once", "skipped", "lost", "doubled")],
                         [8000, 2 * self.bad, 0, 0])

    def test_predict_wants_every_record(self) -> None:
        job = self.job("bad_records: 60")
        self.flux("run", job)
        self.assert_refused(self.flux("predict", job, "--out", "p.tsv", code=None), "t.txt:501:1:")


if __name__ == "__main__":
    unittest.main()
