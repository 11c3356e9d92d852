"""What torch computes: layers, interactions of slots, attention and experts."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as fn
from operator_case import Case, Draw, spec
from torch import Tensor

# Layers.


@spec("fc")
def _fc(draw: Draw, name: str) -> Case:
    length, dim, units = draw.whole(1, 4), draw.whole(1, 20), draw.whole(1, 20)
    functions = {"none": lambda z: z, "relu": torch.relu, "sigmoid": torch.sigmoid,
                 "tanh": torch.tanh, "leaky_relu": torch.nn.functional.leaky_relu,
                 "elu": torch.nn.functional.elu, "softplus": torch.nn.functional.softplus}
    activation = list(functions)[draw.whole(0, len(functions) - 1)]
    each = draw.chance(0.5)
    wide = dim if each else length * dim

    def compute(x: list[Tensor], p: list[Tensor]) -> Tensor:
        z = x[0] if each else x[0].reshape(x[0].shape[0], -1)
        return functions[activation](z @ p[0] + p[1])

    case = draw.case([draw.value(length, dim)], compute)
    case.attrs = {"units": units, "activation": activation, "per_position": each}
    case.parameters = [draw.normal(wide, units), draw.normal(units)]
    return case


@spec("layer_norm")
def _layer_norm(draw: Draw, name: str) -> Case:
    dim = draw.whole(2, 20)
    case = draw.case(
        [draw.value(draw.whole(1, 4), dim)],
        lambda x, p: fn.layer_norm(x[0], [dim], p[0], p[1], 1e-3),
        epsilon=1e-3,
    )
    case.parameters = [draw.normal(dim), draw.normal(dim)]
    return case


def _summaries(draw: Draw, x: Tensor, mean: Tensor) -> list[Tensor]:
    """What a batch adds to the count, the sums and the sums of squares (around `mean`)."""
    flat = x.detach().reshape(draw.batch, -1)
    return [
        torch.full_like(flat[0], draw.batch),
        flat.sum(0),
        ((flat - mean) ** 2).sum(0),
    ]


@spec("batch_norm", "dice")
def _batch_norm(draw: Draw, name: str) -> Case:
    draw.batch += 1  # of one example torch makes nothing
    width = draw.whole(1, 9)

    def compute(x: list[Tensor], p: list[Tensor]) -> Tensor:
        z = x[0].reshape(draw.batch, width)
        normal = fn.batch_norm(z, None, None, training=True, eps=1e-3)
        if name == "batch_norm":
            return normal * p[0] + p[1]
        gate = torch.sigmoid(normal)
        return gate * z + (1 - gate) * p[0] * z

    x = draw.value(1, width)
    case = draw.case([x], compute, epsilon=1e-3)
    own = 2 if name == "batch_norm" else 1
    case.parameters = [draw.normal(width) for _ in range(own)]
    case.parameters += [torch.ones(width).double() for _ in range(3)]
    wanted = _summaries(draw, x, torch.zeros(1))
    case.wanted = {own + i: value for i, value in enumerate(wanted)}
    return case


@spec("data_norm")
def _data_norm(draw: Draw, name: str) -> Case:
    width = draw.whole(1, 9)
    size = draw.positive(1, width)[0, 0] * 100
    total, squares = draw.normal(width), draw.positive(1, width)[0, 0] * 100
    size, squares = size.float().double(), squares.float().double()
    x = draw.value(1, width)
    case = draw.case(
        [x],
        lambda x, p: (x[0] - (p[1] / p[0]).detach()) * (p[0] / p[2]).sqrt().detach(),
        epsilon=0.01,
    )
    case.parameters = [size, total, squares]
    wanted = _summaries(draw, x, total / size)
    wanted[2] += 0.01 * draw.batch
    case.wanted = dict(enumerate(wanted))
    return case


@spec("l2_normalize")
def _l2_normalize(draw: Draw, name: str) -> Case:
    x = draw.value(draw.whole(1, 4), draw.whole(1, 20))
    return draw.case([x], lambda x, _: fn.normalize(x[0], dim=2))


@spec("cvm")
def _cvm(draw: Draw, name: str) -> Case:
    x = draw.positive(draw.whole(1, 4), draw.whole(3, 9))
    keep = draw.chance(0.5)

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        counts, rest = x[0][:, :, :2].detach(), x[0][:, :, 2:]
        if not keep:
            return rest
        show, click = (counts + 1).log().split(1, dim=2)
        return torch.cat([show, click - show, rest], dim=2)

    return draw.case([x], compute, use_cvm=keep)


# Interactions.


def _pairs(x: Tensor) -> Tensor:
    """Element-wise products of all pairs of positions: [batch, pairs, dim]."""
    first, second = torch.triu_indices(x.shape[1], x.shape[1], 1)
    return x[:, first] * x[:, second]


@spec("fm", "bi_interaction")
def _fm(draw: Draw, name: str) -> Case:
    x = draw.value(draw.whole(2, 8), draw.whole(1, 20))
    if name == "fm":
        return draw.case([x], lambda x, _: _pairs(x[0]).sum((1, 2)))
    return draw.case([x], lambda x, _: _pairs(x[0]).sum(1))


@spec("ffm")
def _ffm(draw: Draw, name: str) -> Case:
    slots, dim = draw.whole(2, 5), draw.whole(1, 6)

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        v = x[0].reshape(-1, slots, slots, dim)
        products = (v * v.transpose(1, 2)).sum(3)
        return products.triu(1).sum((1, 2))

    return draw.case([draw.value(slots, slots * dim)], compute)


@spec("dot_interaction")
def _dot_interaction(draw: Draw, name: str) -> Case:
    dim, itself = draw.whole(1, 20), draw.chance(0.5)
    inputs = [draw.value(draw.whole(2, 6), dim)]
    if draw.chance(0.5):
        inputs.append(draw.value(draw.whole(1, 3), dim))

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        v = torch.cat(x, dim=1)
        rows, columns = torch.tril_indices(v.shape[1], v.shape[1], 0 if itself else -1)
        return (v @ v.transpose(1, 2))[:, rows, columns]

    case = draw.case(inputs, compute)
    case.attrs = {"self": itself}
    return case


@spec("dot", "cosine")
def _similarity(draw: Draw, name: str) -> Case:
    length, dim = draw.whole(1, 4), draw.whole(2, 20)
    inputs = [draw.value(1 if draw.chance(0.3) else length, dim) for _ in range(2)]
    if name == "dot":
        return draw.case(inputs, lambda x, _: (x[0] * x[1]).sum(2))
    return draw.case(inputs, lambda x, _: fn.cosine_similarity(x[0], x[1], dim=2))


@spec("cross")
def _cross(draw: Draw, name: str) -> Case:
    n = draw.whole(2, 40)
    rank = 0 if draw.chance(0.5) else draw.whole(1, n - 1)

    def compute(x: list[Tensor], p: list[Tensor]) -> Tensor:
        z = x[1] @ p[0] @ p[1] + p[2] if rank else x[1] @ p[0] + p[1]
        return x[0] * z + x[1]

    case = draw.case([draw.value(1, n), draw.value(1, n)], compute, rank=rank)
    thin = [draw.normal(n, rank), draw.normal(rank, n)]
    case.parameters = [*(thin if rank else [draw.normal(n, n)]), draw.normal(n)]
    return case


@spec("cin")
def _cin(draw: Draw, name: str) -> Case:
    m, h, dim, units = draw.whole(1, 5), draw.whole(1, 6), draw.whole(1, 9), draw.whole(1, 20)
    case = draw.case(
        [draw.value(m, dim), draw.value(h, dim)],
        lambda x, p: torch.einsum("bid,bjd,iju->bud", x[0], x[1], p[0].reshape(m, h, units)),
        units=units,
    )
    case.parameters = [draw.normal(m * h, units)]
    return case


# Attention and experts.


@spec("attention_features")
def _attention_features(draw: Draw, name: str) -> Case:
    dim = draw.whole(1, 9)

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        q = x[0].expand_as(x[1])
        return torch.cat([q, x[1], q - x[1], q * x[1]], dim=2)

    return draw.case([draw.value(1, dim), draw.value(draw.whole(1, 6), dim)], compute)


@spec("attention_pooling")
def _attention_pooling(draw: Draw, name: str) -> Case:
    length, normalize = draw.whole(1, 7), "softmax" if draw.chance(0.5) else "none"
    inputs = [draw.value(length, 1), draw.value(length, draw.whole(1, 20))]
    if draw.chance(0.6):
        inputs.append(draw.mask(length))
        inputs[2][:, :, 0] = 1

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        mask = x[2].detach().transpose(1, 2) if len(x) > 2 else torch.ones_like(x[0])
        if normalize == "softmax":
            weights = x[0].masked_fill(mask == 0, -math.inf).softmax(1)
        else:
            weights = x[0] * mask
        return (weights * x[1]).sum(1)

    return draw.case(inputs, compute, normalize=normalize)


@spec("gate")
def _gate(draw: Draw, name: str) -> Case:
    dim, a, b = draw.whole(1, 20), draw.whole(1, 4), draw.whole(1, 3)
    return draw.case(
        [draw.value(1, a + b), draw.value(a, dim), draw.value(b, dim)],
        lambda x, _: (x[0].softmax(2) @ torch.cat(x[1:], dim=1)).squeeze(1),
    )


@spec("experts")
def _experts(draw: Draw, name: str) -> Case:
    experts, dim, units = draw.whole(1, 4), draw.whole(1, 20), draw.whole(1, 20)
    activation = "relu" if draw.chance(0.5) else "none"

    own = draw.chance(0.5)
    length = experts if own else draw.whole(1, 3)

    def compute(x: list[Tensor], p: list[Tensor]) -> Tensor:
        each = x[0] if own else x[0].reshape(-1, 1, length * dim).expand(-1, experts, -1)
        z = torch.stack([each[:, e] @ p[2 * e] + p[2 * e + 1] for e in range(experts)], dim=1)
        return torch.relu(z) if activation == "relu" else z

    case = draw.case([draw.value(length, dim)], compute)
    case.attrs = {"experts": experts, "units": units, "activation": activation}
    case.attrs["own_position"] = own
    for _ in range(experts):
        case.parameters += [draw.normal(dim if own else length * dim, units), draw.normal(units)]
    return case


@spec("multi_head_attention")
def _multi_head_attention(draw: Draw, name: str) -> Case:
    heads, queries, keys = draw.whole(1, 3), draw.whole(1, 5), draw.whole(1, 6)
    dim, out = heads * draw.whole(1, 6), heads * draw.whole(1, 6)
    inputs = [draw.value(queries, dim), draw.value(keys, dim), draw.value(keys, out)]
    if draw.chance(0.5):
        inputs.append(draw.mask(keys))
        inputs[3][:, :, 0] = 1

    def heads_of(x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        mask = x[3].detach().unsqueeze(1) != 0 if len(x) > 3 else None
        q, k, v = (heads_of(part) for part in x[:3])
        y = fn.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return y.transpose(1, 2).reshape(y.shape[0], queries, out)

    return draw.case(inputs, compute, heads=heads)
