"""`flux run --hosts` over real sshds: roles spread over two hosts; one host is lost, and then one
process of the other; what ran there is started again where there is a host."""

from __future__ import annotations

import os
import re
import signal
import time
import unittest
from pathlib import Path

from _cluster import ClusterCase, alive
from _sshd import Host, SshHosts
from _support import DEADLINE_S

EPOCHS = 120


def roles_of(host: Host) -> dict[str, int]:
    """Names and processes of the roles that run there."""
    found = {}
    for pid in host.below():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if "--name" in words and "sh" not in Path(words[0]).name:
            found[words[words.index("--name") + 1]] = pid
    return found


class Hosts(ClusterCase):
    def hosts(self) -> SshHosts:
        hosts = SshHosts(self.folder / "ssh", {"host-a": "127.0.0.1", "host-b": "127.0.0.2"})
        self.addCleanup(hosts.close)
        return hosts

    def command(self, hosts: SshHosts, epochs: int) -> list[str]:
        return self.cluster("--hosts", str(hosts.list), "--ssh", str(hosts.program), "--listen",
                            "tcp:127.0.0.1:0", epochs=epochs)

    def wait_roles(self, host: Host, names: set[str]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while set(roles_of(host)) != names:
            self.assertLess(time.monotonic(), deadline, f"{host.name}: {roles_of(host)}")
            time.sleep(0.02)

    def test_a_host_is_lost(self) -> None:
        hosts = self.hosts()
        first, second = hosts.hosts["host-a"], hosts.hosts["host-b"]
        running = self.start_training(*self.command(hosts, epochs=EPOCHS))
        everybody = ["server-0", "server-1", "worker-0", "worker-1", "worker-2"]
        deadline = time.monotonic() + DEADLINE_S
        while sorted([*roles_of(first), *roles_of(second)]) != everybody:  # the last may be late
            self.assertFalse(running.ended_within(0.02), "".join(running.lines))
            self.assertLess(time.monotonic(), deadline)
        pids = self.pids(running)
        lost, kept = roles_of(first), roles_of(second)
        self.assertIn(len(lost), (2, 3))
        first.kill()
        self.wait_roles(second, {*lost, *kept})
        moved = roles_of(second)

        # A process of the host that is left: the shell there tells how it died.
        os.kill(moved["worker-1"], signal.SIGKILL)
        line = running.wait_line("worker-1 ended")
        self.assertIn("killed by signal 9 (Killed); started again", line or "".join(running.lines))
        done = running.finish()
        self.assertEqual(done.code, 0, done.text)
        for name in lost:
            self.assertRegex(done.text, rf"(?m)^{name}: host host-a is lost: .*started again")
        self.assertNotIn("host-b is lost", done.text)
        self.assert_exact("out", self.records * EPOCHS)
        self.assert_gone(pids | moved)

    def test_nobody_outlives_the_supervisor(self) -> None:
        hosts = self.hosts()
        running = self.start_training(*self.command(hosts, epochs=5000))
        pids = self.pids(running) | roles_of(hosts.hosts["host-a"])
        pids |= roles_of(hosts.hosts["host-b"])
        self.assertTrue(all(alive(pid) for pid in pids.values()))
        running.signal(signal.SIGKILL)
        running.finish()
        self.assert_gone(pids)

    def test_a_host_that_never_answers(self) -> None:
        """Its roles begin on the other one."""
        hosts = self.hosts()
        hosts.hosts["host-b"].kill()
        done = self.flux(*self.command(hosts, epochs=2))
        self.assertRegex(done.text, r"host host-b is lost: .*")
        self.assertEqual(re.findall("host host-a is lost", done.text), [])
        self.assert_exact("out", self.records * 2)


if __name__ == "__main__":
    unittest.main()
