"""Kills a job at random moments, again and again, and shows that nothing was lost or doubled."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import NamedTuple

from _support import DEADLINE_S, Case, Running, example, sets, write_data

TRAINING = r"batches of \d+"  # the line that is printed just before the first batch


class Tally(NamedTuple):
    kills: int = 0
    in_training: int = 0
    resumed: int = 0
    completed: int = 0


class KillCase(Case):
    """`kills` is how often each job is killed; the slow test asks for more."""

    kills = 10

    def counting(self, records: int, epochs: int) -> list[str]:
        write_data(self.folder / "train.tsv", records)
        return ["run", example("counting"), "--threads", "2",
                *sets(data__train="train.tsv", output="out", data__batch=2, epochs=epochs,
                      shards=16, pull_ahead=2, checkpoint__every_s=0.02)]

    def ctr_dnn(self, records: int, epochs: int) -> list[str]:
        write_data(self.folder / "train.tsv", records)
        return ["run", example("ctr_dnn"), "--threads", "2",
                *sets(data__train="train.tsv", data__test="train.tsv", output="out",
                      data__batch=4, epochs=epochs, shards=8, pull_ahead=1,
                      checkpoint__every_s=0.02, model__layers__fc1__units=16,
                      model__layers__fc2__units=8, model__layers__fc3__units=8)]

    def kill_and_resume(self, command: Sequence[str], expected: int, seed: int) -> None:
        draw = random.Random(seed)
        length_s = self.undisturbed_s(command, expected)
        tally = Tally()
        fresh = True
        while tally.kills < self.kills:
            fresh, tally = self.one_run(command, expected, fresh, length_s, draw, tally)
        done = self.start(*command).finish()
        self.assertEqual(done.code, 0, done.text)
        self.assert_exact("out", expected)
        self.assert_tidy("out")
        print(f"{tally.kills} kills over {length_s:.2f} s of training: {tally.in_training} while "
              f"training, {tally.resumed} runs resumed, {tally.completed + 1} completions")
        self.assertGreaterEqual(tally.in_training, self.kills // 3)
        self.assertGreaterEqual(tally.resumed, self.kills // 4)

    def undisturbed_s(self, command: Sequence[str], expected: int) -> float:
        """Seconds from the first batch to the end, the scale for the moments of the kills."""
        running = self.start(*command)
        self.assertIsNotNone(running.wait_line(TRAINING))
        begin = time.monotonic()
        done = running.finish()
        self.assertEqual(done.code, 0, done.text)
        self.assert_exact("out", expected)
        return time.monotonic() - begin

    def one_run(self, command: Sequence[str], expected: int, fresh: bool, length_s: float,
                draw: random.Random, tally: Tally) -> tuple[bool, Tally]:
        """Starts the job and kills it at a drawn moment; returns whether to start over."""
        running = self.start(*command, *(["--fresh"] if fresh else []))
        if draw.random() < 0.75:  # else: some of the moments lie in the start-up
            running.wait_line(TRAINING)
        if running.ended_within(draw.random() * min(length_s, DEADLINE_S) * 0.7):
            return self.completed(running, expected, tally)
        text = running.kill().text
        resumed = tally.resumed + ("resumed from" in text)
        if running.process.returncode == 0:  # it ended just before the signal came
            return True, tally._replace(resumed=resumed)
        training = tally.in_training + ("batches of" in text)
        return False, Tally(tally.kills + 1, training, resumed, tally.completed)

    def completed(self, running: Running, expected: int, tally: Tally) -> tuple[bool, Tally]:
        done = running.finish()
        self.assertEqual(done.code, 0, done.text)
        self.assert_exact("out", expected)
        self.assert_tidy("out")
        resumed = tally.resumed + ("resumed from" in done.text)
        return True, tally._replace(resumed=resumed, completed=tally.completed + 1)
