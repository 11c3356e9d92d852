"""Every job that comes with flux, from the commands in its head: tried, forecast, drawn."""

from __future__ import annotations

import re
import unittest
from pathlib import Path
from xml.etree import ElementTree

from _support import SOURCE, Case

JOBS = [*sorted((SOURCE / "models").glob("*.yaml")), *sorted((SOURCE / "examples").rglob("*.yaml"))]
EXAMPLES = 2000  # instead of hundreds of thousands


def data_commands(job: Path) -> list[list[str]]:
    """Those of the head that make the job's data, with fewer examples."""
    found = re.findall(r"(?m)^#   flux (data .*)$", job.read_text())
    return [re.sub(r"--examples \d+", f"--examples {EXAMPLES}", line).split() for line in found]


class TryAll(Case):
    def test_every_job(self) -> None:
        self.assertGreater(len(JOBS), 15)
        for job in JOBS:
            name = str(job.relative_to(SOURCE))
            with self.subTest(name):
                commands = data_commands(job)
                self.assertGreater(len(commands), 0, "its head does not say where its data is from")
                for command in commands:
                    self.flux(*command)
                told = self.flux("run", str(job), "--smoke", "20").out
                self.assertIn("the job is right as far as 20 batches can tell", told)
                told = self.flux("run", str(job), "--dry-run").out
                self.assertRegex(told, f"data +{EXAMPLES:,} examples")
                ElementTree.fromstring(self.flux("graph", str(job)).out)  # noqa: S314
        self.assertFalse((self.folder / "out").exists(), "nothing is trained")


if __name__ == "__main__":
    unittest.main()
