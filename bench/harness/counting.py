"""The counting part: a process is killed in the middle, and each example is counted afterwards.

One weight per example, raised by one whenever the example is trained; after one pass every count
must be one. The same faults for Paddle's parameter server and for flux; what is done after the kill
is what each has to offer: flux repairs by itself (or is run again, with the same command), Paddle's
processes are started again as its launcher would, a server from its last save.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import process
from harness.errors import BenchError
from harness.flux import ROOT
from harness.group import Member
from harness.paddle import free_ports, members

EXAMPLES, BATCH = 20_000, 100
PAUSE_S = 0.03  # after each batch of Paddle, so that there is a middle
SAVE_EVERY = 25  # batches
KILL_AT = 60
START_S = 400.0  # start, training and saves: those take most of it
GO_ON_S = 60.0  # a worker whose server came back has so long to go on
FLUX_EPOCHS = 200


@dataclass(frozen=True)
class Count:
    system: str
    fault: str
    then: str  # what was done about it
    expected: int
    once: int
    lost: int
    doubled: int
    note: str = ""

    @property
    def exact(self) -> bool:
        return self.lost == 0 and self.doubled == 0


class _Child:
    def __init__(self, member: Member, folder: Path, number: int) -> None:
        self.member = member
        self.path = folder / f"{member.name.replace(' ', '_')}.{number}.log"
        with self.path.open("wb") as log:
            self.process = process.spawn(member.command, None, member.env, log.fileno(), folder)

    def text(self) -> str:
        return self.path.read_text(errors="replace")

    def says(self, line: str) -> bool:
        return any(one.startswith(line) for one in self.text().splitlines())

    def wait_for(self, line: str, seconds: float) -> bool:
        """False: it ended, or has not said so in time."""
        deadline = time.monotonic() + seconds
        while not self.says(line):
            if self.process.poll() is not None or time.monotonic() > deadline:
                return self.says(line)
            time.sleep(0.02)
        return True

    def kill(self) -> None:
        process.kill(self.process)
        self.process.wait()


class _Paddle:
    """One server and some workers; the caller kills and starts them."""

    def __init__(self, python: Path, folder: Path, workers: int, saves: bool) -> None:
        command = [
            str(python),
            "-m",
            "peers.paddle_counting",
            "train",
            "--examples",
            str(EXAMPLES),
            "--batch",
            str(BATCH),
            "--pause",
            str(PAUSE_S),
        ]
        if saves:
            command += ["--save", str(folder / "save"), "--save-every", str(SAVE_EVERY)]
        self.members = {m.name: m for m in members(command, 1, workers, free_ports(1 + workers))}
        self.folder = folder
        self.children: list[_Child] = []

    def start(self, name: str, what: str = "train") -> _Child:
        member = self.members[name]
        command = [what if word == "train" else word for word in member.command]
        one = Member(member.name, member.role, command, member.env, member.service)
        self.children.append(_Child(one, self.folder, len(self.children)))
        return self.children[-1]

    def counts(self) -> dict[int, int]:
        """{how often: examples}, from the rows of the server."""
        reader = self.start("Paddle worker 0", "read")
        if not reader.wait_for("done", START_S):
            raise BenchError(f"Paddle's rows could not be read:\n{process.tail(reader.text())}")
        lines = [line for line in reader.text().splitlines() if line.startswith('{"counts"')]
        return {int(k): v for k, v in json.loads(lines[-1])["counts"].items()}


@contextlib.contextmanager
def _paddle(python: Path, scratch: Path, workers: int, saves: bool) -> Iterator[_Paddle]:
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    cluster = _Paddle(python, scratch, workers, saves)
    try:
        yield cluster
    finally:
        for child in cluster.children:
            if child.process.poll() is None:
                child.kill()


def _row(fault: str, then: str, counts: dict[int, int], note: str = "") -> Count:
    doubled = sum((times - 1) * many for times, many in counts.items() if times > 1)
    return Count("Paddle", fault, then, EXAMPLES, counts.get(1, 0), counts.get(0, 0), doubled, note)


def _expect(child: _Child, line: str) -> None:
    if not child.wait_for(line, START_S):
        name = child.member.name
        raise BenchError(f"{name} did not say '{line}':\n{process.tail(child.text())}")


def paddle_undisturbed(python: Path, scratch: Path) -> Count:
    with _paddle(python, scratch, 2, saves=False) as cluster:
        cluster.start("Paddle server 0")
        both = [cluster.start(f"Paddle worker {n}") for n in range(2)]
        for worker in both:
            _expect(worker, "done")
        return _row("none", "", cluster.counts())


def paddle_worker(python: Path, scratch: Path, again: bool) -> Count:
    """Two workers, half of the examples each; the second is killed in its middle."""
    with _paddle(python, scratch, 2, saves=False) as cluster:
        cluster.start("Paddle server 0")
        kept = cluster.start("Paddle worker 0")
        victim = cluster.start("Paddle worker 1")
        _expect(victim, f"batch {KILL_AT}")
        victim.kill()
        if again:
            _expect(cluster.start("Paddle worker 1"), "done")
        _expect(kept, "done")
        then = "started again" if again else "not started again"
        return _row("kill -9 of a worker", then, cluster.counts())


def paddle_server(python: Path, scratch: Path) -> Count:
    """One worker, which saves the tables now and then; the server is killed, and loads the save."""
    with _paddle(python, scratch, 1, saves=True) as cluster:
        server = cluster.start("Paddle server 0")
        worker = cluster.start("Paddle worker 0")
        _expect(worker, f"batch {KILL_AT}")
        server.kill()
        cluster.start("Paddle server 0")
        note = "its worker went on by itself"
        if not worker.wait_for("done", GO_ON_S):
            ended = worker.process.poll() is not None
            worker.kill()
            _expect(cluster.start("Paddle worker 0"), "done")
            note = ("its worker ended" if ended else f"its worker hung for {GO_ON_S:.0f} s") + (
                " and was started again; a save does not say which batches are in it"
            )
        then = "started again from the last save"
        return _row("kill -9 of the server", then, cluster.counts(), note)


def flux_count(binary: Path, scratch: Path, fault: str, role: str) -> Count:
    """The same model and data size; the job is run again only if it ended without its work."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    train = scratch / "train.tsv"
    process.run(
        [str(binary), "data", "gen", "criteo", "--examples", str(EXAMPLES), "--out", str(train)]
    )
    job = [
        str(ROOT / "examples/counting/job.yaml"),
        "--set",
        f"data.train={train}",
        "--set",
        f"output={scratch / 'out'}",
        "--set",
        f"data.batch={BATCH}",
        "--set",
        f"epochs={FLUX_EPOCHS}",
        "--set",
        "checkpoint.every_s=1",
    ]
    shape = ["--servers", "2", "--workers", "2", "--threads", "1"]
    drill = subprocess.run(
        [
            str(binary),
            "drill",
            *job,
            "--run",
            *shape,
            "--kill",
            role,
            "--every",
            "1s",
            "--times",
            "1",
            "--quiet",
            "--job-log",
            str(scratch / "job.log"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=process.TIMEOUT_S,
    )
    found = scratch / "out" / "drill.json"
    if not found.exists() or json.loads(found.read_text())["faults_made"] != 1:
        raise BenchError(f"flux drill made no fault:\n{process.tail(drill.stdout + drill.stderr)}")
    then = "repaired by itself"
    if drill.returncode != 0:
        process.run([str(binary), "run", *job, *shape])
        then = "the same command again"
    summary = json.loads((scratch / "out" / "summary.json").read_text())
    return Count(
        "flux",
        fault,
        then,
        summary["expected"],
        summary["applied_once"],
        summary["lost"],
        summary["doubled"],
    )


def render(counts: list[Count], version: str) -> str:
    lines = [
        "# Counting what a kill does",
        "",
        "One weight per example, raised by one each time the example is trained: afterwards every "
        "example must have been counted once (for flux: once in each epoch).",
        f"Peer: Paddle {version}, parameter server, asynchronous. `python3 bench/run.py --only "
        "counting`; what is done is described in `bench/harness/counting.py`.",
        "",
        "| system | fault | then | examples | once | lost | counted again |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in counts:
        cells = [
            one.system,
            one.fault,
            one.then,
            f"{one.expected:,}",
            f"{one.once:,}",
            f"{one.lost:,}",
            f"{one.doubled:,}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    notes = [f"- {one.system}, {one.fault}: {one.note}." for one in counts if one.note]
    return "\n".join(lines + (["", *notes] if notes else [])) + "\n"


def run(binary: Path | None, python: Path | None, scratch: Path) -> list[Count]:
    """All rows; `binary` or `python` absent: that side is left out."""
    counts: list[Count] = []

    def add(count: Count) -> None:
        counts.append(count)
        print(
            f"{count.system}, {count.fault}, {count.then}: lost {count.lost}, counted again "
            f"{count.doubled}{'; ' + count.note if count.note else ''}",
            flush=True,
        )

    if python:
        add(paddle_undisturbed(python, scratch / "paddle"))
        add(paddle_worker(python, scratch / "paddle", again=False))
        add(paddle_worker(python, scratch / "paddle", again=True))
        add(paddle_server(python, scratch / "paddle"))
    if binary:
        add(flux_count(binary, scratch / "flux", "kill -9 of a worker", "worker:1"))
        add(flux_count(binary, scratch / "flux", "kill -9 of a server", "server:0"))
    return counts


def write(counts: list[Count], version: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "counting.md").write_text(render(counts, version))
    (folder / "counting.json").write_text(
        json.dumps({"paddle": version, "rows": [asdict(one) for one in counts]}, indent=1) + "\n"
    )
