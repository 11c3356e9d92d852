"""One random case of an operator, how its numbers are drawn, and the list of all operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

Attr = bool | int | float | str | list[int] | list[str]
Compute = Callable[[list[Tensor], list[Tensor]], Tensor]


@dataclass
class Table:
    """Rows of a sparse table, and the keys of a batch: those of each slot of each example."""

    rows: Tensor  # [rows, dim]
    slots: int
    keys: list[list[int]]  # [batch * slots]: numbers of rows
    one_key: bool = False  # in every slot
    values: list[Tensor] | None = None  # beside `keys`
    noise: int = 0

    def occurrences(self) -> list[int]:
        return [key for keys in self.keys for key in keys]


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
    table: Table | None = None
    wanted: dict[int, Tensor] = field(default_factory=dict)  # of parameters that torch cannot know


class Draw:
    """Random numbers and shapes of one case."""

    def __init__(self, rng: torch.Generator) -> None:
        self.rng = rng
        self.batch = self.whole(1, 6)

    def whole(self, low: int, high: int) -> int:
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
