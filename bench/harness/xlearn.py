"""xLearn, the peer of factorization machines: its programs, its data, one run.

PyPI has its source only, with all of its C++: the two programs are built here with CMake, from the
pinned version, by its own flags (-O3 -march=native).
"""

from __future__ import annotations

import sys
import tarfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness import data, setup
from harness.cases import PeerCommands, flux_whole
from harness.flux import Files, Flux
from harness.rows import Case, Row, Sample

K = 8  # numbers of a vector, as in examples/fm
# The best of a search on the benchmark's data, one thread, one epoch. AUC: 0.05 0.7374, 0.1 0.7478,
# 0.2 (its default) 0.7559, 0.3 0.7593, 0.5 0.7622, 0.8 0.7633.
LEARNING_RATE = 0.8
PROGRAMS = ("xlearn_train", "xlearn_predict")
ENV = {"USER": "bench"}  # it crashes without


def version() -> str:
    return setup.requirements_of("xlearn").read_text().strip().partition("==")[2]


def programs_of(cache: Path) -> Path:
    """The folder with its programs; builds them if absent or of another version."""
    folder = cache / "xlearn"
    marker = folder / setup.MARKER
    wanted = setup.digest(setup.requirements_of("xlearn"))
    if marker.exists() and marker.read_text() == wanted:
        return folder / "build"
    print("building xLearn from its source on PyPI (once)", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    setup.call(
        [*pip, "-d", str(folder), "-r", str(setup.requirements_of("xlearn"))],
        "no network? leave this part out with --only",
    )
    archive = max(folder.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    source = folder / archive.name.removesuffix(".tar.gz") / "compile"
    build = folder / "build"
    # Newer versions of CMake refuse what it says of itself otherwise.
    old = "-DCMAKE_POLICY_VERSION_MINIMUM=3.5"
    setup.call(["cmake", "-S", str(source), "-B", str(build), old], "needs cmake")
    setup.call(["make", "-C", str(build), *PROGRAMS], "needs make and a C++ compiler")
    marker.write_text(wanted)
    return build


@dataclass(frozen=True)
class XlearnPeer:
    programs: Path
    files: Files
    folder: Path  # of train.svm and test.svm
    scratch: Path

    @staticmethod
    def prepare(programs: Path, files: Files, cache: Path, transform: str) -> XlearnPeer:
        folder = data.for_xlearn(Path(sys.executable), files, cache, transform)
        return XlearnPeer(programs, files, folder, cache)

    def measure(self, threads: int, _round: int) -> Sample:
        """From text: its binary copies of the text are removed."""
        for stale in self.folder.glob("*.bin"):
            stale.unlink()
        model, predictions = self.scratch / "xlearn.model", self.scratch / "xlearn.predictions"
        log = str(self.scratch / "xlearn.log")
        train = str(self.folder / f"{self.files.train.stem}.svm")
        learn = [str(self.programs / PROGRAMS[0]), train]
        learn += ["-s", "1", "-k", str(K), "-e", "1", "--dis-es", "-r", str(LEARNING_RATE)]
        learn += ["-nthread", str(threads), "-m", str(model), "-l", log, "--quiet"]
        test = str(self.folder / f"{self.files.test.stem}.svm")
        score = [str(self.programs / PROGRAMS[1]), test, str(model), "-o", str(predictions)]
        score += ["--sigmoid", "-nthread", str(threads), "-l", log]
        auc = [sys.executable, "-m", "peers.libsvm_text", "auc", "--text", str(self.files.test)]
        commands = PeerCommands(learn, score, [*auc, "--predictions", str(predictions)], ENV)
        sample = commands.measure(self.files.examples, threads)
        for path in (model, predictions, *self.scratch.glob("xlearn.log*")):
            path.unlink()
        return sample


def fm_cases(flux: Flux | None, peer: XlearnPeer, files: Files, threads: int) -> list[Case]:
    row = Row("xlearn", "xLearn", f"FM, k {K}, libsvm text", threads)
    cases = [Case(row, partial(peer.measure, threads))]
    if flux:
        row = Row("flux_fm", "flux", f"FM, k {K}, from Criteo text", threads)
        cases.append(Case(row, partial(flux_whole, flux, files, threads, "fm")))
    return cases
