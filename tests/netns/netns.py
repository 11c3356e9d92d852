#!/usr/bin/env python3
"""A job on five "hosts": coordinator, two servers, two workers, each in its own network namespace.

    tests/netns/netns.py --flux build/flux [--switch build/bin/netns_switch] [--examples N]

First over a bridge that lives in a namespace of its own, with TLS: the CTR-DNN example on a small
data set. Then (with --switch) a small model over a switch in user space that delays every frame by
10 ms and loses one in a hundred. Both must end complete, with every example counted once. Needs
root and the right to make network namespaces; without them it says so and exits with 77. Whatever
it makes (namespaces, processes, a scratch folder) it removes again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SKIPPED = 77
HOSTS = ("coordinator", "server-0", "server-1", "worker-0", "worker-1")
PREFIX = f"flux{os.getpid()}-"
DEADLINE_S = 300
PORT = 7000


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def space(name: str) -> str:
    return PREFIX + name


def address(network: int, host: str) -> str:
    return f"10.{network}.0.{HOSTS.index(host) + 1}"


@contextlib.contextmanager
def namespaces(names: tuple[str, ...]) -> Iterator[None]:
    made = []
    try:
        for name in names:
            ip("netns", "add", space(name))
            made.append(name)
            ip("-n", space(name), "link", "set", "lo", "up")
        yield
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", space(name)], check=False)


def make_bridge(network: int) -> None:
    """Every host on one bridge; the bridge is in a namespace too, so this host is untouched."""
    ip("-n", space("bridge"), "link", "add", "br0", "type", "bridge")
    ip("-n", space("bridge"), "link", "set", "br0", "up")
    for i, host in enumerate(HOSTS):
        ip("link", "add", "eth0", "netns", space(host), "type", "veth", "peer", "name", f"port{i}",
           "netns", space("bridge"))
        ip("-n", space("bridge"), "link", "set", f"port{i}", "master", "br0", "up")
        ip("-n", space(host), "addr", "add", f"{address(network, host)}/24", "dev", "eth0")
        ip("-n", space(host), "link", "set", "eth0", "up")


class Cluster:
    def __init__(self, flux: Path, folder: Path, network: int, output: str) -> None:
        self.flux, self.folder, self.network, self.output = flux, folder, network, output
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def start(self, host: str, *words: str) -> None:
        log = (self.folder / f"{self.output}.{host}.log").open("w")
        self.processes[host] = subprocess.Popen(
            ["ip", "netns", "exec", space(host), str(self.flux), *words, "--certs", "certs"],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            text=True)
        log.close()

    def train(self, job: list[str]) -> dict[str, object]:
        listen = {host: f"tcp:{address(self.network, host)}:{PORT}" for host in HOSTS}
        self.start("coordinator", "coordinator", *job, "--set", f"output={self.output}",
                   "--listen", listen["coordinator"], "--servers", "2", "--workers", "2")
        for host in HOSTS[1:]:
            role = host.split("-", maxsplit=1)[0]
            words = [role, "--coordinator", listen["coordinator"], "--name", host]
            words += ["--listen", listen[host]] if role == "server" else ["--threads", "1"]
            self.start(host, *words)
        code = self.processes["coordinator"].wait(DEADLINE_S)
        text = (self.folder / f"{self.output}.coordinator.log").read_text()
        print(text, end="")
        for host in HOSTS[1:]:
            if self.processes[host].wait(60) != 0:
                print((self.folder / f"{self.output}.{host}.log").read_text(), end="")
                code = code or 1
        if code != 0:
            sys.exit(f"netns: the job ended with {code}")
        summary = json.loads((self.folder / self.output / "summary.json").read_text())
        assert isinstance(summary, dict)
        if (summary["state"], summary["lost"], summary["doubled"]) != ("complete", 0, 0):
            sys.exit(f"netns: not complete or not exact: {summary}")
        return summary

    def kill(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


def run(cluster: Cluster, job: list[str], what: str) -> None:
    try:
        summary = cluster.train(job)
    finally:
        cluster.kill()
    print(f"netns: {what}: {summary['examples']} examples, "
          f"{summary['examples_per_s']:.0f} examples/s, AUC {summary['auc']}, exact")


def over_bridge(flux: Path, folder: Path, examples: Path) -> None:
    with namespaces((*HOSTS, "bridge")):
        make_bridge(77)
        job = [str(examples / "ctr_dnn/job.yaml"), "--set", "data.train=train.tsv", "--set",
               "data.test=test.tsv", "--set", "data.batch=200"]
        run(Cluster(flux, folder, 77, "bridge"), job, "CTR-DNN, TLS, five hosts on a bridge")


def over_switch(flux: Path, folder: Path, examples: Path, switch: Path) -> None:
    with namespaces(HOSTS):
        ports = [f"{space(host)}={address(78, host)}/24" for host in HOSTS]
        process = subprocess.Popen([str(switch), "--delay-ms", "10", "--loss", "0.01", *ports],
                                   stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                sys.exit("netns: the switch does not start")
            job = [str(examples / "counting/job.yaml"), "--set", "data.train=train.tsv", "--set",
                   "data.batch=100", "--set", "shards=8"]
            run(Cluster(flux, folder, 78, "switch"), job, "counting, TLS, 10 ms and 1 % loss")
        finally:
            process.kill()
            process.wait()


def allowed() -> str:
    """Why this cannot be run here, or ''."""
    if os.geteuid() != 0:
        return "not root"
    try:
        with namespaces(("try",)):
            return ""
    except (OSError, subprocess.CalledProcessError) as failure:
        return f"network namespaces are not allowed: {failure}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flux", type=Path, required=True)
    parser.add_argument("--switch", type=Path)
    parser.add_argument("--examples", type=int, default=20000)
    options = parser.parse_args()
    if reason := allowed():
        print(f"netns: skipped: {reason}")
        return SKIPPED
    flux = options.flux.resolve()
    examples = Path(__file__).resolve().parents[2] / "examples"
    with tempfile.TemporaryDirectory(prefix="flux_netns.") as scratch:
        folder = Path(scratch)
        for name, seed, count in (("train", 1, options.examples), ("test", 2, 5000)):
            subprocess.run([str(flux), "data", "gen", "criteo", "--examples", str(count), "--seed",
                            str(seed), "--out", f"{name}.tsv"], cwd=folder, check=True)
        subprocess.run([str(flux), "certs", "--out", "certs", "--job", "netns"], cwd=folder,
                       check=True)
        over_bridge(flux, folder, examples)
        if options.switch is None:
            return 0
        if not Path("/dev/net/tun").exists():
            print("netns: skipped: no /dev/net/tun for the switch")
            return SKIPPED
        over_switch(flux, folder, examples, options.switch.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
