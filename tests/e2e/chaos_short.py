"""The chaos scenarios with few faults (see tests/chaos/chaos.py; `make chaos` has full counts)."""

from __future__ import annotations

import json
import subprocess
import sys
import unittest
from typing import Any

from _support import FLUX, SOURCE, Case

# Each must end exact, and within wide bounds of its times and shares.
FAULTS = "worker,pause,primary,moving,both,coordinator,all,elastic,partition"
NETWORKS = "netns"  # where namespaces are allowed
COSTS = "checkpoint,replicas,quality"


class Chaos(Case):
    def run_short(self, names: str) -> list[dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-B", str(SOURCE / "tests/chaos/chaos.py"), "--flux", str(FLUX),
             "--short", "--only", names, "--scratch", str(self.folder / "scratch"), "--results",
             str(self.folder)], capture_output=True, text=True, timeout=800)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found: list[dict[str, Any]] = json.loads((self.folder / "chaos.json").read_text())
        self.assertEqual([s["name"] for s in found], names.split(","))
        print(done.stdout)
        return found

    def test_faults(self) -> None:
        self.run_short(FAULTS)

    def test_costs(self) -> None:
        self.run_short(COSTS)

    def test_networks(self) -> None:
        (found,) = self.run_short(NETWORKS)
        if found["skipped"]:
            self.skipTest(found["skipped"])


if __name__ == "__main__":
    unittest.main()
