"""The chaos scenarios with few faults (see tests/chaos/chaos.py; `make chaos` has full counts)."""

from __future__ import annotations

import json
import subprocess
import sys
import unittest

from _support import FLUX, SOURCE, Case

# Each must end exact.
NAMES = "worker,pause,primary,both,coordinator,all,elastic,partition"


class Chaos(Case):
    def test_short(self) -> None:
        done = subprocess.run(
            [sys.executable, "-B", str(SOURCE / "tests/chaos/chaos.py"), "--flux", str(FLUX),
             "--short", "--only", NAMES, "--scratch", str(self.folder / "scratch"), "--results",
             str(self.folder)], capture_output=True, text=True, timeout=800)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads((self.folder / "chaos.json").read_text())
        self.assertEqual([s["name"] for s in found], NAMES.split(","))
        print(done.stdout)


if __name__ == "__main__":
    unittest.main()
