#!/usr/bin/env python3
"""Runs every command that the documentation shows.

    tools/check_docs.py [--root DIR] [--flux BINARY] [DOCUMENT...]

Documents are README.md, CONTRIBUTING.md and docs/**/*.md unless named. In each, the fenced blocks
marked `sh` are run in order, in one scratch folder per document that holds links to examples/,
models/, tools/ and the binary (build/flux, also on the PATH as flux) and, when the binary is there,
small Criteo-like data in data/criteo. In a block:
  - `make TARGET` is not run; the target has to be in the Makefile and `make -n` has to accept it;
  - `--examples N` is cut to EXAMPLES_MAX, which is said in the output;
  - everything else runs with `bash -euo pipefail`, within BLOCK_SECONDS.
A block that cannot be run has `<!-- not run: reason -->` on the line before it. Nothing else is
passed over: fences named bash, shell or console are refused. Exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

EXAMPLES_MAX = 5000
BLOCK_SECONDS = 300
FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*(\S*)")
NOT_RUN = re.compile(r"^\s*<!--\s*not run:\s*(.*?)\s*-->\s*$")
NOT_RUN_ANY = re.compile(r"^\s*<!--\s*not run", re.MULTILINE)
HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
MAKE = re.compile(r"^(?:\w+=\S*\s+)*make(?:\s|$)")
MAKE_INSIDE = re.compile(r"(?:&&|\|\||[;|(])\s*make(?:\s|$)")


class Command(NamedTuple):
    line: int
    text: str


class Block(NamedTuple):
    line: int
    language: str
    commands: list[Command]
    reason: str | None  # why it is not run


class Tally:
    """What was done, for the closing line, and what went wrong."""

    def __init__(self) -> None:
        self.run = 0
        self.targets = 0
        self.not_run = 0
        self.failures: list[str] = []

    def fail(self, document: str, line: int, what: str) -> None:
        self.failures.append(f"{document}:{line}: {what}")


def split_commands(lines: list[str], first: int) -> list[Command]:
    """Joins continued lines and here-documents; drops blank lines and comments."""
    commands: list[Command] = []
    at = 0
    while at < len(lines):
        start = at
        text = lines[at]
        while text.endswith("\\") and at + 1 < len(lines):
            at += 1
            text += "\n" + lines[at]
        if end := HEREDOC.search(text):
            while at + 1 < len(lines):
                at += 1
                text += "\n" + lines[at]
                if lines[at].strip() == end.group(2):
                    break
        at += 1
        if text.strip() and not text.lstrip().startswith("#"):
            commands.append(Command(first + start, text))
    return commands


def read_blocks(text: str) -> list[Block]:
    blocks: list[Block] = []
    lines = text.split("\n")
    before = ""  # the last line that was not blank
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if not fence:
            before = lines[at] if lines[at].strip() else before
            at += 1
            continue
        indent, ticks, language = fence.groups()
        end = at + 1
        while end < len(lines) and not re.match(rf"^\s*{re.escape(ticks)}\s*$", lines[end]):
            end += 1
        body = [line.removeprefix(indent) for line in lines[at + 1 : end]]
        marked = NOT_RUN.match(before)
        reason = marked.group(1) if marked else None
        blocks.append(Block(at + 1, language, split_commands(body, at + 2), reason))
        before = ""
        at = end + 1
    return blocks


def make_targets(root: Path) -> set[str]:
    makefile = root / "Makefile"
    text = makefile.read_text() if makefile.exists() else ""
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", text, re.MULTILINE))


def check_make(root: Path, command: str) -> str | None:
    """Why `make ...` would not work, or None."""
    words = shlex.split(command, comments=True)
    while words[0] != "make":
        words.pop(0)
    known = make_targets(root)
    for word in words[1:]:
        if re.fullmatch(r"[a-z][\w-]*", word) and word not in known:
            return f"the Makefile has no target '{word}'; it has: {', '.join(sorted(known))}"
    tried = subprocess.run(["make", "-n", *words[1:]], cwd=root, capture_output=True, text=True)
    return f"make -n refuses it: {tried.stderr.strip()}" if tried.returncode else None


def shorten(command: str) -> str:
    def cut(match: re.Match[str]) -> str:
        return match.group(1) + str(min(int(match.group(2)), EXAMPLES_MAX))

    return re.sub(r"(--examples[ =])(\d+)", cut, command)


def script_of(block: Block) -> str:
    """Writes down where it is before each command, so that a failure has a line."""
    parts = []
    for command in block.commands:
        if not MAKE.match(command.text):
            parts.append(f'echo {command.line} >"$CHECK_DOCS_AT"\n{shorten(command.text)}')
    return "\n".join(parts) + "\n"


def make_scratch(scratch: Path, root: Path, flux: Path) -> None:
    (scratch / "build").mkdir()
    (scratch / "build" / "flux").symlink_to(flux)
    for name in ("examples", "models", "docs", "tools"):
        if (root / name).exists():
            (scratch / name).symlink_to(root / name)
    if not flux.exists():
        return
    (scratch / "data" / "criteo").mkdir(parents=True)
    for name, seed in (("train", 1), ("test", 2)):
        out = scratch / "data" / "criteo" / f"{name}.tsv"
        sizes = ["--examples", str(EXAMPLES_MAX), "--seed", str(seed), "--out", str(out)]
        subprocess.run([str(flux), "data", "gen", "criteo", *sizes], check=True,
                       stdout=subprocess.DEVNULL)


def run_block(document: str, block: Block, scratch: Path, tally: Tally) -> None:
    at = scratch / ".check_docs_at"
    at.write_text(str(block.line))
    environment = {
        "PATH": f"{scratch / 'build'}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(scratch),
        "LANG": "C.UTF-8",
        "CHECK_DOCS_AT": str(at),
    }
    command = ["bash", "-euo", "pipefail", "-c", script_of(block)]
    try:
        done = subprocess.run(command, cwd=scratch, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=BLOCK_SECONDS)
    except subprocess.TimeoutExpired:
        tally.fail(document, int(at.read_text()), f"not done within {BLOCK_SECONDS} s")
        return
    if done.returncode:
        line = int(at.read_text())
        text = next((c.text for c in block.commands if c.line == line), "?")
        tail = "\n    ".join(done.stdout.decode(errors="replace").splitlines()[-15:])
        tally.fail(document, line, f"exit {done.returncode}: {text}\n    {tail}")


def check_block(document: str, block: Block, root: Path, scratch: Path, tally: Tally) -> None:
    if block.language in {"bash", "shell", "console", "zsh"}:
        tally.fail(document, block.line, f"a '{block.language}' block; call it sh, so that it runs")
        return
    if block.language != "sh":
        return
    if block.reason is not None:
        if not block.reason:
            tally.fail(document, block.line, "'not run' without a reason")
        tally.not_run += len(block.commands)
        print(f"{document}:{block.line}: not run: {block.reason}")
        return
    runnable = 0
    for command in block.commands:
        if MAKE.match(command.text):
            tally.targets += 1
            if what := check_make(root, command.text):
                tally.fail(document, command.line, what)
        elif MAKE_INSIDE.search(command.text):
            tally.fail(document, command.line, "make belongs on a line of its own")
            return
        elif command.text.lstrip().startswith("$ "):
            tally.fail(document, command.line, "a prompt before a command; leave it out")
            return
        else:
            runnable += 1
            if shorten(command.text) != command.text:
                print(f"{document}:{command.line}: runs as: {shorten(command.text)}")
    if runnable:
        run_block(document, block, scratch, tally)
        tally.run += runnable


def check_document(root: Path, path: Path, flux: Path, tally: Tally) -> None:
    document = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    text = path.read_text()
    blocks = read_blocks(text)
    marks = len(NOT_RUN_ANY.findall(text))
    if marks != sum(block.reason is not None for block in blocks):
        tally.fail(document, 1, "a 'not run' comment that does not stand right before a block")
    with tempfile.TemporaryDirectory(prefix="check_docs.") as folder:
        scratch = Path(folder)
        needs_data = any(b.language == "sh" and b.reason is None and script_of(b).strip()
                         for b in blocks)
        if needs_data:
            make_scratch(scratch, root, flux)
        for block in blocks:
            check_block(document, block, root, scratch, tally)


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs every command that the documentation shows.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--flux", type=Path, help="default: $FLUX_BINARY, else build/flux")
    parser.add_argument("documents", type=Path, nargs="*")
    options = parser.parse_args()
    root = options.root.resolve()
    flux = options.flux or Path(os.environ.get("FLUX_BINARY") or root / "build" / "flux")
    documents = options.documents or [
        path
        for path in (root / "README.md", root / "CONTRIBUTING.md", *root.glob("docs/**/*.md"))
        if path.exists()
    ]
    tally = Tally()
    for path in sorted(documents):
        check_document(root, path.resolve(), flux.absolute(), tally)
    for failure in tally.failures:
        print(failure)
    print(f"{len(documents)} documents: {tally.run} commands run, {tally.targets} make targets "
          f"checked, {tally.not_run} commands not run, {len(tally.failures)} failures")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
