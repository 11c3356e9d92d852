"""Processes measured from /proc, groups of them, and the peer that is such a group."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from harness import group, paddle, process, setup, watch
from harness.errors import BenchError, SkippedError
from harness.watch import Track
from peers import paddle_text

STAT = "77 (a (bad) name) S 12 77 70 0 -1 4 1 2 3 4 250 50 0 0 20 0 1 0 9000 123456 25 99\n"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


class Parsing(unittest.TestCase):
    def test_stat_with_brackets_in_the_name(self) -> None:
        reading = watch.parse_stat(STAT, ticks_per_s=100, page_bytes=4096)
        self.assertEqual((reading.parent, reading.session), (12, 70))
        self.assertEqual((reading.cpu_s, reading.start_ticks), (3.0, 9000))
        self.assertEqual(reading.rss_bytes, 25 * 4096)

    def test_peak_of_a_status(self) -> None:
        self.assertEqual(watch.parse_peak_bytes("Name:\tx\nVmHWM:\t  12 kB\n"), 12 * 1024)
        self.assertEqual(watch.parse_peak_bytes("Name:\tx\nState:\tZ (zombie)\n"), 0)

    def test_role_is_the_first_word_of_the_command_line(self) -> None:
        self.assertEqual(watch.parse_role(b"/a/flux\0worker\0--coordinator\0x\0"), "worker")
        self.assertEqual(watch.parse_role(b"flux\0run\0job.yaml\0"), "run")
        self.assertEqual(watch.parse_role(b"sh\0-c\0server\0"), "other")
        self.assertEqual(watch.parse_role(b""), "other")


class Tracks(unittest.TestCase):
    def track(self) -> Track:
        track = Track(1, 1, "server")
        for at, cpu_s, rss in ((10.0, 1.0, 0), (12.0, 5.0, 2_000_000_000), (13.0, 6.0, 0)):
            track.add(at, cpu_s, rss)
        return track

    def test_memory_is_integrated_over_time(self) -> None:
        self.assertAlmostEqual(self.track().gb_s, 2.0 + 1.0)
        self.assertEqual(self.track().peak_rss_bytes, 2_000_000_000)

    def test_cpu_between_samples(self) -> None:
        track = self.track()
        seen = [track.cpu_at(at) for at in (9.0, 10.0, 11.0, 12.0, 12.5, 99.0)]
        self.assertEqual(seen, [1.0, 1.0, 3.0, 5.0, 5.5, 6.0])
        self.assertEqual(paddle.after(track, 11.0).cpu_s(), 3.0)
        self.assertEqual(track.cpu_s(), 6.0)

    def test_names_count_by_role_in_the_order_of_start(self) -> None:
        tracks = [Track(5, 30, "worker"), Track(9, 20, "worker"), Track(7, 10, "server")]
        names = [(use.name, use.role) for use in watch.uses(tracks)]
        expected = [("server 0", "server"), ("worker 0", "worker"), ("worker 1", "worker")]
        self.assertEqual(names, expected)


class Trees(unittest.TestCase):
    def test_a_descendant_in_a_session_of_its_own_is_followed(self) -> None:
        inner = (
            "import signal; x = bytearray(b'1' * 100_000_000); print('ready', flush=True); "
            "signal.pause()"
        )
        code = (
            "import subprocess, sys; "
            f"subprocess.run([sys.executable, '-c', {inner!r}], start_new_session=True)"
        )
        child = process.spawn(python(code), None, None, subprocess.PIPE)
        tree = watch.Watch(child.pid)
        try:
            assert child.stdout is not None
            self.assertEqual(child.stdout.readline(), b"ready\n")
            tree.scan()
            peaks = sorted(track.peak_rss_bytes for track in tree.tracks.values())
            self.assertEqual(len(peaks), 2)
            self.assertLess(peaks[0], 100_000_000)
            self.assertGreater(peaks[1], 100_000_000)
        finally:
            tree.kill_all()
            child.communicate()  # ends when the last of the tree has closed the pipe
        self.assertEqual(child.returncode, -signal.SIGKILL)

    def test_the_child_itself_is_always_seen(self) -> None:
        (track,) = process.run(python("pass"), watched=True).tracks
        self.assertEqual(track.role, "other")
        self.assertEqual(process.run(python("pass")).tracks, ())


class Groups(unittest.TestCase):
    FOREVER = "import signal; signal.pause()"

    def member(self, name: str, code: str, service: bool = False) -> group.Member:
        role = "server" if service else "worker"
        return group.Member(name, role, python(code), {"WHO": name}, service)

    def run_group(self, *members: group.Member, timeout_s: float = 60.0) -> group.GroupOutcome:
        with tempfile.TemporaryDirectory() as name:
            return group.run(members, cores=1, folder=Path(name), timeout_s=timeout_s)

    def test_a_service_is_ended_after_the_others(self) -> None:
        work = (
            "import os; print(os.environ['WHO'], len(os.sched_getaffinity(0))); sum(range(10**7))"
        )
        outcome = self.run_group(
            self.member("s", self.FOREVER, service=True), self.member("w", work)
        )
        self.assertEqual(outcome.outputs, {"s": "", "w": "w 1\n"})
        roles = {name: track.role for name, track in outcome.tracks.items()}
        self.assertEqual(roles, {"s": "server", "w": "worker"})
        self.assertGreater(outcome.tracks["w"].cpu_s(), outcome.tracks["s"].cpu_s())
        for track in outcome.tracks.values():
            track.sample()
            self.assertTrue(track.ended)

    def test_failures_are_named_and_leave_nothing_behind(self) -> None:
        service = self.member("s", self.FOREVER, service=True)
        with self.assertRaisesRegex(BenchError, r"(?s)w ended with exit status 3.*the reason"):
            self.run_group(service, self.member("w", "print('the reason'); raise SystemExit(3)"))
        with self.assertRaisesRegex(BenchError, "s ended with exit status 0"):
            self.run_group(self.member("s", "pass", service=True), self.member("w", self.FOREVER))
        with self.assertRaisesRegex(BenchError, "w did not end in time"):
            late = self.member("w", self.FOREVER)
            self.run_group(service, late, timeout_s=1.0)


class Paddle(unittest.TestCase):
    def test_text_has_counts_and_keys_by_slot(self) -> None:
        dense = ["", "-3", *["0"] * 11]
        line = "\t".join(["1", *dense, "0000000a", "", *["0000000a"] * 24]) + "\n"
        words = paddle_text.to_multi_slot(line, "log1p").split()
        self.assertEqual(words[:3], ["1", "1", "13"])
        self.assertEqual(words[3:16], ["0"] * 13)
        self.assertEqual(set(words[16::2]), {"1"})
        keys = [int(word) for word in words[17::2]]
        self.assertEqual(len(keys), 26)
        self.assertEqual(keys[:3], [(1 << 32) + 10, 2 << 32, (3 << 32) + 10])
        raw = paddle_text.to_multi_slot(line, "none").split()
        self.assertEqual(raw[3:5], ["0", "-3"])
        with self.assertRaisesRegex(ValueError, "2 fields, not 40"):
            paddle_text.to_multi_slot("1\t2\n", "none")

    def test_examples_are_dealt_out_once_each(self) -> None:
        lines = ["\t".join(["0", *[str(n)] * 13, *["ff"] * 26]) + "\n" for n in range(5)]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "a.tsv").write_text("".join(lines))
            paddle_text.convert(folder / "a.tsv", folder, "none", 2)
            parts = [(folder / f"part-{n}").read_text().splitlines() for n in range(2)]
        self.assertEqual([len(part) for part in parts], [3, 2])
        self.assertEqual({line.split()[3] for part in parts for line in part}, set("01234"))

    def test_variables_of_each_process(self) -> None:
        server, first, second = paddle.members(["x"], 1, 2, [1001, 1002, 1003])
        self.assertTrue(server.service)
        self.assertEqual(server.env["TRAINING_ROLE"], "PSERVER")
        self.assertEqual(server.env["PADDLE_PORT"], "1001")
        self.assertFalse(first.service)
        self.assertEqual((first.env["PADDLE_TRAINER_ID"], second.env["PADDLE_PORT"]), ("0", "1003"))
        for one in (server, first, second):
            self.assertEqual(one.env["PADDLE_PSERVERS_IP_PORT_LIST"], "127.0.0.1:1001")
            ends = "127.0.0.1:1002,127.0.0.1:1003"
            self.assertEqual(one.env["PADDLE_TRAINER_ENDPOINTS"], ends)

    def test_ports_differ(self) -> None:
        self.assertEqual(len(set(paddle.free_ports(8))), 8)

    def test_result_among_lines_of_the_log(self) -> None:
        good = '{"examples": 9, "examples_per_s": 3.5, "begin_s": 1, "end_s": 2, "auc": 0.5}'
        found = paddle.result_line(f"I1115 a log\n{good}\nanother line\n")
        self.assertEqual((found["examples"], found["auc"]), (9, 0.5))
        for output in ("", "only a log\n", '{"examples": 9}\n', '{"examples": broken\n'):
            with self.subTest(output), self.assertRaisesRegex(BenchError, "no result line"):
                paddle.result_line(output)


class Interpreters(unittest.TestCase):
    def fake(self, path: Path, line: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def test_a_shim_that_does_not_start_is_passed_over(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            shims, pyenv = Path(name) / "shims", Path(name) / "pyenv"
            self.fake(shims / "python3.10", "exit 127")
            with self.assertRaisesRegex(SkippedError, "needs Python 3.10"):
                setup.find_python("3.10", str(shims), pyenv)
            good = pyenv / "versions" / "3.10.13" / "bin" / "python3.10"
            self.fake(good, "echo 3.10")
            self.assertEqual(setup.find_python("3.10", str(shims), pyenv), good)
            self.fake(shims / "python3.10", "echo 3.10")
            self.assertEqual(setup.find_python("3.10", str(shims), pyenv).parent, shims)

    def test_version_is_what_the_interpreter_says(self) -> None:
        own = f"{sys.version_info[0]}.{sys.version_info[1]}"
        self.assertEqual(setup.version_of(Path(sys.executable)), own)
        self.assertEqual(setup.version_of(Path("/nothing-here")), "")


if __name__ == "__main__":
    unittest.main()
