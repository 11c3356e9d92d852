"""What torch computes: operators that read the rows of a sparse table by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as fn
from losses import a_loss
from operator_case import Case, Draw, Table, spec
from torch import Tensor

TABLE = "t"  # its name in a case; slots are s0, s1, ...


def _table(draw: Draw, dim: int, slots: int, longest: int, one_key: bool = False) -> Table:
    """Few rows, so that they repeat within an example and gradients must add up."""
    rows = draw.normal(draw.whole(2, 7), dim)
    counts = [1 if one_key else draw.whole(0, longest) for _ in range(draw.batch * slots)]
    keys = [[draw.whole(0, rows.shape[0] - 1) for _ in range(count)] for count in counts]
    return Table(rows, slots, keys, one_key)


# Embeddings.


def _pooled(rows: Tensor, values: Tensor | None, pool: str) -> Tensor:
    """One slot of one example: its rows [keys, dim] and perhaps the values of its keys."""
    if rows.shape[0] == 0:
        return rows.new_zeros(rows.shape[1])
    if pool in ("sum", "mean"):
        # The function that torch has for it; its mean takes no weights.
        index, begin = torch.arange(rows.shape[0]), torch.tensor([0])
        added = fn.embedding_bag(index, rows, begin, mode="sum", per_sample_weights=values)[0]
        size = rows.shape[0] if values is None else float(values.abs().sum())
        return added if pool == "sum" else added / size if size > 0 else added * 0
    shown = rows if values is None else rows * values[:, None]
    return shown.amax(0) if pool == "max" else shown[0]


def _sequence(rows: Tensor, values: Tensor | None, length: int, keep: str) -> Tensor:
    shown = rows if values is None else rows * values[:, None]
    shown = shown[:length] if keep == "first" else shown[max(0, len(shown) - length) :]
    return fn.pad(shown, (0, 0, 0, length - shown.shape[0]))


def _some_slots(draw: Draw, slots: int) -> list[int]:
    """In any order."""
    order = torch.randperm(slots, generator=draw.rng).tolist()
    return [int(slot) for slot in order[: draw.whole(1, slots)]]


@spec("embedding")
def _embedding(draw: Draw, name: str) -> Case:
    one_key, slots = draw.chance(0.3), draw.whole(1, 4)
    dim = draw.whole(1, 20 if draw.chance(0.5) else 4)
    table = _table(draw, dim, slots, 5, one_key)
    if draw.chance(0.7):
        table.values = [
            torch.zeros(len(keys), dtype=torch.float64) if draw.chance(0.1)
            else draw.normal(len(keys)) for keys in table.keys
        ]  # fmt: skip
    combine = ["concat", "sum", "sequence"][draw.whole(0, 2)]
    pool = ["sum", "mean", "max", "first"][draw.whole(0, 3)]
    length, keep = draw.whole(1, 6), "first" if draw.chance(0.5) else "last"
    named = _some_slots(draw, slots) if draw.chance(0.5) else []
    if combine == "sequence":
        named = [draw.whole(0, slots - 1)]

    def of_slot(example: int, slot: int) -> Tensor:
        place = example * slots + slot
        rows = fn.embedding(torch.tensor(table.keys[place], dtype=torch.long), table.rows)
        values = None if table.values is None else table.values[place]
        if combine == "sequence":
            return _sequence(rows, values, length, keep)
        return _pooled(rows, values, pool)

    def compute(_: list[Tensor], __: list[Tensor]) -> Tensor:
        read = named or range(slots)
        found = torch.stack(
            [torch.stack([of_slot(b, slot) for slot in read]) for b in range(draw.batch)]
        )
        return found.sum(1) if combine == "sum" else found

    case = draw.case([], compute, table=TABLE, combine=combine, pool=pool)
    if named:
        case.attrs["slots"] = [f"s{slot}" for slot in named]
    if combine == "sequence":
        case.attrs.update(length=length, keep=keep)
    case.table = table
    return case


# word2vec.

MASK64 = (1 << 64) - 1


def _mix64(x: int) -> int:
    """As in flux/base/hash.h."""
    for _ in range(2):
        x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & MASK64
    return x ^ x >> 32


def _reach(noise: int, position: int, window: int) -> int:
    """How many words to each side the word at this place of the batch looks at."""
    drawn = _mix64(noise + 0x9E3779B97F4A7C15 * (position + 1) & MASK64)
    return 1 + ((drawn >> 32) * window >> 32)


class _Sentences:
    """What skip_gram_loss makes of a batch, pair by pair."""

    def __init__(self, draw: Draw) -> None:
        self.batch, self.slots = draw.batch, draw.whole(2, 3)
        self.words, self.negatives = torch.randperm(self.slots, generator=draw.rng)[:2].tolist()
        self.window, self.share = draw.whole(1, 4), draw.whole(1, 3)
        self.per_pair = draw.uniform(0, 8)
        self.table = _table(draw, 2 * draw.whole(1, 20), self.slots, 9)
        self.table.noise = draw.whole(0, 2**31)

    def _pairs(self, example: int) -> Iterator[tuple[int, int]]:
        """Rows of a center and of a context."""
        place = example * self.slots + self.words
        words, first = self.table.keys[place], sum(map(len, self.table.keys[:place]))
        for i, center in enumerate(words):
            reach = _reach(self.table.noise, first + i, self.window)
            for j in range(max(0, i - reach), min(len(words), i + reach + 1)):
                if i != j:
                    yield center, words[j]

    def _group(self, example: int) -> list[int]:
        """Rows of the negatives that the example shares with its neighbours."""
        first = example // self.share * self.share
        group = range(first, min(self.batch, first + self.share))
        return [n for b in group for n in self.table.keys[b * self.slots + self.negatives]]

    def scores(self, pairs: list[tuple[int, int]]) -> Tensor:
        centers, contexts = self.table.rows.chunk(2, dim=1)
        index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)
        return (fn.embedding(index[:, 0], centers) * fn.embedding(index[:, 1], contexts)).sum(1)

    def losses(self, _: list[Tensor]) -> Tensor:
        found = []
        for b in range(self.batch):
            pairs, negatives = list(self._pairs(b)), self._group(b)
            beside = [(i, n) for i, j in pairs for n in negatives if n != j]
            each = self.per_pair / max(1, len(negatives))
            found.append(
                -fn.logsigmoid(self.scores(pairs)).sum()
                - each * fn.logsigmoid(-self.scores(beside)).sum()
            )
        return torch.stack(found)

    def predictions(self, _: list[Tensor]) -> Tensor:
        each = [torch.sigmoid(self.scores(list(self._pairs(b)))) for b in range(self.batch)]
        return torch.stack([p.mean() if len(p) > 0 else p.sum() for p in each])


@spec("skip_gram_loss")
def _skip_gram_loss(draw: Draw, name: str) -> Case:
    sentences = _Sentences(draw)
    case = a_loss(
        draw, [], sentences.losses, sentences.predictions,
        table=TABLE, words=f"s{sentences.words}", negatives=f"s{sentences.negatives}",
        window=sentences.window, share=sentences.share, per_pair=sentences.per_pair,
    )  # fmt: skip
    case.table = sentences.table
    return case
