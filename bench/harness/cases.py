"""The cases of the comparison: which rows there are, and how one sample of each is taken."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness import data, process
from harness.errors import BenchError
from harness.flux import Files, Flux
from harness.rows import Case, Row, Sample, Series, Table

VW_BITS = 22
VW_SEED = 0  # its own default; one pass over the data in order draws nothing
# key, set-up, flags of peers/torch_ctr.py, reads text
TORCH_ROWS = (
    ("torch_fp32", "eager, fp32, from memory", (), False),
    ("torch_compile", "torch.compile, fp32, from memory", ("--compile",), False),
    ("torch_bf16", "bf16 autocast, from memory", ("--bf16",), False),
    ("torch_text", "eager, fp32, from text, 1 loader", (), True),
)


def last_json(output: str) -> dict[str, object]:
    """The last line of a peer's output, which is its result."""
    lines = output.strip().splitlines()
    try:
        result = json.loads(lines[-1]) if lines else None
    except json.JSONDecodeError:
        result = None
    if not isinstance(result, dict):
        raise BenchError(f"no result line in the output: {lines[-1] if lines else '(empty)'}")
    return result


@dataclass(frozen=True)
class PeerCommands:
    """Of a peer that trains, predicts and is judged by a program each."""

    train: list[str]
    predict: list[str]
    judge: list[str]  # ends with a line that has its AUC
    env: Mapping[str, str] | None = None  # of the peer's own two
    seed: int | None = None

    def measure(self, examples: int, threads: int) -> Sample:
        """Training only is timed."""
        outcome = process.run(self.train, cores=threads, env=self.env)
        tested = process.run(self.predict, cores=threads, env=self.env)
        judged = process.run(self.judge, env=data.peer_env())
        return Sample(
            examples_per_s=examples / outcome.wall_s,
            wall_s=outcome.wall_s,
            peak_rss_bytes=outcome.peak_rss_bytes,
            others_cores=outcome.others_cores,
            auc=float(str(last_json(judged.output)["auc"])),
            extra={"test_wall_s": round(tested.wall_s, 3), "cpu_s": round(outcome.cpu_s, 2)},
            seed=self.seed,
        )


@dataclass(frozen=True)
class TorchPeer:
    python: Path
    text: Path
    train: Path  # folders of arrays
    test: Path
    transform: str

    @staticmethod
    def prepare(python: Path, files: Files, cache: Path, transform: str) -> TorchPeer:
        train = data.for_torch(python, files.train, cache, transform)
        test = data.for_torch(python, files.test, cache, transform)
        return TorchPeer(python, files.train, train, test, transform)

    def measure(self, flags: Sequence[str], text: bool, threads: int, seed: int) -> Sample:
        """One run. The seed changes with the round: the AUC is a median, not one lucky draw."""
        source = ["--text", str(self.text)] if text else ["--memory", str(self.train)]
        command = [str(self.python), "-m", "peers.torch_ctr", "--threads", str(threads), *flags]
        command += [*source, "--test", str(self.test), "--dense", self.transform]
        command += ["--seed", str(seed)]
        env = {**data.peer_env(), "OMP_NUM_THREADS": str(threads)}
        outcome = process.run(command, cores=threads, env=env)
        result = last_json(outcome.output)
        return Sample(
            examples_per_s=float(str(result["examples_per_s"])),
            wall_s=outcome.wall_s,
            peak_rss_bytes=outcome.peak_rss_bytes,
            others_cores=outcome.others_cores,
            auc=float(str(result["auc"])),
            extra={"result": result, "cpu_s": round(outcome.cpu_s, 2)},
            seed=seed,
        )


@dataclass(frozen=True)
class VwPeer:
    python: Path
    files: Files
    train: Path  # in its own format
    test: Path
    scratch: Path

    @staticmethod
    def prepare(python: Path, files: Files, cache: Path, transform: str) -> VwPeer:
        train = data.for_vw(python, files.train, cache, transform)
        test = data.for_vw(python, files.test, cache, transform)
        return VwPeer(python, files, train, test, cache)

    def measure(self, threads: int, _round: int) -> Sample:
        """From its own text format, without its cache."""
        model, predictions = self.scratch / "vw.model", self.scratch / "vw.predictions"
        vw = [str(self.python), "-m", "vowpalwabbit", "--quiet"]
        learn = [*vw, "-d", str(self.train), "--loss_function", "logistic", "-b", str(VW_BITS)]
        score = [*vw, "-d", str(self.test), "-t", "-i", str(model), "--link", "logistic"]
        auc = [str(self.python), "-m", "peers.vw_text", "auc", "--text", str(self.files.test)]
        commands = PeerCommands(
            [*learn, "-f", str(model)],
            [*score, "-p", str(predictions)],
            [*auc, "--predictions", str(predictions)],
            seed=VW_SEED,
        )
        sample = commands.measure(self.files.examples, threads)
        for path in (model, predictions):
            path.unlink()
        return sample


def flux_ctr(flux: Flux, files: Files, threads: int, precision: str, seed: int) -> Sample:
    """One run; as with the peers the seed changes with the round."""
    return flux.train("ctr_dnn", files, threads, precision, seed)


def flux_whole(flux: Flux, files: Files, threads: int, job: str, seed: int) -> Sample:
    """The whole process is timed: reading, training, checkpoint and the test that follows."""
    sample = flux.train(job, files, threads, "fp32", seed)
    return replace(sample, examples_per_s=files.examples / sample.wall_s)


def ctr_cases(
    flux: Flux | None, torch: TorchPeer, files: Files, threads: int, bf16: bool
) -> list[Case]:
    """CTR-DNN at one thread count. Rows in bf16 only where the CPU has it.

    flux runs right after the row that its ratio refers to, so that both meet the same machine.
    """
    cases = []
    for key, setup, flags, text in TORCH_ROWS:
        precision = key.removeprefix("torch_")
        if precision == "bf16" and not bf16:
            continue
        row = Row(key, "PyTorch", setup, threads)
        cases.append(Case(row, partial(torch.measure, flags, text, threads)))
        if flux and precision in PRECISIONS:
            row = Row(f"flux_{precision}", "flux", f"{precision}, from text", threads)
            cases.append(Case(row, partial(flux_ctr, flux, files, threads, precision)))
    return cases


MODELS = ("deepfm", "dcn_v2")
PRECISIONS = ("fp32", "bf16")


def flux_model(flux: Flux, files: Files, threads: int, model: str, seed: int) -> Sample:
    return flux.train(model, files, threads, "bf16", seed)


def model_cases(flux: Flux | None, torch: TorchPeer, files: Files, threads: int) -> list[Case]:
    """DeepFM and DCN-v2 in bf16, each beside PyTorch's."""
    cases: list[Case] = []
    for model in MODELS:
        row = Row(f"torch_{model}", "PyTorch", f"{model}, bf16 autocast, from memory", threads)
        flags = ("--model", model, "--bf16")
        cases.append(Case(row, partial(torch.measure, flags, False, threads)))
        if flux:
            row = Row(f"flux_{model}", "flux", f"{model}, bf16, from text", threads)
            cases.append(Case(row, partial(flux_model, flux, files, threads, model)))
    return cases


def lr_cases(flux: Flux | None, vw: VwPeer, files: Files, threads: int) -> list[Case]:
    row = Row("vw", "vowpal wabbit", f"logistic, -b {VW_BITS}, own text", threads)
    cases = [Case(row, partial(vw.measure, threads))]
    if flux:
        row = Row("flux_lr", "flux", "LR, from Criteo text", threads)
        cases.append(Case(row, partial(flux_whole, flux, files, threads, "lr")))
    return cases


def measure_all(cases: Sequence[Case], repeat: int, table: Table) -> None:
    """Takes the samples interleaved, A B C A B C, so that drift of the machine hits all alike.

    A row that fails is kept with its reason, and is not tried again.
    """
    series = [Series(case.row) for case in cases]
    for one in series:
        table.add(one)
    for round_number in range(1, repeat + 1):
        for case, one in zip(cases, series, strict=True):
            if one.failure or (case.rounds and round_number > case.rounds):
                continue
            name = f"{case.row.system}, {case.row.setup}, threads {case.row.threads}"
            try:
                sample = case.measure(round_number)
            except BenchError as error:
                one.failure = str(error)
                print(f"[{round_number}/{repeat}] {name}: FAILED: {error}", flush=True)
                continue
            one.samples.append(sample)
            auc = "" if sample.auc is None else f", AUC {sample.auc:.5f}"
            print(
                f"[{round_number}/{repeat}] {name}: {sample.examples_per_s:,.0f} ex/s{auc}",
                flush=True,
            )
