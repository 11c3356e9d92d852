"""Peak of a 1000 x 400 x 400 matrix product on random data through PyTorch: one JSON per line."""

from __future__ import annotations

import argparse
import json
import time

import torch

SHAPE = (1000, 400, 400)
ROUND_S = 0.25
ROUNDS = 6


def best_gflops(dtype: torch.dtype) -> float:
    rows, inner, columns = SHAPE
    left = torch.randn(rows, inner).to(dtype)
    right = torch.randn(inner, columns).to(dtype)
    out = torch.empty(rows, columns, dtype=dtype)
    best = 0.0
    for _ in range(ROUNDS):
        count = 0
        start = time.perf_counter()
        while (elapsed := time.perf_counter() - start) < ROUND_S:
            torch.mm(left, right, out=out)
            count += 1
        best = max(best, 2.0 * rows * inner * columns * count / elapsed / 1e9)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        line = {
            "bench": "gemm",
            "library": "torch",
            "precision": precision,
            "threads": args.threads,
            "gflops": round(best_gflops(dtype), 1),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
