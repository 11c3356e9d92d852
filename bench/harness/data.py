"""The data of a run, and its forms for the peers, made once per content."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from harness import machine, process
from harness.errors import BenchError
from harness.flux import Files, Flux

BENCH = Path(__file__).resolve().parent.parent
TRAIN_SEED = 1
TEST_SEED = 2
MARKER = "source.sha256"
PADDLE_PARTS = 4  # files; each of its threads takes whole ones


def peer_env() -> dict[str, str]:
    env = {"PYTHONPATH": str(BENCH), "PYTHONDONTWRITEBYTECODE": "1"}
    if machine.describe().tiles_hidden:
        env["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_FP16"  # all but AMX
    return env


def generated(
    flux: Flux,
    folder: Path,
    examples: int,
    test_examples: int,
    threads: int,
    seeds: tuple[int, int] = (TRAIN_SEED, TEST_SEED),
) -> Files:
    """Made anew in each run. Other seeds are other examples of the same hidden truth."""
    files = Files(folder / "train.tsv", folder / "test.tsv", examples)
    print(f"generating {examples:,} examples to train on and {test_examples:,} to test on")
    flux.generate(examples, seeds[0], files.train, threads)
    flux.generate(test_examples, seeds[1], files.test, threads)
    return files


def existing(folder: Path) -> Files:
    """train.tsv and test.tsv of a folder."""
    train, test = folder / "train.tsv", folder / "test.tsv"
    for path in (train, test):
        if not path.exists():
            raise BenchError(f"{path} is not there: --data wants train.tsv and test.tsv")
    with train.open("rb") as file:
        examples = sum(1 for _ in file)
    return Files(train, test, examples)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def derived(source: Path, folder: Path, make: Callable[[Path], None]) -> Path:
    """`folder` as make() fills it from `source`; made again only when the source's bytes change."""
    marker = folder / MARKER
    wanted = digest(source)
    if marker.exists() and marker.read_text() == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make(folder)
    marker.write_text(wanted)
    return folder


def for_torch(python: Path, source: Path, cache: Path, transform: str) -> Path:
    """Folder of arrays that the in-memory rows train from."""

    def make(folder: Path) -> None:
        print(f"parsing {source.name} for PyTorch (once, not timed)")
        command = [str(python), "-m", "peers.prepare_torch", "--text", str(source)]
        process.run([*command, "--out", str(folder), "--dense", transform], env=peer_env())

    return derived(source, cache / "derived" / f"torch-{source.stem}-{transform}", make)


def for_vw(python: Path, source: Path, cache: Path, transform: str) -> Path:
    """File in vowpal wabbit's text format."""

    def make(folder: Path) -> None:
        print(f"writing {source.name} in vowpal wabbit's format (once, not timed)")
        command = [str(python), "-m", "peers.vw_text", "convert", "--text", str(source)]
        out = str(folder / "data.vw")
        process.run([*command, "--out", out, "--dense", transform], env=peer_env())

    folder = derived(source, cache / "derived" / f"vw-{source.stem}-{transform}", make)
    return folder / "data.vw"


def for_xlearn(python: Path, files: Files, cache: Path, transform: str) -> Path:
    """Folder of both files in libsvm's text format; they share their numbering."""

    def make(folder: Path) -> None:
        print("writing the data in libsvm's format (once, not timed)", flush=True)
        command = [str(python), "-m", "peers.libsvm_text", "convert", "--train", str(files.train)]
        command += ["--test", str(files.test), "--out", str(folder), "--dense", transform]
        process.run(command, env=peer_env())

    return derived(files.train, cache / "derived" / f"xlearn-{transform}", make)


def for_paddle(python: Path, source: Path, cache: Path, transform: str) -> Path:
    """Folder of files in Paddle's text format."""

    def make(folder: Path) -> None:
        print(f"writing {source.name} in Paddle's format (once, not timed)", flush=True)
        command = [str(python), "-m", "peers.paddle_text", "--text", str(source)]
        command += ["--out", str(folder), "--dense", transform, "--parts", str(PADDLE_PARTS)]
        process.run(command, env=peer_env())

    return derived(source, cache / "derived" / f"paddle-{source.stem}-{transform}", make)
