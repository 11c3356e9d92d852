"""What torch computes: losses."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as fn
from operator_case import Attr, Case, Draw, spec
from torch import Tensor

# Losses.


def a_loss(
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

    case = a_loss(draw, [draw.value(1, 1)], losses, _sigmoid)
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

    case = a_loss(draw, [draw.value(1, 1)], losses, lambda x: x[0].reshape(-1))
    case.label = label
    if name == "huber_loss":
        case.attrs = {"delta": delta}
    return case


@spec("softmax_cross_entropy")
def _softmax_cross_entropy(draw: Draw, name: str) -> Case:
    classes = draw.whole(2, 9)
    label = torch.randint(0, classes, (draw.batch,), generator=draw.rng)
    case = a_loss(
        draw,
        [draw.value(1, classes)],
        lambda x: fn.cross_entropy(x[0].squeeze(1), label, reduction="none"),
        lambda x: x[0].squeeze(1).argmax(1).to(torch.float64),
    )
    case.label = label.to(torch.float64)
    return case


@spec("bpr_loss")
def _bpr_loss(draw: Draw, name: str) -> Case:
    return a_loss(
        draw,
        [draw.value(1, 1), draw.value(1, draw.whole(1, 6))],
        lambda x: -fn.logsigmoid(x[0] - x[1]).mean((1, 2)),
        lambda x: torch.sigmoid(x[0] - x[1]).mean((1, 2)),
    )


@spec("negative_sampling")
def _negative_sampling(draw: Draw, name: str) -> Case:
    return a_loss(
        draw,
        [draw.value(1, 1), draw.value(draw.whole(1, 6), 1)],
        lambda x: -fn.logsigmoid(x[0]).reshape(-1) - fn.logsigmoid(-x[1]).sum((1, 2)),
        _sigmoid,
    )


@spec("sampled_softmax")
def _sampled_softmax(draw: Draw, name: str) -> Case:
    drawn = draw.whole(1, 6)
    inputs = [draw.value(1, 1), draw.value(drawn, 1)]
    if draw.chance(0.5):
        inputs.append(draw.value(1, drawn + 1))

    def losses(x: list[Tensor]) -> Tensor:
        scores = torch.cat([x[0].flatten(1), x[1].flatten(1)], 1)
        if len(x) > 2:
            scores = scores - x[2].flatten(1)
        first = torch.zeros(len(scores), dtype=torch.long)
        return fn.cross_entropy(scores, first, reduction="none")

    return a_loss(draw, inputs, losses, _sigmoid)


@spec("in_batch_softmax")
def _in_batch_softmax(draw: Draw, name: str) -> Case:
    dim, temperature = draw.whole(1, 20), draw.uniform(0.3, 2)

    def scores(x: list[Tensor]) -> Tensor:
        return x[0].squeeze(1) @ x[1].squeeze(1).T / temperature

    return a_loss(
        draw,
        [draw.value(1, dim), draw.value(1, dim)],
        lambda x: fn.cross_entropy(scores(x), torch.arange(x[0].shape[0]), reduction="none"),
        lambda x: torch.sigmoid(scores(x).diagonal()),
        temperature=temperature,
    )
