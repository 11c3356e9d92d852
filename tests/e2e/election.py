"""Candidates for the lead of one job at a real etcd of three members: killed, paused, cut off.

The candidates are tests/election/election_probe.cc. Times are printed for the record; what is
asserted is who leads, in which order, and that everything happens within generous deadlines.
"""

from __future__ import annotations

import contextlib
import queue
import re
import signal
import socket
import subprocess
import threading
import time
import unittest
from collections.abc import Iterable
from pathlib import Path

from _etcd import Etcd, free_ports, make_certificates
from _support import FLUX, Case

PROBE = FLUX.parent / "bin" / "election_probe"
DEADLINE_S = 60.0
TTL_S = 5  # of the leases that the candidates take


class Candidate:
    """One election_probe, and what it says."""

    def __init__(self, name: str, output: Path, ttl: int, etcd: str, *tls: str) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [str(PROBE), name, str(output), str(ttl), etcd, *tls], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, encoding="utf-8", bufsize=1)
        self.said: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        first = self.next()
        assert first == "ready", first

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.put(line.rstrip("\n"))
        self.said.put(None)

    def next(self, seconds: float = DEADLINE_S) -> str:
        line = self.said.get(timeout=seconds)
        assert line is not None, f"{self.name} has ended"
        return line

    def until(self, pattern: str, seconds: float = DEADLINE_S) -> str:
        """The next line that matches; others are read over, but never a failure."""
        deadline = time.monotonic() + seconds
        while True:
            line = self.next(max(0.001, deadline - time.monotonic()))
            if re.search(pattern, line):
                return line
            assert not line.startswith("failed"), line

    def tell(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def ask(self, command: str) -> str:
        self.tell(command)
        return self.next()

    def claim(self, above: int = 0) -> int:
        answer = self.ask(f"claim {above}")
        assert answer.startswith("ok "), answer
        return int(answer.split()[1])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Gate:
    """Forwards connections to a port until it is shut; then it keeps them and says nothing."""

    def __init__(self, port: int) -> None:
        self.to = port
        self.shut = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.to)) as server:
            back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
            back.start()
            self._pump(client, server)
            back.join()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if self.shut.is_set():
                    continue
                sink.sendall(data)
            if not self.shut.is_set():
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Election(Case):
    def setUp(self) -> None:
        super().setUp()
        self.output = self.folder / "out"
        self.output.mkdir()

    def start_etcd(self, count: int = 3) -> Etcd:
        (self.folder / "cluster").mkdir(exist_ok=True)
        etcd = Etcd(self.folder / "cluster", count)
        self.addCleanup(etcd.close)
        return etcd

    def candidate(self, name: str, etcd: str, *tls: str, ttl: int = TTL_S) -> Candidate:
        made = Candidate(name, self.output, ttl, etcd, *tls)
        self.addCleanup(made.kill)
        return made

    def elect(self, candidates: Iterable[Candidate]) -> tuple[Candidate, list[Candidate]]:
        """All run; the one who leads and those who say that they wait for it."""
        everyone = list(candidates)
        for one in everyone:
            one.tell("campaign")
        return self.sort_out(everyone)

    def sort_out(self, everyone: list[Candidate]) -> tuple[Candidate, list[Candidate]]:
        """Until one leads and each of the others says that it waits for that very one."""
        deadline = time.monotonic() + DEADLINE_S
        latest = {one.name: "" for one in everyone}
        while True:
            leaders = [one for one in everyone if latest[one.name] == "ok leads"]
            self.assertLessEqual(len(leaders), 1)
            rest = [one for one in everyone if one not in leaders]
            if leaders and all(latest[one.name].startswith(f"waits for {leaders[0].name}")
                               for one in rest):
                return leaders[0], rest
            self.assertLess(time.monotonic(), deadline, str(latest))
            for one in rest:
                with contextlib.suppress(queue.Empty):
                    latest[one.name] = one.next(0.02)

    def assert_stale(self, answer: str) -> None:
        self.assertRegex(answer, "^failed stale ")

    def test_killed_leader_is_replaced(self) -> None:
        etcd = self.start_etcd()
        leader, rest = self.elect(self.candidate(name, etcd.urls) for name in "abc")
        terms = [leader.claim(above=6)]
        self.assertEqual(terms, [7])
        self.assertEqual(leader.ask("still 7"), "ok")
        while rest:
            found = rest[0]  # any candidate may ask, but these are busy waiting: use a new one
            asker = self.candidate("asker" + found.name, etcd.urls)
            self.assertEqual(asker.ask("leader"), f"ok {terms[-1]} {leader.name} "
                             f"tcp:{leader.name}:1 http://{leader.name}")
            self.assert_stale(asker.ask("claim 0"))  # it does not lead
            killed = time.monotonic()
            leader.kill()
            leader, rest = self.sort_out(rest)
            print(f"replaced after {time.monotonic() - killed:.2f} s (TTL {TTL_S} s)")
            terms.append(leader.claim())
        self.assertEqual(terms, [7, 8, 9])

    def test_resigning_hands_over(self) -> None:
        etcd = self.start_etcd(1)
        leader, rest = self.elect(self.candidate(name, etcd.urls) for name in "ab")
        term = leader.claim()
        self.assertEqual(leader.ask("resign"), "ok")
        self.assert_stale(leader.ask(f"still {term}"))
        rest[0].until("ok leads")
        self.assertEqual(rest[0].claim(), term + 1)
        self.assert_stale(leader.ask("claim 0"))

    def test_one_member_lost(self) -> None:
        etcd = self.start_etcd()
        ttl = 8  # on a busy machine etcd may take seconds to find a new leader of its own
        leader, rest = self.elect(self.candidate(name, etcd.urls, ttl=ttl) for name in "ab")
        term = leader.claim()
        for i, member in enumerate(etcd.members):  # each in turn, so etcd's own leader as well
            member.signal(signal.SIGSTOP if i == 0 else signal.SIGKILL)
            lost = time.monotonic()
            while time.monotonic() < lost + 1.25 * ttl:
                self.assertEqual(leader.ask("held"), "ok")
                self.assertRegex(leader.ask(f"still {term}"), "^ok$|^failed unavailable ")
                time.sleep(0.1)
            self.assertEqual(leader.ask(f"still {term}"), "ok")
            member.signal(signal.SIGCONT) if i == 0 else member.kill()
            etcd.start()
        # The standby never led: its next word comes after the leader resigns.
        self.assertEqual(leader.ask("resign"), "ok")
        rest[0].until("ok leads")

    def test_quorum_lost(self) -> None:
        etcd = self.start_etcd()
        leader, rest = self.elect(self.candidate(name, etcd.urls) for name in "ab")
        term = leader.claim()
        for member in etcd.members[:2]:
            member.kill()
        lost = time.monotonic()
        while (answer := leader.ask("held")) == "ok":
            self.assertLess(time.monotonic(), lost + DEADLINE_S, "it never gave up")
            time.sleep(0.02)
        print(f"gave up {time.monotonic() - lost:.2f} s after the quorum was lost (TTL {TTL_S} s)")
        self.assert_stale(answer)
        self.assertIn(etcd.members[0].url, answer)  # which endpoint does not answer
        self.assert_stale(leader.ask(f"still {term}"))
        self.assert_stale(leader.ask("claim 0"))
        rest[0].until("waits for etcd to answer: .*" + re.escape(etcd.members[0].url))
        self.assertTrue(rest[0].said.empty())  # and does not lead
        etcd.start()
        rest[0].until("ok leads")
        self.assertEqual(rest[0].claim(), term + 1)
        self.assert_stale(leader.ask(f"still {term}"))

    def test_paused_leader(self) -> None:
        etcd = self.start_etcd()
        leader, rest = self.elect(self.candidate(name, etcd.urls) for name in "ab")
        term = leader.claim()
        leader.process.send_signal(signal.SIGSTOP)
        rest[0].until("ok leads")
        next_term = rest[0].claim()
        self.assertGreater(next_term, term)
        leader.process.send_signal(signal.SIGCONT)
        for question in ("held", f"still {term}", "claim 0", f"still {next_term}"):
            self.assert_stale(leader.ask(question))
        self.assertEqual(rest[0].ask(f"still {next_term}"), "ok")

    def test_cut_off_leader_gives_up_first(self) -> None:
        etcd = self.start_etcd(1)
        gate = Gate(int(etcd.members[0].url.rsplit(":", 1)[1]))
        self.addCleanup(gate.listener.close)
        leader = self.candidate("a", gate.url)
        leader.tell("campaign")
        leader.until("ok leads")
        term = leader.claim()
        standby = self.candidate("b", etcd.urls)
        standby.tell("campaign")
        standby.until("waits for a ")
        gate.shut.set()
        standby.until("ok leads")
        answer = leader.ask("held")  # asks nobody: it has given up by itself before
        self.assert_stale(answer)
        self.assertIn("may have run out", answer)
        self.assert_stale(leader.ask(f"still {term}"))

    def test_terms_are_unique(self) -> None:
        etcd = self.start_etcd()
        turns = 25
        crowd = [self.candidate(name, etcd.urls) for name in "abcd"]
        start = time.monotonic()
        for one in crowd:
            one.tell(f"turns {turns}")
        claimed: list[int] = []
        for one in crowd:
            own: list[int] = []
            while (line := one.next(300)) != "ok turns":
                self.assertRegex(line, r"^term \d+$")
                own.append(int(line.split()[1]))
            self.assertEqual(len(own), turns)
            self.assertEqual(own, sorted(own))
            claimed += own
        print(f"{len(claimed)} terms by {len(crowd)} processes in {time.monotonic() - start:.1f} s")
        self.assertEqual(len(set(claimed)), len(claimed))
        # In the folder, which is a guard too, the highest is left and nothing else.
        files = [path.name for path in (self.output / "terms").iterdir()]
        self.assertEqual(files, [f"{max(claimed):012}"])

    def test_coordinator_without_etcd_is_fenced(self) -> None:
        etcd = self.start_etcd(1)
        leader = self.candidate("a", etcd.urls)
        leader.tell("campaign")
        leader.until("ok leads")
        term = leader.claim()
        alone = self.candidate("alone", "")  # the folder only
        self.assertEqual(alone.ask("campaign"), "ok leads")
        self.assertEqual(alone.claim(), term + 1)
        answer = leader.ask(f"still {term}")
        self.assert_stale(answer)
        self.assertIn(f"alone (term {term + 1}, tcp:alone:1) runs job probe now", answer)
        self.assertEqual(leader.claim(), term + 2)
        self.assert_stale(alone.ask(f"still {term + 1}"))

    def test_endpoints_of_two_clusters(self) -> None:
        first = self.start_etcd(1)
        second = Etcd(self.folder, 1)
        self.addCleanup(second.close)
        leader = self.candidate("a", f"{first.urls},{second.urls}")
        leader.tell("campaign")
        leader.until("ok leads")
        term = leader.claim()
        first.close()
        answer = leader.ask(f"still {term}")
        self.assertIn(f"{second.urls} is a member of another etcd cluster", answer)

    def test_a_dead_endpoint_among_good_ones(self) -> None:
        etcd = self.start_etcd(1)
        nobody = f"http://127.0.0.1:{free_ports(1)[0]}"
        leader = self.candidate("a", f"{nobody},{etcd.urls}")
        leader.tell("campaign")
        leader.until("ok leads")
        self.assertEqual(leader.ask(f"still {leader.claim()}"), "ok")

    def test_tls(self) -> None:
        certificates = make_certificates(self.folder / "certs")
        etcd = Etcd(self.folder, 1, tls=certificates)
        self.addCleanup(etcd.close)
        own = [str(certificates / name) for name in ("ca.pem", "etcd.pem", "etcd.key")]
        leader = self.candidate("a", etcd.urls, *own)
        leader.tell("campaign")
        leader.until("ok leads")
        self.assertEqual(leader.ask(f"still {leader.claim()}"), "ok")
        for name, tls, words in (
            ("plain", (etcd.urls.replace("https", "http"),), "if it speaks TLS, write https://"),
            ("stranger", (etcd.urls,), "certificate"),  # the system's authorities do not know it
        ):
            with self.subTest(name):
                answer = self.candidate(name, *tls).ask("leader")
                self.assertRegex(answer, "^failed unavailable ")
                self.assertIn(words, answer)
        bare = self.candidate("bare", etcd.urls, own[0]).ask("leader")  # shows no certificate
        self.assertRegex(bare, "^failed unavailable .*" + re.escape(etcd.urls))


if __name__ == "__main__":
    unittest.main()
