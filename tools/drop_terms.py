"""Mutations of C++ functions that drop one term of what they compute.

Of a float on the right of =, +=, -= or *=, of what is returned and of the first argument of
add_scaled() one addend is left out; of a single term one factor, or if it has but one, the whole. A
statement that adds to a gradient by a call is left out as a whole. What is no float (sizes,
pointers, places) stays: the type is checked by the compiler, where the changed expression is
wrapped in kept<type before>() or dropped() (CHECKS), so such a mutation does not build.

It reads our own formatted code (a binary operator stands between blanks), not C++ in general.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

CHECKS = """
namespace flux {
template <typename Before, typename T>
std::decay_t<Before> kept(T value) {
  static_assert(std::is_floating_point_v<std::decay_t<Before>>);
  return static_cast<std::decay_t<Before>>(value);
}
template <typename T>
T dropped(T) {
  static_assert(std::is_floating_point_v<T>);
  return 0;
}
}  // namespace flux
"""
# The kinds of mutations; the first ones say most.
ADDEND, ADDITION, FACTOR, VALUE, STATEMENT, ZERO = range(6)

# Calls that add to a gradient, or write one.
ADDS = re.compile(
    r"(add_\w+|add|contract|kernels_\.combine|scatter\w*|rows\.unpool|F::backward|f_\.backward"
    r"|(Loops::)?(template )?add_\w+(<\w+>)?|\w+(\[\w+\])?->backward\w*|rows_\.backward"
    r"|push_\w+|store_negatives)\("
)
WRITES = re.compile(
    r"(std::copy(_n)?|write_row|std::memcpy|Loops::backward|deactivate|kernels_\.gemm"
    r"|row_times_matrix)\(|bf16_ \? \w+_backward|[\w.]+ == DType::kF32 \? scatter_"
)
DECLARATION = re.compile(r"(?:const )?(?:float|double|T) (?=\w+ = )")


class Drop(NamedTuple):
    kind: int
    start: int  # what is replaced, in the text of the file
    end: int
    after: str


def _depths(text: str) -> list[int]:
    """How many brackets are open at each character."""
    depth, depths = 0, []
    for c in text:
        depth -= c in ")]}"
        depths.append(depth)
        depth += c in "([{"
    return depths


def _split(text: str, pattern: str) -> list[str]:
    """The parts between separators outside of brackets, and those separators: odd places."""
    depths, parts, begin = _depths(text), [], 0
    for found in re.finditer(pattern, text):
        if depths[found.start()] == 0:
            parts += [text[begin : found.start()], found.group()]
            begin = found.end()
    return [*parts, text[begin:]]


def _without(parts: list[str], i: int) -> str:
    """What is left of terms or factors when the i-th one (an even place) is dropped."""
    if i > 0:
        return "".join(parts[: i - 1] + parts[i + 1 :])
    sign = parts[1].strip()
    rest = "".join(parts[2:])
    return {"-": f"-{rest}", "/": f"1.0F / {rest}"}.get(sign, rest)


def _exchanged(parts: list[str], i: int, to: str) -> str:
    return "".join([*parts[:i], to, *parts[i + 1 :]])


def _is_zero(text: str) -> bool:
    return re.fullmatch(r"0(\.0?F?)?|T\(0\)", text.strip()) is not None


def shorter(text: str) -> Iterator[tuple[int, str]]:
    """The expression with one of its terms or factors dropped; not: as a whole."""
    choice = _split(text, r" [?:] ")
    if len(choice) > 1:
        for i in range(2, len(choice), 2):
            for kind, less in dropped_from(choice[i]):
                yield kind, _exchanged(choice, i, less)
        return
    terms = _split(text, r" [+-] ")
    for i in range(0, len(terms), 2):
        if len(terms) > 1:
            yield ADDEND, _without(terms, i)
        factors = _split(terms[i], r" [*/] ")
        for k in range(0, len(factors), 2):
            inner = re.fullmatch(r"\s*(-?)\((.*)\)", factors[k], re.DOTALL)
            if inner and min(_depths(inner.group(2)), default=0) >= 0:
                for kind, less in shorter(inner.group(2)):
                    changed = _exchanged(factors, k, f"{inner.group(1)}({less})")
                    yield kind, _exchanged(terms, i, changed)
        if len(terms) == 1 and len(factors) > 1:
            for k in range(0, len(factors), 2):
                yield FACTOR, _without(factors, k)


def dropped_from(text: str) -> Iterator[tuple[int, str]]:
    """The same, and an expression of one number as a whole."""
    if _is_zero(text):
        return
    found = {
        less: (kind, f"kept<decltype({text})>({less})")
        for kind, less in shorter(text)
        if less != text  # of 1 / x the 1 cannot be dropped
    }
    yield from found.values() or [(VALUE, f"dropped({text})")]


def _value(text: str, start: int, operator: str) -> Iterator[Drop]:
    end = start + len(text)
    listed = re.fullmatch(r"\{(.*)\}", text, re.DOTALL)
    if listed:
        at = start + 1
        for part in _split(listed.group(1), r", "):
            if part != ", ":
                yield from _value(part, at, operator)
            at += len(part)
        return
    if operator == "*=":
        yield Drop(FACTOR, start, end, f"kept<decltype({text})>(1)")
        return
    if operator in ("+=", "-=") and not _is_zero(text):
        yield Drop(ADDITION, start, end, f"dropped({text})")
    for kind, after in dropped_from(text):
        if kind != VALUE or operator in ("=", "return"):
            yield Drop(kind, start, end, after)


def _statement(text: str, start: int, function: str) -> Iterator[Drop]:
    """The mutations of one statement, without its semicolon; `function`: where it stands."""
    nothing = "static_cast<void>(0)"
    end = start + len(text)
    if text.startswith("return "):
        if not re.match(r"\s*(static |inline )*void\b", function):
            yield from _value(text[7:], start + 7, "return")
            return
        nothing = "return"
        text = text[7:]
    declared = DECLARATION.match(text)
    if declared:
        at = start + declared.end()
        for part in _split(text[declared.end() :], r",\s+"):
            name, found, value = part.partition(" = ")
            if found and not name.startswith("*"):
                yield from _value(value, at + len(name) + 3, "=")
            at += len(part)
        return
    left, operator, *rest = [*_split(text, r" [+*-]?=\s"), ""]
    if operator and " " not in re.sub(r"[\[(].*[\])]", "", left):
        name = re.escape(left.partition("[")[0])
        if re.search(rf"\* {name}\[", function):  # an array of pointers
            return
        if left[-1] == "]" or left[0] == "*" or re.search(rf"(float|double)&? {name}\b", function):
            at = start + len(left) + len(operator)
            yield from _value(rest[0], at, operator.strip())
        return
    if text.startswith("add_scaled("):
        first = _split(text[11:-1], r",\s+")[0]
        for kind, less in dropped_from(first):
            if kind != VALUE:  # the same as without the statement
                yield Drop(kind, start + 11, start + 11 + len(first), less)
    if ADDS.match(text) or WRITES.match(text):
        yield Drop(ADDITION if ADDS.match(text) else STATEMENT, start, end, nothing)
    # A gradient that is zero: the one mutation is that it is not.
    zero = re.match(r"std::fill_n\(.*, (0\.0F)\)$", text, re.DOTALL)
    if zero:
        yield Drop(ZERO, start + zero.start(1), start + zero.end(1), "1.0F")


BLOCK = re.compile(r"(\)|[;{}]|\b(else|do|const|override))\s*$")  # before a {, not of a list
HEADER = re.compile(r"\s*(?:(?:else )?if(?: constexpr)?|for|while)(?= \()|\s*else\b|\s+")


def _behind_headers(text: str) -> int:
    """Where a statement begins behind `for (...)`, `if (...)` and `else`."""
    at = 0
    while found := HEADER.match(text, at):
        at = found.end()
        if text.startswith(" (", at):
            depths = _depths(text)
            level = depths[at + 1]
            ends = (k for k in range(at + 2, len(text)) if depths[k] == level and text[k] == ")")
            at = next(ends, len(text) - 1) + 1
    return at


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Statements of a function with the place where each begins. Comments are blanks by now."""
    begin, open_brackets = 0, 0
    for i, c in enumerate(text):
        block = c == "{" and BLOCK.search(text, 0, i) is not None
        if open_brackets == 0 and (c == ";" or block or c == "}"):
            piece = text[begin:i]
            at = _behind_headers(piece)
            if c == ";" and piece[at:]:
                yield begin + at, piece[at:]
            begin = i + 1
        elif c in "([{":
            open_brackets += 1
        elif c in ")]}":
            open_brackets -= 1


def drops(text: str, begin: int, end: int) -> Iterator[Drop]:
    """The mutations of the function that stands in text[begin:end]."""
    code = re.sub(r"//[^\n]*", lambda found: " " * len(found.group()), text[begin:end])
    for at, statement in _statements(code):
        yield from _statement(statement, begin + at, code)
