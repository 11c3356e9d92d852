"""The same as kill_resume.py with fifty kills of each job and more data."""

from __future__ import annotations

import unittest

from _kill import KillCase


class KillResumeSlow(KillCase):
    kills = 50

    def test_counting(self) -> None:
        self.kill_and_resume(self.counting(10000, 20), expected=10000 * 20, seed=3)

    def test_ctr_dnn(self) -> None:
        self.kill_and_resume(self.ctr_dnn(10000, 6), expected=10000 * 6, seed=4)


if __name__ == "__main__":
    unittest.main()
