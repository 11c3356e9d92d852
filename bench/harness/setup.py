"""Environments of the peers: one virtual environment each, made on demand, versions pinned."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from harness.errors import BenchError, SkippedError

PEERS = Path(__file__).resolve().parent.parent / "peers"
MARKER = "requirements.sha256"
NEEDS = {"paddle": "3.10"}  # peers that do not run on the Python of the harness
SIZES = {"torch": "about 3 GB to download", "paddle": "about 130 MB to download"}


def requirements_of(peer: str) -> Path:
    return PEERS / f"requirements-{peer}.txt"


def digest(requirements: Path) -> str:
    return hashlib.sha256(requirements.read_bytes()).hexdigest()


def call(command: list[str], hint: str) -> None:
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
        raise BenchError(f"{' '.join(command[1:4])} failed: {hint}")


def version_of(python: Path) -> str:
    """ "3.10" of an interpreter; empty when it does not start, as a shim of pyenv may not."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [str(python), "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find_python(version: str, path: str, pyenv: Path) -> Path:
    """An interpreter of just this version, on the search path or among those of pyenv."""
    name = f"python{version}"
    found = [Path(folder) / name for folder in path.split(os.pathsep) if folder]
    found += sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"), reverse=True)
    for python in found:
        if python.exists() and version_of(python) == version:
            return python
    raise SkippedError(f"needs Python {version}: no {name} on the search path")


def _interpreter(peer: str) -> Path:
    if peer not in NEEDS:
        return Path(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv")))
    return find_python(NEEDS[peer], os.environ.get("PATH", ""), pyenv)


def python_of(peer: str, cache: Path) -> Path:
    """The interpreter of the peer's environment; sets it up if absent or of other versions."""
    requirements = requirements_of(peer)
    folder = cache / peer
    python = folder / "bin" / "python"
    marker = folder / MARKER
    if python.exists() and marker.exists() and marker.read_text() == digest(requirements):
        return python
    interpreter = _interpreter(peer)
    size = f"; {SIZES[peer]}" if peer in SIZES else ""
    print(f"setting up {peer} in its own environment (once{size})", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    call(
        [str(interpreter), "-m", "venv", str(folder)],
        "on Debian the module comes with `apt install python3-venv`",
    )
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-deps"]
    call(
        [*pip, "-r", str(requirements)],
        f"no network, or no wheel for Python {version_of(python)}; "
        f"see {requirements.name}, or leave this part out with --only",
    )
    marker.write_text(digest(requirements))
    return python
