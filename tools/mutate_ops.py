#!/usr/bin/env python3
"""Shows that the test of every operator notices a wrong backward pass.

    tools/mutate_ops.py [--all] [--only NAME ...] [--work DIR]

For each operator one mutation is made: in its backward pass the sign of a term is turned, or a
statement is dropped. All mutants are compiled beside the true operators into the test program of a
copy of the tree, each in a namespace of its own; at run time an environment variable puts one in
the place of its operator, whose own test must then fail. --all does this for every such mutation,
not only the first. Prints a table; exits with 1 if a mutation is not noticed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mutant_tree import ROOT, MutantTree

OPERATORS = Path("flux/nn/ops")
REGISTRY = Path("flux/nn/registry.cc")
UNITS = 8  # source files that the mutants are spread over
# Functions that are part of a backward pass, by name.
BACKWARD = re.compile(
    r"\b(backward\w*|derivative|slope|gradient|gate_gradient|sum_gradients|write_gradients"
    r"|read_output_gradient|pass|direct|through"
    r"|judge|score_pairs|score_negatives|forgive_hits|run_piece|push_\w+|store_negatives"
    r"|SkipGram::add)\("
)
RESULT = re.compile(r"\s*(static |inline )?(void|float|double|ScoreSums)\b")
# Where the backward pass of an operator lies if not in its own file, or not there alone.
ELSEWHERE = {
    "attention_pooling": ["flux/nn/weighted_sum.h"],
    "equal": ["flux/nn/comparison.h"],
    "fc": ["flux/nn/fc_kernel.cc"],
    "gate": ["flux/nn/weighted_sum.h"],
    "greater": ["flux/nn/comparison.h"],
    "greater_equal": ["flux/nn/comparison.h"],
    "less": ["flux/nn/comparison.h"],
    "less_equal": ["flux/nn/comparison.h"],
    "not_equal": ["flux/nn/comparison.h"],
    "skip_gram_loss": ["flux/nn/skip_gram.cc", "flux/nn/ops/skip_gram_loss.cc"],
}
WITHOUT = {
    "entrywise_product": "is mul by another name",
    "sequence_mask": "depends on the data alone",
}


class Mutation(NamedTuple):
    file: Path
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
        r"^(std::copy|write_row|scatter|add_softmax_gradient|kernels_\.combine|add\(|"
        r"\w+(?:\[e\])?->backward)",
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


def mutations(file: Path) -> Iterator[Mutation]:
    lines = (ROOT / file).read_text().split("\n")
    seen: set[int] = set()
    for first, line in enumerate(lines):
        if not BACKWARD.search(line) or line.rstrip().endswith(";"):
            continue
        if not RESULT.match(line):
            continue
        for i in _span(lines, first):
            after = _turned(lines[i])
            if after is not None and i not in seen:
                seen.add(i)
                yield Mutation(file, i + 1, lines[i].strip(), after)


def suite(operator: str) -> str:
    return "".join(part.capitalize() for part in operator.split("_"))


class Source(NamedTuple):
    """A file apart from its includes and its namespace."""

    includes: list[str]
    body: list[str]


def _split(lines: list[str]) -> Source:
    includes = [line for line in lines if line.startswith("#include")]
    first = lines.index("namespace flux {") + 1
    last = len(lines) - 1 - lines[::-1].index("}  // namespace flux")
    return Source(includes, lines[first:last])


def _files(name: str, changed: Path) -> list[Path]:
    """What a mutant is made of: the changed file, before it its header, and the operator's own."""
    own = OPERATORS / f"{name}.cc"
    if changed == own:
        return [own]
    header = changed.with_suffix(".h")
    return [header, own] if changed == header else [header, changed, own]


def mutant(name: str, mutation: Mutation) -> str:
    """The operator with one line changed, in a namespace of its own."""
    files = _files(name, mutation.file)
    parts = []
    for file in files:
        lines = (ROOT / file).read_text().split("\n")
        if file == mutation.file:
            lines[mutation.line - 1] = mutation.after
        parts.append(_split(lines))
    text = [
        include
        for part in parts
        for include in part.includes
        if not any(str(file) in include for file in files)
    ]
    text += ["namespace flux {", f"namespace mutant_{name} {{", f'#line 1 "mutant_{name}"']
    # Argument-dependent lookup would find the true one too.
    text += [
        line.replace("make_fc_kernel", "make_mutant_kernel") if name == "fc" else line
        for part in parts
        for line in part.body
    ]
    text += [f"}}  // namespace mutant_{name}", "}  // namespace flux", ""]
    return "\n".join(text)


FIND = """
namespace flux {
// The mutant that stands in for an operator, if the environment names it.
const OperatorDef* find_mutant(const std::string& name) {
  static const char* chosen = std::getenv("FLUX_MUTANT");
  if (chosen == nullptr || name != chosen) return nullptr;
%s  return nullptr;
}
}  // namespace flux
"""


def units(chosen: dict[str, Mutation]) -> list[str]:
    """The source files with these mutants; the last one finds them by name."""
    texts = [
        "\n".join(mutant(name, chosen[name]) for name in sorted(chosen)[k::UNITS])
        for k in range(UNITS)
    ]
    declared = "".join(
        f"namespace flux {{ namespace mutant_{name} {{ OperatorDef operator_{name}(); }} }}\n"
        for name in chosen
    )
    found = "".join(
        f'  if (name == "{name}") {{\n'
        f"    static const OperatorDef def = mutant_{name}::operator_{name}();\n"
        f"    return &def;\n  }}\n"
        for name in chosen
    )
    head = '#include <cstdlib>\n\n#include "flux/nn/operator.h"\n\n'
    return [*texts, head + declared + FIND % found]


class Bench:
    """A copy of the tree with mutants in its test program."""

    def __init__(self, work: Path) -> None:
        self.tree = MutantTree(work)
        registry = (ROOT / REGISTRY).read_text()
        changed = registry.replace(
            "const OperatorDef* find_operator(const std::string& name) {\n",
            "const OperatorDef* find_mutant(const std::string& name);\n"
            "const OperatorDef* find_operator(const std::string& name) {\n"
            "  if (const OperatorDef* mutant = find_mutant(name)) return mutant;\n",
        )
        if changed == registry:
            raise SystemExit(f"{REGISTRY} has no find_operator() to change")
        self.tree.write(REGISTRY, changed.encode())

    def make(self, chosen: dict[str, Mutation]) -> set[str]:
        """Builds; the mutants that do not compile."""
        for k, text in enumerate(units(chosen)):
            self.tree.write(Path(f"flux/nn/mutants_{k}.cc"), text.encode())
        said = self.tree.build("nn_test")
        if not said:
            return set()
        broken = set(re.findall(r"^mutant_(\w+):\d+:\d+: error", said, re.MULTILINE))
        if not broken:
            raise SystemExit(f"the tests do not build:\n{said[-3000:]}")
        return broken

    def test(self, operator: str) -> str:
        """The first test that failed; empty: none did."""
        done = subprocess.run(
            [self.tree.program("nn_test"), f"--gtest_filter={suite(operator)}.*"],
            capture_output=True, text=True, check=False,
            env={**os.environ, "FLUX_MUTANT": operator},
        )  # fmt: skip
        if "Running 0 tests" in done.stdout:
            raise SystemExit(f"there is no test named {suite(operator)}.*")
        if done.returncode == 0:
            return ""
        failed = re.search(r"\[  FAILED  \] (\S+)", done.stdout)
        return failed.group(1) if failed else f"exit status {done.returncode}"


def one_round(bench: Bench, left: dict[str, list[Mutation]]) -> dict[str, Mutation]:
    """Takes the next mutation that compiles of each operator out of `left` and builds them."""
    chosen = {name: found.pop(0) for name, found in left.items() if found}
    while chosen:
        broken = bench.make(chosen)
        if not broken:
            break
        for name in broken:
            del chosen[name]
            if left[name]:
                chosen[name] = left[name].pop(0)
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every mutation of every operator")
    parser.add_argument("--only", nargs="+", default=[], help="these operators")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutants", help="the copy")
    args = parser.parse_args()
    names = sorted(f.stem for f in (ROOT / OPERATORS).glob("*.cc") if not f.stem.endswith("_test"))
    names = [name for name in args.only or names if name not in WITHOUT]
    left = {
        name: [
            mutation
            for file in ELSEWHERE.get(name, [str(OPERATORS / f"{name}.cc")])
            for mutation in mutations(Path(file))
        ]
        for name in names
    }
    bench = Bench(args.work)
    tried: set[str] = set()
    survived = 0
    print(f"{'operator':24} {'noticed by':56} mutation")
    while chosen := one_round(bench, left):
        for name, mutation in chosen.items():
            tried.add(name)
            noticed = bench.test(name)
            survived += noticed == ""
            place = f"{mutation.file.name}:{mutation.line}: {mutation.before}"
            print(f"{name:24} {noticed or 'NOT NOTICED':56} {place}", flush=True)
        if not args.all:
            break
    for name in set(names) - tried:
        print(f"{name:24} NO MUTATION FOUND")
    for name, reason in WITHOUT.items():
        print(f"{name:24} has no backward pass of its own: {reason}")
    print(f"{len(tried)} operators, {survived} mutations not noticed")
    return 1 if survived or tried != set(names) else 0


if __name__ == "__main__":
    sys.exit(main())
