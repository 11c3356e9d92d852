"""What a run leaves for people and programs: TensorBoard events, report.html, --json events."""

from __future__ import annotations

import json
import re
import struct
import unittest
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from _support import SOURCE, Case, example, sets, write_data

EVENTS: dict[str, list[str]] = json.loads((SOURCE / "tests/golden/event_keys.json").read_text())

TWO_HEADS = """
name: two
output: out
data:
  format: feasign
  train: tasks.txt
  test: tasks.txt
  batch: 100
  labels: [click, buy]
  group: f0
  slots: [{name: f0}, {name: f1}, {name: f2}, {name: f3}, {name: f4}, {name: f5}]
tables:
  - {name: vector, dim: 4}
model:
  layers:
    - {name: emb, op: embedding, table: vector, combine: sum}
    - {name: click_logit, op: fc, inputs: emb, units: 1}
    - {name: buy_logit, op: fc, inputs: emb, units: 1}
    - {name: click_loss, op: logistic_loss, inputs: [click_logit, click]}
    - {name: buy_loss, op: logistic_loss, inputs: [buy_logit, buy]}
"""


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, from its definition."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data: bytes) -> list[bytes]:
    """The payloads of TFRecords; both check sums must be right."""
    out = []
    at = 0
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked(data[at:at + 8])
        body = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(body)
        out.append(body)
        at += 16 + length
    return out


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data: bytes) -> list[tuple[int, Any]]:
    """Fields of a protocol buffer by number; numbers, floats or bytes as their kind says."""
    out: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value: Any
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif tag & 7 == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        out.append((tag >> 3, value))
    return out


def scalars(path: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by tag."""
    events = [dict(fields(body)) for body in records(path.read_bytes())]
    assert events[0][3] == b"brain.Event:2"
    assert dict(fields(events[1][7])) == {1: 1}  # the session starts
    out: dict[str, list[tuple[int, float]]] = {}
    for event in events[2:]:
        for number, value in fields(event[5]):
            assert number == 1
            one = dict(fields(value))
            out.setdefault(one[1].decode(), []).append((event[2], one[2]))
    return out


class Outputs(Case):
    def setUp(self) -> None:
        super().setUp()
        write_data(self.folder / "a.tsv", 1000)
        write_data(self.folder / "test.tsv", 500, seed=9)
        passes = "[{name: mon, train: a.tsv}, {name: tue, train: a.tsv}]"
        self.job = (SOURCE / "examples/lr/job.yaml").read_text()
        self.assertRegex(self.job, r"(?m)^  train:.*$")
        text = re.sub(r"(?m)^  train:.*\n", "", self.job)
        (self.folder / "job.yaml").write_text(text + f"passes: {passes}\n")

    def command(self, *more: str) -> list[str]:
        return ["run", "job.yaml", "--threads", "2", *more,
                *sets(data__test="test.tsv", output="out", data__batch=10, shards=4)]

    def test_event_file(self) -> None:
        self.flux(*self.command())
        files = list((self.folder / "out/tensorboard").iterdir())
        self.assertEqual(len(files), 1)
        found = scalars(files[0])
        summary = self.summary("out")
        head = summary["test"]["heads"][0]
        for name in ("auc", "log_loss", "copc", "rmse", "calibration_error"):
            steps = [step for step, _ in found[f"held-out/{name}"]]
            self.assertEqual(steps, [1000, 2000], "after each pass")
            self.assertAlmostEqual(found[f"held-out/{name}"][-1][1], head[name], places=5)
        self.assertEqual(found["train/loss"][-1][0], 2000)
        self.assertIn("train/progressive_auc", found)
        self.assertIn("train/examples_per_s", found)
        # Nothing left to train: no file without a figure.
        self.flux(*self.command())
        self.assertEqual(len(list((self.folder / "out/tensorboard").iterdir())), 1)

    def test_report(self) -> None:
        self.flux(*self.command())
        text = (self.folder / "out/report.html").read_text()
        root = ElementTree.fromstring(text)  # noqa: S314
        space = "{http://www.w3.org/1999/xhtml}"
        self.assertEqual(root.tag, space + "html")
        head = self.summary("out")["test"]["heads"][0]
        cells = {cell.text for cell in root.iter(space + "td")}
        for name in ("auc", "log_loss", "copc", "mae", "rmse", "calibration_error"):
            self.assertIn(f"{head[name]:.6f}", cells, name)
        charts = list(root.iter("{http://www.w3.org/2000/svg}svg"))
        self.assertEqual(len(charts), 4, "calibration, loss, AUC, speed")
        self.assertEqual(len(charts[0].findall("{http://www.w3.org/2000/svg}circle")),
                         len(head["calibration"]))
        self.assertNotIn("script", text)

    def test_metrics_of_eval(self) -> None:
        self.flux(*self.command())
        command = ["eval", "job.yaml", "--threads", "1", "--json", *self.command()[4:]]
        told = json.loads(self.flux(*command).out)
        self.assertEqual(told, self.summary("out")["test"], "threads and process do not show")

    def test_several_heads(self) -> None:
        self.flux("data", "gen", "feasign", "--kind", "tasks", "--examples", "2000", "--out",
                  "tasks.txt")
        (self.folder / "two.yaml").write_text(TWO_HEADS)
        self.flux("run", "two.yaml")
        test = self.summary("out")["test"]
        self.assertEqual([head["head"] for head in test["heads"]], ["click_loss", "buy_loss"])
        self.assertEqual([head["examples"] for head in test["heads"]], [2000, 2000])
        self.assertEqual(self.summary("out")["auc"], test["heads"][0]["auc"], "of the first head")
        for head in test["heads"]:
            self.assertGreater(head["groups"], 1)
            self.assertTrue(0 < head["gauc"] < 1)
            self.assertEqual([at["k"] for at in head["at"]], [1, 5, 10])
        losses = sum(head["log_loss"] for head in test["heads"])
        self.assertAlmostEqual(test["loss"], losses, places=4)
        self.assertEqual(json.loads(self.flux("eval", "two.yaml", "--json").out), test)
        files = list((self.folder / "out/tensorboard").iterdir())
        self.assertIn("held-out/buy_loss/auc", scalars(files[0]))

    def events(self, out: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in out.splitlines()]
        for line in lines:
            self.assertEqual(list(line), ["event", "time_s", *EVENTS[line["event"]]])
        return lines

    def test_json_events(self) -> None:
        lines = self.events(self.flux(*self.command("--json")).out)
        kinds = [line["event"] for line in lines]
        self.assertEqual((kinds[0], kinds[-1]), ("started", "finished"))
        self.assertEqual(lines[-1]["summary"], self.summary("out"))
        self.assertEqual([x["pass"] for x in lines if x["event"] == "pass_done"], ["mon", "tue"])
        tests = [x for x in lines if x["event"] == "evaluated"]
        self.assertEqual([x["trained"] for x in tests], [1000, 2000])
        self.assertEqual(tests[-1]["test"], self.summary("out")["test"])
        rows = [x for x in lines if x["event"] == "progress"]
        self.assertEqual(rows[-1]["examples"], 2000)
        self.assertTrue({"checkpoint", "message"} <= set(kinds))

    def test_json_error(self) -> None:
        done = self.flux(*self.command("--json"), "--set", "data.test=absent.tsv", code=2)
        last = self.events(done.out)[-1]
        self.assertEqual(last["event"], "error")
        self.assertIn("absent.tsv", last["message"])
        done = self.flux("run", example("lr"), "--json", "--set", "nonsense=1", code=2)
        self.assertEqual([x["event"] for x in self.events(done.out)], ["error"])

    def test_json_of_a_cluster(self) -> None:
        lines = self.events(self.flux(*self.command("--json", "--workers", "2")).out)
        kinds = [line["event"] for line in lines]
        self.assertEqual((kinds[0], kinds[-1]), ("started", "finished"))
        self.assertEqual(kinds.count("evaluated"), 2)


if __name__ == "__main__":
    unittest.main()
