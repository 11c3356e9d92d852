"""kill -9 at random moments, then `flux run` again: every example is applied exactly once."""

from __future__ import annotations

import unittest

from _kill import KillCase


class KillResume(KillCase):
    def test_counting(self) -> None:
        self.kill_and_resume(self.counting(3000, 80), expected=3000 * 80, seed=1)

    def test_ctr_dnn(self) -> None:
        self.kill_and_resume(self.ctr_dnn(3000, 20), expected=3000 * 20, seed=2)


if __name__ == "__main__":
    unittest.main()
