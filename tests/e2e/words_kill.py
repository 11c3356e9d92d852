"""word2vec under kill -9 of a worker and of a server: every sentence counts once."""

from __future__ import annotations

import unittest

from _cluster import ClusterCase
from _support import sets
from _words import JOB, make_corpus

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


if __name__ == "__main__":
    unittest.main()
