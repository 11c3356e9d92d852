"""Runs a Python script with the torch and numpy that the benchmarks use; sets them up if absent.

    python3 tests/compare/with_torch.py SCRIPT [ARGUMENT...]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from harness import setup  # noqa: E402  (found through the line above)
from harness.errors import BenchError  # noqa: E402


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        python = setup.python_of("torch", ROOT / ".bench")
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return subprocess.run([str(python), *sys.argv[1:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
