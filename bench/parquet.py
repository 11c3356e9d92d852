"""Parquet into flux's batches beside pyarrow's own reading of the same columns, on one core.

usage: python3 bench/parquet.py [examples]     (make parquet first)

Both read the same file from the page cache, in turns. Times are CPU seconds: for pyarrow of the
reading alone, for flux of the whole command `flux data validate`, which opens the file, reads every
record into batches and checks it. The ratio is of the best of each.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLUX = ROOT / "build/flux"
PYTHON = ROOT / ".parquet/bin/python"
ROUNDS = 5
READ = """
import sys, time
import pyarrow, pyarrow.parquet
pyarrow.set_cpu_count(1)
pyarrow.parquet.read_table(sys.argv[1], use_threads=False)
begin = time.process_time()
table = pyarrow.parquet.read_table(sys.argv[1], use_threads=False)
print(time.process_time() - begin, table.num_rows, table.nbytes)
"""


def flux_seconds(path: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([FLUX, "data", "validate", path, "--threads", "1"], check=True,
                   stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def pyarrow_seconds(path: Path) -> float:
    done = subprocess.run([PYTHON, "-c", READ, path], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[0])


def main() -> int:
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    if not (FLUX.exists() and PYTHON.exists()):
        print("bench/parquet.py: no plug-in; run `make parquet` first", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="flux_parquet.") as folder:
        text, path = Path(folder) / "a.tsv", Path(folder) / "a.parquet"
        for command in (("gen", "criteo", "--examples", str(examples), "--out", text),
                        ("convert", text, "--to", "parquet", "--out", path)):
            subprocess.run([FLUX, "data", *command], check=True, capture_output=True)
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(flux_seconds(path))
            theirs.append(pyarrow_seconds(path))
        size = path.stat().st_size
    print(f"{'one core':<12}{'MB/s of file':>14}{'examples/s':>14}{'ratio':>8}")
    for name, seconds in (("pyarrow", min(theirs)), ("flux", min(ours))):
        print(f"{name:<12}{size / seconds / 1e6:>14.0f}{examples / seconds:>14,.0f}"
              f"{min(theirs) / seconds:>7.2f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
