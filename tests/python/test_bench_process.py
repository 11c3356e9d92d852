"""Measuring children from outside, and reading what the system and flux report."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from harness import cases, data, flux, machine, process
from harness.errors import BenchError

GOOD_SUMMARY: dict[str, object] = {
    "examples": 10,
    "examples_per_s": 5.0,
    "auc": 0.7,
    "lost": 0,
    "doubled": 0,
    "skipped": 0,
}


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


class Children(unittest.TestCase):
    def test_output_memory_and_time_of_a_child(self) -> None:
        code = "import sys; x = bytearray(b'1' * 200_000_000); print('out'); sys.stderr.write('e')"
        outcome = process.run(python(code))
        self.assertIn("out", outcome.output)
        self.assertIn("e", outcome.output)
        self.assertGreater(outcome.peak_rss_bytes, 200_000_000)
        self.assertGreater(outcome.cpu_s, 0.0)
        self.assertGreater(outcome.wall_s, 0.0)

    def test_a_child_is_pinned_to_its_cores(self) -> None:
        code = "import os; print(len(os.sched_getaffinity(0)))"
        self.assertEqual(process.run(python(code), cores=1).output.strip(), "1")
        everything = str(len(os.sched_getaffinity(0)))
        self.assertEqual(process.run(python(code)).output.strip(), everything)

    def test_failure_shows_status_and_last_lines(self) -> None:
        with self.assertRaisesRegex(BenchError, r"(?s)exit status 3.*why it failed"):
            process.run(python("import sys; print('why it failed'); sys.exit(3)"))
        with self.assertRaisesRegex(BenchError, "cannot start nothing-here: No such file"):
            process.run(["/nothing-here"])

    def test_a_child_that_never_ends_is_killed(self) -> None:
        with self.assertRaisesRegex(BenchError, "signal 9"):
            process.run(python("import signal; signal.pause()"), timeout_s=0.2)


class FirstLine(unittest.TestCase):
    def test_what_counts_as_progress(self) -> None:
        for line in ("1,000  0.61 0.55", "examples 1000  loss 0.51  auc 0.71", "pass 0: AUC 0.7"):
            self.assertTrue(process.is_progress_line(line), line)
        for line in ("examples  loss  auc  ex/s", "flux 0.1: 2 threads, bf16", "", "---"):
            self.assertFalse(process.is_progress_line(line), line)

    def test_stops_the_child_at_its_first_progress_line(self) -> None:
        code = (
            "import signal, sys; print('starting up'); print('examples 10 loss 0.5', flush=True); "
            "signal.pause()"
        )
        self.assertGreater(process.first_progress_s(python(code), timeout_s=60), 0.0)

    def test_no_progress_line_is_an_error_with_the_output(self) -> None:
        with self.assertRaisesRegex(BenchError, "(?s)no progress line.*only this"):
            process.first_progress_s(python("print('only this')"))


class System(unittest.TestCase):
    def test_cpuinfo_and_meminfo(self) -> None:
        text = (
            "model name\t: Some CPU\ncpuid level\t: 28\nflags\t\t: fpu avx512_bf16\n\n"
            "model name\t: Other\ncpuid level\t: 29\n"
        )
        name, flags, leaves = machine.parse_cpuinfo(text)
        self.assertEqual(name, "Some CPU")
        self.assertEqual(leaves, 28)
        self.assertIn("avx512_bf16", flags)
        self.assertEqual(machine.parse_meminfo_gib("MemTotal:  2097152 kB\n"), 2.0)

    def test_busy_time_leaves_out_idle_and_waiting(self) -> None:
        self.assertEqual(machine.parse_busy_ticks("cpu 1 2 4 1000 2000 8 16 32 64 0\n"), 63)


class Summary(unittest.TestCase):
    def test_good_one_passes(self) -> None:
        flux.check_summary(GOOD_SUMMARY, 10)

    def test_each_defect_is_named(self) -> None:
        defects: list[tuple[dict[str, object], str]] = [
            ({"auc": None}, "lacks auc"),
            ({"examples": 9}, "trained 9 examples, not 10"),
            ({"lost": 1}, "lost = 1"),
            ({"doubled": 2}, "doubled = 2"),
        ]
        for change, message in defects:
            with self.subTest(message), self.assertRaisesRegex(BenchError, message):
                flux.check_summary({**GOOD_SUMMARY, **change}, 10)

    def test_missing_binary_says_what_to_do(self) -> None:
        with self.assertRaisesRegex(BenchError, "make build"):
            flux.Flux(Path("/nowhere/flux"), Path("/nowhere"))

    def test_a_binary_without_the_generator_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            binary = Path(name) / "flux"
            binary.write_text("#!/bin/sh\necho unknown command data\nexit 2\n")
            binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
            runner = flux.Flux(binary, Path(name) / "scratch")
            with self.assertRaisesRegex(BenchError, "(?s)data gen criteo.*unknown command data"):
                runner.generate(10, 1, Path(name) / "out.tsv", 1)


FAKE_FLUX = """#!{python}
import json, pathlib, sys
words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
if words[:3] == ["data", "gen", "criteo"]:
    pathlib.Path(value("--out")).write_text("x\\n" * int(value("--examples")))
else:
    assert words[0] == "run" and words[1].endswith("examples/lr/job.yaml"), words
    sets = dict(words[i + 1].split("=", 1) for i, w in enumerate(words) if w == "--set")
    train = pathlib.Path(sets["data.train"]).read_text()
    summary = dict(examples=train.count("x"), examples_per_s=123.0, auc=0.75, lost=0, doubled=0,
                   skipped=0, precision=sets["precision"], threads=int(value("--threads")))
    pathlib.Path(value("--summary")).write_text(json.dumps(summary))
"""


class WholeRun(unittest.TestCase):
    def test_generates_trains_and_reads_the_summary(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            binary = Path(name) / "flux"
            binary.write_text(FAKE_FLUX.format(python=sys.executable))
            binary.chmod(0o755)
            runner = flux.Flux(binary, Path(name) / "scratch")
            with redirect_stdout(StringIO()):
                files = data.generated(runner, Path(name), 7, 3, 1)
            self.assertEqual(files.test.read_text().count("x"), 3)
            sample = runner.train("lr", files, 1, "fp32")
            self.assertEqual((sample.examples_per_s, sample.auc), (123.0, 0.75))
            whole = cases.flux_whole(runner, files, 1, "lr", 1)
            self.assertAlmostEqual(whole.examples_per_s, 7 / whole.wall_s)


class Derived(unittest.TestCase):
    def test_made_once_per_content(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            source, folder = Path(name) / "a.tsv", Path(name) / "derived" / "a"
            calls: list[str] = []

            def make(target: Path) -> None:
                calls.append(source.read_text())
                (target / "copy").write_text(source.read_text())

            for content in ("one", "one", "two"):
                source.write_text(content)
                data.derived(source, folder, make)
            self.assertEqual(calls, ["one", "two"])
            self.assertEqual((folder / "copy").read_text(), "two")

    def test_result_is_the_last_line(self) -> None:
        self.assertEqual(cases.last_json('noise\n{"auc": 0.5}\n'), {"auc": 0.5})
        with self.assertRaisesRegex(BenchError, "no result line"):
            cases.last_json("noise\n")

    def test_the_training_of_a_peer_is_what_is_measured(self) -> None:
        take = "import os; x = b'1' * (int(os.environ['BYTES']) * {})"
        peer = cases.PeerCommands(
            python(take.format(2)),
            python(take.format(4)),
            python("print('{\"auc\": 0.75}')"),
            {"BYTES": "100000000"},
        )
        sample = peer.measure(examples=1000, threads=1)
        self.assertEqual(sample.auc, 0.75)
        self.assertEqual(sample.examples_per_s, 1000 / sample.wall_s)
        self.assertGreater(sample.peak_rss_bytes, 200_000_000)
        self.assertLess(sample.peak_rss_bytes, 400_000_000)


if __name__ == "__main__":
    unittest.main()
