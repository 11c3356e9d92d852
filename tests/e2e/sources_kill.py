"""A worker of a cluster is killed while it reads each kind of source: every example counts once."""

from __future__ import annotations

import gzip
import os
import signal
import unittest

from _bad_files import zstd
from _cluster import ClusterCase
from _feasign import job_text, write_lines
from _support import FLUX

EPOCHS = 30


class SourcesKill(ClusterCase):
    def setUp(self) -> None:
        super().setUp()
        write_lines(self.folder / "train.txt", self.records, 1)
        write_lines(self.folder / "test.txt", 50, 2)
        (self.folder / "job.yaml").write_text(job_text(batch=self.batch))

    def job(self, **fields: object) -> list[str]:
        return ["job.yaml", *(flag for name, value in fields.items()
                              for flag in ("--set", f"{name.replace('__', '.')}={value}"))]

    def pack(self, name: str, parts: int, pack: object) -> None:
        lines = (self.folder / "train.txt").read_bytes().splitlines(keepends=True)
        step = -(-len(lines) // parts)
        assert callable(pack)
        with (self.folder / name).open("wb") as out:
            for at in range(0, len(lines), step):
                out.write(pack(b"".join(lines[at:at + step])))

    def kill(self, train: str, **fields: object) -> None:
        job = self.job(epochs=EPOCHS, data__train=train, **fields)
        running = self.start_training("run", *job, "--threads", "1", "--servers", "2",
                                      "--workers", "3")
        pids = self.pids(running)
        os.kill(pids["worker-1"], signal.SIGKILL)
        done = running.finish()
        self.assertEqual(done.code, 0, done.text)
        self.assertIn("worker-1 ended: killed by signal 9 (Killed); started again", done.text)
        self.assert_exact("out", self.records * EPOCHS)
        self.assert_gone(pids)

    def convert(self, to: str) -> dict[str, object]:
        """The fields of a job that reads the same examples in another format."""
        self.flux("data", "convert", "--job", "job.yaml", "--to", to, "--out", f"train.{to}",
                  "train.txt")
        self.flux("data", "convert", "--job", "job.yaml", "--to", to, "--out", f"test.{to}",
                  "test.txt")
        values = "[{name: user, values: true}, {name: item, values: true}, " \
                 "{name: tags, values: true}, {name: city, values: true}]"
        return {"data__format": to, "data__test": f"test.{to}", "data__slots": values}

    def test_gzip(self) -> None:
        self.pack("train.gz", 1, lambda text: gzip.compress(text, mtime=0))
        self.kill("train.gz")

    def test_zstd_of_many_frames(self) -> None:
        self.pack("train.zst", 20, zstd)
        self.kill("train.zst")

    def test_pipe(self) -> None:
        self.pack("train.gz", 3, lambda text: gzip.compress(text, mtime=0))
        (self.folder / "test.gz").write_bytes(
            gzip.compress((self.folder / "test.txt").read_bytes(), mtime=0))
        self.kill("train.gz", data__pipe="[gzip, -dc]", data__test="test.gz")

    def test_blocks(self) -> None:
        self.kill("train.blocks", **self.convert("blocks"))

    @unittest.skipUnless((FLUX.parent / "flux_parquet.so").exists(), "no Parquet plug-in")
    def test_parquet(self) -> None:
        self.kill("train.parquet", **self.convert("parquet"), data__raw_keys="true")


if __name__ == "__main__":
    unittest.main()
