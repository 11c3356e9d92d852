"""Runs one child at a time and measures it from outside: wall, CPU, peak memory, noise."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import machine
from harness.errors import BenchError
from harness.watch import Track, Watch

TIMEOUT_S = 1800.0
TAIL_LINES = 12


@dataclass(frozen=True)
class Outcome:
    wall_s: float
    cpu_s: float
    peak_rss_bytes: int  # of the largest process of the child's tree
    others_cores: float  # used by everything else meanwhile
    output: str  # stdout and stderr together
    tracks: tuple[Track, ...] = ()  # of the child and its descendants, where asked for


def _pin(cores: int | None) -> None:
    if cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def spawn(
    command: Sequence[str],
    cores: int | None,
    env: Mapping[str, str] | None,
    stdout: int,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a child in a session of its own, pinned to `cores` cores, in `folder`."""
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,  # so that a time-out ends its children too
            preexec_fn=lambda: _pin(cores),
        )
    except OSError as error:
        raise BenchError(f"cannot start {Path(command[0]).name}: {error.strerror}") from error


def kill(process: subprocess.Popen[bytes]) -> None:
    """Ends a child and all of its session's group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run(
    command: Sequence[str],
    *,
    cores: int | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
    watched: bool = False,
) -> Outcome:
    """Runs to the end on `cores` cores (all: None). BenchError with the output's end on failure.

    Watched: the outcome also has a track of each process that the child started.
    """
    with tempfile.TemporaryFile() as output:
        busy_before, start = machine.busy_s(), time.perf_counter()
        process = spawn(command, cores, env, output.fileno())
        timer = threading.Timer(timeout_s, kill, [process])
        timer.start()
        watch = Watch(process.pid)
        try:
            with watch if watched else contextlib.nullcontext():
                _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            kill(process)
            raise
        finally:
            timer.cancel()
        wall_s = time.perf_counter() - start
        busy = machine.busy_s() - busy_before
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode != 0:
        watch.kill_all()
        raise BenchError(failure(command[0], process.returncode, text))
    # A descendant that nobody waited for is in the tracks only.
    cpu_s = max(usage.ru_utime + usage.ru_stime, sum(one.cpu_s() for one in watch.tracks.values()))
    return Outcome(
        wall_s=wall_s,
        cpu_s=cpu_s,
        peak_rss_bytes=usage.ru_maxrss * 1024,
        others_cores=max(0.0, busy - cpu_s) / wall_s,
        output=text,
        tracks=tuple(watch.tracks.values()),
    )


def failure(name: str, code: int, text: str) -> str:
    """What to say of a child that ended badly."""
    how = f"exit status {code}" if code >= 0 else f"signal {-code}"
    return f"{Path(name).name} ended with {how}; its last lines:\n{tail(text)}"


def tail(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines()[-TAIL_LINES:])


def is_progress_line(line: str) -> bool:
    """A line of figures about training: it speaks of loss or auc, or starts with a count."""
    text = line.strip().lower()
    if not re.search(r"\d", text):
        return False
    return bool(re.match(r"\d", text) or re.search(r"\b(loss|logloss|auc)\b", text))


def first_progress_s(
    command: Sequence[str], *, cores: int | None = None, timeout_s: float = 60.0
) -> float:
    """Seconds from start to the first progress line on a pipe; then the child is interrupted."""
    start = time.perf_counter()
    process = spawn(command, cores, None, subprocess.PIPE)
    timer = threading.Timer(timeout_s, kill, [process])
    timer.start()
    assert process.stdout is not None
    seen: list[str] = []
    delay: float | None = None
    try:
        for raw in process.stdout:
            seen.append(raw.decode(errors="replace"))
            if is_progress_line(seen[-1]):
                delay = time.perf_counter() - start
                break
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        process.wait()
    finally:
        timer.cancel()
        if process.poll() is None:
            kill(process)
            process.wait()
        process.stdout.close()
    if delay is None:
        raise BenchError(f"no progress line came; the output was:\n{''.join(seen[-TAIL_LINES:])}")
    return delay
