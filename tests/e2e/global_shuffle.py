"""data.global_shuffle: a pass is trained in one random order of all its records."""

from __future__ import annotations

import json
import os
import random
import signal
import unittest
from typing import Any

from _kill import KillCase
from _support import FLUX, Case, sets

JOB = """
name: sorted
output: out
epochs: 1
shards: 4
data: {format: feasign, train: [a.txt], test: [t.txt], batch: 20, slots: [{name: user}], EXTRA}
tables:
  - {name: weight, dim: 1, optimizer: {rule: sgd, lr: 0.1}}
model:
  layers:
    - {name: sparse, op: embedding, table: weight, combine: sum}
    - {name: loss, op: logistic_loss, inputs: [sparse, label]}
"""


class GlobalShuffle(Case):
    def setUp(self) -> None:
        super().setUp()
        draw = random.Random(3)
        users = [draw.random() for _ in range(40)]
        made = []
        for _ in range(20_000):
            user = draw.randrange(40)
            made.append((int(draw.random() < users[user]), user))
        lines = [f"{label} user:{user}\n" for label, user in made]
        (self.folder / "t.txt").write_text("".join(lines[:2000]))
        # As a log that was written click after click: all zeros, then all ones.
        (self.folder / "a.txt").write_text("".join(sorted(lines[2000:])))

    def train(self, extra: str, *more: str) -> dict[str, Any]:
        (self.folder / "job.yaml").write_text(JOB.replace("EXTRA", extra))
        self.flux("run", "job.yaml", "--fresh", *more)
        summary: dict[str, Any] = json.loads((self.folder / "out/summary.json").read_text())
        self.assertEqual((summary["lost"], summary["doubled"]), (0, 0))
        self.assertEqual(summary["applied_once"], 18_000)
        return summary

    def loss(self, extra: str, *more: str) -> float:
        summary = self.train(extra, *more)
        return float(summary["test"]["loss"])

    def test_sorted_data_is_mixed(self) -> None:
        self.assertLess(self.loss("global_shuffle: true"), 0.65)
        made = self.flux("data", "head", "out/shuffled/pass-00000.blocks", "-n", "18000").out
        labels = [int(line[0]) for line in made.splitlines()]
        source = [int(line[0]) for line in (self.folder / "a.txt").read_text().splitlines()]
        self.assertEqual(sorted(labels), source)
        mean = sum(source) / len(source)
        for begin in range(0, 18_000, 2_000):
            self.assertAlmostEqual(sum(labels[begin:begin + 2_000]) / 2_000, mean, delta=0.06)

    def test_the_same_order_again_and_in_a_cluster(self) -> None:
        exact = sets(deterministic=True)
        one = self.train("global_shuffle: true", *exact)["model_hash"]
        self.assertEqual(self.train("global_shuffle: true", *exact)["model_hash"], one)
        self.loss("global_shuffle: true", "--servers", "2", "--workers", "2")

    def test_bad_records_stay_counted(self) -> None:
        with (self.folder / "a.txt").open("a") as file:
            file.write("1 user:x\n" * 7)
        self.assertEqual(self.train("global_shuffle: true, bad_records: 10")["skipped"], 7)

    def test_sources_that_change_before_a_resume_are_named(self) -> None:
        """As in a pass that is trained from them: until it is closed they stay as they are."""
        (self.folder / "job.yaml").write_text(JOB.replace("EXTRA", "global_shuffle: true"))
        source = self.folder / "a.txt"
        good = source.read_text()
        for output, arguments in (("one", ()), ("many", ("--servers", "1", "--workers", "1"))):
            long = sets(output=output, epochs=5000, checkpoint__every_s=0.02)
            source.write_text(good)
            running = self.start("run", "job.yaml", *long, *arguments)
            self.wait_checkpoint(output, running, '"open_pass"')
            running.signal(signal.SIGINT)
            self.assertEqual(running.finish().code, 130)
            for other, told in ((good.replace("user:1", "user:2"), "its content has changed"),
                                (good + "1 user:1\n", "bytes, was")):
                source.write_text(other)
                done = self.flux("run", "job.yaml", *long, *arguments, code=None)
                self.assertEqual(done.code, 2, done.text)
                self.assertRegex(done.text, f"a.txt: .*{told}")
            source.unlink()
            self.assertEqual(self.flux("run", "job.yaml", *long, *arguments, code=None).code, 2)
            source.write_text(good)  # the same again
            self.flux("run", "job.yaml", *long, *sets(stop__examples=1), *arguments)

    def test_what_it_does_not_go_with_is_said(self) -> None:
        (self.folder / "job.yaml").write_text(JOB.replace("EXTRA", "global_shuffle: true"))
        self.assert_refused(
            self.flux("run", "job.yaml", *sets(metrics__slices="[user]"), code=None),
            "data.global_shuffle does not go with metrics.slices")


class Memory(Case):
    """How much a run has at most, whatever shuffle_memory_mb says of the first records."""

    records = 2500

    def setUp(self) -> None:
        super().setUp()
        (self.folder / "t.txt").write_text("0 user:1\n")

    def write(self, long_first: bool) -> None:
        """Little by little: what this process has had counts for those that it starts."""
        rest = " ".join(f"user:{key}" for key in range(1000, 4000))
        with (self.folder / "a.txt").open("w") as file:
            for long in (long_first, not long_first):
                for i in range(self.records if long else 105_000):
                    file.write(f"1 user:{i} {rest}\n" if long else f"0 user:{i}\n")

    def most_of(self, *flags: str) -> int:
        """The most memory of a run that ends with its first batch."""
        (self.folder / "job.yaml").write_text(JOB.replace("EXTRA", ""))
        pid = os.spawnv(os.P_NOWAIT, FLUX, [  # noqa: S606  (not waited for by anyone else)
            str(FLUX), "run", str(self.folder / "job.yaml"), "--fresh",
            *sets(output=self.folder / "out", data__train=f"[{self.folder}/a.txt]",
                  data__test=f"[{self.folder}/t.txt]", data__batch=2, stop__examples=1, threads=2),
            *flags])
        _, status, usage = os.wait4(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        return usage.ru_maxrss * 1024

    def test_it_is_bounded(self) -> None:
        in_memory, room = self.records * 3000 * 8, 24 << 20
        for long_first in (False, True):
            self.write(long_first)
            without = self.most_of()
            for memory, least, most in ((1000, in_memory, 2 * in_memory), (4, 0, 4 << 20)):
                more = self.most_of(*sets(data__global_shuffle=True,
                                          data__shuffle_memory_mb=memory)) - without
                print(f"{long_first=}, shuffle_memory_mb {memory}: {more >> 20} MiB more")
                self.assertLess(more, most + room)
                self.assertGreater(more, least - room)


class Killed(KillCase):
    kills = 5

    def test_exactly_once(self) -> None:
        command = [*self.counting(records=3000, epochs=60), *sets(data__global_shuffle=True)]
        self.kill_and_resume(command, 3000 * 60, seed=5)


if __name__ == "__main__":
    unittest.main()
