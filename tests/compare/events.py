"""What TensorBoard's own reader finds in a run's event files: events.py OUTPUT_FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

TRAIN = {"train/loss", "train/loss_average", "train/progressive_auc", "train/examples_per_s"}


def main() -> None:
    output = Path(sys.argv[1])
    found = EventAccumulator(str(output / "tensorboard"))
    found.Reload()
    tags = set(found.Tags()["scalars"])
    summary = json.loads((output / "summary.json").read_text())
    head = summary["test"]["heads"][0]
    expected = {f"held-out/{name}": value for name, value in head.items()
                if isinstance(value, float) and name != "weight"}
    missing = (TRAIN | set(expected)) - tags
    if missing:
        sys.exit(f"TensorBoard does not see {sorted(missing)}")
    for tag, value in expected.items():
        event = found.Scalars(tag)[-1]
        if abs(event.value - value) > 1e-6 * max(1, abs(value)):
            sys.exit(f"{tag}: TensorBoard reads {event.value}, the summary has {value}")
    last = found.Scalars("train/loss")[-1].step
    if last != summary["expected"]:
        sys.exit(f"the last step is {last}, {summary['expected']} were trained")
    print(f"TensorBoard reads {len(tags)} scalars as they were written")


if __name__ == "__main__":
    main()
