"""What the tests of tools/prepare_*.py share: stand-ins for the real data, and ways to run them."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from _support import DEADLINE_S, FLUX, SOURCE, Case, Done

MODEL = """name: prepared
output: model
threads: 1
shards: 4
tables:
  - {name: weight, dim: 1, init: zero, optimizer: {rule: sgd, lr: 0.1}}
model:
  layers:
    - {name: logit, op: embedding, table: weight, combine: sum}
    - {name: loss, op: logistic_loss, inputs: [logit, label]}
"""


def criteo_lines(count: int, seed: int) -> list[str]:
    """As the real files look: whole numbers, some below 0, and a fifth of all fields missing."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        dense = ["" if draw.random() < 0.2 else str(draw.randint(-2, 5000)) for _ in range(13)]
        ids = ["" if draw.random() < 0.2 else f"{draw.getrandbits(32):08x}" for _ in range(26)]
        lines.append("\t".join([str(draw.randint(0, 1)), *dense, *ids]) + "\n")
    return lines


class PrepareCase(Case):
    def tool(self, name: str, *arguments: str, code: int | None = 0) -> Done:
        """Runs tools/prepare_<name>.py in the scratch folder."""
        done = subprocess.run(self.command(name, *arguments), cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S)
        result = Done(done.returncode, done.stdout, done.stderr)
        if code is not None:
            self.assertEqual(result.code, code, result.text)
        return result

    @staticmethod
    def command(name: str, *arguments: str) -> list[str]:
        tool = SOURCE / "tools" / f"prepare_{name}.py"
        return [sys.executable, "-B", str(tool), "--flux", str(FLUX), *arguments]

    def refused(self, name: str, *arguments: str, words: tuple[str, ...]) -> None:
        done = self.tool(name, *arguments, code=2)
        for word in words:
            self.assertIn(word, done.err)
        self.assertNotIn("Traceback", done.text)
        self.assertEqual(done.err.count("\n"), 1, done.err)

    def trains_on(self, out: str, examples: int) -> None:
        """A job with the printed section reads it all."""
        section = (self.folder / out / "data.yaml").read_text()
        job = self.folder / f"{out}.yaml"
        job.write_text(section + MODEL)
        self.flux("run", job.name, "--fresh")
        self.assert_exact("model", examples)

    def stamps(self, *folders: Path) -> dict[Path, int]:
        return {path: path.lstat().st_mtime_ns for folder in folders for path in folder.iterdir()}
