"""The errors of the harness: their text says what is wrong and what to do."""


class BenchError(Exception):
    """Ends the run, or the row, with one clear line."""


class SkippedError(BenchError):
    """The row cannot be measured on this machine, and that is no fault of anybody."""
