"""Two coordinators of one job at a real etcd: the leader is killed, the standby takes over.

Times are printed for the record; what is asserted is the end of the job and its accounting.
"""

from __future__ import annotations

import signal
import time
import unittest

from _cluster import ROW, ClusterCase
from _etcd import Etcd, free_ports, make_certificates
from _support import Running

EPOCHS = 80


class Standby(ClusterCase):
    def etcd(self, members: int, tls: bool = False) -> Etcd:
        certificates = make_certificates(self.folder / "etcd_certs") if tls else None
        etcd = Etcd(self.folder, members, tls=certificates)
        self.addCleanup(etcd.close)
        return etcd

    def coordinator(self, port: int, *etcd: str, epochs: int = EPOCHS) -> Running:
        running = self.start(
            "coordinator", *self.job(epochs=epochs), "--listen", f"tcp:127.0.0.1:{port}",
            "--servers", "2", "--workers", "3", *etcd)
        self.assertIsNotNone(running.wait_line("a candidate at "), "".join(running.lines))
        return running

    def roles(self, addresses: str) -> list[Running]:
        servers = [self.start("server", "--coordinator", addresses, "--listen", "tcp:127.0.0.1:0",
                              "--name", f"server-{i}") for i in range(2)]
        workers = [self.start("worker", "--coordinator", addresses, "--threads", "1",
                              "--name", f"worker-{i}") for i in range(3)]
        return servers + workers

    def leader_and_standby(self, urls: str) -> tuple[Running, Running, list[Running]]:
        """Both coordinators and all other roles of a job that trains."""
        ports = free_ports(2)
        leader = self.coordinator(ports[0], "--etcd", urls)
        self.assertIsNotNone(leader.wait_line("listens on "), "".join(leader.lines))
        standby = self.coordinator(ports[1], "--etcd", urls)
        roles = self.roles(",".join(f"tcp:127.0.0.1:{port}" for port in ports))
        self.assertIsNotNone(leader.wait_line(ROW), "".join(leader.lines))
        return leader, standby, roles

    def assert_all_left(self, roles: list[Running]) -> None:
        for role in roles:
            self.assertEqual(role.finish().code, 0, "".join(role.lines))

    def test_the_leader_is_killed(self) -> None:
        etcd = self.etcd(3)
        leader, standby, roles = self.leader_and_standby(etcd.urls)
        began = time.monotonic()
        leader.signal(signal.SIGKILL)
        self.assertIsNotNone(standby.wait_line("took over job counting "), "".join(standby.lines))
        taken = time.monotonic()
        self.assertIsNotNone(standby.wait_line(ROW), "".join(standby.lines))
        print(f"took over {taken - began:.1f} s after kill -9, "
              f"a row of progress {time.monotonic() - began:.1f} s after it")
        done = standby.finish()
        self.assertEqual(done.code, 0, done.text)
        self.assertIn("lost 0 · doubled 0", done.text)
        self.assert_all_left(roles)
        self.assert_exact("out", self.records * EPOCHS)
        self.assertEqual(leader.finish().code, -signal.SIGKILL)

    def test_a_member_of_etcd_and_then_the_leader(self) -> None:
        etcd = self.etcd(3)
        leader, standby, roles = self.leader_and_standby(etcd.urls)
        etcd.members[0].kill()
        self.assertIsNotNone(leader.wait_line(ROW), "".join(leader.lines))
        leader.signal(signal.SIGKILL)
        done = standby.finish()
        self.assertEqual(done.code, 0, done.text)
        self.assert_all_left(roles)
        self.assert_exact("out", self.records * EPOCHS)

    def test_tls(self) -> None:
        etcd = self.etcd(1, tls=True)
        files = [str(self.folder / "etcd_certs" / name)
                 for name in ("ca.pem", "etcd.pem", "etcd.key")]
        port = free_ports(1)[0]
        good = ["--etcd", etcd.urls, "--etcd-ca", files[0], "--etcd-cert", files[1],
                "--etcd-key", files[2]]
        leader = self.coordinator(port, *good, epochs=2)
        roles = self.roles(f"tcp:127.0.0.1:{port}")
        done = leader.finish()
        self.assertEqual(done.code, 0, done.text)
        self.assert_all_left(roles)
        self.assert_exact("out", self.records * 2)

        job = ["coordinator", *self.job(), "--listen", "tcp:127.0.0.1:0"]
        for flags, words in (
            (good[2:], "--etcd"),
            (["--etcd", etcd.urls, "--etcd-cert", files[1]], "--etcd-key"),
            (["--etcd", etcd.urls, "--etcd-ca", str(self.folder / "nowhere.pem")], "nowhere.pem"),
        ):
            refused = self.flux(*job, *flags, code=None)
            self.assertEqual(refused.code, 2, refused.text)
            self.assertIn(words, refused.err)
        stranger = self.flux(*job, "--etcd", etcd.urls, code=None)  # the system does not know it
        self.assertEqual(stranger.code, 1, stranger.text)
        self.assertIn("certificate", stranger.err)


if __name__ == "__main__":
    unittest.main()
