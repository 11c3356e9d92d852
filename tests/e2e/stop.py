"""Ctrl-C: the first stops after a checkpoint and says how to go on, the second at once."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
import unittest

from _kill import TRAINING
from _support import DEADLINE_S, Case, Running, example, sets, write_data

RECORDS = 3000
EPOCHS = 100
APART_S = 0.6  # sooner, two signals are one wish
ROW = r"^ +[\d,]+ +\d+\.\d+ "


class Stop(Case):
    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "my train.tsv", RECORDS)  # a blank: the command must be quoted

    def command(self) -> list[str]:
        return ["run", example("counting"), "--threads", "2",
                *sets(data__train="my train.tsv", output="out", data__batch=2, epochs=EPOCHS,
                      shards=8, checkpoint__every_s=0)]

    def interrupt(self, number: signal.Signals, *extra: str) -> Running:
        running = self.start(*self.command(), *extra)
        self.assertIsNotNone(running.wait_line(ROW), "the job ended before it could be stopped")
        running.signal(number)
        return running

    def test_resume_command(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                done = self.interrupt(number, "--fresh", "--summary", "end.json").finish()
                self.assertEqual(done.code, 130, done.text)
                self.assertIn("stopping; again to stop at once", done.text)
                self.assertIn("lost 0 · doubled 0", done.text)
                found = self.summary("out")
                self.assertEqual(found["state"], "stopped")
                self.assertEqual((found["lost"], found["doubled"]), (0, 0))
                self.assertTrue((self.folder / "end.json").is_file())
                self.assert_tidy("out")
                self.assertEqual(len(self.checkpoints("out")), 1)

                line = next(x for x in done.out.split("\n") if x.startswith("stopped; to go on: "))
                resume = shlex.split(line.removeprefix("stopped; to go on: "))
                self.assertNotIn("--fresh", resume)
                again = subprocess.run(resume, cwd=self.folder, capture_output=True, text=True,
                                       timeout=DEADLINE_S)
                self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
                self.assertIn("resumed from", again.stdout)
                self.assert_exact("out", RECORDS * EPOCHS)
                self.assertLess(self.summary("out")["examples"], RECORDS * EPOCHS)

    def test_twice_at_once_is_one_wish(self) -> None:
        """timeout(1) sends its signal to the process and again to its group."""
        running = self.interrupt(signal.SIGINT, "--fresh")
        self.assertIsNotNone(running.wait_line("again to stop at once"))
        running.signal(signal.SIGINT)
        running.signal(signal.SIGTERM)
        done = running.finish()
        self.assertEqual(done.code, 130, done.text)
        self.assertIn("stopped; to go on: ", done.text)
        self.assertEqual(self.summary("out")["state"], "stopped")
        self.assertEqual(len(self.checkpoints("out")), 1)

    def test_second_signal_stops_at_once(self) -> None:
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(signal=number.name):
                running = self.start(*self.command(), "--fresh")
                self.assertIsNotNone(running.wait_line(ROW))
                # The curve is saved at the end of the checkpoint. A pipe without a reader in the
                # place of its temporary file holds the process there for as long as we like.
                os.mkfifo(self.folder / "out" / "curve.tsv.tmp")
                running.signal(number)
                self.assertIsNotNone(running.wait_line("again to stop at once"))
                time.sleep(APART_S)
                running.signal(number)
                done = running.finish()
                self.assertEqual(done.code, code, done.text)
                self.assertNotIn("to go on", done.text)
                (self.folder / "out" / "curve.tsv.tmp").unlink()
        self.flux(*self.command())
        self.assert_exact("out", RECORDS * EPOCHS)
        self.assert_tidy("out")

    def test_stop_soon_after_a_resume(self) -> None:
        """Shards of a checkpoint differ by a few batches; stopping before those were trained again
        must not look like examples that were doubled."""
        often = sets(checkpoint__every_s=0.02)
        for line in ("resumed from", "resumed from", TRAINING, TRAINING):
            running = self.start(*self.command(), *often, "--fresh")
            self.assertIsNotNone(running.wait_line(TRAINING))
            self.wait_checkpoint("out", running)
            running.kill()
            running = self.start(*self.command(), *often)
            self.assertIsNotNone(running.wait_line(line))
            running.signal(signal.SIGINT)
            done = running.finish()
            self.assertEqual(done.code, 130, done.text)
            self.assertIn("resumed from", done.text)
            self.assertIn("lost 0 · doubled 0", done.text)
        self.flux(*self.command())
        self.assert_exact("out", RECORDS * EPOCHS)


if __name__ == "__main__":
    unittest.main()
