"""Parquet files that are wrong in some 40 ways (_bad_parquet.py): what is asked of bad text and
block files is asked of them, too."""

from __future__ import annotations

import unittest

import _bad_check
from _bad_parquet import of_parquet
from _parquet import READY, WHY_NOT


@unittest.skipUnless(READY, WHY_NOT)
class BadParquet(_bad_check.BadFiles):
    def test_each_is_named(self) -> None:
        made = self.folder / "made"
        made.mkdir()
        self.check_all(of_parquet(made), least=40)


if __name__ == "__main__":
    unittest.main()
