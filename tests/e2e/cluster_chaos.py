"""A bad network between all roles: requests and replies lost, doubled, late, out of order."""

from __future__ import annotations

import unittest

from _cluster import CHAOS, MODES, ClusterCase


class Chaos(ClusterCase):
    records = 600
    batch = 50

    def test_counts_stay_exact(self) -> None:
        for seed, mode in enumerate(MODES, 1):
            with self.subTest(mode=mode):
                done = self.flux(*self.cluster("--chaos", CHAOS.format(seed), "--fresh",
                                               mode=mode, epochs=2))
                self.assert_exact("out", self.records * 2)
                self.assertIn("lost 0 · doubled 0", done.out)

    def test_a_bad_specification_is_refused(self) -> None:
        done = self.flux(*self.cluster("--chaos", "thunder=1"), code=None)
        self.assertEqual(done.code, 2, done.text)
        self.assertIn("thunder", done.text)


if __name__ == "__main__":
    unittest.main()
