"""CPU and memory of processes over their lives, sampled from /proc.

A Track is one process; a Watch follows a child and all its descendants from a thread of its own.
Sampling every 0.1 s costs under 1 % of a core, and misses at most that much of a life's end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from harness.rows import RoleUse

PROC = Path("/proc")
INTERVAL_S = 0.1
SCAN_EVERY = 3  # samples between two looks for new processes
GB = 1e9
ROLES = ("coordinator", "server", "worker", "run")  # first word after the name of the binary
# Fields of /proc/PID/stat counted from the state, which follows the name in brackets.
_PARENT, _SESSION, _UTIME, _STIME, _START, _RSS = 1, 3, 11, 12, 19, 21


@dataclass(frozen=True)
class Reading:
    parent: int
    session: int
    cpu_s: float
    start_ticks: int
    rss_bytes: int


def parse_stat(text: str, ticks_per_s: int, page_bytes: int) -> Reading:
    """One /proc/PID/stat. The name in it may hold blanks and brackets."""
    fields = text.rpartition(")")[2].split()
    return Reading(
        parent=int(fields[_PARENT]),
        session=int(fields[_SESSION]),
        cpu_s=(int(fields[_UTIME]) + int(fields[_STIME])) / ticks_per_s,
        start_ticks=int(fields[_START]),
        rss_bytes=int(fields[_RSS]) * page_bytes,
    )


def parse_peak_bytes(status: str) -> int:
    """VmHWM of a /proc/PID/status; 0 for a process that has ended."""
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def parse_role(cmdline: bytes) -> str:
    """`flux worker ...` is a worker; `flux run` and whatever else starts roles is `run`."""
    words = cmdline.split(b"\0")
    word = words[1].decode(errors="replace") if len(words) > 1 else ""
    return word if word in ROLES else "other"


def read_stat(pid: int) -> Reading | None:
    """None when there is no such process any more."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return parse_stat(text, os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE"))


@dataclass
class Track:
    """One process; add() in the order of time."""

    pid: int
    start_ticks: int
    role: str = "other"
    times: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak_rss_bytes: int = 0
    gb_s: float = 0.0
    ended: bool = False
    _rss_bytes: int = 0

    def add(self, at: float, cpu_s: float, rss_bytes: int) -> None:
        if self.times:
            self.gb_s += (at - self.times[-1]) * (self._rss_bytes + rss_bytes) / 2 / GB
        self.times.append(at)
        self.cpu.append(cpu_s)
        self._rss_bytes = rss_bytes
        self.peak_rss_bytes = max(self.peak_rss_bytes, rss_bytes)

    def cpu_s(self) -> float:
        return self.cpu[-1] if self.cpu else 0.0

    def cpu_at(self, at: float) -> float:
        """CPU seconds used by then, on the line between two samples."""
        if not self.times:
            return 0.0
        after = bisect_left(self.times, at)
        if after == 0:
            return self.cpu[0]
        if after == len(self.times):
            return self.cpu[-1]
        span = self.times[after] - self.times[after - 1]
        share = (at - self.times[after - 1]) / span
        return self.cpu[after - 1] + share * (self.cpu[after] - self.cpu[after - 1])

    def sample(self) -> None:
        """Reads /proc now; notes when the process has ended or its number is another's."""
        if self.ended:
            return
        reading = read_stat(self.pid)
        if reading is None or reading.start_ticks != self.start_ticks:
            self.ended = True
            return
        self.add(time.monotonic(), reading.cpu_s, reading.rss_bytes)

    def look_closer(self) -> None:
        """Role and exact peak: what changes seldom or only grows."""
        if self.ended:
            return
        try:
            status = (PROC / str(self.pid) / "status").read_text(errors="replace")
            cmdline = (PROC / str(self.pid) / "cmdline").read_bytes()
        except OSError:
            return
        self.peak_rss_bytes = max(self.peak_rss_bytes, parse_peak_bytes(status))
        if cmdline:  # empty once the process has ended
            self.role = parse_role(cmdline)


def track_of(pid: int) -> Track | None:
    """A track with its first sample; None when there is no such process."""
    reading = read_stat(pid)
    if reading is None:
        return None
    track = Track(pid, reading.start_ticks)
    track.add(time.monotonic(), reading.cpu_s, reading.rss_bytes)
    track.look_closer()
    return track


class Watch:
    """Follows the child `root`, a leader of its session, and its descendants while in `with`."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.tracks: dict[int, Track] = {}
        self._strangers: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self.scan()  # at once, as a child may end before the thread gets its turn
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def kill_all(self) -> None:
        """Ends what is left of the tree, which may be in groups of its own."""
        for track in self.tracks.values():
            track.sample()
            if not track.ended:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(track.pid, signal.SIGKILL)

    def _run(self) -> None:
        count = 0
        while not self._stop.wait(INTERVAL_S):
            count += 1
            if count % SCAN_EVERY == 0:
                self.scan()
            for track in self.tracks.values():
                track.sample()

    def scan(self) -> None:
        """Finds new descendants. A parent has a smaller number, as a rule, so comes first."""
        pids = sorted(int(path.name) for path in PROC.iterdir() if path.name.isdigit())
        self._strangers.intersection_update(pids)
        for pid in pids:
            if pid in self.tracks or pid in self._strangers:
                continue
            reading = read_stat(pid)
            if reading is None:
                continue
            if reading.session == self.root or reading.parent in self.tracks:
                if track := track_of(pid):
                    self.tracks[pid] = track
            else:
                self._strangers.add(pid)
        for track in self.tracks.values():
            track.look_closer()


def uses(tracks: Iterable[Track]) -> tuple[RoleUse, ...]:
    """What each process used, named by role and order of start: worker 0, worker 1."""
    counts: dict[str, int] = {}
    result = []
    for track in sorted(tracks, key=lambda one: (one.start_ticks, one.pid)):
        number = counts.get(track.role, 0)
        counts[track.role] = number + 1
        name = f"{track.role} {number}"
        peak, gb_s = track.peak_rss_bytes, round(track.gb_s, 4)
        result.append(RoleUse(track.role, name, round(track.cpu_s(), 2), peak, gb_s))
    return tuple(result)
