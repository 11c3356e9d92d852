"""A damaged checkpoint is noticed and its file named; one of another model or cut is refused."""

from __future__ import annotations

import random
import shutil
import signal
import unittest
from pathlib import Path

from _support import Case, Done, example, sets, write_data

ROW = r"^ +[\d,]+ +\d+\.\d+ "
RECORDS = 1000
EPOCHS = 300


class CheckpointDamage(Case):
    """One stopped job in setUp, so that its checkpoint has an open pass with its geometry."""

    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "train.tsv", RECORDS)
        stopped = self.start(*self.command("run"))
        self.assertIsNotNone(stopped.wait_line(ROW))
        stopped.signal(signal.SIGINT)
        self.assertEqual(stopped.finish().code, 130)
        self.checkpoint = self.checkpoints("out")[-1]
        self.files = sorted(self.checkpoint.iterdir())
        names = [path.name for path in self.files]
        self.assertEqual(names, ["geometry.json", "manifest.json", "shard-00000", "shard-00001",
                                 "shard-00002", "shard-00003", "shard-00004"])

    def command(self, verb: str, **fields: object) -> list[str]:
        settings = sets(
            data__train="train.tsv", data__test="train.tsv", output="out", data__batch=5,
            epochs=EPOCHS, shards=4, checkpoint__every_s=0, tables__embedding__dim=2,
            model__layers__fc1__units=4, model__layers__fc2__units=4, model__layers__fc3__units=4)
        return [verb, example("ctr_dnn"), *settings, *sets(**fields)]  # the last one counts

    def commands(self) -> list[list[str]]:
        return [self.command("run"), self.command("eval"), ["inspect", "out", "--verify"]]

    def assert_bad_file(self, path: Path, what: str) -> None:
        for command in self.commands():
            with self.subTest(file=path.name, what=what, verb=command[0]):
                done = self.flux(*command, code=None)
                self.assert_refused(done, f"{self.checkpoint.name}/{path.name}", "--fresh")

    def test_flipped_bits(self) -> None:
        draw = random.Random(7)
        for path in self.files:
            good = path.read_bytes()
            middle = draw.randrange(1, len(good) - 1)
            for at in (0, middle, len(good) - 1):
                bad = bytearray(good)
                bad[at] ^= 1 << draw.randrange(8)
                path.write_bytes(bad)
                self.assert_bad_file(path, f"bit flipped in byte {at} of {len(good)}")
            path.write_bytes(good)
        self.flux("inspect", "out", "--verify")

    def test_any_bit_of_small_files(self) -> None:
        """Many more positions, with the one command that reads everything and changes nothing."""
        draw = random.Random(8)
        for path in self.files:
            good = path.read_bytes()
            for at in draw.sample(range(len(good)), min(len(good), 12)):
                bad = bytearray(good)
                bad[at] ^= 1 << draw.randrange(8)
                path.write_bytes(bad)
                done = self.flux("inspect", "out", "--verify", code=None)
                with self.subTest(file=path.name, byte=at):
                    self.assert_refused(done, path.name)
            path.write_bytes(good)

    def test_truncated_longer_and_missing(self) -> None:
        for path in self.files:
            good = path.read_bytes()
            for bad, what in ((good[:-1], "one byte short"), (b"", "empty"),
                              (good + b"\n", "a byte too long")):
                path.write_bytes(bad)
                self.assert_bad_file(path, what)
            if path.name != "manifest.json":  # without it there is no checkpoint
                path.unlink()
                self.assert_bad_file(path, "missing")
            path.write_bytes(good)
        self.flux("inspect", "out", "--verify")

    def test_swapped_shards(self) -> None:
        """Whole and sound, but not the file of that name."""
        first, second = self.checkpoint / "shard-00000", self.checkpoint / "shard-00001"
        good, other = first.read_bytes(), second.read_bytes()
        first.write_bytes(other)
        second.write_bytes(good)
        for command in self.commands():
            done = self.flux(*command, code=None)
            self.assert_refused(done, "shard-0000")

    def test_half_written_is_never_loaded(self) -> None:
        half = self.checkpoint.with_name("000009")
        shutil.copytree(self.checkpoint, half)
        (half / "manifest.json").rename(half / "manifest.json.tmp")
        self.assertIn(self.checkpoint.name, self.flux("inspect", "out").out)
        self.assertIn(self.checkpoint.name, self.flux(*self.command("eval")).out)
        self.assertTrue(half.exists(), "only the writer may remove it")
        (self.checkpoint / "manifest.json.tmp").write_text("half of a manif")
        done = self.flux(*self.command("run"))
        self.assertIn(f"resumed from out/checkpoints/{self.checkpoint.name} ", done.out)
        self.assertFalse(half.exists())
        self.assert_exact("out", RECORDS * EPOCHS)
        self.assert_tidy("out")

    def test_without_manifest_nothing_is_resumed(self) -> None:
        (self.checkpoint / "manifest.json").unlink()
        self.assert_refused(self.flux(*self.command("eval"), code=None), "no checkpoint in out")
        self.assert_refused(self.flux("inspect", "out", code=None), "no checkpoint in out")
        self.assertNotIn("resumed", self.flux(*self.command("run", epochs=1)).out)
        self.assert_exact("out", RECORDS)

    def refused(self, **fields: object) -> Done:
        before = {path: path.read_bytes() for path in self.files}
        done = self.flux(*self.command("run", **fields), code=None)
        self.assertEqual({path: path.read_bytes() for path in self.files}, before)
        return done

    def test_another_model(self) -> None:
        for field, now, text in (
                ("tables__embedding__dim", 3, "tables.embedding.dim: 2 in the checkpoint, 3 in"),
                ("tables__embedding__init", "zero", "tables.embedding.init: uniform in the"),
                ("tables__embedding__optimizer", "{rule: sgd}",
                 "tables.embedding.optimizer.rule: adagrad in the checkpoint, sgd in the job"),
                ("dense_optimizer__rule", "sgd", "dense_optimizer.rule: adam in the checkpoint"),
                ("model__layers__fc1__units", 5, "fc1"),
                ("model__layers__fc2__activation", "tanh", "fc2"),
                ("seed", 2, "seed: 1 in the checkpoint, 2 in the job"),
                ("shards", 5, "shards: 4 in the checkpoint, 5 in the job"),
                ("data__dense_transform", "none", "data.dense_transform: log1p in the")):
            with self.subTest(field=field):
                self.assert_refused(self.refused(**{field: now}), text, "--fresh")
        done = self.refused(seed=2, tables__embedding__dim=3)
        self.assert_refused(done, "seed: 1", "tables.embedding.dim: 2")  # all of them

    def test_another_cut(self) -> None:
        self.assert_refused(self.refused(data__batch=6), "batch", "--fresh")
        self.assert_refused(self.refused(data__shuffle=False), "shuffle", "--fresh")
        train = self.folder / "train.tsv"
        good = train.read_text()
        train.write_text(good + good.split("\n", 1)[0] + "\n")
        self.assert_refused(self.refused(), "train.tsv", f"{train.stat().st_size} bytes")
        train.unlink()
        self.assert_refused(self.refused(), "train.tsv")
        train.write_text(good)
        self.flux(*self.command("run"))
        self.assert_exact("out", RECORDS * EPOCHS)

    def test_learning_rate_may_change(self) -> None:
        done = self.flux(*self.command("run", dense_optimizer__lr=0.0005))
        self.assertIn("resumed from", done.out)

    def test_fresh_starts_over(self) -> None:
        (self.checkpoint / "manifest.json").write_text("nothing of use")
        self.assert_refused(self.flux(*self.command("run"), code=None), "manifest.json", "--fresh")
        done = self.flux(*self.command("run", epochs=1, tables__embedding__dim=3), "--fresh")
        self.assertNotIn("resumed", done.out)
        self.assertIsNone(self.summary("out")["resumed_from"])
        self.assert_exact("out", RECORDS)


if __name__ == "__main__":
    unittest.main()
