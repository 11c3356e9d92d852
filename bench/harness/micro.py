"""Micro benchmarks, which print a table and then one JSON object per line; and the GEMM peak."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import data, process
from harness.errors import BenchError
from harness.rows import Table

PAIRED = ("rpc", "grpc")  # a ratio is made of them, so they are run in turns
NAMES = ("parse", "formats", "table", "net", "op", "wire", "rpc", "grpc", "checkpoint")
# What a bench is told beside its defaults: a table that fits beside everything else.
WORDS = {"checkpoint": ("--keys", "2000000")}
# Multiply-adds of forward and both backward products: 6 per weight of 273-400-400-400-1.
FLOP_PER_EXAMPLE = 6 * (273 * 400 + 400 * 400 + 400 * 400 + 400)
PRECISION_OF = {
    "torch_fp32": "fp32",
    "torch_compile": "fp32",
    "torch_bf16": "bf16",
    "torch_text": "fp32",
    "flux_fp32": "fp32",
    "flux_bf16": "bf16",
}

Line = dict[str, object]


@dataclass(frozen=True)
class Micro:
    name: str
    table: str  # what it printed for people
    lines: list[Line]
    failure: str = ""


def split_output(output: str) -> tuple[str, list[Line]]:
    """The readable part and the JSON objects that have a "bench"."""
    text: list[str] = []
    lines: list[Line] = []
    for raw in output.splitlines():
        try:
            parsed = json.loads(raw) if raw.startswith("{") else None
        except json.JSONDecodeError:
            parsed = None
        if isinstance(parsed, dict) and "bench" in parsed:
            lines.append(parsed)
        else:
            text.append(raw)
    return "\n".join(text).strip(), lines


def _run(folder: Path, name: str) -> Micro:
    binary = folder / f"{name}_bench"
    if not binary.exists():
        return Micro(binary.name, "", [], "not built (configure with -DFLUX_BENCH=ON)")
    print(f"running {binary.name}", flush=True)
    try:
        table, lines = split_output(process.run([str(binary), *WORDS.get(name, ())]).output)
        return Micro(binary.name, table, lines)
    except BenchError as error:
        return Micro(binary.name, "", [], str(error))


def run_all(folder: Path, rounds: int = 1) -> list[Micro]:
    """Each once, those of PAIRED `rounds` times in turns; lines of the later rounds name theirs."""
    results = {name: _run(folder, name) for name in NAMES}
    for number in range(2, rounds + 1):
        if any(results[name].failure for name in PAIRED):
            break
        for name in PAIRED:
            lines = _run(folder, name).lines
            results[name].lines.extend({**line, "round": number} for line in lines)
    return list(results.values())


def torch_gemm(python: Path, threads: Sequence[int]) -> list[Line]:
    lines: list[Line] = []
    for count in threads:
        command = [str(python), "-m", "peers.gemm", "--threads", str(count)]
        env = {**data.peer_env(), "OMP_NUM_THREADS": str(count)}
        lines += split_output(process.run(command, cores=count, env=env).output)[1]
    return lines


def gemm_peaks(lines: Sequence[Line]) -> dict[tuple[str, int], float]:
    """Best GFLOP/s seen by (precision, threads), whoever measured it."""
    peaks: dict[tuple[str, int], float] = {}
    for line in lines:
        if line.get("bench") != "gemm":
            continue
        precision, threads, gflops = (line.get(key) for key in ("precision", "threads", "gflops"))
        if isinstance(precision, str) and isinstance(threads, int):
            value = float(str(gflops))
            peaks[precision, threads] = max(value, peaks.get((precision, threads), 0.0))
    return peaks


def gemm_share(examples_per_s: float, gflops: float) -> float:
    return examples_per_s * FLOP_PER_EXAMPLE / (gflops * 1e9)


def shares(table: Table, peaks: dict[tuple[str, int], float]) -> list[tuple[str, int, str, float]]:
    """(row, threads, precision, share of the peak) for each CTR-DNN row with a measured peak."""
    result = []
    for series in table.series:
        precision = PRECISION_OF.get(series.row.key)
        peak = peaks.get((precision or "", series.row.threads))
        if precision and peak and series.samples:
            name = f"{series.row.system}, {series.row.setup}"
            share = gemm_share(series.speed(), peak)
            result.append((name, series.row.threads, precision, share))
    return result
