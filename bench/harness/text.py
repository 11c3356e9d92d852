"""Tables for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(cells: Sequence[Sequence[str]], right: frozenset[int]) -> str:
    """A table that reads well as text and renders as Markdown; the first line is its head."""
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]

    def shown(line: Sequence[str]) -> str:
        padded = [
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = [
        "-" * (width + 1) + ":" if column in right else "-" * (width + 2)
        for column, width in enumerate(widths)
    ]
    return "\n".join([shown(cells[0]), "|" + "|".join(rule) + "|", *map(shown, cells[1:])])
