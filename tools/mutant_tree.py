"""A copy of the tree in which mutants are built and tested; the tree itself stays as it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JOBS = os.environ.get("JOBS", str(os.cpu_count() or 1))


class MutantTree:
    def __init__(self, work: Path) -> None:
        self.folder = work.resolve() / "tree"
        files = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.split("\n")  # fmt: skip
        for name in filter(None, files):
            if (ROOT / name).is_file():
                self.write(Path(name), (ROOT / name).read_bytes())

    def write(self, name: Path, text: bytes) -> None:
        """Leaves a file alone that has this content, so that it is not built again."""
        target = self.folder / name
        if target.exists() and target.read_bytes() == text:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text)

    def build(self, target: str) -> str:
        """What the compiler says; empty if all went well."""
        subprocess.run(
            ["cmake", "--preset", "test"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL
        )
        done = subprocess.run(
            ["ninja", "-k0", "-j", JOBS, "-C", str(self.folder / "build"), target],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout if done.returncode != 0 else ""

    def program(self, name: str) -> str:
        return str(self.folder / "build" / "bin" / name)
