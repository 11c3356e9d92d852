"""Text files that are wrong in 680 ways: every mistake in every packing, every damage of a whole
file in every format. bad_data.py has a part of them.
"""

from __future__ import annotations

import unittest

import _bad_check
from _bad_files import all_text_cases


class BadDataSlow(_bad_check.BadFiles):
    def test_each_is_named(self) -> None:
        self.check_all(all_text_cases(), least=680)


if __name__ == "__main__":
    unittest.main()
