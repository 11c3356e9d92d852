"""Runs several children together: some end by themselves, the others are ended after them."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from harness import machine, process
from harness.errors import BenchError
from harness.watch import INTERVAL_S, Track, track_of


@dataclass(frozen=True)
class Member:
    name: str
    role: str
    command: Sequence[str]
    env: Mapping[str, str]
    service: bool  # never ends by itself; killed when all others have ended


@dataclass(frozen=True)
class GroupOutcome:
    wall_s: float
    others_cores: float
    outputs: dict[str, str]  # stdout and stderr together, by name
    tracks: dict[str, Track]


class _Child:
    def __init__(self, member: Member, cores: int | None, folder: Path) -> None:
        self.member = member
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self.process: subprocess.Popen[bytes] = process.spawn(
            member.command, cores, member.env, self.log.fileno(), folder
        )
        self.track = track_of(self.process.pid)

    def code(self) -> int | None:
        """Samples, then asks: an ended child shows its CPU time until it is asked for."""
        if self.track and self.process.returncode is None:
            self.track.sample()
            self.track.look_closer()
        return self.process.poll()

    def output(self) -> str:
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def close(self) -> None:
        if self.process.poll() is None:
            process.kill(self.process)
            self.process.wait()
        self.log.close()


def _watch(children: Sequence[_Child], deadline: float) -> None:
    """Returns when all that end by themselves have ended well."""
    while True:
        waiting = False
        for child in children:
            code = child.code()
            waiting = waiting or (code is None and not child.member.service)
            if code is not None and (code != 0 or child.member.service):
                raise BenchError(process.failure(child.member.name, code, child.output()))
        if not waiting:
            return
        if time.monotonic() > deadline:
            late = [c for c in children if c.process.returncode is None and not c.member.service]
            text = late[0].output()
            raise BenchError(
                f"{late[0].member.name} did not end in time; its last lines:\n{process.tail(text)}"
            )
        time.sleep(INTERVAL_S)


def run(
    members: Sequence[Member], *, cores: int | None, folder: Path, timeout_s: float
) -> GroupOutcome:
    """Runs all on the same cores, in `folder`. BenchError with the output's end on failure.

    A service that ends is a failure, as is any member that ends with a status other than 0.
    """
    busy_before, start = machine.busy_s(), time.monotonic()
    children: list[_Child] = []
    try:
        for member in members:
            children.append(_Child(member, cores, folder))
        _watch(children, start + timeout_s)
        wall_s = time.monotonic() - start
        busy = machine.busy_s() - busy_before
        tracks: dict[str, Track] = {}
        for child in children:
            if child.track:
                child.track.role = child.member.role
                tracks[child.member.name] = child.track
        used = sum(track.cpu_s() for track in tracks.values())
        outputs = {child.member.name: child.output() for child in children}
        return GroupOutcome(wall_s, max(0.0, busy - used) / wall_s, outputs, tracks)
    finally:
        for child in children:
            child.close()
