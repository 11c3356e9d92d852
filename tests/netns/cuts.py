"""Networks that are cut between two hosts while a replicated job trains on them.

Pairs of all kinds of roles, both ways and one way. Every cut lasts a few seconds; how long training
stands still in it, and how long after its end, is measured by asking the coordinator. That a shard
never has two writers is seen at the end: every example counts exactly once, and no replica differed
from its primary.

`Cuts` is what came of it: tests/chaos/network.py judges it.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from spaces import HTTP_PORT, Cluster, address, namespaces, space

HOSTS = ("coordinator", "server-0", "server-1", "server-2", "worker-0", "worker-1")
NETWORK = 79
CUT_S = 4.0
SHORT_CUT_S = 1.5  # of few cuts, for `make test`
FEW = 3
HEALED_S = 2.0
WAIT_S = 60.0
PAIRS = (("worker-0", "server-0"), ("worker-1", "coordinator"), ("server-1", "coordinator"),
         ("server-0", "server-1"), ("server-2", "server-1"), ("worker-1", "server-2"))
POLL = """
import http.client, json, time
while True:
    try:
        c = http.client.HTTPConnection('127.0.0.1', PORT, timeout=1)
        c.request('GET', '/status')
        s = json.loads(c.getresponse().read())
        print(s['state'], s['examples_applied'], flush=True)
    except (OSError, ValueError, KeyError, http.client.HTTPException):
        print('away 0', flush=True)
    time.sleep(0.05)
"""


@dataclass
class Cuts:
    """What came of them; times are seconds."""

    healed: list[float] = field(default_factory=list)  # from the end of each until training goes on
    stalls: list[float] = field(default_factory=list)  # the longest one in each
    differed: list[str] = field(default_factory=list)  # servers whose replicas differed
    examples: int = 0
    lost: int = 0
    doubled: int = 0


class Progress:
    """What the coordinator says about examples, asked inside its namespace."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", space("coordinator"), sys.executable, "-c",
             POLL.replace("PORT", str(HTTP_PORT))], stdout=subprocess.PIPE, text=True)
        self.applied = 0
        self.moved = time.monotonic()
        self.state = ""

    def look(self) -> None:
        assert self.process.stdout is not None
        state, applied = self.process.stdout.readline().split()
        self.state = state
        if int(applied) > self.applied:
            self.applied = int(applied)
            self.moved = time.monotonic()

    def watch(self, seconds: float) -> float:
        """The longest time without an example meanwhile."""
        worst, until = 0.0, time.monotonic() + seconds
        while time.monotonic() < until and self.state != "complete":
            before = self.moved
            self.look()
            worst = max(worst, time.monotonic() - before if self.moved == before
                        else self.moved - before)
        return worst

    def wait_for_more(self, deadline_s: float) -> float:
        """Seconds until something was applied that was not before."""
        begin, had = time.monotonic(), self.applied
        while self.applied == had and self.state != "complete":
            self.look()
            if time.monotonic() - begin > deadline_s:
                sys.exit(f"netns: nothing trained for {deadline_s} s after a cut was healed")
        return time.monotonic() - begin


def cut_off(flux: Path, folder: Path, examples: Path, switch: Path, times: int) -> Cuts:
    with namespaces(HOSTS):
        ports = [f"{space(host)}={address(NETWORK, HOSTS, host)}/24" for host in HOSTS]
        process = subprocess.Popen([str(switch), *ports], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        cluster = Cluster(flux, folder, NETWORK, HOSTS, "cuts")
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                sys.exit("netns: the switch does not start")
            return drive(cluster, process, examples, times)
        finally:
            cluster.kill()
            process.kill()
            process.wait()


def order(switch: subprocess.Popen[str], words: str) -> None:
    assert switch.stdin is not None
    switch.stdin.write(words + "\n")
    switch.stdin.flush()


def drive(cluster: Cluster, switch: subprocess.Popen[str], examples: Path, times: int) -> Cuts:
    length = SHORT_CUT_S if times <= FEW else CUT_S
    seconds = 2 * length * times
    cluster.begin([str(examples / "counting/job.yaml"), "--set", "data.train=train.tsv", "--set",
                   "data.batch=20", "--set", "shards=12", "--set", "replicas=2", "--set",
                   "checkpoint.every_s=5", "--set", f"epochs={max(4, round(seconds * 2))}"])
    progress = Progress()
    found = Cuts()
    try:
        progress.wait_for_more(WAIT_S)
        plans = itertools.cycle((way, pair) for way in ("-", ">", "<") for pair in PAIRS)
        for _ in range(times):
            way, (a, b) = next(plans)
            progress.watch(length)
            if progress.state == "complete":
                break
            for one, other in ((a, b), (b, a)):
                if way == "-" or (way == ">") == (one == a):
                    order(switch, f"cut {HOSTS.index(one)} {HOSTS.index(other)}")
            found.stalls.append(progress.watch(length))
            order(switch, "heal")
            found.healed.append(progress.wait_for_more(WAIT_S))
            print(f"netns: cut {a} {way} {b}: longest stall in it {found.stalls[-1]:.2f} s, trains "
                  f"{found.healed[-1]:.2f} s after it", flush=True)
        summary = cluster.end()
    finally:
        progress.process.kill()
        progress.process.wait()
    found.examples, found.lost, found.doubled = (
        summary[key] for key in ("examples", "lost", "doubled"))
    found.differed = [
        host for host in HOSTS if host.startswith("server") and "differs from its primary" in
        (cluster.folder / f"{cluster.output}.{host}.log").read_text()]
    return found
