"""What each operator computes, written with torch, and how random cases of it are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as fn
from torch import Tensor

Attr = bool | int | float | str | list[int]
Compute = Callable[[list[Tensor], list[Tensor]], Tensor]


@dataclass
class Case:
    """Inputs are [batch, length, dim]; `compute` gives the output, of a loss what it predicts."""

    rng: torch.Generator
    batch: int
    inputs: list[Tensor]
    compute: Compute
    attrs: dict[str, Attr] = field(default_factory=dict)
    parameters: list[Tensor] = field(default_factory=list)
    losses: Callable[[list[Tensor]], Tensor] | None = None
    label: Tensor | None = None
    weight: Tensor | None = None
    wanted: dict[int, Tensor] = field(default_factory=dict)  # of parameters that torch cannot know


class Draw:
    """Random numbers and shapes of one case."""

    def __init__(self, rng: torch.Generator) -> None:
        self.rng = rng
        self.batch = self.int(1, 6)

    def int(self, low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (1,), generator=self.rng))

    def chance(self, p: float) -> bool:
        return self.uniform(0, 1) < p

    def uniform(self, low: float, high: float) -> float:
        # Six digits, so that what torch gets is what the file says.
        return round(low + (high - low) * float(torch.rand(1, generator=self.rng)), 6)

    def normal(self, *shape: int) -> Tensor:
        """Numbers that are the same in single precision."""
        values = torch.randn(shape, generator=self.rng, dtype=torch.float32)
        return values.to(torch.float64)

    def value(self, length: int, dim: int) -> Tensor:
        return self.normal(self.batch, length, dim)

    def positive(self, length: int, dim: int) -> Tensor:
        return (self.value(length, dim).abs() + 0.1).to(torch.float32).to(torch.float64)

    def mask(self, n: int) -> Tensor:
        return (self.value(1, n) > -0.3).to(torch.float64)

    def case(self, inputs: list[Tensor], compute: Compute, **attrs: Attr) -> Case:
        return Case(self.rng, self.batch, inputs, compute, attrs)


Spec = Callable[[torch.Generator], Case]
SPECS: dict[str, Spec] = {}


def spec(*names: str) -> Callable[[Callable[[Draw, str], Case]], Callable[[Draw, str], Case]]:
    def register(make: Callable[[Draw, str], Case]) -> Callable[[Draw, str], Case]:
        for name in names:
            SPECS[name] = lambda rng, name=name: make(Draw(rng), name)  # type: ignore[misc]
        return make

    return register


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
    return draw.case([draw.value(draw.int(1, 4), draw.int(1, 9))], lambda x, _: PLAIN[name](x[0]))


@spec("log", "sqrt")
def _guarded(draw: Draw, name: str) -> Case:
    epsilon = draw.uniform(0.05, 0.5)
    function = torch.log if name == "log" else torch.sqrt
    return draw.case(
        [draw.value(draw.int(1, 4), draw.int(1, 9))],
        lambda x, _: function(x[0].clamp(min=epsilon)),
        epsilon=epsilon,
    )


@spec("scale")
def _scale(draw: Draw, name: str) -> Case:
    factor, bias = draw.uniform(-2, 2), draw.uniform(-2, 2)
    x = draw.value(draw.int(1, 4), draw.int(1, 9))
    return draw.case([x], lambda x, _: factor * x[0] + bias, factor=factor, bias=bias)


@spec("clip")
def _clip(draw: Draw, name: str) -> Case:
    low, high = draw.uniform(-1, 0), draw.uniform(0.1, 1)
    x = draw.value(draw.int(1, 4), draw.int(1, 9))
    return draw.case([x], lambda x, _: x[0].clamp(low, high), min=low, max=high)


@spec("pow")
def _pow(draw: Draw, name: str) -> Case:
    if draw.chance(0.5):
        whole = float(draw.int(0, 4))
        x = draw.value(draw.int(1, 4), draw.int(1, 9))
        return draw.case([x], lambda x, _: x[0] ** whole, exponent=whole)
    exponent = draw.uniform(-2, 2)
    x = draw.positive(draw.int(1, 4), draw.int(1, 9))
    return draw.case([x], lambda x, _: x[0] ** exponent, exponent=exponent)


@spec("leaky_relu")
def _leaky_relu(draw: Draw, name: str) -> Case:
    slope = draw.uniform(0, 1)
    x = draw.value(draw.int(1, 4), draw.int(1, 9))
    return draw.case([x], lambda x, _: fn.leaky_relu(x[0], slope), slope=slope)


@spec("elu")
def _elu(draw: Draw, name: str) -> Case:
    alpha = draw.uniform(0, 2)
    x = draw.value(draw.int(1, 4), draw.int(1, 9))
    return draw.case([x], lambda x, _: fn.elu(x[0], alpha), alpha=alpha)


@spec("prelu")
def _prelu(draw: Draw, name: str) -> Case:
    dim = draw.int(1, 9)
    case = draw.case(
        [draw.value(draw.int(1, 4), dim)],
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
    length, dim = draw.int(1, 4), draw.int(1, 7)
    a, b = draw.value(length, dim), _stretched(draw, length, dim)
    if name in ("equal", "not_equal"):
        a, b = a.round(), b.round()
    return draw.case([a, b], lambda x, _: BINARY[name](x[0], x[1]))


@spec("div")
def _div(draw: Draw, name: str) -> Case:
    length, dim = draw.int(1, 4), draw.int(1, 7)
    b = _stretched(draw, length, dim)
    b = torch.where(b.abs() < 0.2, torch.full_like(b, 0.5), b)
    return draw.case([draw.value(length, dim), b], lambda x, _: x[0] / x[1])


@spec("add", "mul", "entrywise_product")
def _many(draw: Draw, name: str) -> Case:
    length, dim = draw.int(1, 4), draw.int(1, 7)
    inputs = [draw.value(length, dim)]
    inputs += [_stretched(draw, length, dim) for _ in range(draw.int(1, 4))]

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        result = x[0]
        for more in x[1:]:
            result = result + more if name == "add" else result * more
        return result

    return draw.case(inputs, compute)


@spec("select")
def _select(draw: Draw, name: str) -> Case:
    length, dim = draw.int(1, 4), draw.int(1, 7)
    condition = (draw.value(length, dim) > 0).to(torch.float64)
    inputs = [condition, draw.value(length, dim), _stretched(draw, length, dim)]
    return draw.case(inputs, lambda x, _: torch.where(x[0] != 0, x[1], x[2]))


# Shapes.


def _over(draw: Draw) -> tuple[str, int]:
    return ("positions", 1) if draw.chance(0.5) else ("features", 2)


@spec("concat")
def _concat(draw: Draw, name: str) -> Case:
    inputs = [draw.value(1, draw.int(1, 9)) for _ in range(draw.int(1, 4))]
    return draw.case(inputs, lambda x, _: torch.cat(x, dim=2))


@spec("slice")
def _slice(draw: Draw, name: str) -> Case:
    over, axis = _over(draw)
    x = draw.value(draw.int(1, 5), draw.int(1, 9))
    begin = draw.int(0, x.shape[axis] - 1)
    end = draw.int(begin + 1, x.shape[axis])
    return draw.case(
        [x], lambda x, _: x[0].narrow(axis, begin, end - begin), begin=begin, end=end, over=over
    )


@spec("gather")
def _gather(draw: Draw, name: str) -> Case:
    x = draw.value(draw.int(1, 4), draw.int(1, 9))
    columns = [draw.int(0, x.shape[2] - 1) for _ in range(draw.int(1, 6))]
    return draw.case([x], lambda x, _: x[0][:, :, columns], columns=columns)


@spec("reshape")
def _reshape(draw: Draw, name: str) -> Case:
    x = draw.value(draw.int(1, 4), draw.int(1, 9))
    return draw.case([x], lambda x, _: x[0].reshape(x[0].shape[0], -1), length=x.shape[2])


@spec("transpose")
def _transpose(draw: Draw, name: str) -> Case:
    x = draw.value(draw.int(1, 4), draw.int(1, 9))
    return draw.case([x], lambda x, _: x[0].transpose(1, 2))


def _shaped(mask: Tensor, axis: int) -> Tensor:
    """A mask [batch, 1, n] along the axis that it masks."""
    return mask.transpose(1, 2) if axis == 1 else mask


@spec("reduce_sum", "reduce_mean", "reduce_max", "softmax")
def _runs(draw: Draw, name: str) -> Case:
    over, axis = _over(draw)
    inputs = [draw.value(draw.int(1, 6), draw.int(1, 9))]
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
    x = draw.value(draw.int(1, 6), draw.int(1, 9))
    return draw.case([x], lambda x, _: x[0].log_softmax(axis), over=over)


@spec("matmul")
def _matmul(draw: Draw, name: str) -> Case:
    t, s, d = draw.int(1, 5), draw.int(1, 5), draw.int(1, 20)
    turned = draw.chance(0.5)
    b = draw.value(s, d) if turned else draw.value(d, s)
    return draw.case(
        [draw.value(t, d), b],
        lambda x, _: x[0] @ (x[1].transpose(1, 2) if turned else x[1]),
        transpose_b=turned,
    )


# Layers.


@spec("fc")
def _fc(draw: Draw, name: str) -> Case:
    length, dim, units = draw.int(1, 4), draw.int(1, 20), draw.int(1, 20)
    activation = ["none", "relu", "sigmoid", "tanh"][draw.int(0, 3)]
    each = draw.chance(0.5)
    wide = dim if each else length * dim
    functions = {"none": lambda z: z, "relu": torch.relu, "sigmoid": torch.sigmoid}

    def compute(x: list[Tensor], p: list[Tensor]) -> Tensor:
        z = x[0] if each else x[0].reshape(x[0].shape[0], -1)
        return functions.get(activation, torch.tanh)(z @ p[0] + p[1])

    case = draw.case([draw.value(length, dim)], compute)
    case.attrs = {"units": units, "activation": activation, "per_position": each}
    case.parameters = [draw.normal(wide, units), draw.normal(units)]
    return case


@spec("layer_norm")
def _layer_norm(draw: Draw, name: str) -> Case:
    dim = draw.int(2, 20)
    case = draw.case(
        [draw.value(draw.int(1, 4), dim)],
        lambda x, p: fn.layer_norm(x[0], [dim], p[0], p[1], 1e-3),
        epsilon=1e-3,
    )
    case.parameters = [draw.normal(dim), draw.normal(dim)]
    return case


@spec("l2_normalize")
def _l2_normalize(draw: Draw, name: str) -> Case:
    x = draw.value(draw.int(1, 4), draw.int(1, 20))
    return draw.case([x], lambda x, _: fn.normalize(x[0], dim=2))


@spec("cvm")
def _cvm(draw: Draw, name: str) -> Case:
    x = draw.positive(draw.int(1, 4), draw.int(3, 9))
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
    x = draw.value(draw.int(2, 8), draw.int(1, 20))
    if name == "fm":
        return draw.case([x], lambda x, _: _pairs(x[0]).sum((1, 2)))
    return draw.case([x], lambda x, _: _pairs(x[0]).sum(1))


@spec("ffm")
def _ffm(draw: Draw, name: str) -> Case:
    slots, dim = draw.int(2, 5), draw.int(1, 6)

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        v = x[0].reshape(-1, slots, slots, dim)
        products = (v * v.transpose(1, 2)).sum(3)
        return products.triu(1).sum((1, 2))

    return draw.case([draw.value(slots, slots * dim)], compute)


@spec("dot_interaction")
def _dot_interaction(draw: Draw, name: str) -> Case:
    dim, itself = draw.int(1, 20), draw.chance(0.5)
    inputs = [draw.value(draw.int(2, 6), dim)]
    if draw.chance(0.5):
        inputs.append(draw.value(draw.int(1, 3), dim))

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        v = torch.cat(x, dim=1)
        rows, columns = torch.tril_indices(v.shape[1], v.shape[1], 0 if itself else -1)
        return (v @ v.transpose(1, 2))[:, rows, columns]

    return draw.case(inputs, compute, self=itself)


@spec("dot", "cosine")
def _similarity(draw: Draw, name: str) -> Case:
    length, dim = draw.int(1, 4), draw.int(2, 20)
    inputs = [draw.value(1 if draw.chance(0.3) else length, dim) for _ in range(2)]
    if name == "dot":
        return draw.case(inputs, lambda x, _: (x[0] * x[1]).sum(2))
    return draw.case(inputs, lambda x, _: fn.cosine_similarity(x[0], x[1], dim=2))


@spec("cross")
def _cross(draw: Draw, name: str) -> Case:
    n = draw.int(2, 40)
    rank = 0 if draw.chance(0.5) else draw.int(1, n - 1)

    def compute(x: list[Tensor], p: list[Tensor]) -> Tensor:
        z = x[1] @ p[0] @ p[1] + p[2] if rank else x[1] @ p[0] + p[1]
        return x[0] * z + x[1]

    case = draw.case([draw.value(1, n), draw.value(1, n)], compute, rank=rank)
    thin = [draw.normal(n, rank), draw.normal(rank, n)]
    case.parameters = [*(thin if rank else [draw.normal(n, n)]), draw.normal(n)]
    return case


@spec("cin")
def _cin(draw: Draw, name: str) -> Case:
    m, h, dim, units = draw.int(1, 5), draw.int(1, 6), draw.int(1, 9), draw.int(1, 20)
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
    dim = draw.int(1, 9)

    def compute(x: list[Tensor], _: list[Tensor]) -> Tensor:
        q = x[0].expand_as(x[1])
        return torch.cat([q, x[1], q - x[1], q * x[1]], dim=2)

    return draw.case([draw.value(1, dim), draw.value(draw.int(1, 6), dim)], compute)


@spec("attention_pooling")
def _attention_pooling(draw: Draw, name: str) -> Case:
    length, normalize = draw.int(1, 7), "softmax" if draw.chance(0.5) else "none"
    inputs = [draw.value(length, 1), draw.value(length, draw.int(1, 20))]
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
    dim, a, b = draw.int(1, 20), draw.int(1, 4), draw.int(1, 3)
    return draw.case(
        [draw.value(1, a + b), draw.value(a, dim), draw.value(b, dim)],
        lambda x, _: (x[0].softmax(2) @ torch.cat(x[1:], dim=1)).squeeze(1),
    )


@spec("experts")
def _experts(draw: Draw, name: str) -> Case:
    experts, dim, units = draw.int(1, 4), draw.int(1, 20), draw.int(1, 20)
    activation = "relu" if draw.chance(0.5) else "none"

    def compute(x: list[Tensor], p: list[Tensor]) -> Tensor:
        each = x[0].expand(-1, experts, -1)
        z = torch.stack([each[:, e] @ p[2 * e] + p[2 * e + 1] for e in range(experts)], dim=1)
        return torch.relu(z) if activation == "relu" else z

    case = draw.case([draw.value(1 if draw.chance(0.5) else experts, dim)], compute)
    case.attrs = {"experts": experts, "units": units, "activation": activation}
    for _ in range(experts):
        case.parameters += [draw.normal(dim, units), draw.normal(units)]
    return case


@spec("multi_head_attention")
def _multi_head_attention(draw: Draw, name: str) -> Case:
    heads, queries, keys = draw.int(1, 3), draw.int(1, 5), draw.int(1, 6)
    dim, out = heads * draw.int(1, 6), heads * draw.int(1, 6)
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


# Losses.


def _loss(
    draw: Draw,
    inputs: list[Tensor],
    losses: Callable[[list[Tensor]], Tensor],
    predictions: Callable[[list[Tensor]], Tensor],
    **attrs: Attr,
) -> Case:
    case = draw.case(inputs, lambda x, _: predictions(x), **attrs)
    case.losses = losses
    if draw.chance(0.5):
        case.weight = draw.positive(1, 1).reshape(-1)
    return case


def _sigmoid(x: list[Tensor]) -> Tensor:
    return torch.sigmoid(x[0]).reshape(-1)


@spec("logistic_loss", "focal_loss", "hinge_loss")
def _binary_loss(draw: Draw, name: str) -> Case:
    label = (draw.normal(draw.batch) > 0).to(torch.float64)
    gamma, alpha, margin = draw.uniform(0, 3), draw.uniform(0, 1), draw.uniform(0.1, 2)

    def losses(x: list[Tensor]) -> Tensor:
        z = x[0].reshape(-1)
        log_loss = fn.binary_cross_entropy_with_logits(z, label, reduction="none")
        if name == "logistic_loss":
            return log_loss
        if name == "hinge_loss":
            return (margin - (2 * label - 1) * z).clamp(min=0)
        p = torch.sigmoid(z)
        hit = torch.where(label > 0, p, 1 - p)
        return torch.where(label > 0, alpha, 1 - alpha) * (1 - hit) ** gamma * log_loss

    case = _loss(draw, [draw.value(1, 1)], losses, _sigmoid)
    case.label = label
    if name == "focal_loss":
        case.attrs = {"gamma": gamma, "alpha": alpha}
    if name == "hinge_loss":
        case.attrs = {"margin": margin}
    return case


@spec("mse_loss", "huber_loss")
def _regression_loss(draw: Draw, name: str) -> Case:
    label, delta = draw.normal(draw.batch), draw.uniform(0.1, 1)

    def losses(x: list[Tensor]) -> Tensor:
        if name == "mse_loss":
            return (x[0].reshape(-1) - label) ** 2
        return fn.huber_loss(x[0].reshape(-1), label, reduction="none", delta=delta)

    case = _loss(draw, [draw.value(1, 1)], losses, lambda x: x[0].reshape(-1))
    case.label = label
    if name == "huber_loss":
        case.attrs = {"delta": delta}
    return case


@spec("softmax_cross_entropy")
def _softmax_cross_entropy(draw: Draw, name: str) -> Case:
    classes = draw.int(2, 9)
    label = torch.randint(0, classes, (draw.batch,), generator=draw.rng)
    case = _loss(
        draw,
        [draw.value(1, classes)],
        lambda x: fn.cross_entropy(x[0].squeeze(1), label, reduction="none"),
        lambda x: x[0].squeeze(1).argmax(1).to(torch.float64),
    )
    case.label = label.to(torch.float64)
    return case


@spec("bpr_loss")
def _bpr_loss(draw: Draw, name: str) -> Case:
    return _loss(
        draw,
        [draw.value(1, 1), draw.value(1, draw.int(1, 6))],
        lambda x: -fn.logsigmoid(x[0] - x[1]).mean((1, 2)),
        lambda x: torch.sigmoid(x[0] - x[1]).mean((1, 2)),
    )


@spec("negative_sampling")
def _negative_sampling(draw: Draw, name: str) -> Case:
    return _loss(
        draw,
        [draw.value(1, 1), draw.value(draw.int(1, 6), 1)],
        lambda x: -fn.logsigmoid(x[0]).reshape(-1) - fn.logsigmoid(-x[1]).sum((1, 2)),
        _sigmoid,
    )


@spec("in_batch_softmax")
def _in_batch_softmax(draw: Draw, name: str) -> Case:
    dim, temperature = draw.int(1, 20), draw.uniform(0.3, 2)

    def scores(x: list[Tensor]) -> Tensor:
        return x[0].squeeze(1) @ x[1].squeeze(1).T / temperature

    return _loss(
        draw,
        [draw.value(1, dim), draw.value(1, dim)],
        lambda x: fn.cross_entropy(scores(x), torch.arange(x[0].shape[0]), reduction="none"),
        lambda x: torch.sigmoid(scores(x).diagonal()),
        temperature=temperature,
    )
