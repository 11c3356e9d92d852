"""Runs the comparisons of this folder in the environment of the benchmarks' torch.

    python3 tests/compare/compare.py --build build [--cache .bench] [--golden]

--golden writes tests/golden/operators.txt anew instead of comparing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from harness import setup  # noqa: E402
from harness.errors import BenchError  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="build folder")
    parser.add_argument("--cache", type=Path, default=ROOT / ".bench", help="environments")
    parser.add_argument("--golden", action="store_true", help="write the golden cases anew")
    args = parser.parse_args()
    try:
        python = setup.python_of("torch", args.cache.resolve())
    except BenchError as error:
        print(error, file=sys.stderr)
        return 1
    if args.golden:
        what = ["--golden", str(ROOT / "tests" / "golden" / "operators.txt")]
    else:
        what = ["--program", str(args.build.resolve() / "bin" / "operator_cases")]
    command = [str(python), "-B", str(HERE / "operators.py"), *what]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
