"""The supervisor keeps as many roles as are wanted, whatever becomes of them."""

from __future__ import annotations

import unittest

from _cluster import ClusterCase

EPOCHS = 60


class Keeper(ClusterCase):
    def test_kill_points_of_newcomers(self) -> None:
        """Several orders for one server: each start carries one, and nobody is refused for it."""
        done = self.flux("drill", *self.job(epochs=EPOCHS), "--run", "--servers", "2",
                         "--workers", "2", "--threads", "1", "--at",
                         "install_begin,install_mid,install_end", "--every", "500ms", "--at-wait",
                         "3s", "--times", "5")
        self.assertNotIn("exit code 2", done.text)
        self.assertNotIn("not started again", done.text)
        self.assertRegex(done.text, r"server-\d ended: killed by signal 9 .*started again")
        self.assert_exact("out", self.records * EPOCHS)


if __name__ == "__main__":
    unittest.main()
