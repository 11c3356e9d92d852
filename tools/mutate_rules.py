#!/usr/bin/env python3
"""Shows that the tests of update rules notice a wrong formula.

    tools/mutate_rules.py [--work DIR]

Each kernel (flux/optimizer/<rule>_kernel.h) is changed in every line of its formula, one at a time:
the first sign of the line is turned, or its store is dropped. As many kernels as do not include one
another are changed together in one build of a copy of the tree; of each some test that bears its
name must fail. What all rules share (flux/optimizer/shaping.cc: L1 and L2, clipping, bounds) is
changed alone, in every sign and store and with each of its steps left out; there any test may fail.
Prints a table; exits with 1 if a change is not noticed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mutant_tree import ROOT, MutantTree

KERNELS = Path("flux/optimizer")
SUFFIX = "_kernel.h"
SHAPING = KERNELS / "shaping.cc"
STEP = re.compile(
    r"^(\s*(?:if \(.*\) )?)((?:clip_values|clip_to_norm|add_terms|bound_weights)\(.*;)$"
)
SIGN = re.compile(r"(?<=[\w)\]]) ([+-])(?= [\w(])")  # between two terms, not before a number
ADDRESS = re.compile(r"\b(weights|state|gradient|mean|square|dim|powers|z|n|out) \+ ")


class Change(NamedTuple):
    line: int  # from 1
    before: str
    after: str


def variants(line: str) -> Iterator[str]:
    """The line with a sign turned, each in turn, and then without its store."""
    code = line.partition("//")[0]
    addresses = [range(*found.span()) for found in ADDRESS.finditer(code)]
    for sign in SIGN.finditer(code):
        if not any(sign.start(1) in span for span in addresses):
            turned = "-" if sign.group(1) == "+" else "+"
            yield line[: sign.start(1)] + turned + line[sign.end(1) :]
    if re.match(r"\s*part\.store\(.*\);\s*$", code):
        yield re.sub(r"part\.store\(", "if (false) part.store(", line, count=1)


def changes(text: str) -> list[Change]:
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line == "namespace {"), 0)
    found = ((i, next(variants(line), None)) for i, line in enumerate(lines) if i > first)
    return [Change(i + 1, lines[i].strip(), after) for i, after in found if after is not None]


def shaping_changes(text: str) -> list[Change]:
    found = []
    formulas = text.count("\n", 0, text.index("\nclass "))
    for i, line in enumerate(text.split("\n")):
        step = STEP.match(line)
        afters = [f"{step[1]}if (false) {step[2]}"] if step else variants(line)
        if step or i < formulas:
            found += [Change(i + 1, line.strip(), after) for after in afters]
    return found


def owner(parameter: str, kernels: list[str]) -> str:
    """The kernel that a test of this name is about: the longest that it begins with."""
    return max((name for name in kernels if parameter.startswith(name)), key=len, default="")


class Rules:
    def __init__(self, work: Path) -> None:
        self.tree = MutantTree(work)
        files = sorted((ROOT / KERNELS).glob(f"*{SUFFIX}"))
        self.texts = {file.name.removesuffix(SUFFIX): file.read_text() for file in files}
        self.survived = self.noticed = 0

    def apart(self) -> list[list[str]]:
        """Kernels that can be changed together: those that include another one come later."""
        inner = [name for name, text in self.texts.items() if re.search(r"\w_kernel\.h\"", text)]
        return [[name for name in self.texts if name not in inner], inner]

    def run(self, group: list[str]) -> None:
        left = {name: changes(self.texts[name]) for name in group}
        while chosen := {name: found.pop(0) for name, found in left.items() if found}:
            for name, text in self.texts.items():
                lines = text.split("\n")
                if name in chosen:
                    lines[chosen[name].line - 1] = chosen[name].after
                self.tree.write(KERNELS / f"{name}{SUFFIX}", "\n".join(lines).encode())
            self.judge(chosen)

    def judge(self, chosen: dict[str, Change]) -> None:
        if said := self.tree.build("optimizer_test"):
            raise SystemExit(f"the tests do not build:\n{said[-3000:]}")
        done = subprocess.run(
            [self.tree.program("optimizer_test")], capture_output=True, text=True, check=False
        )
        failed = re.findall(r"\[  FAILED  \] (Rules/\S+/(\w+)),", done.stdout)
        for name, change in chosen.items():
            by = [test for test, rule in failed if owner(rule, list(self.texts)) == name]
            if name == SHAPING.stem:
                by = re.findall(r"\[  FAILED  \] (\S+?),? ", done.stdout)
            self.count(name, by, change)

    def count(self, name: str, by: list[str], change: Change) -> None:
        self.noticed += bool(by)
        self.survived += not by
        shown = by[0] if by else "NOT NOTICED"
        print(f"{name:16} {shown:64} line {change.line}: {change.after.strip()}", flush=True)

    def run_shaping(self) -> None:
        for name, text in self.texts.items():
            self.tree.write(KERNELS / f"{name}{SUFFIX}", text.encode())
        text = (ROOT / SHAPING).read_text()
        for change in shaping_changes(text):
            lines = text.split("\n")
            lines[change.line - 1] = change.after
            self.tree.write(SHAPING, "\n".join(lines).encode())
            self.judge({SHAPING.stem: change})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutants", help="the copy")
    rules = Rules(parser.parse_args().work)
    print(f"{'rule':16} {'noticed by':64} change")
    for group in rules.apart():
        rules.run(group)
    rules.run_shaping()
    bare = [name for name, text in rules.texts.items() if not changes(text)]
    for name in bare:
        print(f"{name:16} NOTHING TO CHANGE FOUND")
    print(f"{len(rules.texts)} kernels, {rules.noticed} changes noticed, {rules.survived} not")
    return 1 if rules.survived or bare else 0


if __name__ == "__main__":
    sys.exit(main())
