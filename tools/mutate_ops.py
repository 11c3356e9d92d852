#!/usr/bin/env python3
"""Shows that the test of every operator notices a wrong backward pass.

    tools/mutate_ops.py [--all] [--list] [--only NAME ...] [--work DIR]

For each operator one term is dropped from its backward pass (tools/drop_terms.py): an addend, or if
none is there what is added, a factor, or a single number. All mutants are compiled beside the true
operators into the test program of a copy of the tree, each in a namespace of its own; at run time
an environment variable puts one in the place of its operator, whose own test must then fail. --all
does this for every such term, not only the first. Prints a table; exits with 1 if a mutation is not
noticed.
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

from drop_terms import ADDEND, CHECKS, STATEMENT, drops
from mutant_tree import ROOT, MutantTree

OPERATORS = Path("flux/nn/ops")
SHARED = Path("flux/nn")
REGISTRY = Path("flux/nn/registry.cc")
UNITS = 8  # source files that the mutants are spread over
# Functions that are part of a backward pass, by name.
BACKWARD = re.compile(
    r"\b(backward\w*|derivative|slope|gradient|own_gradient|gate_gradient|sum_gradients"
    r"|write_gradients|write_summaries|read_output_gradient|pass|direct|through|add_through|add_own"
    r"|contract|add_turned|add_softmax_gradient|deactivate|make_dz|unpool|scatter\w*|unpack"
    r"|judge|score_pairs|score_negatives|forgive_hits|run_piece|push_\w+|store_negatives"
    r"|SkipGram::add)\("
)
RESULT = re.compile(r"\s*(static |inline )*(void|float|double|ScoreSums|Own)\b")
# Where more of a backward pass lies than in the operator's own file: what its file says, and the
# files (of flux/nn) that come with it, in the order in which they build on one another.
TEMPLATES = {
    "broadcast_operator<": ["broadcast.h"],
    "comparison_operator<": ["comparison.h"],
    "elementwise_operator<": ["elementwise.h"],
    "loss_operator<": ["row_loss.h"],
    "normalised_operator<": ["normalised_operator.h"],
    "reduction_operator<": ["reduction.h"],
    "similarity_operator<": ["similarity.h"],
    "row_operator<WeightedSum<": ["row_math.h", "weighted_sum.h"],
    "add_softmax_gradient(": ["row_math.h"],
    "operator_embedding()": ["gather.cc", "gather_many.cc"],
    "operator_fc()": ["fc_avx512.cc", "fc_products.cc", "fc_kernel.cc", "per_position.cc"],
    "operator_skip_gram_loss()": ["skip_gram.h", "skip_gram.cc"],
}
WITHOUT = {
    "entrywise_product": "is mul by another name",
    "sequence_mask": "depends on the data alone",
}
# A dropped term may leave a name that nobody uses.
QUIET = "".join(
    f'#pragma GCC diagnostic ignored "-W{name}"\n'
    for name in (
        "unused-variable", "unused-parameter", "unused-but-set-variable", "unused-function",
        "unused-but-set-parameter", "unused-value", "maybe-uninitialized",
    )
)  # fmt: skip


class Mutation(NamedTuple):
    file: Path
    kind: int  # of drop_terms
    start: int  # what is replaced
    end: int
    line: int  # from 1
    before: str
    after: str


def _end(text: str, first: int) -> int:
    """Where the function that begins at `first` ends, by its braces; `first` for a declaration."""
    depth = 0
    for i in range(first, len(text)):
        if depth == 0 and text[i] == ";":
            return first
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0 and text[i] == "}":
            return i + 1
    return first


def mutations(file: Path) -> Iterator[Mutation]:
    text = (ROOT / file).read_text()
    seen = 0
    at = 0
    for line in text.split("\n"):
        begin, at = at, at + len(line) + 1
        if begin < seen or not BACKWARD.search(line) or not RESULT.match(line):
            continue
        seen = _end(text, begin)
        for drop in drops(text, begin, seen):
            number = text.count("\n", 0, drop.start) + 1
            before = " ".join(text[drop.start : drop.end].split())
            yield Mutation(file, drop.kind, drop.start, drop.end, number, before, drop.after)


def parts(name: str) -> list[Path]:
    """The files that an operator's backward pass lies in, its own one last."""
    own = OPERATORS / f"{name}.cc"
    text = (ROOT / own).read_text()
    found: list[Path] = []
    for said, files in TEMPLATES.items():
        found += [SHARED / f for f in files if said in text and SHARED / f not in found]
    return [*found, own]


def all_mutations(name: str) -> list[Mutation]:
    """Those that drop an addend first, whole statements last, and those of its own file before."""
    own = OPERATORS / f"{name}.cc"
    found = [mutation for file in parts(name) for mutation in mutations(file)]
    return sorted(
        found, key=lambda m: (m.kind != ADDEND, m.kind >= STATEMENT, m.file != own, m.kind)
    )


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


FUNCTION = re.compile(
    r"^(?!#|//|namespace|using|struct|class|enum|template|\}|return)\w[^;=(]*[ *&](\w+)\(",
    re.MULTILINE,
)


class Mutant(NamedTuple):
    operator: str
    key: str  # of its namespace
    mutation: Mutation


def mutant_text(mutant: Mutant) -> str:
    """The operator with one place changed, in a namespace of its own."""
    mutation, of_operator = mutant.mutation, parts(mutant.operator)
    files = of_operator[of_operator.index(mutation.file) :]
    if mutation.file.suffix == ".cc" and mutation.file.with_suffix(".h") in of_operator:
        files.insert(0, mutation.file.with_suffix(".h"))
    sources = []
    for file in files:
        text = (ROOT / file).read_text()
        if file == mutation.file:
            text = text[: mutation.start] + mutation.after + text[mutation.end :]
        sources.append(_split(text.split("\n")))
    includes = [
        include
        for source in sources
        for include in source.includes
        if not any(str(file) in include for file in files)
    ]
    body = "\n".join(line for source in sources for line in source.body)
    # Argument-dependent lookup would find the true ones too.
    shared = "\n".join(line for source in sources[:-1] for line in source.body)
    for function in set(FUNCTION.findall(shared)):
        body = re.sub(rf'(?<![\w.:>"]){function}\b(?=[(<,)])', f"{function}_of_mutant", body)
    space = f"mutant_{mutant.key}"
    lines = [*includes, QUIET, "namespace flux {", f"namespace {space} {{"]
    lines += [f'#line 1 "{space}"', body, f"}}  // namespace {space}", "}  // namespace flux", ""]
    return "\n".join(lines)


FIND = """
namespace flux {
// The mutant that stands in for an operator, if the environment names it.
const OperatorDef* find_mutant(const std::string& name) {
  static const char* set = std::getenv("FLUX_MUTANT");
  const std::string chosen = set == nullptr ? "" : set;
%s  return nullptr;
}
}  // namespace flux
"""


def units(chosen: list[Mutant]) -> list[str]:
    """The source files with these mutants; the last one finds them by key."""
    texts = [
        "#include <type_traits>\n" + CHECKS + "\n".join(map(mutant_text, chosen[k::UNITS]))
        for k in range(UNITS)
    ]
    declared = "".join(
        f"namespace flux::mutant_{key} {{ OperatorDef operator_{name}(); }}\n"
        for name, key, _ in chosen
    )
    found = "".join(
        f'  if (name == "{name}" && chosen == "{key}") {{\n'
        f"    static const OperatorDef def = mutant_{key}::operator_{name}();\n"
        f"    return &def;\n  }}\n"
        for name, key, _ in chosen
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

    def make(self, chosen: list[Mutant]) -> set[str]:
        """Builds; the keys of mutants that do not compile."""
        for k, text in enumerate(units(chosen)):
            self.tree.write(Path(f"flux/nn/mutants_{k}.cc"), text.encode())
        said = self.tree.build("nn_test")
        if not said:
            return set()
        at_fault = r"^mutant_(\w+):\d+:\d+: (?:error|  required from)"
        broken = set(re.findall(at_fault, said, re.MULTILINE))
        if not broken:
            raise SystemExit(f"the tests do not build:\n{said[-3000:]}")
        return broken

    def test(self, mutant: Mutant) -> str:
        """The first test that failed; empty: none did."""
        done = subprocess.run(
            [self.tree.program("nn_test"), f"--gtest_filter={suite(mutant.operator)}.*"],
            capture_output=True, text=True, check=False,
            env={**os.environ, "FLUX_MUTANT": mutant.key},
        )  # fmt: skip
        if "Running 0 tests" in done.stdout:
            raise SystemExit(f"there is no test named {suite(mutant.operator)}.*")
        if done.returncode == 0:
            return ""
        failed = re.search(r"\[  FAILED  \] (\S+)", done.stdout)
        return failed.group(1) if failed else f"exit status {done.returncode}"


def build_mutants(bench: Bench, left: dict[str, list[Mutation]], every: bool) -> list[Mutant]:
    """Builds the first mutation that compiles of each operator, or every one."""
    all_of = {
        name: [Mutant(name, f"{name}_{k}", mutation) for k, mutation in enumerate(found)]
        for name, found in left.items()
    }
    chosen: list[Mutant] = []
    while True:
        chosen = [one for found in all_of.values() for one in (found if every else found[:1])]
        broken = bench.make(chosen) if chosen else set()
        if not broken:
            return chosen
        for name, found in all_of.items():
            all_of[name] = [one for one in found if one.key not in broken]


def _shown(mutation: Mutation) -> str:
    """What is changed to what, without what only checks its type."""
    after = mutation.after
    while (begin := after.find("kept<decltype(")) >= 0:
        depth, end = 1, begin + len("kept<decltype(")
        while depth > 0:
            depth += (after[end] == "(") - (after[end] == ")")
            end += 1
        after = after[:begin] + after[end + 1 :]
    after = {"static_cast<void>(0)": "", "return": ""}.get(after, after)
    place = f"{mutation.file.name}:{mutation.line}"
    return " ".join(f"{place}: {mutation.before} -> {after or 'nothing'}".split())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every mutation of every operator")
    parser.add_argument("--list", action="store_true", help="only say how many there are")
    parser.add_argument("--only", nargs="+", default=[], help="these operators")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutants", help="the copy")
    args = parser.parse_args()
    names = sorted(f.stem for f in (ROOT / OPERATORS).glob("*.cc") if not f.stem.endswith("_test"))
    names = [name for name in args.only or names if name not in WITHOUT]
    left = {name: all_mutations(name) for name in names}
    if args.list:
        for name, found in left.items():
            print(f"{name:24} {len(found):4}", *(_shown(mutation) for mutation in found[:1]))
        return 0
    bench = Bench(args.work)
    tried: set[str] = set()
    survived = 0
    print(f"{'operator':24} {'noticed by':48} mutation")
    for one in build_mutants(bench, left, args.all):
        tried.add(one.operator)
        noticed = bench.test(one)
        survived += noticed == ""
        print(
            f"{one.operator:24} {noticed or 'NOT NOTICED':48} {_shown(one.mutation)}", flush=True
        )
    for name in set(names) - tried:
        print(f"{name:24} NO MUTATION FOUND")
    for name, reason in WITHOUT.items():
        print(f"{name:24} has no backward pass of its own: {reason}")
    print(f"{len(tried)} operators, {survived} mutations not noticed")
    return 1 if survived or tried != set(names) else 0


if __name__ == "__main__":
    sys.exit(main())
