"""word2vec under kill -9 of a worker and of a server, and with a vocabulary that changes meanwhile:
every sentence counts once, or the job says why it does not go on."""

from __future__ import annotations

import signal
import unittest

from _cluster import ClusterCase
from _support import sets
from _words import FOLDER, JOB, make_corpus

EPOCHS = 10


class WordsKill(ClusterCase):
    def setUp(self) -> None:
        super().setUp()
        make_corpus(self, self.records, 300, 6)

    def job(self, **fields: object) -> list[str]:
        settings = {"output": "out", "data__batch": self.batch, "shards": 8,
                    "tables__0__dim": 16, "tables__0__optimizer__lr": 0.05,
                    "checkpoint__every_s": 0, **fields}
        return [JOB, *sets(**settings)]

    def test_worker(self) -> None:
        self.train_under_kills("worker-1", epochs=EPOCHS)

    def test_server(self) -> None:
        self.train_under_kills("server-1", epochs=EPOCHS)

    def interrupted(self, *command: str) -> None:
        """A run that is stopped in the middle of its pass."""
        running = self.start(*command)
        self.wait_checkpoint("out", running, '"open_pass"')
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().code, 130)

    def test_a_vocabulary_that_changes_before_a_resume_is_refused(self) -> None:
        command = ["run", *self.job(epochs=3000, checkpoint__every_s=0.02)]
        self.interrupted(*command)
        vocabulary = self.folder / FOLDER / "vocab.txt"
        good = vocabulary.read_text()
        first, *rest = good.splitlines()
        vocabulary.write_text("\n".join([*rest, first]) + "\n")  # other negatives are drawn
        todo = "put it back until the pass is closed, or start over with --fresh"
        self.assert_refused(self.flux(*command, code=None),
                            f"{FOLDER}/vocab.txt: its content has changed", todo)
        self.assert_refused(self.flux(*command, "--servers", "2", "--workers", "2", code=None),
                            f"{FOLDER}/vocab.txt", todo)
        vocabulary.write_text(good)  # written again, but the same
        again = self.start(*command)
        self.assertIsNotNone(again.wait_line("already applied"))
        again.signal(signal.SIGINT)
        self.assertIn("lost 0 · doubled 0", again.finish().text)
        vocabulary.write_text("\n".join([*rest, first]) + "\n")
        self.flux("run", *self.job(epochs=1), "--fresh")
        self.assert_exact("out", self.records)


if __name__ == "__main__":
    unittest.main()
