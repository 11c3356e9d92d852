"""tools/check_docs.py runs what documents show, and says where and why something failed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_docs.py"
# Stands for build/flux: writes what it was asked for.
FLUX = """#!/bin/sh
echo "$@" >>"$HOME/log" 2>/dev/null || true
for last; do :; done
case "$1 $2" in "data gen") echo "$@" >"$last" ;; "fail now") echo broken pipe dream; exit 3 ;; esac
"""
MAKEFILE = ".PHONY: run test\nrun:\n\techo run\ntest: lost-file\n"


class CheckDocsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="check_docs_test.")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "build").mkdir()
        flux = self.root / "build" / "flux"
        flux.write_text(FLUX)
        flux.chmod(0o755)
        (self.root / "examples").mkdir()
        (self.root / "examples" / "job.yaml").write_text("a: 1\n")
        (self.root / "Makefile").write_text(MAKEFILE)

    def check(self, text: str, name: str = "README.md") -> tuple[int, str]:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        command = [sys.executable, str(TOOL), "--root", str(self.root),
                   "--flux", str(self.root / "build" / "flux")]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_runs_blocks_in_order_in_one_folder(self) -> None:
        status, output = self.check(
            "# A\n```sh\n# a comment\nbuild/flux run examples/job.yaml\necho one >note\n```\n"
            "text\n```yaml\nnot: run\n```\n```sh\ntest $(cat note) = one\n"
            "grep -q 5000 data/criteo/train.tsv\nflux check \\\n  examples/job.yaml\n"
            "cat >b <<END\nfalse\nEND\ngrep -q false b\n```\n"
        )
        self.assertEqual(status, 0, output)
        self.assertIn("1 documents: 7 commands run, 0 make targets checked", output)
        self.assertFalse((self.root / "note").exists())

    def test_a_failing_command_has_its_line_and_output(self) -> None:
        status, output = self.check("```sh\ntrue\n\nflux fail now\ntrue\n```\n", "docs/using.md")
        self.assertEqual(status, 1)
        self.assertIn("docs/using.md:4: exit 3: flux fail now\n    broken pipe dream", output)

    def test_failure_inside_a_pipe_counts(self) -> None:
        status, output = self.check("```sh\nfalse | cat\n```\n")
        self.assertEqual(status, 1)
        self.assertIn("README.md:2: exit 1: false | cat", output)

    def test_data_is_made_small(self) -> None:
        status, output = self.check(
            "```sh\nflux data gen criteo --examples 9000000 --out x\n"
            "grep -q -- '--examples 5000 ' x\n```\n"
        )
        self.assertEqual(status, 0, output)
        self.assertIn("README.md:2: runs as: flux data gen criteo --examples 5000", output)

    def test_make_targets_must_exist(self) -> None:
        status, output = self.check("```sh\nmake run\nJOBS=1 make run A=b  # all\n```\n")
        self.assertEqual(status, 0, output)
        self.assertIn("0 commands run, 2 make targets checked", output)
        (self.root / "lost").mkdir()
        status, output = self.check("```sh\nmake lost\nmake test\n```\n")
        self.assertEqual(status, 1)
        self.assertIn("README.md:2: the Makefile has no target 'lost'", output)
        self.assertIn("README.md:3: make -n refuses it", output)
        status, output = self.check("```sh\ntrue && make run\n```\n")
        self.assertIn("README.md:2: make belongs on a line of its own", output)
        self.assertEqual(status, 1)

    def test_not_run_needs_a_reason_and_a_block(self) -> None:
        block = "```sh\nfalse\n```\n"
        status, output = self.check("<!-- not run: needs a cluster -->\n\n" + block)
        self.assertEqual(status, 0, output)
        self.assertIn("README.md:3: not run: needs a cluster", output)
        self.assertIn("1 commands not run", output)
        self.assertEqual(self.check("<!-- not run: -->\n" + block)[0], 1)
        self.assertEqual(self.check("<!-- not run: x -->\ntext\n" + block)[0], 1)
        self.assertEqual(self.check("Write `<!-- not run: x -->` before it.\n")[0], 0)
        # One mark is for one block only.
        self.assertEqual(self.check("<!-- not run: x -->\n" + block + block)[0], 1)

    def test_nothing_escapes_by_its_name(self) -> None:
        for name in ("bash", "console", "shell"):
            status, output = self.check(f"```{name}\ntrue\n```\n")
            self.assertEqual(status, 1)
            self.assertIn("call it sh", output)
        self.assertEqual(self.check("1. x\n\n   ```sh\n   false\n   ```\n")[0], 1)
        self.assertEqual(self.check("~~~sh\nfalse\n~~~\n")[0], 1)
        self.assertEqual(self.check("```sh\n$ true\n```\n")[0], 1)


if __name__ == "__main__":
    unittest.main()
