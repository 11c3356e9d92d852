"""What a cluster refuses: one clear line on both sides, soon, and nothing else is disturbed."""

from __future__ import annotations

import os
import socket
import time
import unittest
from pathlib import Path

from _cluster import ClusterCase
from _support import Done, Running, example, sets

SAID_WITHIN_S = 10.0
GARBAGE = (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01",
           b"\0" * 64, b"\xff" * 64)


class Refused(ClusterCase):
    records = 300

    def secret(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        return str(path)

    def coordinator(self, *security: str, listen: str = "tcp:127.0.0.1:0",
                    **fields: object) -> Running:
        running = self.start("coordinator", *self.job(**fields), "--listen", listen, *security)
        running.wait_line("listens on ")
        return running

    def soon(self, *arguments: str) -> Done:
        """Ends by itself within the promised time; the figure is the promise, not a guess."""
        began = time.monotonic()
        done = self.flux(*arguments, code=None)
        self.assertLess(time.monotonic() - began, SAID_WITHIN_S)
        return done

    def log(self) -> str:
        return (self.folder / "out/cluster/logs/coordinator.log").read_text()

    def wait_log(self, word: str) -> None:
        deadline = time.monotonic() + 60
        while word not in self.log():
            self.assertLess(time.monotonic(), deadline, self.log())
            time.sleep(0.005)

    def assert_trains(self, running: Running, *security: str) -> None:
        """The coordinator goes on as if nothing had been: a job completes with it."""
        address = self.record()["listen"]
        server = self.start("server", "--coordinator", address, "--listen", "tcp:127.0.0.1:0",
                            "--name", "server-0", *security)
        worker = self.start("worker", "--coordinator", address, "--threads", "1",
                            "--name", "worker-0", *security)
        done = running.finish()
        self.assertEqual(done.code, 0, done.text)
        self.assertEqual(worker.finish().code, 0, "".join(worker.lines))
        self.assertEqual(server.finish().code, 0, "".join(server.lines))
        self.assert_exact("out", self.records * 2)

    def test_token_bytes_and_model(self) -> None:
        good = ["--token-file", self.secret("good", "0123456789abcdef0123\n")]
        bad = ["--token-file", self.secret("bad", "0123456789abcdefXXXX\n")]
        running = self.coordinator(*good)
        address = self.record()["listen"]
        for role in (["worker"], ["server", "--listen", "tcp:127.0.0.1:0"]):
            done = self.soon(*role, "--coordinator", address, *bad)
            self.assertEqual(done.code, 2, done.text)
            self.assertIn("token", done.text)
            self.assertEqual(self.soon(*role, "--coordinator", address).code, 2)
        self.wait_log("token")

        host, port = address.removeprefix("tcp:").rsplit(":", 1)
        for data in GARBAGE:
            with socket.create_connection((host, int(port)), timeout=60) as peer:
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(4096):
                    pass

        other = sets(data__train="train.tsv", output="other", data__batch=self.batch, shards=4)
        done = self.soon("worker", "--coordinator", address, *good, example("counting"), *other)
        self.assertEqual(done.code, 2, done.text)
        self.assertIn("shards", done.text)
        self.wait_log("another model")
        self.assert_trains(running, *good)

    def test_certificates(self) -> None:
        for name in ("ours", "theirs"):
            self.flux("certs", "--out", name, "--job", "test")
            self.assertEqual((self.folder / name / "worker.key").stat().st_mode & 0o777, 0o600)
        self.assert_refused(self.flux("certs", "--out", "ours", code=None), "ours")
        running = self.coordinator("--certs", "ours")
        address = self.record()["listen"]
        for security in (["--certs", "theirs"], []):
            done = self.soon("worker", "--coordinator", address, *security)
            self.assertNotEqual(done.code, 0, done.text)
            self.assertIn("flux: ", done.err)
        self.assert_trains(running, "--certs", "ours")

    def test_beyond_this_host(self) -> None:
        for role in (["coordinator", *self.job()], ["server", "--coordinator", "tcp:127.0.0.1:1"]):
            done = self.soon(*role, "--listen", "tcp:0.0.0.0:0")
            self.assert_refused(done, "--insecure")
        done = self.soon("coordinator", *self.job(), "--listen", "tcp:127.0.0.1:0",
                         "--http", "0.0.0.0:0")
        self.assert_refused(done, "--insecure", "flux certs")
        token = self.secret("token", "0123456789abcdef\n")
        Path(token).chmod(0o644)
        done = self.soon("coordinator", *self.job(), "--listen", "tcp:127.0.0.1:0",
                         "--token-file", token)
        self.assert_refused(done, "chmod 600")

    def test_what_cannot_start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            done = self.soon("coordinator", *self.job(), "--listen", address)
            self.assert_refused(done, "in use", address)
            done = self.soon("coordinator", *self.job(), "--listen", "tcp:127.0.0.1:0",
                             "--http", address)
            self.assert_refused(done, "in use", address)
            done = self.soon("run", *self.job(), "--servers", "1", "--workers", "1",
                             "--http", address)
            self.assert_refused(done, "in use", address)
            done = self.soon("server", "--coordinator", "tcp:127.0.0.1:1", "--listen", address)
            self.assert_refused(done, "in use", address)
        for role in (["worker"], ["server", "--listen", "tcp:127.0.0.1:0"]):
            with self.subTest(role=role[0]):
                done = self.soon(*role, "--coordinator", "tcp:127.0.0.1:1")
                self.assertEqual(done.code, 1, done.text)
                self.assertIn("127.0.0.1:1", done.err)
        missing = sets(data__train="nowhere.tsv")
        for command in (["run", *self.job(), *missing, "--servers", "2", "--workers", "2"],
                        ["coordinator", *self.job(), *missing, "--listen", "tcp:127.0.0.1:0"]):
            self.assert_refused(self.soon(*command), "nowhere.tsv")

    def test_a_long_path_needs_no_unix_socket(self) -> None:
        output = "o" * 120
        self.flux(*self.cluster(servers=1, workers=1), *sets(output=output))
        self.assert_exact(output, self.records * 2)
        self.assertEqual(os.listdir(self.folder / output / "cluster/sockets"), [])

    def test_no_worker_can_be_started(self) -> None:
        """A job that every worker refuses ends with their reason."""
        done = self.soon(*self.cluster(servers=1, workers=1, deterministic=True),
                         "--chaos", "thunder=1")
        self.assertEqual(done.code, 2, done.text)
        self.assertIn("thunder", done.text)


if __name__ == "__main__":
    unittest.main()
