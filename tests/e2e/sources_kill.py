"""Roles of a cluster are killed while it reads each kind of source: every example counts once.

Text that cannot be entered nearby (one zstd frame or a pipe above 16 MiB) and large row groups of
Parquet are leased in order and read by streams that stay open; there a worker and a server are
killed.
"""

from __future__ import annotations

import gzip
import random
import unittest
from collections.abc import Callable

from _bad_files import zstd
from _cluster import JobKillCase
from _feasign import job_text, write_lines
from _parquet import READY, WHY_NOT

EPOCHS = 30
LARGE_EPOCHS = 8
LARGE = 18 << 20  # bytes of text; above kNearBytes of flux/data/sources/text_file.h


def gzip_fast(text: bytes) -> bytes:
    return gzip.compress(text, 1, mtime=0)


class SourcesCase(JobKillCase):
    def setUp(self) -> None:
        super().setUp()
        write_lines(self.folder / "train.txt", self.records, 1)
        write_lines(self.folder / "test.txt", 50, 2)
        (self.folder / "test.gz").write_bytes(gzip_fast((self.folder / "test.txt").read_bytes()))
        (self.folder / "job.yaml").write_text(job_text(batch=self.batch))

    def pack(self, name: str, parts: int, pack: Callable[[bytes], bytes]) -> None:
        lines = (self.folder / "train.txt").read_bytes().splitlines(keepends=True)
        step = -(-len(lines) // parts)
        with (self.folder / name).open("wb") as out:
            for at in range(0, len(lines), step):
                out.write(pack(b"".join(lines[at:at + step])))

    def convert(self, to: str) -> dict[str, object]:
        """The fields of a job that reads the same examples in another format."""
        self.flux("data", "convert", "--job", "job.yaml", "--to", to, "--out", f"train.{to}",
                  "train.txt")
        self.flux("data", "convert", "--job", "job.yaml", "--to", to, "--out", f"test.{to}",
                  "test.txt")
        values = "[{name: user, values: true}, {name: item, values: true}, " \
                 "{name: tags, values: true}, {name: city, values: true}]"
        return {"data__format": to, "data__test": f"test.{to}", "data__slots": values}

    def kill_both(self, in_order: bool, train: str, **fields: object) -> None:
        self.train_under_kills("worker-1", "server-1", epochs=LARGE_EPOCHS, data__train=train,
                               **fields)
        cuts = [path.read_text() for path in self.folder.glob("out/geometry/*")]
        self.assertTrue(cuts)
        for cut in cuts:
            self.assertEqual(in_order, '"in_order"' in cut)


class SourcesKill(SourcesCase):
    def kill_worker(self, train: str, **fields: object) -> None:
        self.train_under_kills("worker-1", epochs=EPOCHS, data__train=train, **fields)

    def test_gzip(self) -> None:
        self.pack("train.gz", 1, gzip_fast)
        self.kill_worker("train.gz")

    def test_zstd_of_many_frames(self) -> None:
        self.pack("train.zst", 20, zstd)
        self.kill_worker("train.zst")

    def test_pipe(self) -> None:
        self.pack("train.gz", 3, gzip_fast)
        self.kill_worker("train.gz", data__pipe="[gzip, -dc]", data__test="test.gz")

    def test_blocks(self) -> None:
        self.kill_worker("train.blocks", **self.convert("blocks"))

    @unittest.skipUnless(READY, WHY_NOT)
    def test_parquet(self) -> None:
        self.kill_worker("train.parquet", **self.convert("parquet"), data__raw_keys="true")


class LargeSourcesKill(SourcesCase):
    def setUp(self) -> None:
        """The same examples, each with a name so long that the text is large."""
        super().setUp()
        draw = random.Random(3)
        path = self.folder / "train.txt"
        lines = path.read_text().splitlines()
        letters = LARGE // len(lines) // 2
        path.write_text("".join(f"{line} id={draw.randbytes(letters).hex()}\n" for line in lines))

    def test_gzip_entered_at_borders(self) -> None:
        self.pack("train.gz", 1, gzip_fast)
        self.kill_both(False, "train.gz")

    def test_one_zstd_frame(self) -> None:
        self.pack("train.zst", 1, zstd)
        self.kill_both(True, "train.zst")

    def test_pipe(self) -> None:
        self.pack("train.gz", 1, gzip_fast)
        self.kill_both(True, "train.gz", data__pipe="[gzip, -dc]", data__test="test.gz")


@unittest.skipUnless(READY, WHY_NOT)
class LargeParquetKill(SourcesCase):
    """More rows than are kept when they are passed over, in row groups of many blocks: leased in
    order, and read by a cursor that stays open (kPassedRows of flux/data/parquet/row_source.h)."""

    records = 140_000
    batch = 400

    def test_row_groups_of_many_blocks(self) -> None:
        self.kill_both(True, "train.parquet", **self.convert("parquet"), data__raw_keys="true")


if __name__ == "__main__":
    unittest.main()
