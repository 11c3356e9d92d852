"""Bad files given to `flux data validate` and `flux run`: both must end with exit code 2 and name
the file and the line (or byte), without a crash, a hang or much memory.

Each has to be named within a second of CPU time: that of the clock is everybody's on the machine.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from _bad_blocks import of_blocks
from _bad_files import FEASIGN, to_bytes, write_job
from _bad_types import BadFile
from _support import FLUX, Case

DEADLINE_S = 60.0
MEMORY_MAX = 512 << 20
CPU_S_MAX = 1.0
NOISE = ("terminate called", "std::", "what():", "Assertion", "flux: bug", "Aborted")
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, PR_CAPBSET_DROP = 1, 2, 24
LIBC = ctypes.CDLL(None, use_errno=True)


class Ended(NamedTuple):
    code: int
    text: str
    seconds: float  # of CPU time
    memory: int


def obey_modes() -> None:
    """Also root may then not read what it may not; harmless for others."""
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def run(arguments: list[str], folder: Path, locked: bool) -> Ended:
    """One flux, with the memory it had at most."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([str(FLUX), *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=subprocess.STDOUT,
                                   preexec_fn=obey_modes if locked else None)
        watch = threading.Timer(DEADLINE_S, process.kill)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        watch.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = usage.ru_utime + usage.ru_stime
        out.seek(0)
        text = out.read().decode("utf-8", "backslashreplace")
    return Ended(process.returncode, text, seconds, usage.ru_maxrss * 1024)


class Verdict(NamedTuple):
    name: str
    wrong: str  # "": as it should be
    slowest: float
    largest: int


def judge(command: str, ended: Ended, says: str) -> str:
    what = f"flux {command}: exit code {ended.code}, {ended.memory >> 20} MiB\n{ended.text}"
    if ended.code != 2 or any(noise in ended.text for noise in NOISE):
        return what
    if ended.memory > MEMORY_MAX:
        return f"too much memory: {what}"
    if ended.seconds > CPU_S_MAX:
        return f"{ended.seconds:.2f} s of CPU time: {what}"
    return "" if re.search(says, ended.text, re.DOTALL) else f"expected {says!r}: {what}"


def check(case: BadFile, number: int, root: Path) -> Verdict:
    folder = root / str(number)
    path = f"bad.{case.suffix}"
    write_job(case.format, path, folder)
    case.make(folder / path)
    says = case.says.replace("{path}", re.escape(path))
    wrong, slowest, largest = "", 0.0, 0
    read = case.format.train or path
    for command in (["data", "validate", read, "--job", "job.yaml"], ["run", "job.yaml"]):
        ended = run([*command, *case.more], folder, case.locked)
        wrong = wrong or judge(" ".join(command), ended, says)
        slowest, largest = max(slowest, ended.seconds), max(largest, ended.memory)
    shutil.rmtree(folder)
    return Verdict(f"{case.format.name}: {case.name}", wrong, slowest, largest)


class BadFiles(Case):
    """Tests of bad files."""

    def block_cases(self) -> list[BadFile]:
        write_job(FEASIGN, "good/good.txt", self.folder / "good")
        (self.folder / "good/good.txt").write_bytes(to_bytes(FEASIGN.good))
        self.flux("data", "convert", "--job", "good/job.yaml", "--to", "blocks",
                  "--out", "good/good.blocks")
        return list(of_blocks((self.folder / "good/good.blocks").read_bytes()))

    def check_all(self, cases: Iterable[BadFile], least: int) -> None:
        """`least`: so many there must be."""
        cases = list(cases)
        self.assertGreaterEqual(len(cases), least)
        with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
            verdicts = list(pool.map(lambda at: check(at[1], at[0], self.folder), enumerate(cases)))
        slowest = max(verdicts, key=lambda verdict: verdict.slowest)
        largest = max(verdicts, key=lambda verdict: verdict.largest)
        print(f"{len(cases)} bad files; the slowest: {slowest.name}, {slowest.slowest:.2f} s; "
              f"the most memory: {largest.name}, {largest.largest >> 20} MiB")
        wrong = [f"{verdict.name}: {verdict.wrong}" for verdict in verdicts if verdict.wrong]
        self.assertFalse(wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong))
