"""Hosts for end-to-end tests: a real sshd each, on a loopback address of this machine.

Every one has its own address, port, keys and configuration in a scratch folder; nothing of the
machine's own ssh is read or changed. `SshHosts.program` is what `flux run --ssh` is given.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
START_S = 30.0


class SshFailed(Exception):
    pass


def children(pid: int) -> list[int]:
    """Processes below this one, parents first."""
    parent: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # ended meanwhile
            continue
        parent.setdefault(int(rest[1]), []).append(int(path.parent.name))
    found = list(parent.get(pid, []))
    for one in found:
        found += parent.get(one, [])
    return found


class Host:
    def __init__(self, name: str, address: str, folder: Path, authorized: Path) -> None:
        self.name = name
        self.address = address
        with socket.socket() as probe:
            probe.bind((address, 0))
            self.port = probe.getsockname()[1]
        own = folder / name
        own.mkdir()
        make_key(own / "host_key")
        self.log = own / "log"
        config = own / "sshd_config"
        config.write_text(
            f"ListenAddress {address}\nPort {self.port}\nHostKey {own / 'host_key'}\n"
            f"AuthorizedKeysFile {authorized}\nPidFile {own / 'pid'}\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "PermitRootLogin prohibit-password\nLogLevel VERBOSE\nMaxStartups 100\n")
        assert SSHD is not None
        with self.log.open("wb") as out:
            self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(config)],
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def wait(self) -> None:
        deadline = time.monotonic() + START_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((self.address, self.port)) == 0:
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SshFailed(f"sshd of {self.name}: {self.log.read_text(errors='replace')}")
            time.sleep(0.02)

    def below(self) -> list[int]:
        return children(self.process.pid)

    def kill(self) -> None:
        """The host is gone: sshd, its sessions and all that they run, at once."""
        below = self.below()
        self.process.kill()
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True,
                   stdin=subprocess.DEVNULL, capture_output=True)


class SshHosts:
    """`addresses` by name, such as {"host-a": "127.0.0.1"}."""

    def __init__(self, folder: Path, addresses: dict[str, str]) -> None:
        if SSHD is None or shutil.which("ssh") is None:
            raise SshFailed("no sshd and ssh here; tools/deps.sh test installs them")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
        folder.mkdir()
        make_key(folder / "key")
        authorized = folder / "authorized"
        authorized.write_text((folder / "key.pub").read_text())
        self.hosts: dict[str, Host] = {}
        config = ""
        for name, address in addresses.items():
            host = self.hosts[name] = Host(name, address, folder, authorized)
            config += f"Host {name}\n  HostName {address}\n  Port {host.port}\n"
        config += (f"Host *\n  User {getpass.getuser()}\n  IdentityFile {folder / 'key'}\n"
                   "  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"
                   f"  UserKnownHostsFile {folder / 'known'}\n  LogLevel ERROR\n")
        (folder / "config").write_text(config)
        self.program = folder / "ssh"
        self.program.write_text(f"#!/bin/sh\nexec ssh -F {folder / 'config'} \"$@\"\n")
        self.program.chmod(0o755)
        self.list = folder / "hosts.txt"
        self.list.write_text("".join(name + "\n" for name in addresses))
        try:
            for host in self.hosts.values():
                host.wait()
        except SshFailed:
            self.close()
            raise

    def close(self) -> None:
        for host in self.hosts.values():
            host.kill()
