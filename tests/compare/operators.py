"""Holds the operators of flux against torch on random shapes and values.

    python tests/compare/operators.py --program build/bin/operator_cases [--cases N] [--golden FILE]

For every operator torch computes the output and, by its automatic differentiation, the gradients of
all inputs and parameters, in double precision; `operator_cases` compares what flux computes. With
--golden a small part of the cases is written to FILE instead (tests/golden/operators.txt), which
`make test` replays without torch. Needs torch; `make compare` sets it up.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import layers
import losses
import tables
import torch
import values
from operator_case import SPECS, Attr, Case, Table

GOLDEN_CASES = 2
GOLDEN_SEEDS = 12
GOLDEN_SIZE = 900  # characters of a case
PARTS = (values, layers, losses, tables)  # importing them fills SPECS


def _numbers(values: torch.Tensor) -> str:
    return " ".join(f"{float(v):.9g}" for v in values.detach().reshape(-1))


def _attr(name: str, value: Attr) -> str:
    if isinstance(value, bool):
        return f"attr {name} bool {str(value).lower()}"
    if isinstance(value, list):
        return f"attr {name} texts {','.join(str(v) for v in value)}"
    kind = {int: "int", float: "float", str: "text"}[type(value)]
    return f"attr {name} {kind} {value}"


def _words(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


def _table(table: Table) -> list[str]:
    lines = [f"slots {table.slots}", f"table {table.rows.shape[1]} {_numbers(table.rows)}"]
    if not table.one_key:
        lines.append(f"counts {_words(map(len, table.keys))}")
    lines.append(f"keys {_words(table.occurrences())}")
    if table.values is not None:
        lines.append(f"values {_numbers(torch.cat(table.values))}")
    return [*lines, f"noise {table.noise}"]


def _run(case: Case) -> list[str]:
    """Lines with what flux gets and what torch finds."""
    inputs = [x.requires_grad_() for x in case.inputs]
    parameters = [p.requires_grad_() for p in case.parameters]
    lines = [_attr(name, value) for name, value in case.attrs.items()]
    lines += [f"input {x.shape[1]} {x.shape[2]} {_numbers(x)}" for x in inputs]
    if case.label is not None:
        lines.append(f"label {_numbers(case.label)}")
    if case.weight is not None:
        lines.append(f"weight {_numbers(case.weight)}")
    if case.table is not None:
        case.table.rows.requires_grad_()
        lines += _table(case.table)
    if parameters:
        lines.append("parameters " + " ".join(_numbers(p) for p in parameters))
    output = case.compute(inputs, parameters)
    if case.losses is not None:
        losses = case.losses(inputs)
        if case.weight is not None:
            losses = losses * case.weight
        losses.mean().backward()
        lines.append(f"want loss {float(losses.detach().sum()):.9g}")
    else:
        gradient = torch.randn(output.shape, generator=case.rng, dtype=output.dtype)
        lines.append(f"gradient {_numbers(gradient)}")
        if output.requires_grad:
            output.backward(gradient)
    lines.append(f"want output {_numbers(output)}")
    for i, x in enumerate(inputs):
        lines.append(f"want input {i} {_numbers(_gradient(x))}")
    if parameters:
        wanted = [case.wanted.get(i, _gradient(p)) for i, p in enumerate(parameters)]
        lines.append("want parameters " + " ".join(_numbers(g) for g in wanted))
    if case.table is not None:
        lines.append(f"want table {_numbers(_gradient(case.table.rows))}")
    return lines


def _gradient(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(x) if x.grad is None else x.grad


def text_of(name: str, seed: int) -> str:
    """One case of an operator, as operator_cases reads it."""
    rng = torch.Generator().manual_seed(seed * 7919 + sum(map(ord, name)))
    case = SPECS[name](rng)
    head = [f"case {name}-{seed}", f"op {name}", f"batch {case.batch}"]
    return "\n".join([*head, *_run(case), "end", ""])


def golden_texts() -> Iterable[str]:
    """A few cases of every operator: the largest among those that are small enough to keep."""
    for name in SPECS:
        texts = sorted((text_of(name, seed) for seed in range(GOLDEN_SEEDS)), key=len)
        small = [text for text in texts if len(text) <= GOLDEN_SIZE]
        yield from small[-GOLDEN_CASES:] or texts[:1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, help="bin/operator_cases of a build")
    parser.add_argument("--cases", type=int, default=20, help="for each operator")
    parser.add_argument("--golden", type=Path, help="write a few cases there and end")
    args = parser.parse_args()
    if args.golden is not None:
        text = "".join(golden_texts())
        args.golden.write_text(f"# Made by tests/compare/operators.py --golden.\n{text}")
        return 0
    if args.program is None:
        parser.error("--program or --golden is needed")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        for name in SPECS:
            for seed in range(args.cases):
                file.write(text_of(name, seed))
        file.flush()
        return subprocess.run([str(args.program), file.name], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
