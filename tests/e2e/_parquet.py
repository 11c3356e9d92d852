"""Whether there is a Parquet plug-in (`make parquet`), and the pyarrow that came with it."""

from __future__ import annotations

from _support import FLUX, SOURCE

PYTHON = SOURCE / ".parquet/bin/python"
READY = (FLUX.parent / "flux_parquet.so").exists() and PYTHON.exists()
WHY_NOT = "no Parquet plug-in; build it with make parquet"
