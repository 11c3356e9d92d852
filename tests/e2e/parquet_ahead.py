"""Parquet files with large row groups, of which several blocks are read at once.

The same rows lie in a file with small row groups and without dictionaries, whose blocks are read
one by one. Needs the plug-in (`make parquet`) and the pyarrow that came with it.
"""

from __future__ import annotations

import re
import subprocess
import unittest

from _parquet import PYTHON, READY, WHY_NOT
from _support import Case

ROWS = 200_000
BLOCK = 3 * 1024  # what `flux data` reads of so many rows as a block

# Nulls begin within what is read at once. Of `bad` one number is too large; of `torn` a page of
# the first row group, behind its middle, is damaged.
MAKE = f"""
import random
import pyarrow as pa
import pyarrow.parquet as pq
random.seed(3)
n = {ROWS}
users = [random.randrange(1 << 40) for _ in range(3000)]
def some(kinds, nulls_from):
    return [None if i >= nulls_from and i % 7 == 0 else random.choice(kinds) for i in range(n)]
columns = dict(
    label=pa.array([i % 2 for i in range(n)], pa.float32()), row=pa.array(range(n), pa.int64()),
    user=pa.array(some(users, n)), item=pa.array(some(users, 60000), pa.uint64()),
    city=pa.array(some(["c%d" % i for i in range(300)], 150100)),
    price=pa.array(some([i / 8 for i in range(2000)], 90000)),
    age=pa.array(some([float(i) for i in range(90)], n), pa.float32()))
def write(name, table):
    pq.write_table(pa.table(table), name + "_ahead.parquet", row_group_size=150000,
                   data_page_size=20000, write_page_checksum=True)
    pq.write_table(pa.table(table), name + "_apart.parquet", row_group_size=5000,
                   use_dictionary=False)
write("good", columns)
prices = columns["price"].to_pylist()
prices[170000] = 1e300
write("bad", dict(columns, price=pa.array(prices)))
found = pq.ParquetFile("good_ahead.parquet").metadata.row_group(0).column(2)
data = bytearray(open("good_ahead.parquet", "rb").read())
data[found.data_page_offset + found.total_compressed_size * 6 // 10] ^= 0x55
open("torn_ahead.parquet", "wb").write(data)
"""


@unittest.skipUnless(READY, WHY_NOT)
class ParquetAhead(Case):
    def setUp(self) -> None:
        super().setUp()
        subprocess.run([str(PYTHON), "-c", MAKE], cwd=self.folder, check=True)

    def as_text(self, name: str, threads: int) -> bytes:
        self.flux("data", "convert", f"{name}.parquet", "--to", "feasign", "--out", name,
                  "--threads", str(threads))
        return (self.folder / name).read_bytes()

    def test_rows_are_those_that_are_read_block_by_block(self) -> None:
        want = self.as_text("good_apart", 1)
        self.assertEqual(want.count(b"\n"), ROWS)
        for threads in (1, 4):
            self.assertTrue(self.as_text("good_ahead", threads) == want, f"{threads} threads")

    def test_a_number_that_is_too_large_is_named_by_its_record(self) -> None:
        for name in ("bad_ahead", "bad_apart"):
            done = self.flux("data", "validate", f"{name}.parquet", code=2)
            self.assertIn(f"{name}.parquet: record 170001: dense feature 'price' is 1e+300; a "
                          "float holds", done.err)
            self.assertIn("1 of 200,000 records are bad", done.err)

    def test_damage_is_told_of_the_block_that_has_it(self) -> None:
        done = self.flux("data", "validate", "torn_ahead.parquet", code=2)
        told = re.search(r"in records (\d+) to (\d+): column 'user'", done.err)
        assert told is not None, done.err
        first, last = int(told[1]), int(told[2])
        self.assertEqual((first % BLOCK, last - first + 1), (1, BLOCK))
        self.assertGreater(first, 2 * BLOCK, "behind the first that are read at once")
        before = self.flux("data", "head", "torn_ahead.parquet", "-n", str(first - 1)).out
        self.assertEqual(before, self.flux("data", "head", "good_apart.parquet", "-n",
                                           str(first - 1)).out)
        self.flux("data", "head", "torn_ahead.parquet", "-n", str(first + BLOCK), code=2)


if __name__ == "__main__":
    unittest.main()
