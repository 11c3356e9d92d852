"""CTR models in PyTorch: one sparse embedding table, 400-400-400, one epoch; prints one JSON line.

The steady figure leaves out the first batches (allocator, oneDNN primitives, compilation) and all
loading. What makes it quick and is usual: sparse gradients, fused Adam, gradients set to None.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from peers import criteo
from peers.metrics import exact_auc

BATCH = 1000
WARM_UP_BATCHES = 50
DIM = 10
HIDDEN = (400, 400, 400)


def _mlp(width: int) -> tuple[nn.Sequential, int]:
    layers: list[Any] = []
    for hidden in HIDDEN:
        layers += [nn.Linear(width, hidden), nn.ReLU()]
        width = hidden
    return nn.Sequential(*layers), width


class CtrDnn(nn.Module):
    accumulator = 0.0  # where the sums of Adagrad start
    dims = DIM

    def __init__(self) -> None:
        super().__init__()
        self.deep, width = _mlp(criteo.SLOTS * DIM + criteo.DENSE)
        self.out = nn.Linear(width, 1)

    def forward(self, rows: Any, dense: Any) -> Any:
        return self.out(self.deep(torch.cat([rows.flatten(1), dense], dim=1)))


class DeepFm(nn.Module):
    """The weight and the vector of a key are parts of one row."""

    accumulator = 1e-5  # where Adagrad's sums start; as in the job: better than 0 for both
    dims = 1 + DIM

    def __init__(self) -> None:
        super().__init__()
        self.deep, width = _mlp(criteo.SLOTS * DIM + criteo.DENSE)
        self.out = nn.Linear(width, 1)
        self.linear = nn.Linear(criteo.DENSE, 1)

    def forward(self, rows: Any, dense: Any) -> Any:
        weights, vectors = rows[:, :, :1].sum(1), rows[:, :, 1:]
        pairs = vectors.sum(1).square() - vectors.square().sum(1)
        deep = self.out(self.deep(torch.cat([vectors.flatten(1), dense], dim=1)))
        return weights + self.linear(dense) + 0.5 * pairs.sum(1, keepdim=True) + deep


class DcnV2(nn.Module):
    accumulator = 0.0  # where the sums of Adagrad start
    dims = DIM
    crosses = 3

    def __init__(self) -> None:
        super().__init__()
        width = criteo.SLOTS * DIM + criteo.DENSE
        self.cross = nn.ModuleList(nn.Linear(width, width) for _ in range(self.crosses))
        self.deep, deep_width = _mlp(width)
        self.out = nn.Linear(width + deep_width, 1)

    def forward(self, rows: Any, dense: Any) -> Any:
        first = x = torch.cat([rows.flatten(1), dense], dim=1)
        for layer in self.cross:
            x = first * layer(x) + x
        return self.out(torch.cat([x, self.deep(first)], dim=1))


NETWORKS: dict[str, Any] = {"ctr_dnn": CtrDnn, "deepfm": DeepFm, "dcn_v2": DcnV2}


class Model:
    """Forward pass and one training step, in fp32 or under bf16 autocast."""

    def __init__(self, name: str, *, bf16: bool, compiled: bool) -> None:
        network = NETWORKS[name]()
        self.embedding = nn.Embedding(criteo.ROWS, network.dims, sparse=True)
        nn.init.normal_(self.embedding.weight, std=0.01)
        self.sparse_optimizer = torch.optim.Adagrad(
            self.embedding.parameters(), lr=0.05, initial_accumulator_value=network.accumulator
        )
        self.dense_optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
        self.loss = nn.BCEWithLogitsLoss()
        self.network = torch.compile(network) if compiled else network
        self.bf16 = bf16

    def logits(self, dense: Any, ids: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16):
            return self.network(self.embedding(ids), dense).squeeze(1).float()

    def step(self, labels: Any, dense: Any, ids: Any) -> None:
        self.sparse_optimizer.zero_grad()
        self.dense_optimizer.zero_grad()
        self.loss(self.logits(dense, ids), labels).backward()
        self.sparse_optimizer.step()
        self.dense_optimizer.step()


class TextBatches(torch.utils.data.IterableDataset):
    """Batches parsed from text inside the loader's worker process."""

    def __init__(self, path: Path, transform: str) -> None:
        self.path = path
        self.transform = transform

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for lines in criteo.batches(self.path, BATCH):
            yield tuple(map(torch.from_numpy, criteo.parse(lines, self.transform)))


def load(folder: Path) -> tuple[Any, ...]:
    return tuple(
        torch.from_numpy(np.load(folder / f"{name}.npy")) for name in ("labels", "dense", "ids")
    )


def from_memory(arrays: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(arrays[0]), BATCH):
        yield tuple(array[start : start + BATCH] for array in arrays)


def from_text(path: Path, transform: str) -> Iterator[tuple[Any, ...]]:
    loader = torch.utils.data.DataLoader(
        TextBatches(path, transform), batch_size=None, num_workers=1, prefetch_factor=8
    )
    yield from loader


def train(model: Model, source: Iterator[tuple[Any, ...]]) -> dict[str, float]:
    start = time.perf_counter()
    steady_start = start
    examples = steady_examples = 0
    for number, batch in enumerate(source):
        if number == WARM_UP_BATCHES:
            steady_start = time.perf_counter()
            steady_examples = 0
        model.step(*batch)
        examples += len(batch[0])
        steady_examples += len(batch[0])
    end = time.perf_counter()
    return {
        "examples": examples,
        "examples_per_s": steady_examples / (end - steady_start),
        "epoch_s": end - start,
    }


def test_auc(model: Model, folder: Path) -> float:
    arrays = load(folder)
    scores: list[float] = []
    with torch.no_grad():
        for _, dense, ids in from_memory(arrays):
            scores += model.logits(dense, ids).tolist()
    return exact_auc(arrays[0].tolist(), scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--model", choices=tuple(NETWORKS), default="ctr_dnn")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--compile", action="store_true")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--memory", type=Path, help="folder of arrays to train from")
    source.add_argument("--text", type=Path, help="Criteo TSV to train from")
    parser.add_argument("--test", type=Path, required=True, help="folder of arrays to test on")
    parser.add_argument("--dense", choices=criteo.TRANSFORMS, required=True)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    model = Model(args.model, bf16=args.bf16, compiled=args.compile)
    batches = from_memory(load(args.memory)) if args.memory else from_text(args.text, args.dense)
    result = train(model, batches)
    print(
        json.dumps({**result, "auc": test_auc(model, args.test), "version": torch.__version__}),
        flush=True,
    )


if __name__ == "__main__":
    main()
