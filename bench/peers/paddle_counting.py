"""The counting model on Paddle's parameter server: one weight per example, counted up by training.

Every example is a row of width 1 whose gradient is -1 in each batch, with SGD at rate 1: a row that
was trained n times has risen by n times the same step. Workers train their own contiguous share of
the examples, batch by batch, and say "batch N" before each; with `read` a process reads all rows
from the server instead and prints how many were counted how often, as one JSON line. The role of a
process comes from the variables that paddle.distributed.launch sets.
"""

from __future__ import annotations

import argparse
import collections
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle.distributed import fleet


def build() -> tuple[Any, Any]:
    """Rows and loss of a static graph."""
    key = paddle.static.data("key", [None, 1], "int64")
    first = paddle.nn.initializer.Constant(0.0)
    attr = paddle.ParamAttr(name="counts", initializer=first)
    rows = paddle.static.nn.sparse_embedding(key, size=[1 << 24, 1], param_attr=attr)
    rows = paddle.reshape(rows, [-1, 1])
    loss = paddle.sum(rows) * -1.0
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    optimizer = paddle.optimizer.SGD(1.0)
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    return rows, loss


def share(examples: int) -> range:
    """Examples of this worker."""
    count, index = fleet.worker_num(), fleet.worker_index()
    return range(examples * index // count, examples * (index + 1) // count)


def train(executor: Any, args: argparse.Namespace, loss: Any) -> None:
    program = paddle.static.default_main_program()
    mine = share(args.examples)
    for number, begin in enumerate(range(mine.start, mine.stop, args.batch)):
        print(f"batch {number}", flush=True)
        keys = np.arange(begin, min(begin + args.batch, mine.stop), dtype=np.int64)[:, None]
        executor.run(program, feed={"key": keys}, fetch_list=[loss.name])
        if args.save and number % args.save_every == args.save_every - 1:
            fleet.save_persistables(executor, str(args.save))
            print(f"saved after batch {number}", flush=True)
        time.sleep(args.pause)
    time.sleep(3)  # its communicator sends what it has gathered


def read(executor: Any, args: argparse.Namespace, rows: Any) -> dict[str, Any]:
    """How often each example was counted, by the rows on the server."""
    test = paddle.static.default_main_program().clone(for_test=True)
    block = test.global_block()
    for index in reversed(range(len(block.ops))):
        if "push" in block.ops[index].type:
            block._remove_op(index)
    values = []
    for begin in range(0, args.examples, 1000):
        keys = np.arange(begin, min(begin + 1000, args.examples), dtype=np.int64)[:, None]
        (out,) = executor.run(test, feed={"key": keys}, fetch_list=[rows.name])
        values.append(np.asarray(out).reshape(-1))
    found = np.concatenate(values)
    whole = np.rint(found).astype(np.int64)
    if not np.allclose(found, whole, atol=1e-3):
        raise SystemExit("a row is no whole number: the model does not count")
    return {"counts": {str(k): v for k, v in sorted(collections.Counter(whole.tolist()).items())}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("train", "read"))
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds after each batch")
    parser.add_argument("--save", type=Path, help="folder for saved tables")
    parser.add_argument("--save-every", type=int, default=50)
    args = parser.parse_args()
    paddle.enable_static()
    fleet.init()
    rows, loss = build()
    if fleet.is_server():
        if args.save and args.save.exists():
            fleet.init_server(str(args.save))
        else:
            fleet.init_server()
        fleet.run_server()
        return
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    fleet.init_worker()
    if args.what == "train":
        train(executor, args, loss)
    else:
        print(json.dumps(read(executor, args, rows)), flush=True)
    print("done", flush=True)
    fleet.stop_worker()


if __name__ == "__main__":
    main()
