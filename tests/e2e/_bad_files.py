"""Data files that are wrong in one way each: from good ones, for every format and packing.

A format is a row of FORMATS: its good lines, its job, and mistakes in one line of it. What goes
wrong with any text (cut, damaged, empty, endless) is in the lists below, for all of them.
"""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from _bad_formats import ALL as OTHER_FORMATS
from _bad_formats import CSV, HEADERS, LAYERS, NO_KEYS, SENTENCES, TEXT_SLOTS
from _bad_types import BAD_LINE, LINES, BadFile, Format, Mistake


def criteo_line(i: int) -> str:
    dense = [str(i * 7 % 11 / 2) for _ in range(13)]
    return "\t".join([str(i % 2), *dense, *(f"{i * 31 + s:x}" for s in range(26))])


def with_field(line: str, at: int, text: str) -> str:
    fields = line.split("\t")
    fields[at] = text
    return "\t".join(fields)


C = criteo_line(5)
CRITEO = Format(
    "criteo_tsv", "format: criteo_tsv", [criteo_line(i) for i in range(LINES)],
    [Mistake("too few columns", C.rsplit("\t", 1)[0], "39 fields; expected 40"),
     Mistake("too many columns", C + "\t1", "41 fields; expected 40"),
     Mistake("one column", "1", "1 field; expected 40|1 fields; expected 40"),
     Mistake("blank line", "", "blank line"),
     Mistake("NaN label", with_field(C, 0, "nan"), "label.*nan"),
     Mistake("label 2", with_field(C, 0, "2"), "label.*2"),
     Mistake("no label", with_field(C, 0, ""), "label"),
     Mistake("NaN number", with_field(C, 3, "NaN"), "I3.*NaN"),
     Mistake("inf number", with_field(C, 3, "inf"), "I3.*inf"),
     Mistake("huge number", with_field(C, 3, "1e999"), "I3.*1e999"),
     Mistake("word for a number", with_field(C, 9, "n/a"), "I9.*n/a"),
     Mistake("2^64 id", with_field(C, 14, "10000000000000000"), "C1.*10000000000000000"),
     Mistake("token of other letters", with_field(C, 39, "xyz"), "C26.*xyz"),
     Mistake("invalid UTF-8", with_field(C, 20, "a\udcffb"), "C7"),
     Mistake("NUL byte", with_field(C, 20, "a\0b"), "C7"),
     Mistake("CR inside", with_field(C, 20, "a\rb"), "C7"),
     Mistake("blanks for tabs", C.replace("\t", " "), "1 field|expected 40"),
     Mistake("a header", "\t".join(["label", *("I" for _ in range(39))]), "label")],
    """\
    - {name: sparse, op: embedding, table: weight, combine: sum}
    - {name: loss, op: logistic_loss, inputs: [sparse, label]}""", "tsv")

FEASIGN = Format(
    "feasign",
    "format: feasign, slots: [{name: user}, {name: item, values: true}], dense: [price]",
    [f"{i % 2} user:{i} item:{i * 3}:0.5 item:{i * 3 + 1} price:0.{i}"
     for i in range(1, LINES + 1)],
    [Mistake("NaN label", "nan user:1", "label 'nan' is not a number"),
     Mistake("two labels", "1,0 user:1", "2 labels, but data.labels names 1"),
     Mistake("no label", "user:1", "label 'user:1' is not a number"),
     Mistake("blank line", "", "an empty line"),
     Mistake("only blanks", "   ", "an empty line"),
     Mistake("2^64 id", "1 user:18446744073709551616", "'18446744073709551616' of slot 'user'"),
     Mistake("negative id", "1 user:-1", "'-1' of slot 'user'"),
     Mistake("id of letters", "1 user:abc", "'abc' of slot 'user'"),
     Mistake("no id", "1 user:", "of slot 'user' is not a whole number"),
     Mistake("value where none is", "1 user:1:2", "'1:2' of slot 'user'.*values"),
     Mistake("NaN value", "1 item:1:nan", "value 'nan' of slot 'item'"),
     Mistake("unknown slot", "1 usr:1", "'usr' is declared, did you mean 'user'"),
     Mistake("a word alone", "1 user", "'user' is no feature"),
     Mistake("duplicate dense slot", "1 price:1 price:2", "'price' comes twice"),
     Mistake("NaN number", "1 price:nan", "'nan' of dense feature 'price'"),
     Mistake("weight that nobody declared", "1 w=2 user:1", "data.weights"),
     Mistake("unknown note", "1 x=2 user:1", "'x=' is not known"),
     Mistake("invalid UTF-8", "1 user:\udcff", "of slot 'user'"),
     Mistake("NUL byte", "1 user:1\0", "of slot 'user'"),
     Mistake("CR inside", "1 user:1\r user:2", "of slot 'user'"),
     Mistake("a tab line of another format", C, r"'[0-9.]+' is no feature")],
    CRITEO.layers)

FORMATS = [CRITEO, FEASIGN, *OTHER_FORMATS]
BOM = b"\xef\xbb\xbf"


def to_bytes(lines: list[str], end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode("utf-8", "surrogateescape")


def zstd(text: bytes) -> bytes:
    """A frame without compression, which needs no library: the format has blocks of plain bytes."""
    out = bytearray(struct.pack("<IBI", 0xFD2FB528, 0x20 | 0x80, len(text)))
    step = 1 << 17
    blocks = [text[at:at + step] for at in range(0, len(text), step)] or [b""]
    for i, block in enumerate(blocks):
        last = i + 1 == len(blocks)
        out += struct.pack("<I", len(block) << 3 | last)[:3] + block
    return bytes(out)


def zstd_zeros(size: int) -> bytes:
    """`size` NUL bytes in one frame of blocks that repeat a byte."""
    step = 1 << 17
    out = struct.pack("<IBB", 0xFD2FB528, 0x00, 7 << 3)  # no content size, window 128 KiB
    for at in range(0, size, step):
        n = min(step, size - at)
        out += struct.pack("<I", n << 3 | 1 << 1 | (at + n == size))[:3] + b"\0"
    return out


def gzip_bytes(text: bytes) -> bytes:
    return gzip.compress(text, 6, mtime=0)


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda text: text, ".gz": gzip_bytes, ".zst": zstd}


def write(content: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(content)
    return make


def sparse(size: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with path.open("wb") as file:
            file.truncate(size)
    return make


def locked(content: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(content)
        path.chmod(0)
    return make


def flipped(content: bytes, at: int, bits: int = 0x10) -> bytes:
    out = bytearray(content)
    out[at] ^= bits
    return bytes(out)


def of_mistakes(fmt: Format) -> Iterator[list[BadFile]]:
    """Every mistake, in every packing: the line must be the same."""
    for mistake in fmt.mistakes:
        lines = list(fmt.good)
        lines[BAD_LINE - 1] = mistake.line
        yield [BadFile(f"{mistake.name}{packing}", write(pack(to_bytes(lines))),
                       f"{{path}}:{BAD_LINE}:\\d+: .*({mistake.says})", fmt, fmt.suffix + packing)
               for packing, pack in PACKINGS.items()]


def of_lines(fmt: Format) -> Iterator[BadFile]:
    """What may be wrong with the first line, the last one, or all of them."""
    first, last = fmt.mistakes[0], fmt.mistakes[1]
    lines = [*fmt.good[:fmt.header], first.line, *fmt.good[fmt.header:]]
    yield BadFile("in the first line", write(to_bytes(lines)),
                  f"{{path}}:{fmt.header + 1}:\\d+: .*({first.says})", fmt, fmt.suffix)
    yield BadFile("in the last line, which has no end",
                  write(to_bytes([*fmt.good, last.line])[:-1]),
                  f"{{path}}:{LINES + 1}:\\d+: .*({last.says})", fmt, fmt.suffix)
    if fmt is not SENTENCES:  # where it parts words
        yield BadFile("CR CR LF", write(to_bytes(fmt.good, "\r\r\n")),
                      "{path}:\\d+:\\d+: .*x0d", fmt, fmt.suffix)
    yield BadFile("UTF-16", write("".join(x + "\n" for x in fmt.good).encode("utf-16")),
                  "{path}: is text in UTF-16", fmt, fmt.suffix)


@cache
def gzip_zeros(size: int) -> bytes:
    return gzip_bytes(bytes(size))


def of_files(fmt: Format) -> Iterator[BadFile]:
    """What may happen to a whole file of text."""
    text = to_bytes(fmt.good)
    packed, framed = gzip_bytes(text), zstd(text)
    early = "the file ends too early"
    for name, make, says, packing in [
        ("missing", lambda path: None, "{path}: ", ""),
        ("a folder", Path.mkdir, "{path}.*(folder|directory)", ""),
        ("a named pipe", os.mkfifo, "{path}.*regular file", ""),
        ("empty", write(b""), "{path}: " + fmt.empty, ""),
        ("one NUL", write(b"\0"), "{path}:1:\\d+: ", ""),
        ("noise", write(bytes(i * i * 31 % 251 for i in range(3000))), "{path}:1:\\d+: ", ""),
        ("an ELF file", write(b"\x7fELF\2\1\1" + bytes(57)), "{path}:1:\\d+: ", ""),
        ("a line of 1 GB", sparse(1 << 30), "{path}:1:1: line is longer than \\d+ bytes", ""),
        ("a line of 2 MB at the end", write(text + b"1" * (2 << 20)),
         f"{{path}}:{LINES + 1}:1: line is longer", ""),
        ("empty gzip", write(gzip_bytes(b"")), "{path}: " + fmt.empty, ".gz"),
        ("empty file named .gz", write(b""), "{path}: " + fmt.empty, ".gz"),
        ("cut gzip", write(packed[:len(packed) // 2]), early, ".gz"),
        ("gzip without its last byte", write(packed[:-1]), early, ".gz"),
        ("gzip of 5 bytes", write(packed[:5]), early, ".gz"),
        ("gzip with a wrong bit", write(flipped(packed, len(packed) // 2)), "gzip data is damaged",
         ".gz"),
        ("gzip with a wrong check sum", write(flipped(packed, len(packed) - 6)),
         "gzip data is damaged.*check", ".gz"),
        ("gzip with a tail", write(packed + b"tail"), "gzip data is damaged", ".gz"),
        ("plain text named .gz", write(text),
         "{path}: is not gzip data, as its name says: it has no gzip head", ".gz"),
        ("zstd named .gz", write(framed), "is not gzip data.*begins as zstd", ".gz"),
        ("a line of 64 MB in gzip", write(gzip_zeros(64 << 20)),
         "{path}:1:1: line is longer", ".gz"),
        ("empty zstd", write(zstd(b"")), "{path}: " + fmt.empty, ".zst"),
        ("cut zstd", write(framed[:len(framed) // 2]), early, ".zst"),
        ("zstd without its last byte", write(framed[:-1]), early, ".zst"),
        ("zstd of 5 bytes", write(framed[:5]), early, ".zst"),
        ("zstd with a wrong head", write(flipped(framed, 4, 8)), "zstd data is damaged", ".zst"),
        ("zstd with a block too large", write(flipped(framed, 11, 0xff)), "zstd data is damaged",
         ".zst"),
        ("zstd that says another size", write(flipped(framed, 5, 1)), "zstd data is damaged",
         ".zst"),
        ("zstd with a tail", write(framed + b"tail"), "no zstd frame begins here", ".zst"),
        ("zstd with a window of 2 GB",
         write(framed[:4] + bytes([0x00, 21 << 3]) + framed[9:]), "window is larger than", ".zst"),
        ("zstd with a dictionary", write(framed[:4] + bytes([0x01, 0x50, 77]) + framed[9:]),
         "dictionary", ".zst"),
        ("plain text named .zst", write(text), "no zstd head", ".zst"),
        ("gzip named .zst", write(packed), "is not zstd data.*begins as gzip", ".zst"),
        ("a line of 1 GB in zstd", write(zstd_zeros(1 << 30)), "{path}:1:1: line is longer",
         ".zst"),
    ]:
        yield BadFile(name, make, says, fmt, fmt.suffix + packing)
    yield BadFile("no permission", locked(text), "{path}.*[Pp]ermission", fmt, fmt.suffix,
                  locked=True)


def of_pipes(fmt: Format) -> Iterator[BadFile]:
    text = to_bytes(fmt.good)
    lines = list(fmt.good)
    lines[BAD_LINE - 1] = fmt.mistakes[0].line
    shell = "the command /bin/sh -c "
    for name, command, says in [
        ("command not found", "no_such_program", "'no_such_program' is not found in PATH"),
        ("command is a folder", "/usr", "'/usr' is no program"),
        ("exit code 3", "/bin/sh,-c,cat; echo why it failed >&2; exit 3",
         "{path}: " + shell + ".*exit code 3; it said:\\s+why it failed"),
        ("fails at once", "false", "{path}: the command false ended with exit code 1"),
        ("killed by a signal", "/bin/sh,-c,head -n 5; kill -9 $$", "killed by signal 9"),
        ("hangs", "/bin/sh,-c,head -n 5; sleep 1000", "wrote nothing for 0.2 s"),
        ("hangs in a child", "/bin/sh,-c,(sleep 1000; echo x) | cat", "wrote nothing for 0.2 s"),
        ("does not end", "/bin/sh,-c,cat; exec >&-; sleep 1000", "did not end, and was killed"),
        ("writes nothing", "true", "{path}: " + fmt.empty),
        ("writes a line without end", "cat,-,/dev/zero",
         f"{{path}}:{LINES + 1}:1: line is longer"),
        ("never ends", f"yes,{fmt.good[0]}",
         "{path}: the command yes .* wrote more than 0.002 GB of text \\(data.pipe_max_gb\\)"),
        ("not gzip", "gzip,-dc", "{path}: the command gzip -dc ended with exit code 1; it said:"),
    ]:
        quoted = ", ".join("'" + word.replace("'", "''") + "'" for word in command.split(","))
        yield BadFile(f"pipe: {name}", write(text), says, fmt, fmt.suffix,
                      ["--set", f"data.pipe=[{quoted}]", "--set", "data.pipe_timeout=0.2",
                       "--set", "data.pipe_max_gb=0.002"])
    yield BadFile("pipe: bad line", write(to_bytes(lines)),
                  f"{{path}}:{BAD_LINE}:\\d+: .*({fmt.mistakes[0].says})", fmt, fmt.suffix,
                  ["--set", "data.pipe=[cat]"])


def of_all_pipes() -> Iterator[BadFile]:
    """What a pipe does is the same for all formats, so two of them stand for it."""
    for fmt in (CRITEO, FEASIGN):
        yield from of_pipes(fmt)


def of_headers() -> Iterator[BadFile]:
    for mistake in HEADERS:
        yield BadFile(mistake.name, write(to_bytes([mistake.line, *CSV.good[1:]])),
                      f"{{path}}:1:\\d+: .*{mistake.says}", CSV, CSV.suffix)


def of_text_slots() -> Iterator[BadFile]:
    """Keys that are texts, but no text."""
    for name, line in TEXT_SLOTS:
        fmt = Format(name, f"format: {name}, slots: [{{name: tag, text: true}}]", [], [], LAYERS)
        header = ["label,tag"] if name == "csv" else []
        lines = [*header, *(line.format(f"naïve{i}") for i in range(LINES - len(header)))]
        for key in NO_KEYS:
            lines[BAD_LINE - 1] = line.format(key)
            yield BadFile(f"the text key {key!a}", write(to_bytes(lines)),
                          f"{{path}}:{BAD_LINE}:\\d+: .*of slot 'tag': byte ", fmt, "txt")


def all_text_cases() -> Iterator[BadFile]:
    for fmt in FORMATS:
        for mistake in of_mistakes(fmt):
            yield from mistake
        yield from of_lines(fmt)
        yield from of_files(fmt)
    yield from of_all_pipes()
    yield from of_headers()
    yield from of_text_slots()


def good_variants(fmt: Format) -> dict[str, bytes]:
    """What looks odd but is good."""
    text = to_bytes(fmt.good)
    half = text.index(b"\n", len(text) // 2) + 1
    return {
        "crlf": to_bytes(fmt.good, "\r\n"),
        "no_last_newline": text[:-1],
        "byte_order_mark": BOM + text,
        "byte_order_mark.gz": gzip_bytes(BOM + text),
        "members.gz": (gzip_bytes(text[:half]) + gzip_bytes(b"") + gzip_bytes(text[half:])
                       + bytes(100)),
        "frames.zst": (zstd(text[:half]) + struct.pack("<II", 0x184D2A53, 4) + b"note"
                       + zstd(text[half:])),
    }


def job_text(fmt: Format, path: str) -> str:
    """Of a job that reads the file `path`, and those beside it."""
    data = fmt.data.replace("{path}", path)
    return f"""\
name: bad
output: out
data: {{{data}, train: [{fmt.train or path}], batch: 7}}
shards: 4
threads: 1
tables:
  - {{name: weight, {fmt.table}, optimizer: {{rule: sgd, lr: 0.1}}}}
model:
  layers:
{fmt.layers}
"""


def write_job(fmt: Format, path: str, folder: Path) -> None:
    """A folder of its own with the job, and what it needs beside `path`."""
    folder.mkdir()
    for name, text in fmt.beside.items():
        (folder / name).write_text(text)
    (folder / "job.yaml").write_text(job_text(fmt, path))
