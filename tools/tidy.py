#!/usr/bin/env python3
"""The style test: what a reviewer should not have to look for.

    tools/tidy.py [--root DIR] [--shrink]

Prints "file:line: what" for every sin and exits with 1. Sins that were there before a rule was
made are counted in tools/tidy_known.txt, by file and rule; a count may only shrink, and one that
is too high is an error too (--shrink rewrites the file, but never adds to it). Each rule is one
function below; the limits are the constants. Nothing but the standard library is used.
"""

from __future__ import annotations

import argparse
import ast
import collections
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

COLUMNS_MAX = 100
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
FILE_BYTES_MAX = 500 * 1024
CONTRACT_LINES_MIN = 2
ROLES = {"coordinator", "server", "worker"}
KNOWN = "tools/tidy_known.txt"

CPP = {".h", ".cc"}
CODE = CPP | {".py", ".sh", ".cmake"}
TEXT = CODE | {".md", ".yaml", ".yml", ".toml"}
SKIPPED_FOLDERS = re.compile(r"^(\.git|build(-.*)?|out|data|\.venv.*|__pycache__|\..*_cache)$")

# Put together here so that this file does not contain what it looks for.
MARKS = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
MACHINE_PATHS = re.compile(r"(?<![\w.}$)-])/(?:" + "|".join(["work", "root", "farm"]) + r")/")
DOC_PATH = re.compile(r"`((?:flux|tests|tools|bench|examples|cmake|docs)/[^`\s]*)`")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


class Sin(NamedTuple):
    path: str
    line: int
    rule: str
    what: str


class Source(NamedTuple):
    """One text file; `bare` is C++ with comments, literals and directives blanked out."""

    path: str
    text: str
    lines: list[str]
    bare: str

    @property
    def suffix(self) -> str:
        return ".cmake" if self.path.endswith("CMakeLists.txt") else Path(self.path).suffix

    @property
    def folder(self) -> str:
        """X for flux/X/..., else the first folder, else ''."""
        parts = self.path.split("/")
        return parts[1] if parts[0] == "flux" and len(parts) > 2 else parts[0]

    @property
    def is_test(self) -> bool:
        return self.path.endswith("_test.cc") or self.path.startswith("tests/")


# --- reading ---------------------------------------------------------------------------------


def list_files(root: Path) -> list[str]:
    """What git tracks or would track; without git, everything but build outputs."""
    if (root / ".git").exists():
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, capture_output=True, check=True, text=True,
        )
        names = sorted(set(listing.stdout.split("\0")) - {""})
        return [name for name in names if (root / name).is_file()]
    found = []
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and not any(SKIPPED_FOLDERS.match(part) for part in parts[:-1]):
            found.append("/".join(parts))
    return found


CPP_NOISE = re.compile(
    r"""//(?:[^\n\\]|\\.|\\\n)* | /\*.*?\*/
      | (?<!\w)(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"
      | "(?:[^"\\\n]|\\.)*" | (?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+'
      | ^[ \t]*\#(?:[^\n\\/]|\\.|\\\n|/(?![/*]))*""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def strip_cpp(text: str) -> str:
    """The same number of lines, without comments, literals and preprocessor directives."""
    return CPP_NOISE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def read_source(root: Path, path: str) -> Source | None:
    data = (root / path).read_bytes()
    if b"\0" in data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    bare = strip_cpp(text) if Path(path).suffix in CPP else ""
    return Source(path, text, text.split("\n"), bare)


def line_at(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


# --- rules for text --------------------------------------------------------------------------


def check_text(source: Source) -> Iterator[Sin]:
    """Columns, tabs, trailing blanks, the last newline."""
    is_code = source.suffix in CODE
    # Inputs of tests may be ill-formed on purpose.
    if not is_code and (source.suffix not in TEXT or source.path.startswith("tests/")):
        return
    for number, line in enumerate(source.lines, 1):
        if is_code and len(line) > COLUMNS_MAX:
            what = f"{len(line)} columns, at most {COLUMNS_MAX}"
            yield Sin(source.path, number, "columns", what)
        if "\t" in line:
            yield Sin(source.path, number, "tab", "a tab; use blanks")
        if line != line.rstrip():
            yield Sin(source.path, number, "trailing", "blanks at the end of the line")
    if source.text and not source.text.endswith("\n"):
        yield Sin(source.path, len(source.lines), "newline", "no newline at the end of the file")


def check_marks(source: Source) -> Iterator[Sin]:
    if source.suffix not in CODE and source.path != "Makefile":
        return
    for number, line in enumerate(source.lines, 1):
        if match := MARKS.search(line):
            what = f"a mark '{match.group()}'; do it or open an issue"
            yield Sin(source.path, number, "mark", what)


def check_machine_paths(source: Source) -> Iterator[Sin]:
    for number, line in enumerate(source.lines, 1):
        if match := MACHINE_PATHS.search(line):
            what = f"a path of one machine: {match.group()}"
            yield Sin(source.path, number, "machine-path", what)


def check_file_lines(source: Source) -> Iterator[Sin]:
    lines = source.text.count("\n")
    if source.suffix in CODE and lines > FILE_LINES_MAX:
        what = f"{lines} lines, at most {FILE_LINES_MAX}; split it"
        yield Sin(source.path, FILE_LINES_MAX + 1, "file-length", what)


# --- rules for C++ ---------------------------------------------------------------------------


class Ban(NamedTuple):
    pattern: re.Pattern[str]
    applies: Callable[[Source], bool]
    what: str


def call(*names: str) -> re.Pattern[str]:
    """A call of a free function, also with std:: or :: before it."""
    return re.compile(r"(?<![\w.:>])(?:std::|::)?(?:" + "|".join(names) + r")\s*\(")


def everywhere(source: Source) -> bool:
    return source.suffix in CPP


def below_main(source: Source) -> bool:
    return source.path.startswith("flux/") and source.folder != "main"


def below_job(source: Source) -> bool:
    return below_main(source) and source.folder != "job"


def in_tests(source: Source) -> bool:
    return source.is_test


BANS = [
    Ban(call("system", "popen"), everywhere, "starts a shell; use posix_spawn with a list"),
    Ban(call("strcpy", "strcat", "sprintf", "vsprintf", "gets"), everywhere,
        "writes without a bound; use fmt::format or std::string"),
    Ban(call("rand", "srand", "random_shuffle"), everywhere,
        "a hidden generator; use flux/base/random.h"),
    Ban(call("getenv", "secure_getenv"), below_main,
        "getenv below main/; pass an option down instead"),
    Ban(re.compile(r"\bstd::cout\b"), below_main, "prints below main/; return it to the caller"),
    Ban(re.compile(r"\bthrow\b"), below_job, "throws; return a Status (only job/ and main/ may)"),
    Ban(re.compile(r"\bsleep_(?:for|until)\b|(?<![\w.:>])(?:::)?(?:u|nano)?sleep\s*\("), in_tests,
        "a test that sleeps; wait for the event, or use simulated time"),
]


def check_bans(source: Source) -> Iterator[Sin]:
    for ban in BANS:
        if source.suffix not in CPP or not ban.applies(source):
            continue
        for match in ban.pattern.finditer(source.bare):
            what = match.group().strip(" (\n") + ": " + ban.what
            yield Sin(source.path, line_at(source.bare, match.start()), "ban", what)


def check_contract(source: Source) -> Iterator[Sin]:
    """A header starts with what it promises, then #pragma once."""
    if source.suffix != ".h":
        return
    count = 0
    while count < len(source.lines) and source.lines[count].startswith("//"):
        count += 1
    if count < CONTRACT_LINES_MIN:
        what = f"a header starts with its contract: at least {CONTRACT_LINES_MIN} lines of comment"
        yield Sin(source.path, 1, "contract", what)
    rest = [line for line in source.lines[count:] if line.strip()]
    if not rest or rest[0].strip() != "#pragma once":
        yield Sin(source.path, count + 1, "pragma", "#pragma once comes right after the contract")


CONTROL = re.compile(r"^(?:else\s+)?(?:if|for|while|switch|catch|do|else|try|return)\b")
HEAD_NOISE = re.compile(r"\b(?:public|private|protected)\s*:|\balignas\s*\([^()]*\)|\[\[.*?\]\]")
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum)\b[^()]*$|\bextern\s*$")


def cpp_functions(bare: str) -> Iterator[tuple[int, int]]:
    """First and last line of every outermost function body, by matching braces.

    What stands before a brace decides: a scope (namespace, class), a function (it has a closing
    parenthesis and is no control statement), or anything else (initialisers).
    """
    stack: list[tuple[bool, int]] = []  # (is an outermost function, first line)
    depth_in_function = 0
    head_start = 0
    for match in re.finditer(r"[{};]", bare):
        at = match.start()
        if match.group() == "{":
            head = HEAD_NOISE.sub(lambda m: " " * len(m.group()), bare[head_start:at])
            stripped = head.strip()
            is_scope = bool(SCOPE.search(stripped))
            is_function = (
                depth_in_function == 0 and not is_scope
                and ")" in stripped and not CONTROL.match(stripped)
            )
            first = line_at(bare, head_start + len(head) - len(head.lstrip()))
            stack.append((is_function, first))
            depth_in_function += is_function
        elif match.group() == "}" and stack:
            is_function, first = stack.pop()
            if is_function:
                depth_in_function -= 1
                yield first, line_at(bare, at)
        # A semicolon inside for (;;) does not matter: control statements live in functions.
        head_start = at + 1


def check_functions(source: Source) -> Iterator[Sin]:
    spans: Iterator[tuple[int, int]] = iter(())
    if source.suffix in CPP:
        spans = cpp_functions(source.bare)
    elif source.suffix == ".py" and (tree := parse_python(source)):
        spans = (
            (node.lineno, node.end_lineno or node.lineno)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )
    for first, last in spans:
        if (length := last - first + 1) > FUNCTION_LINES_MAX:
            what = f"a function of {length} lines, at most {FUNCTION_LINES_MAX}"
            yield Sin(source.path, first, "function-length", what)


# --- rules for Python ------------------------------------------------------------------------


def parse_python(source: Source) -> ast.Module | None:
    try:
        return ast.parse(source.text)
    except SyntaxError:
        return None


def python_ban(node: ast.AST) -> str | None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names = {(node.module or "").split(".")[0]}
        if names & {"pickle", "cPickle", "dill", "marshal"}:
            return "pickle runs what it reads; use json or struct"
    if not isinstance(node, ast.Call):
        return None
    for keyword in node.keywords:
        if keyword.arg == "shell" and getattr(keyword.value, "value", False) is True:
            return "shell=True; pass a list of arguments"
    name = ast.unparse(node.func)
    if name in {"eval", "exec"}:
        return f"{name}: runs text as code"
    if name in {"os.system", "os.popen"}:
        return f"{name}: starts a shell; use subprocess with a list"
    if name == "yaml.load":
        return "yaml.load: builds any object; use yaml.safe_load"
    return None


def check_python(source: Source) -> Iterator[Sin]:
    if source.suffix != ".py":
        return
    tree = parse_python(source)
    if tree is None:
        yield Sin(source.path, 1, "syntax", "is not valid Python")
        return
    for node in ast.walk(tree):
        if what := python_ban(node):
            yield Sin(source.path, getattr(node, "lineno", 1), "ban", what)


# --- rules across files ----------------------------------------------------------------------


def read_deps(sources: list[Source]) -> dict[str, set[str] | None]:
    """DEPS of flux_library() by folder of flux/; None for a folder without CMakeLists.txt."""
    deps: dict[str, set[str] | None] = {}
    for source in sources:
        parts = source.path.split("/")
        if parts[0] == "flux" and len(parts) > 2:
            deps.setdefault(parts[1], None)
            if parts[2:] == ["CMakeLists.txt"]:
                text = re.sub(r"#.*", "", source.text)
                found = re.search(r"flux_library\(\s*\w+([^)]*)\)", text)
                words = found.group(1).split() if found else []
                start = words.index("DEPS") + 1 if "DEPS" in words else len(words)
                end = words.index("EXTERNAL") if "EXTERNAL" in words[start:] else len(words)
                deps[parts[1]] = set(words[start:end])
    return deps


def check_edges(deps: dict[str, set[str] | None]) -> Iterator[Sin]:
    """The declared edges themselves: every folder has some, no role sees a role, no cycle."""
    for name, edges in sorted(deps.items()):
        path = f"flux/{name}/CMakeLists.txt"
        if edges is None:
            yield Sin(path, 1, "layers", f"flux/{name} declares no flux_library({name} DEPS ...)")
            continue
        if name in ROLES and edges & ROLES:
            yield Sin(path, 1, "layers", "a role depends on a role; meet in api/ instead")
        reached: set[str] = set()
        front = set(edges)
        while front:
            reached |= front
            front = {to for at in front for to in deps.get(at) or ()} - reached
        if name in reached:
            yield Sin(path, 1, "layers", f"flux/{name} depends on itself in a circle")


def refused_include(source: Source, to: str, deps: dict[str, set[str] | None]) -> str | None:
    own = source.folder
    allowed = deps.get(own)
    if to == own or allowed is None:
        return None  # a folder without edges is reported once, by check_edges
    if own in ROLES and to in ROLES:
        return f"role {own} includes role {to}; meet in api/ instead"
    if to == "testing":  # `flux sim` is the simulator for people
        allowed_here = source.is_test or source.path == "flux/main/sim_command.cc"
        return None if allowed_here else "only tests include flux/testing"
    if own in {"main", "testing"} or to in allowed:
        return None
    return f"flux/{own} includes flux/{to}, which is not among its DEPS (flux/{own}/CMakeLists.txt)"


def check_includes(source: Source, deps: dict[str, set[str] | None]) -> Iterator[Sin]:
    if source.suffix not in CPP:
        return
    for number, line in enumerate(source.lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        parts = match.group(2).split("/")
        if parts[0] == "flux" and len(parts) > 2 and source.path.startswith("flux/"):
            if what := refused_include(source, parts[1], deps):
                yield Sin(source.path, number, "layers", what)
        elif match.group(1) == '"' and parts[0] not in {"flux", "plugins", "tests", "bench"}:
            if match.group(2).endswith(".inc"):
                continue  # written by CMake into the build folder
            what = f'"{match.group(2)}": quotes are for our own headers, named from the root'
            yield Sin(source.path, number, "include", what)


def check_doc_paths(source: Source, root: Path) -> Iterator[Sin]:
    """Paths in back-quotes exist; x.{h,cc} and * stand for several, <name> is to be filled in."""
    is_doc = source.path.startswith("docs/") or "/" not in source.path
    if source.suffix != ".md" or not is_doc or source.path == "CHANGELOG.md":
        return
    for number, line in enumerate(source.lines, 1):
        for path in DOC_PATH.findall(line):
            if "<" in path or "..." in path:
                continue
            braces = re.match(r"(.*)\{(.*)\}(.*)", path)
            options = braces.group(2).split(",") if braces else [""]
            names = [braces.group(1) + o + braces.group(3) if braces else path for o in options]
            for name in names:
                if not (any(root.glob(name)) if "*" in name else (root / name).exists()):
                    yield Sin(source.path, number, "doc-path", f"names {name}, which is not there")


# --- all together ----------------------------------------------------------------------------


def find_sins(root: Path) -> list[Sin]:
    sins: list[Sin] = []
    sources: list[Source] = []
    for path in list_files(root):
        size = (root / path).stat().st_size
        if size > FILE_BYTES_MAX:
            what = f"{size // 1024} KiB, at most {FILE_BYTES_MAX // 1024}; generate it instead"
            sins.append(Sin(path, 1, "file-size", what))
        elif source := read_source(root, path):
            sources.append(source)
    deps = read_deps(sources)
    sins += check_edges(deps)
    for source in sources:
        for check in (check_text, check_marks, check_machine_paths, check_file_lines, check_bans,
                      check_contract, check_functions, check_python):
            sins += check(source)
        sins += check_includes(source, deps)
        sins += check_doc_paths(source, root)
    return sorted(sins)


Counts = dict[tuple[str, str], int]


def read_known(root: Path) -> Counts:
    """Lines "<count> <path> <rule>"; '#' starts a comment."""
    known: Counts = {}
    path = root / KNOWN
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            count, file, rule = line.split()
            known[file, rule] = int(count)
    return known


def shrink(root: Path, known: Counts, counts: Counts) -> None:
    path = root / KNOWN
    if not path.exists():
        return
    kept = [line for line in path.read_text().splitlines() if line.startswith("#")]
    for (file, rule), count in sorted(known.items()):
        if left := min(count, counts.get((file, rule), 0)):
            kept.append(f"{left} {file} {rule}")
    path.write_text("\n".join(kept) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="The style test.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--shrink", action="store_true", help=f"lower the counts of {KNOWN}")
    options = parser.parse_args()
    sins = find_sins(options.root)
    counts: Counts = dict(collections.Counter((sin.path, sin.rule) for sin in sins))
    if options.shrink:
        shrink(options.root, read_known(options.root), counts)
    known = read_known(options.root)
    fresh = [sin for sin in sins if counts[sin.path, sin.rule] > known.get((sin.path, sin.rule), 0)]
    for sin in fresh:
        print(f"{sin.path}:{sin.line}: {sin.what} [{sin.rule}]")
    stale = [key for key, count in sorted(known.items()) if count > counts.get(key, 0)]
    for path, rule in stale:
        left = counts.get((path, rule), 0)
        print(f"{KNOWN}:1: {path} has only {left} of '{rule}' now; run tools/tidy.py --shrink")
    if fresh or stale:
        print(f"tidy: {len(fresh)} sins, {len(stale)} stale known counts")
    return 1 if fresh or stale else 0


if __name__ == "__main__":
    sys.exit(main())
