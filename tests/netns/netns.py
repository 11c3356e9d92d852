#!/usr/bin/env python3
"""A job on five "hosts": coordinator, two servers, two workers, each in its own network namespace.

    tests/netns/netns.py --flux build/flux [--switch build/bin/netns_switch] [--examples N]
                         [--cuts N [--only-cuts] [--found FILE]]

First over a bridge that lives in a namespace of its own, with TLS: the CTR-DNN example on a small
data set. Then (with --switch) a small model over a switch in user space that delays every frame by
10 ms and loses one in a hundred, and (with --cuts N) a replicated job whose network is cut N times
between two hosts, both ways and one way: cuts.py; --found leaves what came of it as JSON. All must
end complete, with every example counted once, and training go on within 2 s of the end of a cut.
Needs root and the right to make network namespaces; without them it says so and exits with 77.
Whatever it makes (namespaces, processes, a scratch folder) it removes again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from cuts import HEALED_S, Cuts, cut_off
from spaces import Cluster, address, ip, namespaces, space

SKIPPED = 77
HOSTS = ("coordinator", "server-0", "server-1", "worker-0", "worker-1")


def make_bridge(network: int) -> None:
    """Every host on one bridge; the bridge is in a namespace too, so this host is untouched."""
    ip("-n", space("bridge"), "link", "add", "br0", "type", "bridge")
    ip("-n", space("bridge"), "link", "set", "br0", "up")
    for i, host in enumerate(HOSTS):
        ip("link", "add", "eth0", "netns", space(host), "type", "veth", "peer", "name", f"port{i}",
           "netns", space("bridge"))
        ip("-n", space("bridge"), "link", "set", f"port{i}", "master", "br0", "up")
        ip("-n", space(host), "addr", "add", f"{address(network, HOSTS, host)}/24", "dev", "eth0")
        ip("-n", space(host), "link", "set", "eth0", "up")


def run(cluster: Cluster, job: list[str], what: str) -> None:
    try:
        cluster.begin(job)
        summary = cluster.end()
    finally:
        cluster.kill()
    print(f"netns: {what}: {summary['examples']} examples, "
          f"{summary['examples_per_s']:.0f} examples/s, AUC {summary['auc']}, exact")


def over_bridge(flux: Path, folder: Path, examples: Path) -> None:
    with namespaces((*HOSTS, "bridge")):
        make_bridge(77)
        job = [str(examples / "ctr_dnn/job.yaml"), "--set", "data.train=train.tsv", "--set",
               "data.test=test.tsv", "--set", "data.batch=200"]
        run(Cluster(flux, folder, 77, HOSTS, "bridge"), job, "CTR-DNN, TLS, five hosts on a bridge")


def over_switch(flux: Path, folder: Path, examples: Path, switch: Path) -> None:
    with namespaces(HOSTS):
        ports = [f"{space(host)}={address(78, HOSTS, host)}/24" for host in HOSTS]
        process = subprocess.Popen([str(switch), "--delay-ms", "10", "--loss", "0.01", *ports],
                                   stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                sys.exit("netns: the switch does not start")
            job = [str(examples / "counting/job.yaml"), "--set", "data.train=train.tsv", "--set",
                   "data.batch=100", "--set", "shards=8"]
            run(Cluster(flux, folder, 78, HOSTS, "switch"), job,
                "counting, TLS, 10 ms and 1 % loss")
        finally:
            process.kill()
            process.wait()


def judge(found: Cuts) -> int:
    """Whether a writer too many was seen, or a cut was felt for too long after its end."""
    slowest = max(found.healed, default=0.0)
    print(f"netns: {len(found.healed)} cuts: {found.examples} examples, exact; trains again after "
          f"{slowest:.2f} s at most (target {HEALED_S:.0f} s)")
    if found.differed:
        sys.exit(f"netns: replicas differed on {', '.join(found.differed)}")
    if slowest > HEALED_S:
        print(f"netns: FAILED: training went on only {slowest:.2f} s after the end of a cut")
    return 1 if slowest > HEALED_S else 0


def allowed(switch: bool) -> str:
    """Why this cannot be run here, or ''."""
    if os.geteuid() != 0:
        return "not root"
    if switch and not Path("/dev/net/tun").exists():
        return "no /dev/net/tun for the switch"
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
    parser.add_argument("--cuts", type=int, default=0)
    parser.add_argument("--only-cuts", action="store_true")
    parser.add_argument("--found", type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("netns: asked to end"))
    if reason := allowed(switch=options.only_cuts):
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
        if not options.only_cuts:
            over_bridge(flux, folder, examples)
        if options.switch is None:
            return 0
        if reason := allowed(switch=True):
            print(f"netns: skipped: {reason}")
            return SKIPPED
        if not options.only_cuts:
            over_switch(flux, folder, examples, options.switch.resolve())
        if not options.cuts:
            return 0
        found = cut_off(flux, folder, examples, options.switch.resolve(), options.cuts)
        if options.found:
            options.found.write_text(json.dumps(asdict(found)))
            return 0  # whoever reads it judges
        return judge(found)


if __name__ == "__main__":
    sys.exit(main())
