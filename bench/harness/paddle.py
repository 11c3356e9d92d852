"""The parameter server of Paddle as peer: how its processes are started, and one sample of it."""

from __future__ import annotations

import json
import shutil
import socket
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from harness import data, group
from harness.errors import BenchError
from harness.flux import Files
from harness.rows import Sample
from harness.watch import Track, uses

HOST = "127.0.0.1"
TIMEOUT_S = 900.0


def free_ports(count: int) -> list[int]:
    """Ports that were free together a moment ago."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


def members(command: list[str], servers: int, workers: int, ports: list[int]) -> list[group.Member]:
    """Processes with the variables that paddle.distributed.launch gives them."""
    ends = [f"{HOST}:{port}" for port in ports]
    common = {
        **data.peer_env(),
        "OMP_NUM_THREADS": "1",  # its own threads train, each with one of the library's
        "POD_IP": HOST,
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(ends[:servers]),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(ends[servers:]),
        "PADDLE_TRAINERS_NUM": str(workers),
        "PADDLE_WITH_GLOO": "0",
    }
    result = []
    for number in range(servers):
        env = {**common, "TRAINING_ROLE": "PSERVER", "PADDLE_PORT": str(ports[number])}
        result.append(group.Member(f"Paddle server {number}", "server", command, env, True))
    for number in range(workers):
        env = {**common, "TRAINING_ROLE": "TRAINER", "PADDLE_PORT": str(ports[servers + number])}
        env["PADDLE_TRAINER_ID"] = str(number)
        result.append(group.Member(f"Paddle worker {number}", "worker", command, env, False))
    return result


def result_line(output: str) -> dict[str, float]:
    """The worker's figures, somewhere among the lines of the library's log."""
    for line in reversed(output.splitlines()):
        if not line.startswith('{"examples"'):
            continue
        try:
            found = json.loads(line)
            names = ("examples", "examples_per_s", "begin_s", "end_s", "auc")
            return {name: float(found[name]) for name in names}
        except (ValueError, KeyError, TypeError):
            break
    raise BenchError(f"no result line in the output of Paddle's worker:\n{output[-500:]}")


def after(track: Track, begin_s: float) -> Track:
    """The track as if the process had used no CPU before: start-up is not per example."""
    before = track.cpu_at(begin_s)
    return replace(track, cpu=[max(0.0, value - before) for value in track.cpu])


@dataclass(frozen=True)
class PaddlePeer:
    python: Path
    files: Files
    train: Path  # folders of parts in its own text
    test: Path
    scratch: Path

    @staticmethod
    def prepare(python: Path, files: Files, cache: Path, transform: str) -> PaddlePeer:
        train = data.for_paddle(python, files.train, cache, transform)
        test = data.for_paddle(python, files.test, cache, transform)
        return PaddlePeer(python, files, train, test, cache / "scratch" / "paddle")

    def measure(self, threads: int, seed: int) -> Sample:
        """One server and one worker on the same `threads` cores; training alone is timed."""
        command = [str(self.python), "-m", "peers.paddle_ps", "--threads", str(threads)]
        command += ["--train", str(self.train), "--test", str(self.test), "--seed", str(seed)]
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)  # it leaves files where it runs
        outcome = group.run(
            members(command, 1, 1, free_ports(2)),
            cores=threads,
            folder=self.scratch,
            timeout_s=TIMEOUT_S,
        )
        result = result_line(outcome.outputs["Paddle worker 0"])
        if result["examples"] != self.files.examples:
            trained = int(result["examples"])
            raise BenchError(f"Paddle trained {trained} examples, not {self.files.examples}")
        tracks = outcome.tracks.values()
        roles = uses(after(track, result["begin_s"]) for track in tracks)
        return Sample(
            examples_per_s=result["examples_per_s"],
            wall_s=outcome.wall_s,
            peak_rss_bytes=sum(use.peak_rss_bytes for use in roles),
            others_cores=outcome.others_cores,
            auc=result["auc"],
            extra={
                "train_s": round(result["end_s"] - result["begin_s"], 3),
                "whole_life": {use.name: use.cpu_s for use in uses(tracks)},
            },
            roles=roles,
            seed=seed,
        )
