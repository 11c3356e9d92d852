"""CTR-DNN on Paddle's parameter server, asynchronous: the program of servers and workers alike.

Which of them a process is comes from the variables that paddle.distributed.launch sets. A worker
loads its data into memory, trains one epoch, tests, and prints one JSON line. The figure is that of
the epoch alone; begin_s and end_s are on the clock CLOCK_MONOTONIC, which all processes share.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle.distributed import fleet

from peers.metrics import exact_auc
from peers.paddle_text import DENSE, SLOTS

BATCH = 1000
DIM = 10
HIDDEN = (400, 400, 400)
ROWS = 1 << 21  # asked for, not allocated: the table of the server grows with its keys


class Model:
    """Inputs, probability of a click and loss, as a static graph."""

    def __init__(self) -> None:
        self.label = paddle.static.data("label", [None, 1], "int64")
        self.dense = paddle.static.data("dense", [None, DENSE], "float32")
        self.slots = [paddle.static.data(f"C{n}", [None, 1], "int64") for n in range(SLOTS)]
        hidden = paddle.concat([*map(self._embedding, self.slots), self.dense], axis=1)
        for width in HIDDEN:
            hidden = paddle.static.nn.fc(hidden, width, activation="relu")
        self.click = paddle.nn.functional.softmax(paddle.static.nn.fc(hidden, 2))
        loss = paddle.nn.functional.cross_entropy(self.click, self.label, use_softmax=False)
        self.loss = paddle.mean(loss)

    def inputs(self) -> list[Any]:
        return [self.label, self.dense, *self.slots]

    @staticmethod
    def _embedding(slot: Any) -> Any:
        first = paddle.nn.initializer.Uniform(-0.01, 0.01)
        shared = paddle.ParamAttr(name="embedding", initializer=first)
        rows = paddle.static.nn.sparse_embedding(slot, size=[ROWS, DIM], param_attr=shared)
        return paddle.reshape(rows, [-1, DIM])


def minimize(loss: Any) -> None:
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    optimizer = paddle.optimizer.Adam(1e-3, lazy_mode=True)
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*"))


def in_memory(model: Model, folder: Path, threads: int) -> Any:
    dataset = paddle.distributed.InMemoryDataset()
    dataset.init(batch_size=BATCH, thread_num=threads, use_var=model.inputs(), pipe_command="cat")
    files = parts(folder)[fleet.worker_index() :: fleet.worker_num()]
    dataset.set_filelist([str(path) for path in files])
    dataset.load_into_memory()
    return dataset


def test_batches(folder: Path) -> Iterator[dict[str, Any]]:
    """Feeds of the test program, from the same text as training."""
    for path in parts(folder):
        # Counts before the label, the dense values and each key are not wanted.
        text = np.loadtxt(path, dtype=np.float64, ndmin=2)
        for start in range(0, len(text), BATCH):
            rows = text[start : start + BATCH]
            keys = rows[:, 4 + DENSE :: 2].astype(np.int64)
            yield {
                "label": rows[:, 1:2].astype(np.int64),
                "dense": rows[:, 3 : 3 + DENSE].astype(np.float32),
                **{f"C{slot}": keys[:, slot : slot + 1] for slot in range(SLOTS)},
            }


def without_pushes(program: Any) -> Any:
    """The program for testing. Cloning keeps the push of sparse gradients, which has no role."""
    test_program = program.clone(for_test=True)
    block = test_program.global_block()
    for index in reversed(range(len(block.ops))):
        if block.ops[index].type == "distributed_push_sparse":
            block._remove_op(index)
    return test_program


def test_auc(executor: Any, program: Any, model: Model, folder: Path) -> float:
    labels: list[float] = []
    scores: list[float] = []
    for feed in test_batches(folder):
        (click,) = executor.run(program, feed=feed, fetch_list=[model.click.name])
        labels += feed["label"][:, 0].tolist()
        scores += click[:, 1].tolist()
    return exact_auc(labels, scores)


def work(model: Model, args: argparse.Namespace) -> dict[str, float]:
    """Trains and tests as worker; what it prints."""
    program = paddle.static.default_main_program()
    test_program = without_pushes(program)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    fleet.init_worker()
    dataset = in_memory(model, args.train, args.threads)
    examples = int(dataset.get_memory_data_size())
    begin = time.monotonic()
    executor.train_from_dataset(program, dataset, thread=args.threads, print_period=1 << 30)
    end = time.monotonic()
    auc = test_auc(executor, test_program, model, args.test)
    fleet.stop_worker()
    return {
        "examples": examples,
        "examples_per_s": examples / (end - begin),
        "begin_s": begin,
        "end_s": end,
        "auc": auc,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--train", type=Path, required=True, help="folder of parts to train on")
    parser.add_argument("--test", type=Path, required=True, help="folder of parts to test on")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    paddle.enable_static()
    paddle.seed(args.seed)
    fleet.init()
    model = Model()
    minimize(model.loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    print(json.dumps({**work(model, args), "version": paddle.__version__}), flush=True)


if __name__ == "__main__":
    main()
