"""Rows, targets and report of the cluster part, from made-up samples."""

from __future__ import annotations

import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from harness import cluster, cluster_report, flux, report, targets, watch
from harness.errors import BenchError
from harness.flux import Files, Shape
from harness.machine import Machine
from harness.micro import Line
from harness.rows import RoleUse, Row, Sample, Series, Table, Wire

EXAMPLES = 500_000
MIB = 2**20


def use(role: str, cpu_s: float, gb_s: float = 1.0, number: int = 0) -> RoleUse:
    return RoleUse(role, f"{role} {number}", cpu_s, 100 * MIB, gb_s)


def sample(
    speed: float, auc: float = 0.785, roles: tuple[RoleUse, ...] = (), wire: Wire | None = None
) -> Sample:
    return Sample(speed, 10.0, 200 * MIB, 0.0, auc, roles=roles, wire=wire)


def series(key: str, threads: int, *samples: Sample) -> Series:
    return Series(Row(key, key.split("_")[0], key, threads), list(samples))


def separate(server_cpu_s: float) -> tuple[RoleUse, ...]:
    return (use("run", 0.25), use("server", server_cpu_s, 2.0), use("worker", 12.0, 3.0))


def good_table() -> Table:
    wire = Wire("fp32", 600 * EXAMPLES, 900 * EXAMPLES)
    table = Table()
    for one in (
        series(cluster.PADDLE, 2, sample(20_000, 0.75, (use("server", 8.0), use("worker", 40.0)))),
        series("embedded_fp32", 2, sample(70_000, 0.7850, (use("run", 13.0, 4.0),))),
        series("embedded_bf16", 2, sample(120_000, 0.7849, (use("run", 7.0),))),
        series("cluster_fp32", 2, sample(60_000, 0.7853, separate(1.5), wire)),
        series("cluster_bf16", 2, sample(91_000, 0.7845, separate(1.5), wire)),
        series("embedded_fp32", 1, sample(36_000, 0.7841, (use("run", 13.0),))),
        series("cluster_fp32", 1, sample(31_000, 0.7842, separate(1.5), wire)),
    ):
        table.add(one)
    return table


class Rows(unittest.TestCase):
    def test_roles_add_up_and_absent_ones_are_not_zero(self) -> None:
        two = sample(1, roles=(use("server", 1.0), use("server", 2.5, 3.0), use("worker", 4.0)))
        self.assertEqual(two.cpu_s("server"), 3.5)
        self.assertEqual(two.cpu_s("server", "worker"), 7.5)
        self.assertEqual(two.gb_s("server"), 4.0)
        self.assertIsNone(two.cpu_s("coordinator"))
        self.assertEqual(two.peak_of("worker"), 100 * MIB)
        self.assertIsNone(two.peak_of("coordinator"))

    def test_per_million_is_a_median_over_samples(self) -> None:
        one = series("x", 1, *(sample(1, roles=(use("server", cpu),)) for cpu in (9.0, 1.0, 2.0)))
        self.assertEqual(cluster.per_million(one, EXAMPLES, "server"), 4.0)
        self.assertIsNone(cluster.per_million(one, EXAMPLES, "worker"))

    def test_shapes_have_all_wires_and_share_the_cores(self) -> None:
        rows = cluster.shapes(2, bf16=True)
        wires = {shape.wire for _, shape, _ in rows if shape.servers}
        self.assertEqual(wires, {"fp32", "fp16", "bf16"})
        self.assertTrue(all(shape.trainers() <= 2 for _, shape, _ in rows))
        keys = [(key, shape.trainers()) for key, shape, _ in rows]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertIn(("cluster_two", Shape(2, 2, 1), "fp32"), rows)
        self.assertIn(("cluster_bf16", Shape(1, 1, 2), "bf16"), rows)

    def test_without_bf16_in_the_cpu_or_with_one_core(self) -> None:
        precisions = {precision for _, _, precision in cluster.shapes(2, bf16=False)}
        self.assertEqual(precisions, {"fp32"})
        keys = [(key, shape.trainers()) for key, shape, _ in cluster.shapes(1, bf16=True)]
        self.assertEqual(len(keys), len(set(keys)))


class Command(unittest.TestCase):
    def command(self, shape: Shape) -> str:
        with tempfile.TemporaryDirectory() as name:
            binary = Path(name) / "flux"
            binary.touch()
            runner = flux.Flux(binary, Path(name) / "scratch")
            return " ".join(runner.role_command(Files(Path("a"), Path("b"), 1), shape, "fp32"))

    def test_roles_and_wire_are_asked_for(self) -> None:
        text = self.command(Shape(2, 3, 1, "fp16"))
        for part in ("--servers 2", "--workers 3", "--threads 1", "--set wire=fp16", "--fresh"):
            self.assertIn(part, text)

    def test_one_process_has_no_servers(self) -> None:
        text = self.command(Shape(threads=2))
        self.assertNotIn("--servers", text)
        self.assertNotIn("wire=", text)


class Summary(unittest.TestCase):
    SHAPE = Shape(2, 1, 2, "bf16")

    def summary(self) -> dict[str, object]:
        return {
            "mode": "async",
            "wire": "bf16",
            "roles": [
                {"role": "coordinator", "name": "coordinator", "bytes_in": 7, "bytes_out": 7},
                {"role": "server", "name": "server 0", "bytes_in": 10, "bytes_out": 20},
                {"role": "server", "name": "server 1", "bytes_in": 1, "bytes_out": 2},
                {"role": "worker", "name": "worker 0", "bytes_in": 22, "bytes_out": 11},
            ],
        }

    def test_traffic_is_that_of_all_servers(self) -> None:
        self.assertEqual(flux.wire_of(self.summary(), self.SHAPE), Wire("bf16", 11, 22))

    def test_each_defect_is_named(self) -> None:
        defects: list[tuple[dict[str, object], str]] = [
            ({"wire": "fp32"}, "wire = fp32, not bf16"),
            ({"mode": "sync"}, "mode = sync, not async"),
            ({"roles": []}, "0 servers, not 2"),
            ({"roles": None}, "0 servers, not 2"),
            ({"roles": [{"role": "server"}] * 2}, "lacks bytes_in"),
        ]
        for change, message in defects:
            with self.subTest(message), self.assertRaisesRegex(BenchError, message):
                flux.wire_of({**self.summary(), **change}, self.SHAPE)

    def test_processes_must_be_those_asked_for(self) -> None:
        flux.check_roles(["run", "server", "worker", "server"], self.SHAPE)
        with self.assertRaisesRegex(BenchError, "1 processes `flux server`, not 2"):
            flux.check_roles(["run", "server", "worker"], self.SHAPE)


# Stands in for `flux run`: starts "flux server" and "flux worker", which are this Python on scripts
# of those names, and lets them live until the watch has seen them (the file "seen").
FAKE_FLUX = """#!{python}
import json, pathlib, subprocess, sys, time
words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
folder = pathlib.Path(__file__).parent
roles = ["server"] * int(value("--servers")) + ["worker"] * int(value("--workers"))
start = lambda role: subprocess.Popen(["flux", role], executable=sys.executable, cwd=folder)
running = [start(role) for role in roles]
deadline = time.monotonic() + 60
while not (folder / "seen").exists() and time.monotonic() < deadline:
    time.sleep(0.01)
for one in running:
    one.kill()
    one.wait()
sets = dict(words[i + 1].split("=", 1) for i, w in enumerate(words) if w == "--set")
servers = [dict(role="server", name="s", bytes_in=5, bytes_out=6) for r in roles if r == "server"]
summary = dict(examples=7, examples_per_s=100.0, auc=0.7, lost=0, doubled=0, skipped=0,
               mode="async", wire=sets["wire"], roles=servers)
pathlib.Path(value("--summary")).write_text(json.dumps(summary))
"""


class WholeRun(unittest.TestCase):
    def test_processes_are_told_apart_and_traffic_is_read(self) -> None:
        scan = watch.Watch.scan

        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)

            def scan_and_tell(self: watch.Watch) -> None:
                scan(self)
                roles = [track.role for track in self.tracks.values() if len(track.times) > 1]
                if roles.count("server") == 2 and roles.count("worker") == 1:
                    (folder / "seen").touch()

            binary = folder / "flux"
            binary.write_text(FAKE_FLUX.format(python=sys.executable))
            binary.chmod(0o755)
            for role in ("server", "worker"):
                (folder / role).write_text("import signal; signal.pause()\n")
            runner = flux.Flux(binary, folder / "scratch")
            files = Files(Path("a"), Path("b"), 7)
            with mock.patch.object(watch.Watch, "scan", scan_and_tell):
                sample = runner.train_roles(files, Shape(2, 1, 1, "fp16"), "fp32", cores=1)
        self.assertEqual([use.role for use in sample.roles].count("server"), 2)
        self.assertEqual(sample.wire, Wire("fp16", 10, 12))
        total = sum(use.peak_rss_bytes for use in sample.roles)
        self.assertEqual(sample.peak_rss_bytes, total)
        self.assertGreater(sample.gb_s("worker") or 0.0, 0.0)


class Targets(unittest.TestCase):
    def verdicts(self, table: Table, threads: int = 2) -> dict[str, str]:
        judged = targets.judge_cluster(table, threads, EXAMPLES)
        return {one.name: one.verdict() for one in judged}

    def test_all_met(self) -> None:
        verdicts = self.verdicts(good_table())
        self.assertEqual(set(verdicts.values()), {"met"})
        self.assertEqual(len(verdicts), 7)

    def test_each_limit_can_be_missed(self) -> None:
        table = good_table()
        table.series[3] = series("cluster_fp32", 2, sample(59_000, 0.7856, separate(1.7)))
        table.series[4] = series("cluster_bf16", 2, sample(89_000, 0.7843, separate(1.7)))
        table.series[6] = series("cluster_fp32", 1, sample(1, 0.7847, separate(1.7)))
        self.assertEqual(set(self.verdicts(table).values()), {"MISSED"})

    def test_nothing_is_met_without_the_peer(self) -> None:
        table = good_table()
        del table.series[0]
        unmeasured = [name for name, verdict in self.verdicts(table).items() if verdict != "met"]
        self.assertEqual(len(unmeasured), 3)
        self.assertTrue(all("Paddle" in name for name in unmeasured), unmeasured)
        self.assertEqual(set(self.verdicts(Table()).values()), {"not measured"})

    def test_one_thread_is_judged_once(self) -> None:
        names = [one.name for one in targets.judge_cluster(good_table(), 1, EXAMPLES)]
        self.assertEqual(len(names), len(set(names)))


def call(system: str, cpu_us: float, request: int = 80_000, reply: int = 440_000) -> Line:
    line: Line = {"bench": "rpc", "system": system, "request": request, "reply": reply}
    return {**line, "cpu_us": cpu_us}


class Rpc(unittest.TestCase):
    def test_judged_on_tcp_and_the_large_call(self) -> None:
        lines = [
            call("flux tcp", 190.0),
            call("flux unix", 110.0),
            call("raw tcp", 90.0),
            call("flux tcp", 18.0, 64, 64),
            call("grpc tcp", 122.0, 64, 64),
            call("grpc tcp", 600.0),
        ]
        judged = targets.judge_rpc(lines)
        said = "3.16x (no model, CPU of all threads, no seed, 1 pair)"
        self.assertEqual((judged.measured, judged.verdict()), (said, "met"))
        self.assertEqual(targets.judge_rpc([*lines, call("flux tcp", 201.0)]).verdict(), "MISSED")
        self.assertEqual(targets.judge_rpc(lines[:-1]).verdict(), "not measured")

    def test_rounds_are_pairs(self) -> None:
        lines: list[Line] = []
        for number, (ours, theirs) in enumerate(((100.0, 400.0), (200.0, 700.0), (100.0, 300.0))):
            lines.append({**call("flux tcp", ours), "round": number + 1})
            lines.append({**call("grpc tcp", theirs), "round": number + 1})
        judged = targets.judge_rpc(lines)
        self.assertTrue(judged.measured.startswith("3.50x (no model"), judged.measured)
        self.assertIn("3 pairs, quartiles 3.25 to 3.75", judged.measured)


class Text(unittest.TestCase):
    def lines(self, table: Table) -> list[list[str]]:
        text = "\n".join(cluster_report.render(table, EXAMPLES)).splitlines()
        return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text if "|" in line]

    def test_nothing_without_rows(self) -> None:
        self.assertEqual(cluster_report.render(Table(), EXAMPLES), [])

    def test_figures_of_a_row(self) -> None:
        rows = self.lines(good_table())
        head = rows[0]
        row = dict(zip(head, next(row for row in rows if row[1] == "cluster_fp32"), strict=True))
        self.assertEqual(row["server CPU s/M"], "3.00")
        self.assertEqual(row["worker CPU s/M"], "24.00")
        self.assertEqual((row["B/ex to"], row["B/ex from"]), ("600", "900"))

    def test_ratios_name_what_they_are_held_against(self) -> None:
        table = good_table()
        table.series = [one for one in table.series if one.row.threads == 2]
        rows = {(row[0], row[1]): row[2] for row in self.lines(table) if len(row) == 3}
        self.assertNotIn(("cluster_fp32", "its own with 1 thread"), rows)
        known = "AUC 0.7853 vs 0.7500, 2 threads, seed not recorded, 1 pair"
        self.assertEqual(rows["cluster_fp32", "Paddle"], f"3.00x ({known})")
        self.assertTrue(rows["cluster_fp32", "one process"].startswith("0.86x (AUC 0.7853 vs"))
        self.assertTrue(rows["cluster_bf16", "one process"].startswith("0.76x (AUC 0.7845 vs"))
        rows = {(row[0], row[1]): row[2] for row in self.lines(good_table()) if len(row) == 3}
        self.assertIn("2 vs 1 threads", rows["cluster_fp32", "its own with 1 thread"])

    def test_costs_by_role_and_together(self) -> None:
        rows = self.lines(good_table())
        start = next(n for n, row in enumerate(rows) if row[:2] == ["set-up", "ex/s"])
        head, costs = rows[start], rows[start + 2 :]
        self.assertEqual(len(costs), 4)
        one_process = dict(zip(head, costs[0], strict=True))
        self.assertEqual(one_process["server core-s"], "-")
        self.assertEqual((one_process["all core-s"], one_process["all GB-s"]), ("26.00", "8.00"))
        roles = dict(zip(head, costs[1], strict=True))
        self.assertEqual((roles["server core-s"], roles["rest core-s"]), ("3.00", "0.50"))
        self.assertEqual(roles["all core-s"], "27.50")
        self.assertEqual((roles["worker GB-s"], roles["all GB-s"]), ("6.00", "12.00"))

    def test_a_skipped_and_a_failed_row_say_why(self) -> None:
        skipped = Series(cluster.paddle_row(2), skipped="needs Python 3.10")
        failed = Series(Row("cluster_fp32", "flux", "apart", 2), failure="it broke")
        table = Table()
        table.add(skipped)
        table.add(failed)
        text = "\n".join(cluster_report.render(table, EXAMPLES))
        self.assertRegex(text, r"skipped: Paddle, .*: needs Python 3\.10")
        self.assertIn(" skipped |", text)
        self.assertIn("it broke", text)

    def test_report_keeps_every_sample(self) -> None:
        one = report.Report("2026-01-02", Machine("a CPU", 2, 16.0, True), EXAMPLES, 10, 3, "none")
        one.cluster = good_table()
        one.targets = targets.judge_cluster(one.cluster, 2, EXAMPLES)
        self.assertIn("## Cost of roles", report.render(one))
        kept = json.loads(json.dumps(report.as_json(one)))
        row = next(row for row in kept["cluster_rows"] if row["key"] == "cluster_fp32")
        self.assertEqual(row["samples"][0]["roles"][1]["role"], "server")
        self.assertEqual(row["samples"][0]["wire"]["to_servers"], 600 * EXAMPLES)
        self.assertEqual(kept["rows"], [])


if __name__ == "__main__":
    unittest.main()
