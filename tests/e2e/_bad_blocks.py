"""Block files that are wrong in one way each, from a good one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from _bad_files import FEASIGN, flipped, locked, write
from _bad_types import BadFile, Format
from _support import SOURCE

BLOCKS = Format("blocks", FEASIGN.data.replace("feasign", "blocks"), FEASIGN.good, [],
                FEASIGN.layers, "blocks")


def with_data(data: str) -> Format:
    return Format("blocks", data, [], [], FEASIGN.layers, "blocks")


def of_numbers() -> Iterator[BadFile]:
    """Floats that are no numbers, with the right check sums: block_file_test.cc makes the files."""
    for name, says in [("nan_label", "label 'label' is nan"),
                       ("inf_dense", "dense feature 'price' is inf"),
                       ("nan_value", "a value of slot 'item' is nan"),
                       ("negative_weight", "weight -1 is not a number of at least 0"),
                       ("nan_weight", "weight nan is not a number of at least 0")]:
        weights = ", weights: true" if "weight" in name else ""
        yield BadFile(f"blocks: {name}",
                      write((SOURCE / f"tests/golden/{name}.blocks").read_bytes()),
                      f"{{path}}: record 2: {says}", with_data(BLOCKS.data + weights), "blocks")


def of_blocks(good: bytes) -> Iterator[BadFile]:
    """`good`: the lines of FEASIGN as a block file."""
    yield from of_numbers()
    for name, make, says in [("missing", lambda path: None, "{path}: no file matches"),
                             ("a folder", Path.mkdir, "{path}.*(folder|directory)"),
                             ("no permission", locked(good), "{path}.*[Pp]ermission denied")]:
        yield BadFile(f"blocks: {name}", make, says, BLOCKS, "blocks",
                      locked=name == "no permission")
    size = len(good)
    schema_end = good.index(b"}") + 1
    damaged, cut = "{path}: damaged at byte \\d+", "it was cut, or is being written"
    for name, content, says in [
        ("empty", b"", "{path}: is no block file"),
        ("text", b"1 user:1\n", "{path}: is no block file"),
        ("wrong magic", flipped(good, 0), "{path}: is no block file"),
        ("magic only", good[:8], damaged + ".*within its head"),
        ("cut in the head", good[:15], damaged + ".*within its head"),
        ("cut in the schema", good[:40], damaged),
        ("cut in the records", good[:size // 2], cut),
        ("without its last byte", good[:-1], cut),
        ("without its tail", good[:-16], cut),
        ("with a byte more", good + b"\0", cut),
        ("twice", good + good, damaged),
        ("schema of 4 GB", good[:8] + b"\xff" * 4 + good[12:], damaged + ".*schema of"),
        ("schema damaged", flipped(good, schema_end - 20), damaged + ".*check sum of its schema"),
        ("zeros behind the schema", good[:schema_end] + bytes(size - schema_end), cut),
        ("in gzip's clothes", b"\x1f\x8b" + good[2:], "{path}: is no block file"),
    ]:
        yield BadFile(f"blocks: {name}", write(content), says, BLOCKS, "blocks")
    # Every part of it, from the first chunk to the tail.
    for i in range(24):
        at = schema_end + (size - schema_end - 1) * i // 23
        yield BadFile(f"blocks: wrong bit in byte {at}", write(flipped(good, at)),
                      "{path}: (damaged at byte|the chunk at byte|it ends before)", BLOCKS,
                      "blocks")
    for name, data, says in [
        ("a slot that it lacks", "slots: [{name: user}, {name: itm, values: true}], dense: [price]",
         "{path}: its records have no slot 'itm', did you mean 'item'"),
        ("a slot that the job lacks", "slots: [{name: item, values: true}], dense: [price]",
         "{path}: its records have the slot 'user', which the job does not declare"),
        ("a number that it lacks",
         "slots: [{name: user}, {name: item, values: true}], dense: [price, age]",
         "{path}: its records have no dense feature 'age'"),
        ("no values", "slots: [{name: user}, {name: item}], dense: [price]",
         "{path}: the keys of its records have values"),
        ("weights",
         "slots: [{name: user}, {name: item, values: true}], dense: [price], weights: true",
         "{path}: its records have no weights"),
        ("two labels",
         "slots: [{name: user}, {name: item, values: true}], dense: [price], labels: [label, buy]",
         "{path}: its records have no label 'buy'"),
    ]:
        yield BadFile(f"blocks: the job has {name}", write(good), says,
                      with_data("format: blocks, " + data), "blocks")
