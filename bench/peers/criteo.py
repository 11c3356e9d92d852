"""Criteo TSV for the peers: label, 13 numbers, 26 hexadecimal tokens; an empty field is missing.

Parsing is written to be quick for Python (one call into C per batch and column kind), because the
rows that read text while training pay for it.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

DENSE = 13
SLOTS = 26
ROWS = 1 << 21  # of the one hashed embedding table
FIELDS = 1 + DENSE + SLOTS
TRANSFORMS = ("log1p", "none")

_MISSING = b"00000000"
_ODD_1 = np.uint64(0x9E3779B97F4A7C15)
_ODD_2 = np.uint64(0xD6E8FEB86659FD93)
_ROW_BITS = ROWS.bit_length() - 1


def row_of(tokens: Any) -> Any:
    """Table row of each token; tokens is uint32 [n, SLOTS], the same token differs by slot."""
    slot = (np.arange(SLOTS, dtype=np.uint64) + np.uint64(1)) << np.uint64(32)
    mixed = (tokens.astype(np.uint64) | slot) * _ODD_1
    mixed ^= mixed >> np.uint64(32)
    mixed *= _ODD_2
    return (mixed >> np.uint64(64 - _ROW_BITS)).astype(np.int64)


def _tokens(fields: list[list[bytes]]) -> Any:
    flat = [token or _MISSING for row in fields for token in row[1 + DENSE :]]
    if all(len(token) == len(_MISSING) for token in flat):
        return np.frombuffer(binascii.unhexlify(b"".join(flat)), dtype=">u4")
    return np.array([int(token, 16) for token in flat], dtype=np.uint32)


def parse(lines: Sequence[bytes], transform: str) -> tuple[Any, Any, Any]:
    """Labels float32 [n], dense float32 [n, DENSE], table rows int64 [n, SLOTS]."""
    fields = [line.rstrip(b"\r\n").split(b"\t") for line in lines]
    for number, row in enumerate(fields):
        if len(row) != FIELDS:
            raise ValueError(f"line {number} of a batch has {len(row)} fields, not {FIELDS}")
    labels = np.array([float(row[0]) for row in fields], dtype=np.float32)
    dense = np.array(
        [[float(value or 0) for value in row[1 : 1 + DENSE]] for row in fields], dtype=np.float32
    )
    if transform == "log1p":
        dense = np.log1p(np.maximum(dense, 0, out=dense), out=dense)
    return labels, dense, row_of(_tokens(fields).reshape(-1, SLOTS))


def batches(path: Path, size: int) -> Iterator[list[bytes]]:
    """Lines of a file, `size` at a time; the last batch may be short."""
    with path.open("rb", buffering=1 << 20) as file:
        while lines := list(islice(file, size)):
            yield lines
