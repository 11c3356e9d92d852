"""Real etcd on free local ports, whose members can be killed, stopped and started again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

START_S = 60.0
TRIES = 5  # a port that was free may be taken by the time etcd wants it


class EtcdFailed(Exception):
    """It did not come up; its last words are in the message."""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Member:
    def __init__(self, command: list[str], url: str, folder: Path, check: bool) -> None:
        self.command = command
        self.url = url
        self.check = check  # whether its health can be asked for without certificates
        self.log = folder / "log.txt"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ETCD_")}
        environment["GOMAXPROCS"] = "1"  # several share a small machine
        out: IO[bytes]
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, env=environment)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def healthy(self) -> bool:
        """Whether it serves; fails if the process has ended."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise EtcdFailed(self.log.read_text(errors="replace")[-2000:])
        if not self.check:
            port = int(self.url.rsplit(":", 1)[1])
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0
        try:
            with urllib.request.urlopen(self.url + "/health", timeout=2) as answer:
                return bool(json.load(answer)["health"] == "true")
        except (urllib.error.URLError, OSError, ValueError):
            return False


class Etcd:
    """A cluster; `tls` is a folder with ca.pem, etcd.pem and etcd.key."""

    def __init__(self, folder: Path, count: int = 3, tls: Path | None = None) -> None:
        if shutil.which("etcd") is None:
            raise EtcdFailed("no etcd here; tools/deps.sh test installs it")
        self.members: list[Member] = []
        for attempt in range(TRIES):
            self._make(folder / f"etcd{attempt}", count, tls)
            try:
                self.start()
            except EtcdFailed as failed:
                self.close()
                if "address already in use" not in str(failed) or attempt == TRIES - 1:
                    raise
            else:
                return

    def _make(self, folder: Path, count: int, tls: Path | None) -> None:
        ports = free_ports(2 * count)
        peers = [f"http://127.0.0.1:{port}" for port in ports[count:]]
        scheme = "http" if tls is None else "https"
        clients = [f"{scheme}://127.0.0.1:{port}" for port in ports[:count]]
        cluster = ",".join(f"m{i}={peer}" for i, peer in enumerate(peers))
        secure = [] if tls is None else [
            "--cert-file", str(tls / "etcd.pem"), "--key-file", str(tls / "etcd.key"),
            "--client-cert-auth", "--trusted-ca-file", str(tls / "ca.pem")]
        self.members = []
        for i, (client, peer) in enumerate(zip(clients, peers, strict=True)):
            own = folder / f"m{i}"
            own.mkdir(parents=True)
            command = [
                "etcd", "--name", f"m{i}", "--data-dir", str(own / "data"),
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", cluster, "--initial-cluster-state", "new",
                "--logger", "zap", "--log-level", "error", *secure]
            self.members.append(Member(command, client, own, check=tls is None))

    def start(self) -> None:
        """Starts every member that does not run, and waits until all serve."""
        for member in self.members:
            if member.process is None or member.process.poll() is not None:
                member.start()
        deadline = time.monotonic() + START_S
        for member in self.members:
            while not member.healthy():
                if time.monotonic() > deadline:
                    raise EtcdFailed(f"{member.url} does not serve within {START_S} s")
                time.sleep(0.05)

    @property
    def urls(self) -> str:
        return ",".join(member.url for member in self.members)

    def close(self) -> None:
        for member in self.members:
            member.kill()


def make_certificates(folder: Path) -> Path:
    """ca.pem, and etcd.pem with etcd.key for 127.0.0.1, in a new folder."""
    folder.mkdir()
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1\n")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test ca",
            "-days", "2")
    openssl("req", *key, "-keyout", "etcd.key", "-out", "etcd.csr", "-subj", "/CN=etcd")
    openssl("x509", "-req", "-in", "etcd.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", "etcd.pem", "-days", "2", "-extfile", "san")
    return folder
