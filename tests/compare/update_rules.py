"""Holds the update rules of flux against torch.optim and numpy on random shapes and values.

    python tests/compare/update_rules.py --program build/bin/optimizer_cases [--cases 100]
    python tests/compare/update_rules.py --golden tests/golden/optimizers.txt

torch computes the rules it has (sgd, momentum, adagrad, adam, adamw, rmsprop), plain numpy the
others, both in double precision; `optimizer_cases` makes the same steps with flux and says how far
the worst weight is off. --golden writes two small cases of each rule, which `make test` replays.
Needs torch and numpy; `make compare` sets them up.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Settings = dict[str, float | bool]
# One step: weights, gradient, learning rate of this step -> weights. Holds its own state.
Step = Callable[[Floats, Floats, float], Floats]

TOLERANCE = 1e-5


def _torch_step(rule: str, dim: int, s: Settings) -> Step:
    weights = torch.nn.Parameter(torch.zeros(dim, dtype=torch.float64))
    betas = (float(s.get("beta1", 0.9)), float(s.get("beta2", 0.999)))
    eps = float(s.get("epsilon", 1e-8))
    make: dict[str, Callable[[], torch.optim.Optimizer]] = {
        "sgd": lambda: torch.optim.SGD([weights], lr=1.0),
        "momentum": lambda: torch.optim.SGD(
            [weights],
            lr=1.0,
            momentum=float(s.get("momentum", 0.9)),
            nesterov=bool(s.get("nesterov", False)),
        ),
        "adagrad": lambda: torch.optim.Adagrad(
            [weights],
            lr=1.0,
            eps=eps,
            initial_accumulator_value=float(s.get("initial_accumulator", 0)),
        ),
        "adam": lambda: torch.optim.Adam([weights], lr=1.0, betas=betas, eps=eps),
        "adamw": lambda: torch.optim.AdamW(
            [weights],
            lr=1.0,
            betas=betas,
            eps=eps,
            weight_decay=float(s.get("weight_decay", 0.01)),
        ),
        "rmsprop": lambda: torch.optim.RMSprop(
            [weights], lr=1.0, alpha=float(s.get("decay", 0.99)), eps=eps
        ),
    }
    optimizer = make[rule]()

    def step(w: Floats, g: Floats, lr: float) -> Floats:
        with torch.no_grad():
            weights.copy_(torch.from_numpy(w))
        weights.grad = torch.from_numpy(g.copy())
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        return weights.detach().numpy().copy()

    return step


def _adagrad_shared(s: Settings) -> Step:
    g0 = float(s.get("initial_accumulator", 3))
    total = 0.0

    def step(w: Floats, g: Floats, lr: float) -> Floats:
        nonlocal total
        out = w - lr * g * np.sqrt(g0 / (g0 + total))
        total += float(np.mean(g * g))
        return out

    return step


def _adam_shared(s: Settings) -> Step:
    beta1, beta2 = float(s.get("beta1", 0.9)), float(s.get("beta2", 0.999))
    eps = float(s.get("epsilon", 1e-8))
    m = v = 0.0
    t = 0

    def step(w: Floats, g: Floats, lr: float) -> Floats:
        nonlocal m, v, t
        t += 1
        means = beta1 * m + (1 - beta1) * g
        squares = beta2 * v + (1 - beta2) * g * g
        m, v = float(means.mean()), float(squares.mean())
        return w - lr * (means / (1 - beta1**t)) / (np.sqrt(squares / (1 - beta2**t)) + eps)

    return step


def _ftrl(s: Settings, dim: int, group: bool) -> Step:
    beta = float(s.get("beta", 1))
    l1, l2 = float(s.get("l1", 0)), float(s.get("l2", 0))
    z = np.zeros(dim)
    n = np.full(dim, float(s.get("initial_accumulator", 0)))

    def step(w: Floats, g: Floats, lr: float) -> Floats:
        nonlocal z, n
        sigma = (np.sqrt(n + g * g) - np.sqrt(n)) / lr
        z = z + g - sigma * w
        n = n + g * g
        below = (beta + np.sqrt(n)) / lr + l2
        if not group:
            shrunk: Floats = np.sign(z) * np.maximum(np.abs(z) - l1, 0)
            return -shrunk / below
        norm, limit = float(np.linalg.norm(z)), l1 * np.sqrt(dim)
        return np.zeros(dim) if norm <= limit else -z * (1 - limit / norm) / below

    return step


def _plain_step(rule: str, dim: int, s: Settings) -> Step:
    if rule == "adagrad_shared":
        return _adagrad_shared(s)
    if rule == "adam_shared":
        return _adam_shared(s)
    if rule in ("ftrl", "group_ftrl"):
        return _ftrl(s, dim, rule == "group_ftrl")
    if rule == "sum":
        return lambda w, g, lr: w + g
    decay = float(s.get("decay", np.float32(0.9999999)))
    return lambda w, g, lr: decay * w + g


TORCH_RULES = ("sgd", "momentum", "adagrad", "adam", "adamw", "rmsprop")
PLAIN_RULES = ("adagrad_shared", "adam_shared", "ftrl", "group_ftrl", "sum", "summary")
WITH_TERMS = ("sgd", "momentum", "adagrad", "adagrad_shared", "adam", "adam_shared", "rmsprop")
# Settings of single rules with the range that they are drawn from.
OWN: dict[str, dict[str, tuple[float, float]]] = {
    "sgd": {},
    "momentum": {"momentum": (0.1, 0.99)},
    "adagrad": {"initial_accumulator": (0, 1), "epsilon": (1e-8, 1e-3)},
    "adagrad_shared": {"initial_accumulator": (0.1, 5)},
    "adam": {"beta1": (0.5, 0.95), "beta2": (0.9, 0.999), "epsilon": (1e-8, 1e-3)},
    "adam_shared": {"beta1": (0.5, 0.95), "beta2": (0.9, 0.999), "epsilon": (1e-8, 1e-3)},
    "adamw": {"beta1": (0.5, 0.95), "beta2": (0.9, 0.999), "weight_decay": (0, 2)},
    "ftrl": {"initial_accumulator": (0, 1), "beta": (0.1, 2), "l1": (0, 2), "l2": (0, 2)},
    "group_ftrl": {"initial_accumulator": (0, 1), "beta": (0.1, 2), "l1": (0, 2), "l2": (0, 2)},
    "rmsprop": {"decay": (0.5, 0.99), "epsilon": (1e-6, 1e-3)},
    "sum": {},
    "summary": {"decay": (0.1, 1)},
}


def _single(x: float) -> float:
    """The nearest number that a float has, as flux reads it."""
    return float(np.float32(x))


class Case:
    """One rule with drawn settings, its weights, steps and what they lead to."""

    def __init__(self, rule: str, rng: np.random.Generator, dim_max: int, steps_max: int) -> None:
        self.rule = rule
        self.dim = int(rng.integers(1, dim_max + 1))
        self.lr = _single(10 ** rng.uniform(-3, -0.7))
        self.settings: Settings = {
            name: _single(rng.uniform(*bounds))
            for name, bounds in OWN[rule].items()
            if rng.random() < 0.7
        }
        if rule == "momentum":
            self.settings["nesterov"] = bool(rng.random() < 0.5)
        self._draw_shaping(rng)
        size = 10 ** rng.uniform(-2, 0.7)
        self.weights: Floats = rng.normal(size=self.dim).astype(np.float32).astype(np.float64)
        self.steps: list[tuple[float, Floats]] = []
        for _ in range(int(rng.integers(1, steps_max + 1))):
            scale = 1.0 if rng.random() < 0.5 else _single(rng.uniform(0.2, 2))
            gradient = (size * rng.normal(size=self.dim)).astype(np.float32)
            self.steps.append((scale, gradient.astype(np.float64)))

    def _draw_shaping(self, rng: np.random.Generator) -> None:
        def maybe(name: str, low: float, high: float) -> None:
            if rng.random() < 0.25:
                self.settings[name] = _single(rng.uniform(low, high))

        if self.rule in WITH_TERMS:
            maybe("l1", 0, 1)
            maybe("l2", 0, 1)
        if self.rule not in ("sum", "summary"):
            maybe("clip", 0.1, 3)
            maybe("clip_norm", 0.1, 5)
        if self.rule != "summary":
            maybe("weight_min", -2, -0.2)
            maybe("weight_max", 0.2, 2)

    def _shaped(self, w: Floats, g: Floats) -> Floats:
        s = self.settings
        if "clip" in s:
            g = np.clip(g, -float(s["clip"]), float(s["clip"]))
        norm = float(np.linalg.norm(g))
        if "clip_norm" in s and norm > float(s["clip_norm"]):
            g = g * (float(s["clip_norm"]) / norm)
        if self.rule in WITH_TERMS:
            g = g + float(s.get("l2", 0)) * w + float(s.get("l1", 0)) * np.sign(w)
        return g

    def lines(self) -> list[str]:
        """The case as rule_cases.h reads it."""
        words = [f"{k}={str(v).lower() if isinstance(v, bool) else repr(v)}"
                 for k, v in self.settings.items()]
        if self.rule not in ("sum", "summary"):
            words.insert(0, f"lr={self.lr!r}")
        out = [" ".join(["case", self.rule, *words]), "weights " + _numbers(self.weights)]
        make = _torch_step if self.rule in TORCH_RULES else _plain_step
        step = make(self.rule, self.dim, self.settings)
        w = self.weights
        low = float(self.settings.get("weight_min", -np.inf))
        high = float(self.settings.get("weight_max", np.inf))
        for scale, gradient in self.steps:
            w = np.clip(step(w, self._shaped(w, gradient), self.lr * scale), low, high)
            out.append(f"step {scale!r} " + _numbers(gradient))
            out.append("want " + _numbers(w))
        return out


def _numbers(values: Floats) -> str:
    return " ".join(f"{x:.9g}" for x in values)


def _text(cases: int, seed: int, dim_max: int, steps_max: int) -> str:
    rng = np.random.default_rng(seed)
    lines = []
    for rule in (*TORCH_RULES, *PLAIN_RULES):
        for _ in range(cases):
            lines += Case(rule, rng, dim_max, steps_max).lines()
    return "\n".join(lines) + "\n"


def _compare(program: Path, cases: int, seed: int) -> int:
    text = _text(cases, seed, dim_max=70, steps_max=8)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr, end="")
        return 1
    worst = float(done.stdout.rsplit("worst ", 1)[1].split()[0])
    total = cases * (len(TORCH_RULES) + len(PLAIN_RULES))
    print(f"optimizers: {total} cases, off by at most {worst:.2g} (allowed {TOLERANCE})")
    return 0 if worst <= TOLERANCE else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--program", type=Path, help="optimizer_cases, as built")
    parser.add_argument("--golden", type=Path, help="write the golden file instead")
    parser.add_argument("--cases", type=int, default=100, help="of each rule")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.golden is not None:
        args.golden.write_text(_text(2, args.seed, dim_max=9, steps_max=4))
        return 0
    if args.program is None:
        parser.error("give --program or --golden")
    return _compare(args.program, args.cases, args.seed)


if __name__ == "__main__":
    sys.exit(main())
