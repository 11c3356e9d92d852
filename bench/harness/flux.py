"""How the benchmark drives the flux binary: data, runs, summaries."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import process
from harness.errors import BenchError
from harness.rows import Sample, Wire
from harness.watch import uses

ROOT = Path(__file__).resolve().parent.parent.parent
SEED = 1  # of a job that names none
SUMMARY_FIELDS = ("examples", "examples_per_s", "auc", "lost", "doubled", "skipped")


@dataclass(frozen=True)
class Shape:
    """How many processes of each role a run has. No server: all roles in one process."""

    servers: int = 0
    workers: int = 0
    threads: int = 1  # of each worker, or of the one process
    wire: str = "fp32"  # form of numbers between workers and servers

    def trainers(self) -> int:
        """Threads that train, of all workers together."""
        return self.threads * max(1, self.workers)


@dataclass(frozen=True)
class Files:
    """The data of a run. Train and test come from the same hidden truth."""

    train: Path
    test: Path
    examples: int


class Flux:
    """The binary, and a scratch folder for its outputs."""

    def __init__(self, binary: Path, scratch: Path) -> None:
        if not binary.exists():
            raise BenchError(f"{_shown(binary)} is not there: run `make build` first")
        self.binary = binary
        self.scratch = scratch

    def generate(self, examples: int, seed: int, out: Path, threads: int) -> None:
        """Writes Criteo-like data; the file appears whole or not at all."""
        out.parent.mkdir(parents=True, exist_ok=True)
        part = out.with_suffix(".part")
        command = [str(self.binary), "data", "gen", "criteo", "--examples", str(examples)]
        command += ["--seed", str(seed), "--out", str(part), "--threads", str(threads)]
        try:
            process.run(command)
        except BenchError as error:
            raise BenchError(
                f"`flux data gen criteo` failed, so there is no data to compare on: {error}"
            ) from error
        part.rename(out)

    def command(
        self, job: str, files: Files, threads: int, precision: str, seed: int = SEED
    ) -> list[str]:
        output = self.scratch / "output"
        shutil.rmtree(output, ignore_errors=True)
        return [
            *(str(self.binary), "run", str(ROOT / "examples" / job / "job.yaml"), "--fresh"),
            *("--threads", str(threads)),
            *("--set", f"data.train={files.train}", "--set", f"data.test={files.test}"),
            *("--set", f"precision={precision}", "--set", f"output={output}"),
            *("--set", f"seed={seed}"),
            *("--summary", str(self.summary_path())),
        ]

    def role_command(
        self, files: Files, shape: Shape, precision: str, job: str = "ctr_dnn", seed: int = SEED
    ) -> list[str]:
        """`flux run` in this shape."""
        command = self.command(job, files, shape.threads, precision, seed)
        if shape.servers:
            command += ["--servers", str(shape.servers), "--workers", str(shape.workers)]
            command += ["--set", f"wire={shape.wire}"]
        return command

    def train_roles(
        self,
        files: Files,
        shape: Shape,
        precision: str,
        cores: int,
        *,
        job: str = "ctr_dnn",
        seed: int = SEED,
    ) -> Sample:
        """One fresh run, each of its processes measured from outside.

        Its memory is the sum of the processes' peaks.
        """
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.summary_path().unlink(missing_ok=True)
        command = self.role_command(files, shape, precision, job, seed)
        outcome = process.run(command, cores=cores, watched=True)
        summary = read_summary(self.summary_path())
        check_summary(summary, files.examples)
        roles = uses(outcome.tracks)
        if shape.servers:
            check_roles([use.role for use in roles], shape)
        return Sample(
            examples_per_s=float(str(summary["examples_per_s"])),
            wall_s=outcome.wall_s,
            peak_rss_bytes=sum(use.peak_rss_bytes for use in roles),
            others_cores=outcome.others_cores,
            auc=float(str(summary["auc"])),
            extra={"summary": summary, "cpu_s": round(outcome.cpu_s, 2)},
            roles=roles,
            wire=wire_of(summary, shape) if shape.servers else None,
            seed=seed,
        )

    def summary_path(self) -> Path:
        return self.scratch / "summary.json"

    def train(
        self, job: str, files: Files, threads: int, precision: str, seed: int = SEED
    ) -> Sample:
        """One fresh run; its speed is the summary's, its memory and wall are seen from outside."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.summary_path().unlink(missing_ok=True)
        outcome = process.run(
            self.command(job, files, threads, precision, seed), cores=threads
        )
        summary = read_summary(self.summary_path())
        check_summary(summary, files.examples)
        return Sample(
            examples_per_s=float(str(summary["examples_per_s"])),
            wall_s=outcome.wall_s,
            peak_rss_bytes=outcome.peak_rss_bytes,
            others_cores=outcome.others_cores,
            auc=float(str(summary["auc"])),
            extra={"summary": summary, "cpu_s": round(outcome.cpu_s, 2)},
            seed=seed,
        )


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def read_summary(path: Path) -> dict[str, object]:
    try:
        summary = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise BenchError("flux run wrote no summary although --summary was given") from error
    except json.JSONDecodeError as error:
        raise BenchError(f"the summary of flux run is not JSON: {error}") from error
    if not isinstance(summary, dict):
        raise BenchError("the summary of flux run is not a JSON object")
    return summary


def check_summary(summary: dict[str, object], examples: int) -> None:
    """A figure counts only if every example was applied exactly once."""
    missing = [name for name in SUMMARY_FIELDS if summary.get(name) is None]
    if missing:
        raise BenchError(f"the summary of flux run lacks {', '.join(missing)}")
    if summary["examples"] != examples:
        raise BenchError(f"flux trained {summary['examples']} examples, not {examples}")
    for name in ("lost", "doubled", "skipped"):
        if summary[name] != 0:
            raise BenchError(f"flux reports {name} = {summary[name]}, which must be 0")


def check_roles(seen: Sequence[str], shape: Shape) -> None:
    """The processes must be those that were asked for."""
    for role, wanted in (("server", shape.servers), ("worker", shape.workers)):
        if (count := seen.count(role)) != wanted:
            raise BenchError(f"flux run had {count} processes `flux {role}`, not {wanted}")


def wire_of(summary: dict[str, object], shape: Shape) -> Wire:
    """Traffic by the servers' counters; also checks that the run was as asked."""
    if summary.get("wire") != shape.wire:
        raise BenchError(f"the summary says wire = {summary.get('wire')}, not {shape.wire}")
    if summary.get("mode") != "async":
        raise BenchError(f"the summary says mode = {summary.get('mode')}, not async")
    roles = summary.get("roles")
    entries = [one for one in roles if isinstance(one, dict)] if isinstance(roles, list) else []
    servers = [one for one in entries if one.get("role") == "server"]
    try:
        counts = [(int(one["bytes_in"]), int(one["bytes_out"])) for one in servers]
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError("a server in `roles` of the summary lacks bytes_in, bytes_out") from error
    if len(counts) != shape.servers:
        raise BenchError(f"`roles` of the summary has {len(counts)} servers, not {shape.servers}")
    return Wire(shape.wire, sum(got for got, _ in counts), sum(sent for _, sent in counts))
