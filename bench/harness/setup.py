"""Environments of the peers: one virtual environment each, made on demand, versions pinned."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from harness.errors import BenchError

PEERS = Path(__file__).resolve().parent.parent / "peers"
MARKER = "requirements.sha256"


def _digest(requirements: Path) -> str:
    return hashlib.sha256(requirements.read_bytes()).hexdigest()


def _call(command: list[str], hint: str) -> None:
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
        raise BenchError(f"{' '.join(command[1:4])} failed: {hint}")


def python_of(peer: str, cache: Path) -> Path:
    """The interpreter of the peer's environment; sets it up if absent or of other versions."""
    requirements = PEERS / f"requirements-{peer}.txt"
    folder = cache / peer
    python = folder / "bin" / "python"
    marker = folder / MARKER
    if python.exists() and marker.exists() and marker.read_text() == _digest(requirements):
        return python
    print(f"setting up {peer} in its own environment (once; torch is about 3 GB to download)")
    shutil.rmtree(folder, ignore_errors=True)
    _call(
        [sys.executable, "-m", "venv", str(folder)],
        "on Debian the module comes with `apt install python3-venv`",
    )
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-deps"]
    _call(
        [*pip, "-r", str(requirements)],
        f"no network, or no wheel for Python {sys.version_info[0]}.{sys.version_info[1]}; "
        f"see {requirements.name}, or leave this part out with --only",
    )
    marker.write_text(_digest(requirements))
    return python
