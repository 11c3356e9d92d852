#!/usr/bin/env python3
"""Shows that the test of every operator notices a wrong backward pass.

    tools/mutate_ops.py [--all] [--only NAME ...] [--work DIR]

For each operator one mutation is made in a copy of the tree: in its backward pass the sign of a
term is turned, or a statement is dropped. The test program is built, and the operator's own test
must fail. --all makes every such mutation of every operator instead of one. Prints a table; exits
with 1 if a mutation is not noticed. Slow: each one compiles a file and links the tests.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OPERATORS = Path("flux/nn/ops")
# Functions that are part of a backward pass, by name.
BACKWARD = re.compile(
    r"\b(backward\w*|derivative|slope|gradient|gate_gradient|sum_gradients|write_gradients"
    r"|read_output_gradient|pass)\("
)
# Where the backward pass of an operator lies if not in its own file.
ELSEWHERE = {
    "attention_pooling": Path("flux/nn/weighted_sum.h"),
    "entrywise_product": OPERATORS / "mul.cc",
    "equal": Path("flux/nn/comparison.h"),
    "fc": Path("flux/nn/fc_kernel.cc"),
    "gate": Path("flux/nn/weighted_sum.h"),
    "greater": Path("flux/nn/comparison.h"),
    "greater_equal": Path("flux/nn/comparison.h"),
    "less": Path("flux/nn/comparison.h"),
    "less_equal": Path("flux/nn/comparison.h"),
    "not_equal": Path("flux/nn/comparison.h"),
}
WITHOUT = {"sequence_mask": "depends on the data alone"}


class Mutation(NamedTuple):
    line: int  # from 1
    before: str
    after: str


def _span(lines: list[str], first: int) -> range:
    """The lines of the function that begins at `first`, by its braces; empty for a declaration."""
    depth = 0
    for i in range(first, len(lines)):
        depth += lines[i].count("{") - lines[i].count("}")
        if depth == 0 and (";" in lines[i] or "}" in lines[i]):
            return range(first, i + 1)
    return range(first, first)


HEADER = re.compile(r"^(\s*)((?:for|if) \((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\) )?(.*)$")
RULES = [
    (r"^(\S.*) \+= (.*;)", r"\1 -= \2"),
    (r"^(\S.*) -= (.*;)", r"\1 += \2"),
    (r"^add_scaled\(", "add_scaled(-1.0F * "),
    (r"^return (?!scatter|pass|0)(.*);", r"return -(\1);"),
    (
        r"^((?:const float )?[\w.\->]+(?:\[.*\])?|\*dx\[0\]) = "
        r"(?!0;|read_row)((?:(?!, \*?\w+ = ).)*);",
        r"\1 = -(\2);",
    ),
    (r"fill_n\((.*), 0\.0F\)", r"fill_n(\1, 1.0F)"),
    (
        r"^(std::copy|write_row|scatter|add_softmax_gradient|\w+(?:\[e\])?->backward)",
        r"if (false) \1",
    ),
]


def _turned(line: str) -> str | None:
    """The line with the sign of a term turned or a statement dropped; None: nothing to do."""
    inline = re.match(r"^(.*\) (?:const )?\{ )((?:return|std::copy).*)$", line)
    found = inline or HEADER.match(line)
    if found is None:
        return None
    *head, rest = found.groups("")
    for pattern, replacement in RULES:
        changed, count = re.subn(pattern, replacement, rest, count=1)
        if count:
            return "".join(head) + changed
    return None


def mutations(text: str) -> Iterator[Mutation]:
    lines = text.split("\n")
    seen: set[int] = set()
    for first, line in enumerate(lines):
        if not BACKWARD.search(line) or line.rstrip().endswith(";"):
            continue
        if not re.match(r"\s*(static |inline )?(void|float|double)\b", line):
            continue
        for i in _span(lines, first):
            after = _turned(lines[i])
            if after is not None and i not in seen:
                seen.add(i)
                yield Mutation(i + 1, lines[i].strip(), after)


def suite(operator: str) -> str:
    return "".join(part.capitalize() for part in operator.split("_"))


class Bench:
    """A copy of the tree, built."""

    def __init__(self, work: Path) -> None:
        self.tree = work / "tree"
        self.build = self.tree / "build"
        files = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.split("\n")  # fmt: skip
        for name in filter(None, files):
            source, target = ROOT / name, self.tree / name
            if not source.is_file():
                continue
            if target.exists() and target.read_bytes() == source.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        subprocess.run(
            ["cmake", "--preset", "test"], cwd=self.tree, check=True, stdout=subprocess.DEVNULL
        )
        if not self.make():
            raise SystemExit("the tests do not build without a mutation")

    def make(self) -> bool:
        done = subprocess.run(
            ["ninja", "-C", str(self.build), "nn_test"], capture_output=True, text=True, check=False
        )
        return done.returncode == 0

    def test(self, operator: str) -> str:
        """The first test that failed; empty: none did."""
        done = subprocess.run(
            [str(self.build / "bin" / "nn_test"), f"--gtest_filter={suite(operator)}.*"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if "Running 0 tests" in done.stdout:
            raise SystemExit(f"there is no test named {suite(operator)}.*")
        if done.returncode == 0:
            return ""
        failed = re.search(r"\[  FAILED  \] (\S+)", done.stdout)
        return failed.group(1) if failed else f"exit status {done.returncode}"

    def try_one(self, operator: str, file: Path, mutation: Mutation) -> str | None:
        """What noticed it; None if the mutation does not compile."""
        target = self.tree / file
        original = target.read_text()
        lines = original.split("\n")
        lines[mutation.line - 1] = mutation.after
        target.write_text("\n".join(lines))
        try:
            return self.test(operator) if self.make() else None
        finally:
            target.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every mutation of every operator")
    parser.add_argument("--only", nargs="+", default=[], help="these operators")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "mutants", help="for the copy"
    )
    args = parser.parse_args()
    names = sorted(f.stem for f in (ROOT / OPERATORS).glob("*.cc") if not f.stem.endswith("_test"))
    bench = Bench(args.work.resolve())
    survived = 0
    print(f"{'operator':24} {'noticed by':52} mutation")
    for name in args.only or names:
        if name in WITHOUT:
            print(f"{name:24} {'(no backward pass: ' + WITHOUT[name] + ')':52}", flush=True)
            continue
        file = ELSEWHERE.get(name, OPERATORS / f"{name}.cc")
        tried = 0
        for mutation in mutations((ROOT / file).read_text()):
            noticed = bench.try_one(name, file, mutation)
            if noticed is None:
                continue
            tried += 1
            survived += noticed == ""
            shown = noticed or "NOT NOTICED"
            print(
                f"{name:24} {shown:52} {file.name}:{mutation.line}: {mutation.before}", flush=True
            )
            if not args.all:
                break
        if tried == 0:
            survived += 1
            print(f"{name:24} {'NO MUTATION FOUND':52}", flush=True)
    print(f"{survived} not noticed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
