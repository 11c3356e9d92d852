"""What torch computes: element-wise operators, shapes and reductions."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as fn
from operator_case import Case, Draw, spec
from torch import Tensor

# Element-wise, one input.

PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": torch.abs,
    "neg": torch.neg,
    "square": torch.square,
    "exp": torch.exp,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": fn.gelu,
    "silu": fn.silu,
    "softplus": fn.softplus,
}


@spec(*PLAIN)
def _plain(draw: Draw, name: str) -> Case:
    return draw.case(
        [draw.value(draw.whole(1, 4), draw.whole(1, 9))], lambda x, _: PLAIN[name](x[0])
    )


@spec("log", "sqrt")
def _guarded(draw: Draw, name: str) -> Case:
    epsilon = draw.uniform(0.05, 0.5)
    function = torch.log if name == "log" else torch.sqrt
    return draw.case(
        [draw.value(draw.whole(1, 4), draw.whole(1, 9))],
        lambda x, _: function(x[0].clamp(min=epsilon)),
        epsilon=epsilon,
    )


@spec("scale")
def _scale(draw: Draw, name: str) -> Case:
    factor, bias = draw.uniform(-2, 2), draw.uniform(-2, 2)
    x = draw.value(draw.whole(1, 4), draw.whole(1, 9))
    return draw.case([x], lambda x, _: factor * x[0] + bias, factor=factor, bias=bias)


@spec("clip")
def _clip(draw: Draw, name: str) -> Case:
    low, high = draw.uniform(-1, 0), draw.uniform(0.1, 1)
    x = draw.value(draw.whole(1, 4), draw.whole(1, 9))
    return draw.case([x], lambda x, _: x[0].clamp(low, high), min=low, max=high)


@spec("pow")
def _pow(draw: Draw, name: str) -> Case:
    if draw.chance(0.5):
        whole = float(draw.whole(0, 4))
        x = draw.value(draw.whole(1, 4), draw.whole(1, 9))
        return draw.case([x], lambda x, _: x[0] ** whole, exponent=whole)
    exponent = draw.uniform(-2, 2)
    x = draw.positive(draw.whole(1, 4), draw.whole(1, 9))
    return draw.case([x], lambda x, _: x[0] ** exponent, exponent=exponent)


@spec("leaky_relu")
def _leaky_relu(draw: Draw, name: str) -> Case:
    slope = draw.uniform(0, 1)
    x = draw.value(draw.whole(1, 4), draw.whole(1, 9))
    return draw.case([x], lambda x, _: fn.leaky_relu(x[0], slope), slope=slope)


@spec("elu")
def _elu(draw: Draw, name: str) -> Case:
    alpha = draw.uniform(0, 2)
    x = draw.value(draw.whole(1, 4), draw.whole(1, 9))
    return draw.case([x], lambda x, _: fn.elu(x[0], alpha), alpha=alpha)


@spec("prelu")
def _prelu(draw: Draw, name: str) -> Case:
    dim = draw.whole(1, 9)
    case = draw.case(
        [draw.value(draw.whole(1, 4), dim)],
        lambda x, p: torch.where(x[0] > 0, x[0], p[0] * x[0]),
    )
    case.parameters = [draw.normal(dim)]
    return case


# Several inputs with broadcasting.

BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sub": torch.sub,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "greater": lambda a, b: (a > b).to(a.dtype),
    "greater_equal": lambda a, b: (a >= b).to(a.dtype),
    "less": lambda a, b: (a < b).to(a.dtype),
    "less_equal": lambda a, b: (a <= b).to(a.dtype),
    "equal": lambda a, b: (a == b).to(a.dtype),
    "not_equal": lambda a, b: (a != b).to(a.dtype),
}


def _stretched(draw: Draw, length: int, dim: int) -> Tensor:
    return draw.value(1 if draw.chance(0.3) else length, 1 if draw.chance(0.3) else dim)


@spec(*BINARY)
def _binary(draw: Draw, name: str) -> Case:
    length, dim = draw.whole(1, 4), draw.whole(1, 7)
    a, b = draw.value(length, dim), _stretched(draw, length, dim)
    if name in ("equal", "not_equal"):
        a, b = a.round(), b.round()
    return draw.case([a, b], lambda x, _: BINARY[name](x[0], x[1]))


@spec("div")
def _div(draw: Draw, name: str) -> Case:
    length, dim = draw.whole(1, 4), draw.whole(1, 7)
    b = _stretched(draw, length, dim)
    b = torch.where(b.abs() < 0.2, torch.full_like(b, 0.5), b)
    return draw.case([draw.value(length, dim), b], lambda x, _: x[0] / x[1])


@spec("add", "mul", "entrywise_product")
def _many(draw: Draw, name: str) -> Case:
    length, dim = draw.whole(1, 4), draw.whole(1, 7)
    inputs = [draw.value(length, dim)]
    inputs += [_stretched(draw, length, dim) for _ in range(draw.whole(1, 4))]

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        result = x[0]
        for more in x[1:]:
            result = result + more if name == "add" else result * more
        return result

    return draw.case(inputs, compute)


@spec("select")
def _select(draw: Draw, name: str) -> Case:
    length, dim = draw.whole(1, 4), draw.whole(1, 7)
    condition = (draw.value(length, dim) > 0).to(torch.float64)
    inputs = [condition, draw.value(length, dim), _stretched(draw, length, dim)]
    return draw.case(inputs, lambda x, _: torch.where(x[0] != 0, x[1], x[2]))


# Shapes.


def _over(draw: Draw) -> tuple[str, int]:
    return ("positions", 1) if draw.chance(0.5) else ("features", 2)


@spec("concat")
def _concat(draw: Draw, name: str) -> Case:
    inputs = [draw.value(1, draw.whole(1, 9)) for _ in range(draw.whole(1, 4))]
    return draw.case(inputs, lambda x, _: torch.cat(x, dim=2))


@spec("slice")
def _slice(draw: Draw, name: str) -> Case:
    over, axis = _over(draw)
    x = draw.value(draw.whole(1, 5), draw.whole(1, 9))
    begin = draw.whole(0, x.shape[axis] - 1)
    end = draw.whole(begin + 1, x.shape[axis])
    return draw.case(
        [x], lambda x, _: x[0].narrow(axis, begin, end - begin), begin=begin, end=end, over=over
    )


@spec("gather")
def _gather(draw: Draw, name: str) -> Case:
    x = draw.value(draw.whole(1, 4), draw.whole(1, 9))
    columns = [draw.whole(0, x.shape[2] - 1) for _ in range(draw.whole(1, 6))]
    return draw.case([x], lambda x, _: x[0][:, :, columns], columns=columns)


@spec("reshape")
def _reshape(draw: Draw, name: str) -> Case:
    x = draw.value(draw.whole(1, 4), draw.whole(1, 9))
    return draw.case([x], lambda x, _: x[0].reshape(x[0].shape[0], -1), length=x.shape[2])


@spec("transpose")
def _transpose(draw: Draw, name: str) -> Case:
    x = draw.value(draw.whole(1, 4), draw.whole(1, 9))
    return draw.case([x], lambda x, _: x[0].transpose(1, 2))


def _shaped(mask: Tensor, axis: int) -> Tensor:
    """A mask [batch, 1, n] along the axis that it masks."""
    return mask.transpose(1, 2) if axis == 1 else mask


@spec("reduce_sum", "reduce_mean", "reduce_max", "softmax")
def _runs(draw: Draw, name: str) -> Case:
    over, axis = _over(draw)
    inputs = [draw.value(draw.whole(1, 6), draw.whole(1, 9))]
    masked = draw.chance(0.5)
    if masked:
        inputs.append(draw.mask(inputs[0].shape[axis]))
        inputs[1][:, :, 0] = 1  # torch knows no mean of nothing

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        mask = _shaped(x[1].detach(), axis) if masked else torch.ones_like(x[0])
        if name == "reduce_sum":
            return (x[0] * mask).sum(axis)
        if name == "reduce_mean":
            return (x[0] * mask).sum(axis) / mask.expand_as(x[0]).sum(axis)
        hidden = x[0].masked_fill(mask == 0, -math.inf)
        return hidden.amax(axis) if name == "reduce_max" else hidden.softmax(axis)

    return draw.case(inputs, compute, over=over)


@spec("log_softmax")
def _log_softmax(draw: Draw, name: str) -> Case:
    over, axis = _over(draw)
    x = draw.value(draw.whole(1, 6), draw.whole(1, 9))
    return draw.case([x], lambda x, _: x[0].log_softmax(axis), over=over)


@spec("matmul")
def _matmul(draw: Draw, name: str) -> Case:
    t, s, d = draw.whole(1, 5), draw.whole(1, 5), draw.whole(1, 20)
    turned = draw.chance(0.5)
    b = draw.value(s, d) if turned else draw.value(d, s)
    return draw.case(
        [draw.value(t, d), b],
        lambda x, _: x[0] @ (x[1].transpose(1, 2) if turned else x[1]),
        transpose_b=turned,
    )
