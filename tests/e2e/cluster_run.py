"""`flux run --servers --workers`: trains as the embedded run does, can be watched and stopped."""

from __future__ import annotations

import json
import signal
import unittest
import urllib.error
import urllib.request

from _cluster import MODES, ClusterCase
from _support import SOURCE, example, sets, write_data

GOLDEN = json.loads((SOURCE / "tests/golden/status.json").read_text())


class Run(ClusterCase):
    def test_auc_is_near_the_embedded_one(self) -> None:
        write_data(self.folder / "learn.tsv", 8000)
        write_data(self.folder / "test.tsv", 4000, seed=2)
        job = ["run", example("lr"), *sets(
            data__train="learn.tsv", data__test="test.tsv", data__batch=50, shards=16, epochs=2,
            checkpoint__every_s=0, precision="fp32")]
        self.flux(*job, *sets(output="embedded"), "--threads", "1")
        done = self.flux(*job, *sets(output="cluster"), "--threads", "1", "--servers", "2",
                         "--workers", "3", "--summary", "end.json")
        self.assertIn("worker-2 joined", done.out)
        self.assert_exact("cluster", 16000)
        self.assert_tidy("cluster")
        embedded, cluster = self.summary("embedded"), self.summary("cluster")
        self.assertGreater(embedded["auc"], 0.7)
        self.assertAlmostEqual(cluster["auc"], embedded["auc"], delta=0.01)
        self.assertEqual(json.loads((self.folder / "end.json").read_text()), cluster)
        # The checkpoint of a cluster is one for everybody.
        found = self.flux("eval", example("lr"), *sets(
            data__train="learn.tsv", data__test="test.tsv", shards=16, output="cluster"))
        self.assertIn(f"auc {cluster['auc']:.5f}", found.out)

    def test_every_mode_counts_exactly(self) -> None:
        for mode in MODES:
            with self.subTest(mode=mode):
                self.flux(*self.cluster("--fresh", mode=mode, epochs=2))
                self.assert_exact("out", self.records * 2)
                ages = self.summary("out")["pushes"]["age_count"]
                self.assertEqual(ages > 0, mode != "sync", ages)

    def test_one_of_each_and_again(self) -> None:
        job = self.cluster(servers=1, workers=1, epochs=1)
        self.flux(*job)
        self.assert_exact("out", self.records)
        done = self.flux(*job)
        self.assertIn("nothing to train", done.out)
        self.assertIn("resumed from", done.out)

    def test_servers_that_serve_two_jobs(self) -> None:
        """Two jobs of one name at once on the same standing servers, each with its own counts."""
        servers = [self.start("server", "--listen", f"unix:{self.folder}/s{i}") for i in range(2)]
        for server in servers:
            self.assertIsNotNone(server.wait_line("serves the jobs"))
        where = [word for i in range(2) for word in ("--server", f"unix:{self.folder}/s{i}")]
        jobs = []
        for name, epochs in (("a", 2), ("b", 3)):
            listen = f"unix:{self.folder}/{name}.sock"
            job = [word.replace("output=out", f"output={name}") for word in self.job(epochs=epochs)]
            jobs.append(self.start("coordinator", *job, "--listen", listen, *where))
            self.assertIsNotNone(jobs[-1].wait_line("listens on"))
            jobs.append(self.start("worker", "--coordinator", listen, "--threads", "1"))
        for process in jobs:
            self.assertEqual(process.finish().code, 0)
        self.assert_exact("a", self.records * 2)
        self.assert_exact("b", self.records * 3)
        for server in servers:
            server.signal(signal.SIGTERM)
            self.assertEqual(server.finish().code, 130)

    def test_watch_and_stop(self) -> None:
        running = self.start_training(*self.cluster(epochs=5000))
        pids = self.pids(running)
        self.assertEqual(len(pids), 7)
        status = self.status()
        self.assertEqual(list(status), list(GOLDEN))
        self.assertEqual(list(status["workers"][0]), list(GOLDEN["workers"][0]))
        self.assertEqual(list(status["servers"][0]), list(GOLDEN["servers"][0]))
        self.assertEqual(status["state"], "training")
        self.assertEqual({w["name"] for w in status["workers"]},
                         {"worker-0", "worker-1", "worker-2"})
        self.assertEqual(sum(s["shards"] for s in status["servers"]), 8)
        self.assertGreater(status["examples"], 0)

        text = self.flux("status", *self.job()).out
        for word in ("training", "worker-2", "server-1", "examples/s", "blocks:"):
            self.assertIn(word, text)
        logs = self.flux("logs", "out").out
        for role in ("coordinator", "server-1", "worker-2"):
            self.assertRegex(logs, rf"(?m)^\d{{4}}-\d\d-\d\d [\d:.]{{12}} {role}: ")
        self.assertNotIn("server-1:", self.flux("logs", "out", "worker-2").out)
        self.assert_refused(self.flux("logs", "out", "worker-9", code=None), "worker-2")

        url = self.record()["http"]
        with urllib.request.urlopen(f"{url}/metrics", timeout=20) as answer:
            self.assertIn(b"flux_workers{job=\"counting\"} 3", answer.read())
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(f"{url}/stop", data=b"{}"), timeout=20)
        refused.exception.close()
        self.assertEqual(refused.exception.code, 401)

        done = self.flux("stop", "out")
        self.assertIn("out has ended", done.out)
        end = running.finish()
        self.assertEqual(end.code, 130, end.text)
        self.assertIn("lost 0 · doubled 0", end.text)
        self.assert_gone(pids)
        for command in (["status", "out", "--json"], ["stop", "out"]):
            self.assert_refused(self.flux(*command, code=None), "does not run: it was stopped",
                                "flux run")
        for watch in ([], ["--watch"]):
            told = self.flux("status", "out", *watch).out
            for word in ("out was stopped\n", "lost 0 · doubled 0", "to go on", " run "):
                self.assertIn(word, told)

    def test_complete(self) -> None:
        self.flux(*self.cluster(epochs=2, data__test="train.tsv"))
        for command in (["status", "out"], ["status", "out", "--watch"]):
            told = self.flux(*command).out
            for word in ("out is complete\n", "3,000/3,000 applied once", "test AUC "):
                self.assertIn(word, told)
        self.flux("logs", "out", "--follow")

    def test_failed(self) -> None:
        """A job that cannot save its last checkpoint: whoever asks is told, with the reason."""
        running = self.start_training(*self.cluster(epochs=5000))
        saved = self.folder / "out/checkpoints"
        if saved.exists():
            saved.rename(self.folder / "out/aside")
        saved.write_text("in the way")
        done = self.flux("stop", "out", code=1)
        self.assertRegex(done.err, "the job failed: .*out/checkpoints")
        self.assertNotEqual(running.finish().code, 130)
        for command in (["status", "out"], ["status", "out", "--watch"],
                        ["logs", "out", "--follow"]):
            self.assertRegex(self.flux(*command, code=1).err, "the job failed: .*out/checkpoints")
        self.assertRegex(self.flux("status", "out", code=1).out, "(?m)^to go on .* run ")
        self.assertIn("coordinator: the job failed", self.flux("logs", "out").out)

    def test_one_process(self) -> None:
        running = self.start_training("run", *self.job(epochs=60000))
        who = f"out runs in one process (pid {running.process.pid})"
        self.assertIn(who, self.flux("status", "out").out)
        self.assert_refused(self.flux("stop", "out", code=None), who, "kill -INT")
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().code, 130)
        self.assertIn("out was stopped", self.flux("status", "out").out)

    def test_two_runs_of_one_folder(self) -> None:
        running = self.start_training(*self.cluster(epochs=5000))
        self.assert_refused(self.flux(*self.cluster(epochs=5000), code=None), "in use by process")
        self.assert_refused(self.flux("run", *self.job(epochs=5000), code=None),
                            "in use by process")
        self.assertEqual(self.status()["state"], "training")
        self.flux("stop", "out")
        self.assertEqual(running.finish().code, 130)


if __name__ == "__main__":
    unittest.main()
