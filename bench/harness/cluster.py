"""The cluster part: Paddle's parameter server, flux in one process, and flux as processes.

Every row trains the same data on the same cores; a row is named by its shape.
"""

from __future__ import annotations

from functools import partial

from harness.flux import Files, Flux, Shape
from harness.paddle import PaddlePeer
from harness.rows import Case, Row, Sample, Series, Table

PADDLE = "paddle_ps"
WIRES = ("fp32", "fp16", "bf16")
OVERHEAD_ROLES = ("coordinator", "run", "other")  # neither hold nor train the model
ALL_ROLES = ("server", "worker", *OVERHEAD_ROLES)


def paddle_row(threads: int) -> Row:
    setup = f"1 server + 1 worker x {threads}, async, fp32, from memory"
    return Row(PADDLE, "Paddle", setup, threads)


def shown(shape: Shape, precision: str) -> str:
    if not shape.servers:
        return f"one process x {shape.threads}, {precision}"
    servers = "1 server" if shape.servers == 1 else f"{shape.servers} servers"
    workers = "1 worker" if shape.workers == 1 else f"{shape.workers} workers"
    return f"{servers} + {workers} x {shape.threads}, {precision}, wire {shape.wire}"


def shapes(threads: int, bf16: bool) -> list[tuple[str, Shape, str]]:
    """(key, shape, precision) of each row of flux, `threads` being those that train."""
    one_process = Shape(threads=threads)
    separate = {wire: Shape(1, 1, threads, wire) for wire in WIRES}
    rows = [  # Paddle's comes before; what makes a ratio stands together
        ("cluster_fp32", separate["fp32"], "fp32"),
        ("embedded_fp32", one_process, "fp32"),
        ("cluster_wire_fp16", separate["fp16"], "fp32"),
        ("cluster_wire_bf16", separate["bf16"], "fp32"),
        ("cluster_two", Shape(2, 2, max(1, threads // 2)), "fp32"),
    ]
    if bf16:
        rows[2:2] = [
            ("cluster_bf16", separate["fp32"], "bf16"),
            ("embedded_bf16", one_process, "bf16"),
        ]
    if threads > 1:  # where batches do not race, so that two runs can be held against each other
        rows += [
            ("embedded_fp32", Shape(threads=1), "fp32"),
            ("cluster_fp32", Shape(1, 1, 1), "fp32"),
        ]
    return rows


def flux_sample(
    flux: Flux, files: Files, shape: Shape, precision: str, cores: int, seed: int
) -> Sample:
    return flux.train_roles(files, shape, precision, cores, seed=seed)


def flux_cases(flux: Flux, files: Files, threads: int, bf16: bool) -> list[Case]:
    cases = []
    for key, shape, precision in shapes(threads, bf16):
        cores = min(threads, shape.trainers())
        row = Row(key, "flux", shown(shape, precision), shape.trainers())
        cases.append(Case(row, partial(flux_sample, flux, files, shape, precision, cores)))
    return cases


def paddle_case(peer: PaddlePeer, threads: int) -> Case:
    return Case(paddle_row(threads), partial(peer.measure, threads))


def per_million(series: Series, examples: int, *roles: str) -> float | None:
    """CPU seconds of these roles per million examples, the median."""
    used = series.middle(lambda sample: sample.cpu_s(*roles))
    return None if used is None else used * 1e6 / examples


def gb_s_per_million(series: Series, examples: int, *roles: str) -> float | None:
    used = series.middle(lambda sample: sample.gb_s(*roles))
    return None if used is None else used * 1e6 / examples


def server_cpu(table: Table, key: str, threads: int, examples: int) -> float | None:
    series = table.find(key, threads)
    return per_million(series, examples, "server") if series else None
