"""Hosts that are network namespaces, and a cluster of flux on them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PREFIX = f"flux{os.getpid()}-"
DEADLINE_S = 300
PORT = 7000
HTTP_PORT = 7001


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def space(name: str) -> str:
    return PREFIX + name


def address(network: int, hosts: tuple[str, ...], host: str) -> str:
    return f"10.{network}.0.{hosts.index(host) + 1}"


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


class Cluster:
    """Roles by the names of their hosts: coordinator, server-N, worker-N."""

    def __init__(self, flux: Path, folder: Path, network: int, hosts: tuple[str, ...],
                 output: str) -> None:
        self.flux, self.folder, self.network, self.output = flux, folder, network, output
        self.hosts = hosts
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def start(self, host: str, *words: str) -> None:
        log = (self.folder / f"{self.output}.{host}.log").open("w")
        self.processes[host] = subprocess.Popen(
            ["ip", "netns", "exec", space(host), str(self.flux), *words, "--certs", "certs"],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            text=True)
        log.close()

    def count(self, role: str) -> str:
        return str(sum(host.startswith(role) for host in self.hosts))

    def begin(self, job: list[str]) -> None:
        listen = {host: f"tcp:{address(self.network, self.hosts, host)}:{PORT}"
                  for host in self.hosts}
        self.start("coordinator", "coordinator", *job, "--set", f"output={self.output}",
                   "--listen", listen["coordinator"], "--http", f"127.0.0.1:{HTTP_PORT}",
                   "--servers", self.count("server"), "--workers", self.count("worker"))
        for host in self.hosts[1:]:
            role = host.split("-", maxsplit=1)[0]
            words = [role, "--coordinator", listen["coordinator"], "--name", host]
            words += ["--listen", listen[host]] if role == "server" else ["--threads", "1"]
            self.start(host, *words)

    def end(self) -> dict[str, Any]:
        """Waits for all; the job must be complete and exact."""
        code = self.processes["coordinator"].wait(DEADLINE_S)
        text = (self.folder / f"{self.output}.coordinator.log").read_text()
        print(text, end="")
        for host in self.hosts[1:]:
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
