#!/usr/bin/env python3
"""Runs one of the models of models/: makes its data if there is none, trains it, says its AUC.

    tools/model.py NAME [--flux BINARY] [--examples N]

The commands are those in the head of models/NAME.yaml. `make model NAME=din` builds flux first.
--examples makes less data than the commands say, for a try.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

MODELS = Path("models")
COMMAND = re.compile(r"^#   (flux .*)$", re.MULTILINE)


def commands(name: str) -> list[list[str]]:
    path = MODELS / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in MODELS.glob("*.yaml")))
        raise SystemExit(f"there is no model '{name}'; models: {known}")
    head = path.read_text().split("\nname:")[0]
    return [shlex.split(found) for found in COMMAND.findall(head)]


def run(flux: str, command: list[str]) -> None:
    """One command; what it makes under data/ appears when it is whole, and is not made twice."""
    shown = " ".join(command)
    made = Path(command[command.index("--out") + 1]) if command[1] == "data" else None
    if made is None:
        print(f"$ {shown}", flush=True)
        subprocess.run([flux, *command[1:]], check=True)
        return
    if made.exists():
        print(f"{made} is there", flush=True)
        return
    unfinished = made.with_name(f"unfinished.{made.name}")
    print(f"$ {shown}", flush=True)
    told = [str(unfinished) if word == str(made) else word for word in command[1:]]
    subprocess.run([flux, *told], check=True)
    unfinished.rename(made)


def reached(name: str) -> str:
    summary = json.loads((Path("out/models") / name / "summary.json").read_text())
    heads = (summary["test"] or {}).get("heads", [])
    # The head of a job with a single one has no name.
    known = [head for head in heads if head["auc"] is not None]
    told = [f"{head['head']} {head['auc']:.4f}".strip() for head in known]
    return f"{name}: AUC on test data: {', '.join(told)}" if told else f"{name}: trained"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--flux", default="build/flux", help="the binary")
    parser.add_argument("--examples", type=int, help="at most so many of each file of data")
    args = parser.parse_args()
    for command in commands(args.name):
        if args.examples is not None and "--examples" in command:
            at = command.index("--examples") + 1
            command[at] = str(min(int(command[at]), args.examples))
        try:
            run(args.flux, command)
        except subprocess.CalledProcessError as failed:
            return failed.returncode
    print(reached(args.name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
