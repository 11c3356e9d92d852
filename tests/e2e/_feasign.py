"""A feasign job with everything a feature may be, and made lines for it."""

from __future__ import annotations

import math
import random
from pathlib import Path

# What write_lines() puts into a line.
COLUMNS = """\
  dense: [price]
  slots:
    - {name: user}
    - {name: item}
    - {name: tags, keys: item, values: true}
    - {name: city, text: true}
"""
DATA = """\
name: features
data:
  format: feasign
  train: train.txt
  test: test.txt
  batch: {batch}
{columns}  features:
    - {{name: city_small, op: hash, of: city, modulus: 11}}
    - {{name: price_bucket, op: bucketize, of: price, boundaries: [1, 2, 4, 8]}}
    - {{name: user_price, op: cross, of: [user, price_bucket]}}
    - {{name: price_clip, op: clip, of: price, max: 5}}
output: {output}
shards: 12
threads: 1
checkpoint: {{every_s: 0}}
tables:
  - {{name: wide, dim: 1, optimizer: {{rule: ftrl, lr: 0.1}}}}
  - {{name: users, dim: 6{users}}}
  - {{name: items, dim: 3, optimizer: {{rule: adagrad, lr: 0.1}}{items}}}
model:
  layers:
    - {{name: w, op: embedding, table: wide, combine: sum}}
    - {{name: u, op: embedding, table: users{users}}}
    - {{name: i, op: embedding, table: items, pool: mean{items}}}
    - {{name: x, op: concat, inputs: [u, i, dense]}}
    - {{name: h, op: fc, inputs: x, units: 8, activation: relu}}
    - {{name: y, op: fc, inputs: h, units: 1}}
    - {{name: z, op: add, inputs: [w, y]}}
    - {{name: loss, op: logistic_loss, inputs: [z, label]}}
"""
USERS = ", slots: [user, user_price]"
ITEMS = ", slots: [item, tags]"


def job_text(output: str = "out", batch: int = 20, in_tables: bool = True) -> str:
    """With the slots of the tables, or (the same model) with those of the layers alone."""
    head, tail = DATA.split("model:")
    slots = {"users": USERS, "items": ITEMS}
    none = {"users": "", "items": ""}
    of_tables = slots if in_tables else none
    return (head.format(output=output, batch=batch, columns=COLUMNS, **of_tables)
            + "model:" + tail.format(**slots))


def write_lines(path: Path, count: int, seed: int) -> None:
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        user, item = draw.randrange(40), draw.randrange(60)
        price = round(draw.expovariate(0.3), 3)
        tags = [(draw.randrange(60), draw.randrange(1, 5) / 2) for _ in range(draw.randrange(4))]
        logit = math.sin(user) + math.cos(item) + sum(v * math.sin(3 * t) for t, v in tags) / 2
        label = int(draw.random() < 1 / (1 + math.exp(-logit)))
        words = [str(label), f"user:{user}", f"item:{item}", f"price:{price}",
                 f"city:{'abcdefghijklmnop'[user % 16]}{user % 3}",
                 *(f"tags:{tag}:{value}" for tag, value in tags)]
        draw.shuffle(tail := words[1:])
        lines.append(" ".join([words[0], *tail]))
    path.write_text("\n".join(lines) + "\n")
