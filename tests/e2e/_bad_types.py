"""What a case of _bad_files.py is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

LINES = 60
BAD_LINE = 37  # from 1


class Mistake(NamedTuple):
    name: str
    line: str  # in place of a good one
    says: str  # what the message must hold; a regular expression


@dataclass
class Format:
    name: str
    data: str  # of the job, without the files; {path} is the bad one, if it is not the train file
    good: list[str]
    mistakes: list[Mistake]
    layers: str
    suffix: str = "txt"
    header: int = 0  # lines before the first record
    empty: str = "holds no record"  # what is said of a file without any
    table: str = "dim: 1"
    beside: dict[str, str] = field(default_factory=dict)  # good files that the job needs
    train: str = ""  # the train file, if it is one of those and not the bad one

    @property
    def records(self) -> int:
        """Examples of a good file."""
        text = self.beside.get(self.train)
        return len(self.good) - self.header if text is None else text.count("\n")


@dataclass
class BadFile:
    """One case: makes its file at `path`; `says` is searched in what flux prints."""

    name: str
    make: Callable[[Path], None]
    says: str
    format: Format
    suffix: str
    more: list[str] = field(default_factory=list)  # --set flags
    locked: bool = False  # flux may not read what it may not
