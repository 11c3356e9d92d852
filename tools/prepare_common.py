"""What the scripts that prepare real data share: text in pieces, files that are whole or absent.

A script makes each output by itself, under another name until it is whole, and does not make again
what is there. So it can be stopped at any moment, by kill -9 too, and run again. What a person can
mend ends as a Problem: its text is all that is shown, and the exit code is 2.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gzip
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import BinaryIO, NamedTuple

READ_BYTES = 4 << 20
LINE_MAX = 1 << 20  # as flux
PROGRESS_S = 10.0
GZIP_LEVEL = 3
RECORD = "prepared.json"


class Problem(Exception):
    """Bad input or options, in words for a person."""


class Chunk(NamedTuple):
    """Some whole lines of a file."""

    line: int  # number of the first one, from 1
    data: bytes  # ends with a newline


def run_main(name: str, main: Callable[[], None]) -> None:
    """Exit code 2 for what a person can mend, 1 for the system's failures, 130 after Ctrl-C."""
    try:
        main()
    except Problem as problem:
        sys.exit(_say(name, str(problem), 2))
    except KeyboardInterrupt:
        sys.exit(_say(name, "stopped; run it again to go on", 130))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(_say(name, f"{where}{error.strerror or error}", 1))


def _say(name: str, text: str, code: int) -> int:
    print(f"{name}: {text}", file=sys.stderr)
    return code


def is_gzip(path: Path) -> bool:
    with open_input(path) as file:
        return file.read(2) == b"\x1f\x8b"


def open_input(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}") from error


def read_pieces(path: Path) -> Iterator[bytes]:
    """The text of a file, plain or gzip, in pieces of bounded size."""
    packed = is_gzip(path)
    done = 0
    with open_input(path) as raw, gzip.open(raw) if packed else contextlib.nullcontext(raw) as file:
        while True:
            try:
                piece = file.read(READ_BYTES)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise Problem(f"{path}: gzip data is damaged after {done:,} bytes of text: "
                              f"{error}; copy or download it again") from error
            if not piece:
                return
            done += len(piece)
            yield piece


def read_chunks(path: Path) -> Iterator[Chunk]:
    """The lines of a file; the last one gets a newline if it has none. An empty file is refused."""
    rest, line = b"", 1
    for piece in read_pieces(path):
        piece = rest + piece
        cut = piece.rfind(b"\n") + 1
        data, rest = piece[:cut], piece[cut:]
        if len(rest) > LINE_MAX:
            line += data.count(b"\n")
            raise Problem(f"{path}:{line}: a line of more than {LINE_MAX:,} bytes; is it text?")
        if data:
            yield Chunk(line, data)
            line += data.count(b"\n")
    if rest:
        yield Chunk(line, rest + b"\n")
    elif line == 1:
        raise Problem(f"{path}: empty; copy or download it again")


class Progress:
    """A line every few seconds, and one at the end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begin = self._told = time.monotonic()
        self.lines = self.bytes = 0

    def add(self, data: bytes) -> None:
        self.lines += data.count(b"\n")
        self.bytes += len(data)
        if time.monotonic() - self._told >= PROGRESS_S:
            self._told = time.monotonic()
            self.tell("so far")

    def tell(self, how: str) -> None:
        speed = self.bytes / 1e6 / max(time.monotonic() - self._begin, 1e-3)
        print(f"{self._what}: {self.lines:,} lines {how}, {self.bytes / 1e6:,.1f} MB of text, "
              f"{speed:,.0f} MB/s", flush=True)


@contextlib.contextmanager
def whole_file(path: Path, packed: bool = False) -> Iterator[Callable[[bytes], object]]:
    """A file that appears under its name when it is whole and on disk; gives its write()."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".tmp")
    try:
        with aside.open("wb") as file:
            if packed:
                # No name and no time in it: equal text, equal bytes.
                with gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0) as text:
                    yield text.write
            else:
                yield file.write
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def link_whole(source: Path, path: Path) -> None:
    """A link to a file that was found good."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".tmp")
    aside.unlink(missing_ok=True)
    aside.symlink_to(source.resolve())
    aside.replace(path)


Check = Callable[[Path, Chunk], None]  # raises a Problem for what is not as it should be


def check_file(source: Path, check: Check,
               write: Callable[[bytes], object] | None = None) -> Progress:
    """Checks all lines of a file, and writes those that are good."""
    progress = Progress(str(source))
    for chunk in read_chunks(source):
        check(source, chunk)
        if write:
            write(chunk.data)
        progress.add(chunk.data)
    return progress


def place_checked(source: Path, target: Path, check: Check, packed: bool) -> str:
    """Checks a file; links it if it is packed as wanted, else writes it."""
    if is_gzip(source) == packed:
        progress = check_file(source, check)
        link_whole(source, target)
        return f"{target}: {progress.lines:,} lines, linked"
    with whole_file(target, packed) as write:
        progress = check_file(source, check, write)
    return f"{target}: {progress.lines:,} lines written"


def check_at_least_one(options: argparse.Namespace, *names: str) -> None:
    for name in names:
        if getattr(options, name) < 1:
            raise Problem(f"--{name.replace('_', '-')} {getattr(options, name)}: at least 1")


def describe(sources: list[Path]) -> dict[str, list[int]]:
    """Size and time of change of each source, by which a changed one is noticed."""
    found = {}
    for path in sources:
        try:
            stat = path.stat()
        except OSError as error:
            raise Problem(f"{path}: {error.strerror}") from error
        found[str(path.resolve())] = [stat.st_size, stat.st_mtime_ns]
    return found


def claim(out: Path, settings: dict[str, object]) -> None:
    """Notes what `out` is made of; a Problem if an earlier run made it of something else."""
    note = out / RECORD
    settings = json.loads(json.dumps(settings))
    if out.exists() and not out.is_dir():
        raise Problem(f"{out}: not a folder; name a folder to write to")
    if note.exists():
        try:
            before = json.loads(note.read_text())
        except ValueError:
            before = {}
        changed = sorted(name for name in settings.keys() | before.keys()
                         if settings.get(name) != before.get(name))
        if changed:
            raise Problem(f"{out}: was prepared with other {', '.join(changed)}; "
                          "name another folder, or remove this one")
        hold(note)
        return
    if out.exists() and any(path.name != RECORD + ".tmp" for path in out.iterdir()):
        raise Problem(f"{out}: not empty, and not made by this script; name another folder")
    with whole_file(note) as write:
        write((json.dumps(settings, indent=1) + "\n").encode())
    hold(note)


def hold(note: Path) -> None:
    """Keeps others away from the folder, until this process and all it started have ended."""
    file = os.open(note, os.O_RDONLY)
    os.set_inheritable(file, True)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Problem(f"{note.parent}: another run is at work there, or what a killed one has "
                      "begun is not ended yet; wait for it") from None


class Finished:
    """The outputs that are whole, and of which state of their sources; kept beside them."""

    def __init__(self, out: Path) -> None:
        self._path = out / "finished.json"
        self._known: dict[str, object] = {}
        self._sources: dict[str, object] = {}  # as they were before they were read
        if self._path.exists():
            self._known = json.loads(self._path.read_text())

    def has(self, target: Path, sources: list[Path]) -> bool:
        """Whether it is there, and its sources have not changed since it was made."""
        name = str(target.relative_to(self._path.parent))
        self._sources[name] = describe(sources)
        there = target.exists() and self._known.get(name) == self._sources[name]
        if there:
            print(f"{target}: finished before", flush=True)
        return there

    def add(self, target: Path) -> None:
        name = str(target.relative_to(self._path.parent))
        self._known[name] = self._sources[name]
        with whole_file(self._path) as write:
            write((json.dumps(self._known, indent=1) + "\n").encode())


class Task(NamedTuple):
    """A file to be made of another one."""

    source: Path
    target: Path
    how: object


def run_each(work: Callable[..., str], tasks: list[Task], jobs: int, finished: Finished) -> None:
    """Calls work(source, target, how), `jobs` at a time, for what is not finished.

    Each call has a process of its own, which ends with its task even if this one is killed. After a
    failure no more are begun; it is raised when those under way have ended.
    """
    waiting = [task for task in reversed(tasks) if not finished.has(task.target, [task.source])]
    running: dict[int, tuple[Connection, BaseProcess, Task]] = {}
    failure: BaseException | None = None
    while running or (waiting and not failure):
        while waiting and not failure and len(running) < jobs:
            ours, theirs = multiprocessing.Pipe(duplex=False)
            task = waiting.pop()
            process: BaseProcess = multiprocessing.Process(
                target=_work_apart, args=(theirs, work, task))
            process.start()
            theirs.close()
            running[process.sentinel] = (ours, process, task)
        for sentinel in wait(list(running)):
            assert isinstance(sentinel, int)  # noqa: S101
            ours, process, task = running.pop(sentinel)
            process.join()
            result = ours.recv() if ours.poll() else ChildProcessError(
                f"a process ended with code {process.exitcode}, perhaps for want of memory; "
                "run it again, with fewer --jobs")
            if isinstance(result, BaseException):
                failure = failure or result
            else:
                finished.add(task.target)
                print(result, flush=True)
    if failure:
        raise failure


def _work_apart(to: Connection, work: Callable[..., str], task: Task) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a word
    try:
        to.send(work(*task))
    except (Problem, OSError) as error:
        to.send(error)


def find_flux(named: str | None) -> str:
    """The binary: as named, on the PATH, or as built beside the tools."""
    beside = Path(__file__).resolve().parent.parent / "build" / "flux"
    found = shutil.which(named or "flux") or (None if named else shutil.which(str(beside)))
    if not found:
        raise Problem(f"{named or 'flux'}: no such program; name it with --flux")
    return found


def run_flux(flux: str, *arguments: str) -> str:
    """What flux prints; a Problem with its message if it refuses."""
    done = subprocess.run([flux, *arguments], capture_output=True, text=True, check=False,
                          close_fds=False)  # hold()
    if done.returncode != 0:
        raise Problem(f"{' '.join(['flux', *arguments])}: {done.stderr.strip()}")
    return done.stdout


def yaml_text(text: str) -> str:
    """As YAML takes it: in quotes where it is not plain."""
    return text if re.fullmatch(r"[\w./*-]+", text) else json.dumps(text, ensure_ascii=False)


def tell_section(out: Path, section: str) -> None:
    """Writes the data section for jobs to a file, and shows it."""
    with whole_file(out / "data.yaml") as write:
        write(section.encode())
    print(f"a job reads it with (also in {out / 'data.yaml'})\n{section}", end="")


def parse_range(text: str, option: str, least: int, most: int) -> list[int]:
    """"3-7" or "3" to numbers."""
    first, _, last = text.partition("-")
    try:
        numbers = list(range(int(first), int(last or first) + 1))
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < least or numbers[-1] > most:
        raise Problem(f"{option} {text}: write it as {least}-{most}, FIRST-LAST, or one number")
    return numbers
