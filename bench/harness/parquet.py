"""Parquet files into flux's batches beside pyarrow's own reading of the same columns, one core.

Both read the same files from the page cache, in turns. pyarrow's CPU seconds are of its second
reading in a process, as its first sets up its memory; flux's are of `flux data validate`, which
reads every record into batches and checks it, less those of the same command on a small file of
that kind, as those go to the start of a process.
"""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from harness.errors import BenchError
from harness.flux import ROOT
from harness.ratio import Ratio, Side
from harness.targets import Target, at_least
from harness.text import markdown

EXAMPLES, QUICK_EXAMPLES, SMALL_EXAMPLES = 2_000_000, 200_000, 1_000
RATIO = 1.0
SEED = 1  # of the data
PYTHON = ROOT / ".parquet/bin/python"  # of tools/parquet.sh
# Kind of file -> (who writes it, what of data is made, a job that reads that).
KINDS = {
    "written by flux": ("flux", ("criteo",), None),
    "written by pyarrow": ("pyarrow", ("criteo",), None),
    "lists": ("flux", ("feasign", "--kind", "sequence"), ROOT / "models/din.yaml"),
}
REWRITE = """
import sys
import pyarrow.parquet
table = pyarrow.parquet.read_table(sys.argv[1])
fields = [one.with_nullable(True) for one in table.schema]
table = table.cast(pyarrow.schema(fields, metadata=table.schema.metadata))
pyarrow.parquet.write_table(table, sys.argv[2])
"""
READ = """
import sys, time
import pyarrow, pyarrow.parquet
pyarrow.set_cpu_count(1)
for check in (True, False):
    for _ in range(2):
        begin = time.process_time()
        table = pyarrow.parquet.read_table(sys.argv[1], use_threads=False,
                                           page_checksum_verification=check)
        spent = time.process_time() - begin
        del table
    print(spent)
"""


@dataclass
class Readings:
    """CPU seconds of each round."""

    kind: str
    megabytes: float
    examples: int
    flux: list[float] = field(default_factory=list)
    checked: list[float] = field(default_factory=list)  # pyarrow, with check sums of pages
    unchecked: list[float] = field(default_factory=list)

    def ratio(self, theirs: Sequence[float]) -> Ratio:
        """Of CPU time, round by round; nothing is learnt, so there is no quality."""
        ours, other = (
            Side(tuple(1 / spent for spent in seconds), threads=1, seeds=(SEED,))
            for seconds in (self.flux, theirs)
        )
        return Ratio(ours, other, measure=None)


def build_plugin(build: Path) -> None:
    if subprocess.run([ROOT / "tools/parquet.sh", build], cwd=ROOT, check=False).returncode != 0:
        raise BenchError("the Parquet plug-in could not be built: see above")


class ParquetBench:
    """Makes the files and reads them; `folder` is for them."""

    def __init__(self, flux: Path, folder: Path) -> None:
        self.flux, self.folder = flux, folder
        folder.mkdir(parents=True, exist_ok=True)

    def make(self, kind: str, examples: int) -> Path:
        writer, data, job = KINDS[kind]
        text, path = self.folder / "made", self.folder / f"{kind}.{examples}.parquet"
        what = (*data, "--seed", str(SEED), "--examples", str(examples))
        self._run("gen", *what, "--out", str(text))
        how = ["--job", str(job)] if job else []
        self._run("convert", str(text), *how, "--to", "parquet", "--out", str(path))
        text.unlink()
        if writer == "pyarrow":
            own = path.rename(self.folder / "own.parquet")
            _call([str(PYTHON), "-c", REWRITE, str(own), str(path)])
            own.unlink()
        return path

    def _run(self, *arguments: str) -> None:
        _call([str(self.flux), "data", *arguments])

    def validate_s(self, path: Path) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._run("validate", str(path), "--threads", "1")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    def measure(self, kind: str, examples: int, rounds: int) -> Readings:
        path, small = self.make(kind, examples), self.make(kind, SMALL_EXAMPLES)
        result = Readings(kind, path.stat().st_size / 1e6, examples)
        start = min(self.validate_s(small) for _ in range(rounds))
        for _ in range(rounds):
            result.flux.append(self.validate_s(path) - start)
            checked, unchecked = _call([str(PYTHON), "-c", READ, str(path)]).split()
            result.checked.append(float(checked))
            result.unchecked.append(float(unchecked))
        path.unlink()
        print(
            f"Parquet {kind}: flux {min(result.flux):.3f} s, pyarrow {min(result.checked):.3f} s, "
            f"without check sums {min(result.unchecked):.3f} s",
            flush=True,
        )
        return result


def _call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command[:3])} failed: {done.stderr[-500:]}")
    return done.stdout


def run(bench: ParquetBench, examples: int, rounds: int) -> list[Readings]:
    return [bench.measure(kind, examples, rounds) for kind in KINDS]


def judge(readings: Sequence[Readings]) -> list[Target]:
    return [
        at_least(
            f"Parquet {one.kind}: pyarrow's CPU / flux's, one core",
            RATIO,
            one.ratio(one.unchecked),
        )
        for one in readings
    ]


def render(readings: Sequence[Readings], version: str) -> str:
    """The page results/parquet.md."""
    rows = [["file", "system", "MB/s of file", "examples/s", "flux / it, CPU"]]
    for one in readings:
        for name, seconds in (
            (f"pyarrow {version}", one.unchecked),
            (f"pyarrow {version}, check sums of pages", one.checked),
            ("flux, check sums of pages", one.flux),
        ):
            middle = median(seconds)
            rows.append(
                [
                    one.kind,
                    name,
                    f"{one.megabytes / middle:,.0f}",
                    f"{one.examples / middle:,.0f}",
                    "-" if seconds is one.flux else one.ratio(seconds).text(),
                ]
            )
    table = markdown(rows, frozenset((2, 3)))
    return (
        f"# Parquet beside pyarrow\n\n{readings[0].examples:,} examples, one core, CPU time, the "
        f"median of {len(readings[0].flux)} rounds. pyarrow reads columns; flux reads the same "
        f"columns, makes batches of rows of them and checks every number.\n\n{table}\n"
    )
