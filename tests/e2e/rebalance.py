"""Most keys of the data lie in few shards, so that one server of two has most of the work: shards
move away from it, by themselves or when told to, and every example still counts once."""

from __future__ import annotations

import json
import random
import time
import unittest
import urllib.request
from typing import Any

from _cluster import ClusterCase
from _support import DEADLINE_S, Running

SHARDS = 8
# Shards that the names of two servers give to server-0, and how many keys of a line they have;
# two more keys may be in any shard. The other server has about a tenth of the work.
HOT = {0: 4, 4: 2, 5: 1, 6: 1}
JOB = """\
name: hot
data: {format: libsvm, train: train.txt, batch: 50, raw_keys: true, slots: [{name: x}]}
output: out
shards: 8
epochs: 60000
threads: 1
checkpoint: {every_s: 2}
tables: [{name: weight, dim: 4}]
model:
  layers:
    - {name: sum, op: embedding, table: weight, combine: sum}
    - {name: z, op: fc, inputs: sum, units: 1}
    - {name: loss, op: logistic_loss, inputs: [z, label]}
"""
BITS = (1 << 64) - 1


def shard_of(key: int) -> int:
    """As flux/base/key.h has it, which is a part of the checkpoint format."""
    key ^= key >> 32
    key = key * 0xd6e8feb86659fd93 & BITS
    key ^= key >> 32
    key = key * 0xd6e8feb86659fd93 & BITS
    key ^= key >> 32
    return (key >> 32) * SHARDS >> 32


def lines(count: int) -> str:
    draw = random.Random(1)
    keys: dict[int, list[int]] = {shard: [] for shard in range(SHARDS)}
    for key in range(1, 30_000):
        keys[shard_of(key)].append(key)
    text = []
    for _ in range(count):
        line = {key for shard, many in HOT.items() for key in draw.sample(keys[shard], many)}
        line |= set(draw.sample(range(1, 30_000), 2))
        text.append(f"{draw.randrange(2)} " + " ".join(f"{key}:1" for key in sorted(line)))
    return "\n".join(text) + "\n"


class Rebalance(ClusterCase):
    def setUp(self) -> None:
        super().setUp()
        (self.folder / "train.txt").write_text(lines(3000))
        (self.folder / "job.yaml").write_text(JOB)

    def wait_status(self, what: str, holds: Any) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_S
        while not holds(status := self.status()):
            self.assertLess(time.monotonic(), deadline, f"{what}: {json.dumps(status, indent=1)}")
            time.sleep(0.1)
        return status

    def share(self, status: dict[str, Any]) -> float:
        """Of server-0, of the work of both."""
        load = {server["name"]: server["keys_per_s"] for server in status["servers"]}
        return float(load["server-0"] / max(1, sum(load.values())))

    def settled(self, status: dict[str, Any]) -> bool:
        return bool(status["rebalanced"] == 1 and status["moves"] == 0
                    and status["shards_without_backup"] == 0 and self.share(status) < 0.65
                    and all(server["keys_per_s"] > 0 for server in status["servers"]))

    def stop_exactly(self, running: Running) -> None:
        self.flux("stop", "out")
        self.assertEqual(running.finish().code, 130)
        found = self.summary("out")
        self.assertEqual((found["state"], found["lost"], found["doubled"], found["skipped"]),
                         ("stopped", 0, 0, 0))
        self.assertGreater(found["applied_once"], 0)
        self.assertEqual(found["applied_once"], found["expected"])

    def test_by_itself(self) -> None:
        running = self.start_training("run", "job.yaml", "--servers", "2", "--workers", "2")
        hot = self.wait_status("a load", lambda s: bool(s["hottest_shards"]))
        self.assertEqual(hot["hottest_shards"][0]["shard"], 0)
        self.assertEqual(hot["hottest_shards"][0]["server"], "server-0")
        self.assertGreater(self.share(hot), 0.7, "server-0 has another part of the shards now")
        self.assertRegex(self.flux("status", "out").out,
                         r"server-0 .* keys/s \(\d+ % above the mean")
        moved = r"shard \d moves from server-0 to server-1 for its load: "
        self.assertIsNotNone(running.wait_line(moved), "".join(running.lines))
        after = self.wait_status("the load is shared", self.settled)
        self.assertEqual({server["name"]: server["shards"] for server in after["servers"]},
                         {"server-0": 3, "server-1": 6})
        with urllib.request.urlopen(self.record()["http"] + "/metrics", timeout=10) as answer:
            metrics = answer.read().decode()
        self.assertIn('flux_shards_rebalanced_total{job="hot"} 1\n', metrics)
        self.assertRegex(metrics, r'flux_server_keys_per_second\{job="hot",server="server-1"\} \d')
        self.stop_exactly(running)

    def test_when_told_to(self) -> None:
        running = self.start_training("run", "job.yaml", "--set", "rebalance=false", "--servers",
                                      "2", "--workers", "2")
        deadline = time.monotonic() + DEADLINE_S
        while (said := self.flux("rebalance", "out", "--dry-run", code=None)).code != 0:
            self.assertIn("ask again", said.err)
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        self.assertRegex(said.out, r"shard \d would move from server-0 to server-1 for its load: ")
        self.assertEqual(self.status()["rebalanced"], 0)
        told = self.flux("rebalance", "out")
        self.assertRegex(told.out, r"shard \d moves from server-0 to server-1 for its load: ")
        self.wait_status("the load is shared", self.settled)
        self.stop_exactly(running)


if __name__ == "__main__":
    unittest.main()
