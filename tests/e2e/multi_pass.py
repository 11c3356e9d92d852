"""Passes: trained in order, accounted together, added later, resumed in the middle."""

from __future__ import annotations

import signal
import unittest

from _support import Case, write_data

JOB = """
name: days
output: out
threads: 2
data: {batch: 5, key_per_example: true}
epochs: EPOCHS
shards: 8
tables:
  - {name: counts, dim: 1, init: zero, optimizer: {rule: sgd, lr: 0.1}}
model:
  layers:
    - {name: logit, op: embedding, table: counts, combine: sum}
    - {name: loss, op: logistic_loss, inputs: [logit, label]}
checkpoint: {every_s: 0.02}
passes:
"""
RECORDS = {"monday": 700, "tuesday": 1103, "wednesday": 501}


class MultiPass(Case):
    def setUp(self) -> None:
        super().setUp()
        for seed, (name, count) in enumerate(RECORDS.items()):
            write_data(self.folder / f"{name}.tsv", count, seed)

    def write_job(self, *passes: str, epochs: int = 2) -> None:
        lines = [f"  - {{name: {name}, train: {name}.tsv}}\n" for name in passes]
        text = JOB.replace("EPOCHS", str(epochs)) + "".join(lines)
        (self.folder / "job.yaml").write_text(text)

    def test_two_passes_then_a_third(self) -> None:
        self.write_job("monday", "tuesday")
        done = self.flux("run", "job.yaml")
        self.assertLess(done.out.index("pass monday: 700"), done.out.index("pass tuesday: 1,103"))
        self.assert_exact("out", 2 * (700 + 1103))

        self.write_job("monday", "tuesday", "wednesday")
        done = self.flux("run", "job.yaml")
        self.assertIn("2 passes closed", done.out)
        self.assertNotIn("pass tuesday", done.out)
        self.assertEqual(self.summary("out")["examples"], 2 * 501)
        self.assert_exact("out", 2 * (700 + 1103 + 501))
        shown = self.flux("inspect", "out", "--verify").out
        for name, count in (("monday", "700"), ("tuesday", "1,103"), ("wednesday", "501")):
            self.assertIn(f"pass {name}: closed, {count} examples x 2", shown)

        done = self.flux("run", "job.yaml")
        self.assertIn("nothing to train", done.out)
        self.assertEqual(self.summary("out")["examples"], 0)
        self.assert_exact("out", 2 * (700 + 1103 + 501))

    def end_in_the_second_pass(self, kill: bool, epochs: int) -> bool:
        """False: the job came to its end before it was ended."""
        self.write_job("monday", "tuesday", epochs=epochs)
        running = self.start("run", "job.yaml", "--fresh")
        self.assertIsNotNone(running.wait_line(" examples x "))  # the old ones are gone
        while not any('"open_pass": "tuesday"' in text for text in self.manifests("out")):
            if running.ended_within(0.005):
                return False
        if kill:
            return "model:" not in running.kill().text
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertIn("lost 0 · doubled 0", done.text)
        return done.code == 130

    def test_resume_in_the_second_pass(self) -> None:
        for kill in (False, True):
            with self.subTest(kill=kill):
                # However late this test gets its turns, some length of the job is enough.
                epochs = next(epochs for epochs in (400, 1600, 6400, 25600)
                              if self.end_in_the_second_pass(kill, epochs))
                again = self.flux("run", "job.yaml")
                self.assertIn("1 pass closed", again.out)
                self.assertRegex(again.out, r"pass tuesday: .*; [\d,]+ already applied")
                self.assertNotIn("pass monday", again.out)
                self.assert_exact("out", epochs * 1803)
                self.assert_tidy("out")

    def test_stop_between_passes(self) -> None:
        """A stop right when a pass has closed: that pass must not be counted twice."""
        self.write_job("monday", "tuesday", epochs=1)
        for _ in range(5):
            running = self.start("run", "job.yaml", "--fresh")
            self.assertIsNotNone(running.wait_line("pass monday: 700"))
            running.signal(signal.SIGINT)
            done = running.finish()
            self.assertIn(done.code, (0, 130), done.text)
            self.assertIn("lost 0 · doubled 0", done.text)
            self.flux("run", "job.yaml")
            self.assert_exact("out", 1803)

    def test_passes_are_not_exchanged(self) -> None:
        self.write_job("monday", "tuesday")
        self.flux("run", "job.yaml")
        self.write_job("monday", "wednesday")
        done = self.flux("run", "job.yaml", code=None)
        self.assert_refused(done, "passes.1: 'tuesday' in the checkpoint, 'wednesday' in the job")
        self.write_job("monday")
        done = self.flux("run", "job.yaml", code=None)
        self.assert_refused(done, "passes.1: 'tuesday' in the checkpoint, 'nothing' in the job")

        self.assertIn("the passes of the job are not those of the checkpoint", done.err)
        self.assertNotIn("another model", done.err)

    def write_rolling(self, *days: str) -> None:
        lines = [f"  - {{train: {day}.tsv}}\n" for day in days]
        (self.folder / "job.yaml").write_text(JOB.replace("EPOCHS", "1") + "".join(lines))

    def test_unnamed_passes_do_not_roll(self) -> None:
        """pass-0 of another day is not the pass that is closed: its data would never be read."""
        self.write_rolling("monday", "tuesday")
        self.flux("run", "job.yaml")
        self.write_rolling("tuesday", "wednesday")
        for more in ([], ["--dry-run"]):
            done = self.flux("run", "job.yaml", *more, code=None)
            self.assert_refused(done, "pass pass-0 was closed with monday.tsv",
                                "the job names tuesday.tsv for it now", "output=DIR")
        self.assert_exact("out", 700 + 1103)
        (self.folder / "monday.tsv").unlink()  # nobody reads it again
        self.write_rolling("monday", "tuesday", "wednesday")
        self.flux("run", "job.yaml")
        self.assert_exact("out", 700 + 1103 + 501)

    def test_epochs_of_an_open_pass(self) -> None:
        """More of them are welcome; fewer than were trained are refused, not called doubled."""
        self.write_job("monday", epochs=1000)
        running = self.start("run", "job.yaml")
        self.wait_checkpoint("out", running)
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().code, 130)
        trained = self.summary("out")["expected"] / RECORDS["monday"]
        self.assertGreater(trained, 1)
        self.write_job("monday", epochs=1)
        done = self.flux("run", "job.yaml", code=None)
        self.assert_refused(done, "pass monday was trained for more than 1 epochs", "--fresh")
        self.write_job("monday", epochs=1001)
        self.flux("run", "job.yaml")
        self.assert_exact("out", 1001 * RECORDS["monday"])

    def test_open_pass_is_not_exchanged(self) -> None:
        self.write_job("monday", "tuesday", epochs=400)
        running = self.start("run", "job.yaml")
        self.assertIsNotNone(running.wait_line("pass tuesday: 1,103"))
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().code, 130)
        self.write_job("monday", "wednesday", epochs=400)
        done = self.flux("run", "job.yaml", code=None)
        self.assert_refused(done, "'tuesday' is open in the checkpoint, 'wednesday' in the job")


if __name__ == "__main__":
    unittest.main()
