"""The guard names sick trainings while they run, and says nothing of those that are well."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import unittest
from typing import Any

from _cluster import ClusterCase
from _guard import DEEP, TWO_HEADS, GuardCase, job, relabel, shuffled
from _support import SOURCE

EXAMPLES = 60_000
SGD = "{rule: sgd, lr: RATE}"


class Guard(GuardCase):
    def test_sick_runs_are_named(self) -> None:
        self.make_data(EXAMPLES)
        shuffled(self.path("train.txt"), self.path("shuffled.txt"))
        shuffled(self.path("test.txt"), self.path("shuffled_test.txt"))
        relabel(self.path("test.txt"), self.path("turned_test.txt"), lambda y: str(1 - int(y)))
        draw = random.Random(3)
        relabel(self.path("train.txt"), self.path("two.txt"),
                lambda y: f"{y},{int(draw.random() < 0.4)}")
        relabel(self.path("test.txt"), self.path("two_test.txt"), lambda y: f"{y},{y}")
        sick: list[tuple[str, set[str], str]] = [
            ("rate_100", {"worse_than_constant", "overconfident"}, job("rate_100", rate=5.0)),
            ("deep_rate_100", {"worse_than_constant", "overconfident", "dead_units"},
             job("deep_rate_100", net=DEEP, rate=5.0, dense=0.1)),
            ("shuffled_labels", {"not_learning"},
             job("shuffled_labels", rate=0.005, train="shuffled.txt", test="shuffled_test.txt")),
            ("shuffled_deep", {"not_learning", "test_auc_of_chance"},
             job("shuffled_deep", net=DEEP, rate=0.002, train="shuffled.txt",
                 test="shuffled_test.txt")),
            ("dead_relu", {"dead_units"}, job("dead_relu", net=DEEP, dense=3.0)),
            ("diverges", {"worse_than_constant", "overconfident"},
             job("diverges", rate=1000.0, rule=SGD)),
            ("no_rate", {"not_learning"}, job("no_rate", rate=1e-9, dense=1e-9)),
            ("no_rate_deep", {"not_learning"},
             job("no_rate_deep", net=DEEP, rate=1e-9, dense=1e-9)),
            ("large_init", {"worse_than_constant", "overconfident"},
             job("large_init", net=DEEP, init="init_scale: 100", rate=1e-4, dense=1e-4)),
            ("squares", {"worse_than_constant", "not_learning"},
             job("squares", loss="mse_loss", rate=40.0, rule=SGD, dense=0.1)),
            ("other_test", {"test_auc_of_chance"}, job("other_test", test="shuffled_test.txt")),
            ("turned_test", {"test_auc_of_chance", "test_worse_than_constant"},
             job("turned_test", test="turned_test.txt")),
            ("one_head", {"not_learning"},
             job("one_head", net=TWO_HEADS, rate=0.01, train="two.txt", test="two_test.txt",
                 labels="labels: [label0, label1], ")),
        ]
        self.assertGreaterEqual(len(sick), 10)
        for name, ids, text in sick:
            with self.subTest(sick=name):
                found = self.warned(name, text)
                print(name, sorted(found))
                self.assertTrue(found & ids, found)
        parts = {w["part"] for w in self.summary("out/one_head")["warnings"]}
        self.assertIn("buy", parts)
        self.assertNotIn("click", parts)

    def test_words_that_fly_apart(self) -> None:
        self.flux("data", "gen", "corpus", "--examples", "12000", "--out", "train.txt")
        self.flux("data", "vocab", "train.txt", "--out", "vocab.txt")
        text = (SOURCE / "models/word2vec.yaml").read_text()
        text = re.sub(r"(train|vocabulary): data/made/corpus/", r"\1: ", text)
        text = text.replace("epochs: 5", "epochs: 1").replace("output: out/models/", "output: out/")
        self.assertEqual(self.warned("word2vec", text), set())
        text = text.replace("lr: 1}", "lr: 4}").replace("out/word2vec", "out/apart")
        self.assertTrue(self.warned("apart", text) & {"loss_rises", "gradient_blow_up"})

    def test_well_runs_are_not_warned_of(self) -> None:
        self.make_data(EXAMPLES)
        rare = random.Random(5)
        # One in 300 of the positives stays one: labels of about 0.1 %.
        for name in ("train.txt", "test.txt"):
            relabel(self.path(name), self.path(f"rare_{name}"),
                    lambda y: str(int(int(y) and rare.random() < 1 / 300)))
        self.flux("data", "gen", "feasign", "--kind", "fields", "--hours", "6", "--examples",
                  "10000", "--drift", "0.1", "--churn", "0.1", "--out", "hours")
        hours = sorted(str(p.relative_to(self.folder)) for p in self.path("hours").rglob("*.txt"))
        jobs = {
            "linear": job("linear"),
            "deep": job("deep", net=DEEP),
            "rare": job("rare", train="rare_train.txt", test="rare_test.txt"),
            "rare_deep": job("rare_deep", net=DEEP, train="rare_train.txt",
                             test="rare_test.txt"),
            "squares": job("squares", loss="mse_loss", rate=0.02),
            "drift": job("drift", train=f"[{', '.join(hours)}]"),
        }
        for name, text in jobs.items():
            with self.subTest(well=name):
                self.assertEqual(self.warned(name, text), set())
        # Resumed: what was learnt before is no standstill.
        self.path("more.yaml").write_text(job("deep", net=DEEP) + "passes:\n"
                                          "  - {name: train, train: train.txt}\n"
                                          "  - {name: more, train: train.txt}\n")
        self.flux("run", "more.yaml", code=None)
        self.assertEqual(self.summary("out/deep")["warnings"], [])

    def test_events_and_exit_code(self) -> None:
        self.make_data(EXAMPLES)
        shuffled(self.path("test.txt"), self.path("shuffled_test.txt"))
        self.path("job.yaml").write_text(job("told", rate=5.0, test="shuffled_test.txt"))
        done = self.flux("run", "job.yaml", "--json", code=0)
        events = [json.loads(line) for line in done.out.splitlines()]
        warned = {event["id"]: event for event in events if event["event"] == "warning"}
        early = {"worse_than_constant", "overconfident"} & set(warned)
        self.assertTrue(early, warned)
        self.assertIn("test_auc_of_chance", warned)
        self.assertIn("learning rate", warned[early.pop()]["text"])
        summary = events[-1]["summary"]
        self.assertEqual(summary["quality"], "suspect")
        self.assertEqual({w["id"] for w in summary["warnings"]}, set(warned))


class GuardCluster(GuardCase, ClusterCase):
    """Coordinators that are killed: the next one warns of what is sick, and of nothing else."""

    def setUp(self) -> None:
        super().setUp()
        self.make_data(EXAMPLES)

    def train(self, text: str, name: str) -> set[str]:
        self.path("job.yaml").write_text(text)
        running = self.start_training("run", "job.yaml", "--set", "epochs=6", "--threads", "1",
                                      "--servers", "2", "--workers", "2")
        os.kill(self.record()["pid"], signal.SIGKILL)
        line = "coordinator ended: killed by signal 9"
        self.assertIsNotNone(running.wait_line(line), "".join(running.lines))
        done = running.finish()
        self.assertEqual(done.code, 0, done.text)
        return {warning["id"] for warning in self.summary(f"out/{name}")["warnings"]}

    def record(self) -> dict[str, Any]:
        loaded = json.loads(next(self.path("out").glob("*/cluster/coordinator.json")).read_text())
        assert isinstance(loaded, dict)
        return loaded

    def test_a_well_run_is_taken_over(self) -> None:
        self.assertEqual(self.train(job("well", batch=50, extra="shards: 4"), "well"), set())

    def test_a_sick_run_is_taken_over(self) -> None:
        text = job("sick", rate=1e-9, dense=1e-9, batch=50, extra="shards: 4")
        self.assertIn("not_learning", self.train(text, "sick"))


if __name__ == "__main__":
    unittest.main()
