"""Features of every kind through all roles: tables of some slots, values, computed features."""

from __future__ import annotations

import math
import unittest
from collections import defaultdict

from _feasign import COLUMNS, job_text, write_lines
from _support import Case, sets

RECORDS = 1000
LR = 0.5
BATCH = 20
BOUNDARIES = [0.5, 2, 8]
LINEAR = f"""\
name: linear
data:
  format: feasign
  train: train.txt
  batch: {BATCH}
  shuffle: false
{COLUMNS}  features:
    - {{name: city_hash, op: hash, of: city}}
    - {{name: bucket, op: bucketize, of: price, boundaries: {BOUNDARIES}}}
    - {{name: tags_city, op: cross, of: [tags, city_hash, bucket], limit: 2}}
epochs: 2
deterministic: true
tables:
  - name: a
    dim: 1
    init: zero
    slots: [user, city_hash, bucket, tags_city]
    optimizer: {{rule: sgd, lr: {LR}}}
  - {{name: b, dim: 1, init: zero, slots: [item, tags], optimizer: {{rule: sgd, lr: {LR}}}}}
model:
  layers:
    - {{name: wa, op: embedding, table: a, combine: sum}}
    - {{name: wb, op: embedding, table: b, combine: sum, pool: mean}}
    - {{name: z, op: add, inputs: [wa, wb]}}
    - {{name: loss, op: logistic_loss, inputs: [z, label]}}
output: out
"""
Weighted = list[tuple[tuple[object, ...], float]]


def plain_features(line: str) -> tuple[int, Weighted]:
    """The label, and what each weight of a linear model is multiplied by, read word by word."""
    label, *words = line.split()
    keys: dict[str, list[tuple[object, float]]] = defaultdict(list)
    price = 0.0
    for word in words:
        name, key, *value = word.split(":")
        if name == "price":
            price = float(key)
        else:
            keys[name].append((key, float(value[0]) if value else 1.0))
    bucket = sum(price >= boundary for boundary in BOUNDARIES)
    found: Weighted = [(("bucket", bucket), 1.0)]
    found += [((name, key), 1.0) for name in ("user", "city") for key, _ in keys[name]]
    crossed = [((tag, city), value) for tag, value in keys["tags"] for city, _ in keys["city"]]
    found += [(("tags_city", *pair, bucket), value) for pair, value in crossed[:2]]
    for name in ("item", "tags"):  # one space of keys, the mean of each slot
        whole = sum(abs(value) for _, value in keys[name])
        found += [(("item", key), value / whole) for key, value in keys[name]]
    return int(label), found


def plain_predictions(train: list[str], test: list[str], epochs: int) -> list[float]:
    """Of a linear model, trained batch by batch with the mean gradient."""
    weight: dict[tuple[object, ...], float] = defaultdict(float)

    def probability(features: Weighted) -> float:
        return 1 / (1 + math.exp(-sum(weight[key] * value for key, value in features)))

    examples = [plain_features(line) for line in train]
    for _ in range(epochs):
        for first in range(0, len(examples), BATCH):
            batch = examples[first:first + BATCH]
            gradient: dict[tuple[object, ...], float] = defaultdict(float)
            for label, features in batch:
                off = probability(features) - label
                for key, value in features:
                    gradient[key] += off * value / len(batch)
            for key, g in gradient.items():
                weight[key] -= LR * g
    return [probability(plain_features(line)[1]) for line in test]


class Features(Case):
    def setUp(self) -> None:
        super().setUp()
        write_lines(self.folder / "train.txt", RECORDS, 1)
        write_lines(self.folder / "test.txt", 300, 2)

    def write_job(self, name: str, **settings: object) -> str:
        (self.folder / name).write_text(job_text(**settings))  # type: ignore[arg-type]
        return name

    def evaluate(self, job: str, settings: list[str]) -> str:
        """All metrics of the newest checkpoint."""
        return self.flux("eval", job, *settings).out.split(" · model ")[0]

    def test_tables_of_some_slots_train_the_same_model(self) -> None:
        """As a job whose tables have rows for all keys, of which layers read some: bit by bit."""
        found = []
        for in_tables in (True, False):
            job = self.write_job("job.yaml", in_tables=in_tables)
            self.flux("run", job, "--fresh", *sets(deterministic=True))
            self.assert_exact("out", RECORDS)
            found.append(self.summary("out"))
        for name in ("train_logloss", "train_auc", "logloss", "auc"):
            self.assertEqual(found[0][name], found[1][name], name)
        self.assertLess(found[0]["rows"], found[1]["rows"] * 0.75)
        self.assertGreater(found[0]["auc"], 0.6)

    def test_training_equals_a_plain_model(self) -> None:
        """Values, crosses, buckets, text, means and tables of some slots, against plain Python."""
        (self.folder / "linear.yaml").write_text(LINEAR)
        self.flux("run", "linear.yaml")
        self.flux("predict", "linear.yaml", "--input", "test.txt", "--out", "p.txt")
        got = [float(line) for line in (self.folder / "p.txt").read_text().split()]
        train = (self.folder / "train.txt").read_text().splitlines()
        test = (self.folder / "test.txt").read_text().splitlines()
        want = plain_predictions(train, test, epochs=2)
        self.assertEqual(len(got), len(want))
        self.assertGreater(max(want) - min(want), 0.3)
        for i, (mine, plain) in enumerate(zip(got, want, strict=True)):
            self.assertAlmostEqual(mine, plain, delta=2e-5, msg=test[i])

    def test_every_mode_counts_every_example_once(self) -> None:
        job = self.write_job("job.yaml")
        for mode in ("async", "half_async", "sync"):
            with self.subTest(mode=mode):
                self.flux("run", job, "--fresh", "--servers", "2", "--workers", "2", "--threads",
                          "2", *sets(mode=mode, epochs=2, wire="bf16"))
                self.assert_exact("out", RECORDS * 2)
                self.assertGreater(self.summary("out")["auc"], 0.6)

    def test_a_cluster_trains_what_one_process_does(self) -> None:
        """The same bits after pushes over the wire, replicas and a checkpoint that is read back."""
        job = self.write_job("job.yaml")
        one = sets(deterministic=True, mode="sync")
        self.flux("run", job, *one)
        alone = self.summary("out")
        evaluated = self.evaluate(job, one)
        self.flux("run", job, "--fresh", "--servers", "2", "--workers", "1", "--threads", "1", *one)
        self.assertEqual(self.summary("out")["model_hash"], alone["model_hash"])
        self.assertEqual(self.evaluate(job, one), evaluated)

    def test_what_is_converted_trains_the_same_network(self) -> None:
        """The section that is printed has the features and the batch of the job, too."""
        (self.folder / "linear.yaml").write_text(LINEAR)
        self.flux("run", "linear.yaml")
        want = self.summary("out")["model_hash"]
        rest = LINEAR[LINEAR.index("epochs:"):]
        for to in ("blocks", "feasign"):
            section = self.flux("data", "convert", "--job", "linear.yaml", "--to", to,
                                "--out", f"a.{to}").out
            (self.folder / f"{to}.yaml").write_text(section + "  shuffle: false\n" + rest)
            self.flux("run", f"{to}.yaml", *sets(output=f"out-{to}"))
            self.assertEqual(self.summary(f"out-{to}")["model_hash"], want, section)

    def test_before_a_run(self) -> None:
        job = self.write_job("job.yaml")
        self.assertIn("3 tables", self.flux("run", job, "--smoke", "5").out)
        whole = self.write_job("whole.yaml", in_tables=False)

        def rows(name: str) -> int:
            text = self.flux("run", name, "--dry-run").out
            line = next(line for line in text.splitlines() if "rows over all tables" in line)
            return int(line.split("about ")[1].split()[0].replace(",", ""))

        self.assertLess(rows(job), rows(whole))
        self.flux("run", job)
        self.assertEqual(self.summary("out")["rows"], rows(job))

    def test_another_feature_is_another_model(self) -> None:
        job = self.write_job("job.yaml")
        self.flux("run", job)
        self.assert_refused(
            self.flux("run", job, *sets(data__features__city_small__modulus=12, epochs=2),
                      code=None), "data.features.city_small", "modulus 11", "modulus 12")


if __name__ == "__main__":
    unittest.main()
