"""The one error of the harness: its text says what is wrong and what to do."""


class BenchError(Exception):
    """Ends the run, or the row, with one clear line."""
