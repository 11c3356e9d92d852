"""Parquet files that are wrong in one way each: foreign, damaged, lying, or far too large."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from _bad_files import FEASIGN, locked
from _bad_types import BadFile, Format
from _parquet import PYTHON

PARQUET = Format(
    "parquet",
    "format: parquet, slots: [{name: user}, {name: tags}, {name: city, text: true}], "
    "dense: [price, age]", [], [], FEASIGN.layers, "parquet")

# One foreign column in each file; `bad` is what is put in the place of a good column.
FOREIGN = """
import datetime, decimal
import pyarrow as pa
import pyarrow.parquet as pq
n = 20
good = dict(label=pa.array([i % 2 for i in range(n)]), user=pa.array(range(n)),
            tags=pa.array([[i] for i in range(n)]), city=pa.array(["x"] * n),
            price=pa.array([0.5] * n), age=pa.array([1] * n))
def put(name, **columns):
    table = {**good, **columns}
    pq.write_table(pa.table({k: v for k, v in table.items() if v is not None}), name + ".parquet")
day = datetime.datetime(2026, 1, 1)
put("good")
for checked in (False, True):
    pq.write_table(pa.table(good), "packed_%d.parquet" % checked, compression="zstd",
                   write_page_checksum=checked)
put("no_label", label=None)
put("near_name", user=None, usr=good["user"])
put("text_label", label=good["city"])
put("list_label", label=good["tags"])
put("nan_label", label=pa.array([1.0] * 7 + [float("nan")] + [0.0] * 12))
put("null_label", label=pa.array([1] * 7 + [None] + [0] * 12))
put("inf_price", price=pa.array([1.0] * 7 + [float("inf")] + [0.0] * 12))
put("large_price", price=pa.array([1.0] * 7 + [1e300] + [0.0] * 12))
put("large_label", label=pa.array([1.0] * 7 + [-1e39] + [0.0] * 12))
put("large_value", tags_values=pa.array([[0.5]] * 7 + [[2e99]] + [[1.0]] * 12))
put("some_unread", when=pa.array([day] * n), vector=pa.array([[0.5]] * n))
put("nan_value", tags_values=pa.array([[0.5]] * 7 + [[float("nan")]] + [[1.0]] * 12))
put("text_user", user=good["city"])
put("float_user", user=good["price"])
put("whole_city", city=good["user"])
put("time_user", user=pa.array([day] * n))
put("decimal_price", price=pa.array([decimal.Decimal("1.5")] * n))
put("list_price", price=good["tags"])
put("nested_tags", tags=pa.array([[[i]] for i in range(n)]))
put("struct_user", user=pa.array([{"a": i, "b": i} for i in range(n)]))
put("map_user", user=pa.array([[(1, 2)]] * n, pa.map_(pa.int64(), pa.int64())))
put("half_price", price=pa.array([0.5] * n, pa.float16()))
empty = pa.table({name: column.slice(0, 0) for name, column in good.items()})
pq.write_table(empty, "empty.parquet")
names = [*good, "user"]
pq.write_table(pa.Table.from_arrays([*good.values(), good["age"]], names), "two_users.parquet")
"""

# Small files that say much: of their rows (12345, and what is put in their place), and lists, texts
# and pages of one value that is repeated.
HOSTILE = """
import pyarrow as pa
import pyarrow.parquet as pq
def number(n):
    n, out = (n << 1) ^ (n >> 63), bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])
def columns(n):
    return dict(label=[i % 2 for i in range(n)], user=list(range(n)), tags=[[i] for i in range(n)],
                city=["x"] * n, price=[0.5] * n, age=[1] * n)
def lie(name, n, group):
    pq.write_table(pa.table(columns(12345)), "true.parquet", row_group_size=group)
    true = open("true.parquet", "rb").read()
    size = int.from_bytes(true[-8:-4], "little")
    footer = true[-8 - size:-8]
    assert number(12345) in footer
    footer = footer.replace(number(12345), number(n))
    with open(name + ".parquet", "wb") as out:
        out.write(true[:-8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
lie("footer_rows", 1 << 60, 10000)
lie("all_rows", 1 << 60, 100000)
lie("many_rows", 1 << 30, 100000)
lie("minus_rows", -1, 100000)
def lists(name, rows, each, nulls=False):
    n = rows * each
    valid = pa.py_buffer(bytes((n + 7) // 8)) if nulls else None
    values = pa.Array.from_buffers(pa.int8(), n, [valid, pa.py_buffer(bytes(n))])
    tags = pa.ListArray.from_arrays(pa.array(range(0, n + 1, each), pa.int32()), values)
    pq.write_table(pa.table({**columns(rows), "tags": tags}), name + ".parquet")
lists("long_list", 1, 3000000)
lists("long_nulls", 1, 3000000, True)
lists("many_lists", 40, 900000)
for packing in ("zstd", "gzip", "snappy"):
    city = pa.array(["x" * (300 << 20)] + ["x"] * 19)
    pq.write_table(pa.table({**columns(20), "city": city}), "page_" + packing + ".parquet",
                   compression=packing, use_dictionary=False, write_statistics=False)
"""

ALLOWED_NUMBER = "allowed: a number in each row"
# Of those, and of what damage() makes.
BAD = {
    "no_label": "has no column 'label'",
    "near_name": "has no column 'user' \\(slot\\), did you mean 'usr'",
    "text_label": f"column 'label' \\(label\\) is BYTE_ARRAY.*{ALLOWED_NUMBER}",
    "list_label": f"column 'label' \\(label\\) is list of INT64.*{ALLOWED_NUMBER}",
    "nan_label": "record 8: label 'label' is missing or not a number",
    "null_label": "record 8: label 'label' is missing or not a number",
    "inf_price": "record 8: dense feature 'price' is infinite",
    "large_price": "record 8: dense feature 'price' is 1e\\+300; a float holds at most 3.4e38",
    "large_label": "record 8: label 'label' is -1e\\+39; a float holds at most",
    "text_user": "column 'user' \\(slot\\) is BYTE_ARRAY.*texts need text: true",
    "float_user": "column 'user' \\(slot\\) is DOUBLE; allowed: whole numbers, texts",
    "whole_city": "column 'city' \\(slot\\) is INT64; allowed: texts",
    "time_user": "column 'user' \\(slot\\) is INT64 \\(Timestamp.*allowed",
    "decimal_price": "column 'price' \\(dense feature\\) is .*Decimal.*allowed",
    "list_price": f"column 'price' \\(dense feature\\) is list of INT64; {ALLOWED_NUMBER}",
    "nested_tags": "column 'tags' \\(slot\\) is list of lists; allowed",
    "struct_user": "column 'user' \\(slot\\) is group of 2 columns; allowed",
    "map_user": "column 'user' \\(slot\\) is group of 2 columns; allowed",
    "half_price": "column 'price' \\(dense feature\\) is .*allowed",
    "empty": "holds no record",
    "two_users": "has two columns 'user'",
    "zero_bytes": "is no Parquet file",
    "cut": "Parquet data is damaged: it does not end with PAR1: it was cut",
    "magic": "is no Parquet file",
    "head": "Parquet data is damaged: it ends within its head",
    "footer": "Parquet data is damaged: a footer of 4294967295 bytes",
    "noise_footer": "Parquet data is damaged: ",
    "noise_pages": "Parquet data is damaged: ",
}

HOSTILE_BAD = {
    "footer_rows": "its footer says 1152921504606846976 rows, its row groups have 12345",
    "all_rows": "says that it has so many records",
    "many_rows": "Parquet data is damaged: in records 1 to \\d+: column '\\w+': ",
    "minus_rows": "row group 1 of 18446744073709551615 rows",
    "long_list": "in records 1 to 1: column 'tags': a list of more than 2\\^20 values",
    "long_nulls": "in records 1 to 1: column 'tags': a list of more than 2\\^20 values",
    "many_lists": "in records 1 to 40: column 'tags': more than 2\\^25 values",
    "page_zstd": "column 'city': .*pages of \\d+ MiB at once",
    "page_gzip": "column 'city': .*pages of \\d+ MiB at once",
    "page_snappy": "column 'city': .*pages of \\d+ MiB at once",
}
MORE = {"many_rows": ["--set", "data.batch=1000"], "many_lists": ["--set", "data.batch=100"]}


def damage(good: bytes) -> dict[str, bytes]:
    noise = bytes(i * i % 251 for i in range(len(good)))
    return {
        "cut": good[: len(good) // 2], "magic": b"PARX" + good[4:], "head": good[:9],
        "footer": good[:-8] + b"\xff\xff\xff\xff" + good[-4:],
        "noise_footer": good[:-200] + noise[:192] + good[-8:],
        "noise_pages": good[:4] + noise[:600] + good[604:], "zero_bytes": b"",
    }


def of_parquet(folder: Path) -> Iterator[BadFile]:
    """The files are made in `folder`."""
    for program in (FOREIGN, HOSTILE):
        subprocess.run([str(PYTHON), "-c", program], cwd=folder, check=True)
    good = (folder / "good.parquet").read_bytes()
    for name, content in damage(good).items():
        (folder / f"{name}.parquet").write_bytes(content)
    for name, says in {**BAD, **HOSTILE_BAD}.items():
        make = partial(shutil.copyfile, folder / f"{name}.parquet")
        yield BadFile(name, make, "{path}: .*" + says, PARQUET, "parquet", MORE.get(name, []))
    yield BadFile("missing", lambda path: None, "{path}: ", PARQUET, "parquet")
    yield BadFile("no permission", locked(good), "{path}.*[Pp]ermission", PARQUET, "parquet",
                  locked=True)
