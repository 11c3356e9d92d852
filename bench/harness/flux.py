"""How the benchmark drives the flux binary: data, runs, summaries."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from harness import process
from harness.errors import BenchError
from harness.rows import Sample

ROOT = Path(__file__).resolve().parent.parent.parent
SUMMARY_FIELDS = ("examples", "examples_per_s", "auc", "lost", "doubled", "skipped")


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

    def command(self, job: str, files: Files, threads: int, precision: str) -> list[str]:
        output = self.scratch / "output"
        shutil.rmtree(output, ignore_errors=True)
        return [
            *(str(self.binary), "run", str(ROOT / "examples" / job / "job.yaml"), "--fresh"),
            *("--threads", str(threads)),
            *("--set", f"data.train={files.train}", "--set", f"data.test={files.test}"),
            *("--set", f"precision={precision}", "--set", f"output={output}"),
            *("--summary", str(self.summary_path())),
        ]

    def summary_path(self) -> Path:
        return self.scratch / "summary.json"

    def train(self, job: str, files: Files, threads: int, precision: str) -> Sample:
        """One fresh run; its speed is the summary's, its memory and wall are seen from outside."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.summary_path().unlink(missing_ok=True)
        outcome = process.run(self.command(job, files, threads, precision), cores=threads)
        summary = read_summary(self.summary_path())
        check_summary(summary, files.examples)
        return Sample(
            examples_per_s=float(str(summary["examples_per_s"])),
            wall_s=outcome.wall_s,
            peak_rss_bytes=outcome.peak_rss_bytes,
            others_cores=outcome.others_cores,
            auc=float(str(summary["auc"])),
            extra={"summary": summary, "cpu_s": round(outcome.cpu_s, 2)},
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
