#!/usr/bin/env python3
"""Compares flux with its peers on this machine, in one run, and judges the targets.

See bench/README.md for what the rows mean and what is measured how.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import signal
import sys
from importlib import metadata
from pathlib import Path
from statistics import median

from harness import (
    cases,
    cluster,
    counting,
    data,
    lr_policy,
    machine,
    micro,
    old,
    options,
    parquet,
    process,
    report,
    setup,
    targets,
    threads,
    words,
    xlearn,
)
from harness.errors import BenchError, SkippedError
from harness.flux import ROOT, Files, Flux
from harness.paddle import PaddlePeer
from harness.rows import Case, Series, Table


class Bench:
    """One run, from arguments to report."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.cache: Path = args.cache.resolve()
        self.machine = machine.describe()
        most = "2,1" if self.machine.cores > 1 else "1"
        self.threads: list[int] = args.threads or options.threads_of(most)
        quick: bool = args.quick
        self.report = report.Report(
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
            machine=self.machine,
            examples=options.QUICK_EXAMPLES if quick else options.EXAMPLES,
            test_examples=options.QUICK_TEST_EXAMPLES if quick else options.TEST_EXAMPLES,
            repeat=args.repeat or (options.QUICK_REPEAT if quick else options.REPEAT),
            transform=args.dense,
        )
        self.flux: Flux | None = None
        if not args.peers_only and args.only & (
            options.NEEDS_FLUX | {"counting", "words", "parquet", "threads"}
        ):
            self.flux = Flux(args.build.resolve() / "flux", self.cache / "scratch")
        elif args.peers_only and not args.data:
            raise BenchError("--peers-only needs --data, as flux makes the data otherwise")
        if ("old" in args.only) != (args.old is not None):
            raise BenchError("the part old and --old BINARY go together")

    def whole(self) -> bool:
        """Only whole runs are kept in the repository."""
        args = self.args
        return args.only == set(options.PARTS) and not (args.quick or args.peers_only or args.data)

    def files(self) -> Files:
        if self.args.data:
            files = data.existing(self.args.data.resolve())
            with files.test.open("rb") as file:
                self.report.test_examples = sum(1 for _ in file)
            self.report.examples = files.examples
            return files
        assert self.flux is not None
        sizes = (self.report.examples, self.report.test_examples)
        return data.generated(self.flux, self.cache / "data", *sizes, self.threads[0])

    def ctr(self, files: Files) -> None:
        python = setup.python_of("torch", self.cache)
        self.report.versions["PyTorch"] = _version(python, "torch")
        peer = cases.TorchPeer.prepare(python, files, self.cache, self.args.dense)
        self.report.gemm += micro.torch_gemm(python, self.threads)
        todo = [
            case
            for threads in self.threads
            for case in cases.ctr_cases(self.flux, peer, files, threads, self.machine.bf16)
        ]
        cases.measure_all(todo, self.report.repeat, self.report.table)
        self.report.gemm += micro.torch_gemm(python, self.threads)  # again: the best counts

    def models(self, files: Files) -> None:
        python = setup.python_of("torch", self.cache)
        self.report.versions["PyTorch"] = _version(python, "torch")
        peer = cases.TorchPeer.prepare(python, files, self.cache, self.args.dense)
        todo = [
            case
            for threads in self.threads
            for case in cases.model_cases(self.flux, peer, files, threads)
        ]
        cases.measure_all(todo, self.report.repeat, self.report.table)

    def lr(self, files: Files) -> None:
        python = setup.python_of("vw", self.cache)
        self.report.versions["vowpal wabbit"] = _version(python, "vowpalwabbit")
        peer = cases.VwPeer.prepare(python, files, self.cache, self.args.dense)
        todo = [
            case
            for threads in self.threads
            for case in cases.lr_cases(self.flux, peer, files, threads)
        ]
        cases.measure_all(todo, self.report.repeat, self.report.table)

    def fm(self, files: Files) -> None:
        programs = xlearn.programs_of(self.cache)
        self.report.versions["xLearn"] = xlearn.version()
        peer = xlearn.XlearnPeer.prepare(programs, files, self.cache, self.args.dense)
        todo = [
            case
            for threads in self.threads
            for case in xlearn.fm_cases(self.flux, peer, files, threads)
        ]
        cases.measure_all(todo, self.report.repeat, self.report.table)

    def cluster(self, files: Files) -> None:
        threads = self.threads[0]
        todo = self.paddle(files, threads)
        if self.flux:
            todo += cluster.flux_cases(self.flux, files, threads, self.machine.bf16)
        cases.measure_all(todo, self.report.repeat, self.report.cluster)

    def paddle(self, files: Files, threads: int) -> list[Case]:
        """Paddle's case; none, and a row that says why, if it cannot be set up here."""
        missing = Series(cluster.paddle_row(threads))
        try:
            python = setup.python_of("paddle", self.cache)
            self.report.versions["Paddle"] = _version(python, "paddlepaddle")
            peer = PaddlePeer.prepare(python, files, self.cache, self.args.dense)
            return [cluster.paddle_case(peer, threads)]
        except SkippedError as error:
            missing.skipped = str(error)
            print(f"{missing.row.system}: skipped: {error}", flush=True)
        except BenchError as error:
            missing.failure = str(error)
            print(f"{missing.row.system}: FAILED: {error}", flush=True)
        self.report.cluster.add(missing)
        return []

    def lr_policy(self, files: Files) -> None:
        """A page of its own, as it compares flux with itself."""
        seeds = lr_policy.SEEDS[:1] if self.args.quick else lr_policy.SEEDS
        results = lr_policy.run_all(self.args.build.resolve() / "bin", files, self.cache, seeds)
        folder = (
            self.args.results or (self.cache if self.args.quick else ROOT / "bench") / "results"
        )
        folder.mkdir(parents=True, exist_ok=True)
        page = lr_policy.render(results, self.report.date)
        (folder / "lr_policy.md").write_text(page)
        print(page)

    def more_threads(self) -> None:
        """A page of its own, on data of its own."""
        if self.flux is None:
            return
        one = self.report
        sizes = (one.examples, one.test_examples)
        seeds = (threads.TRAIN_SEED, threads.TEST_SEED)
        files = data.generated(
            self.flux, self.cache / "data_threads", *sizes, self.threads[0], seeds
        )
        counts: list[int] = self.args.thread_counts
        cores = self.machine.cores
        for job in threads.JOBS:
            todo = threads.thread_cases(self.flux, files, job, counts, cores)
            cases.measure_all(todo, one.repeat, one.own_threads)
        one.targets += threads.judge(one.own_threads)
        page = threads.render(one.own_threads, *sizes, cores, self.machine.cpu)
        self.keep_page("threads.md", page)

    def old(self, files: Files) -> None:
        """A page of its own, as it compares flux with itself."""
        if self.flux is None:
            return
        one, precision = self.report, "bf16" if self.machine.bf16 else "fp32"
        other = Flux(self.args.old.resolve(), self.cache / "scratch" / "old")
        todo = old.old_cases(self.flux, other, files, precision, self.machine.cores)
        cases.measure_all(todo, one.repeat, one.versus_old)
        sizes = (one.examples, one.test_examples)
        page = old.render(one.versus_old, *sizes, self.machine.cores, self.machine.cpu)
        self.keep_page("old.md", page)

    def words(self) -> None:
        """A page of its own: its figures are words, not examples."""
        if self.flux is None:
            return
        python = setup.python_of("gensim", self.cache)
        version = _version(python, "gensim")
        self.report.versions["gensim"] = version
        bench = words.WordBench(
            self.flux.binary, python, self.cache / "scratch" / "words", self.threads[0]
        )
        sentences = words.QUICK_SENTENCES if self.args.quick else words.SENTENCES
        rounds = words.run(bench, sentences, self.report.repeat)
        self.report.targets += words.judge(rounds, bench.threads)
        self.keep_page("words.md", words.render(rounds, bench.words, self.threads[0], version))

    def parquet(self) -> None:
        """A page of its own: reading alone."""
        if self.flux is None:
            return
        parquet.build_plugin(self.args.build.resolve())
        version = _version(parquet.PYTHON, "pyarrow")
        self.report.versions["pyarrow"] = version
        bench = parquet.ParquetBench(self.flux.binary, self.cache / "scratch" / "parquet")
        examples = parquet.QUICK_EXAMPLES if self.args.quick else parquet.EXAMPLES
        readings = parquet.run(bench, examples, self.report.repeat)
        self.report.targets += parquet.judge(readings)
        self.keep_page("parquet.md", parquet.render(readings, version))

    def results(self) -> Path:
        """Where pages go: only those of whole runs into the repository."""
        folder: Path = self.args.results or (
            ROOT / "bench" / "results" if self.whole() else self.cache / "results"
        )
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def keep_page(self, name: str, page: str) -> None:
        (self.results() / name).write_text(page)
        print("\n" + page, flush=True)

    def counting(self) -> None:
        """Its table is a file of its own: it has no speeds and no targets in time."""
        version, python = "left out", None
        try:
            python = setup.python_of("paddle", self.cache)
            version = _version(python, "paddlepaddle")
        except SkippedError as error:
            print(f"Paddle: skipped: {error}", flush=True)
        binary = None if self.args.peers_only else self.args.build.resolve() / "flux"
        rows = counting.run(binary, python, self.cache / "scratch" / "counting")
        folder = self.args.results or ROOT / "bench" / "results"
        counting.write(rows, version, folder)
        print("\n" + counting.render(rows, version), flush=True)
        if any(row.system == "flux" and not row.exact for row in rows):
            raise BenchError("flux lost examples or counted some twice")

    def start(self, files: Files) -> None:
        if self.flux is None:
            return
        for _ in range(self.report.repeat):
            command = self.flux.command("ctr_dnn", files, self.threads[0], "auto")
            delay = process.first_progress_s(command, cores=self.threads[0])
            self.report.first_line_s.append(round(delay, 3))
            print(f"first progress line after {delay:.2f} s", flush=True)

    def run(self) -> None:
        parts: frozenset[str] = self.args.only
        self.report.warnings += machine.noise()
        for warning in self.report.warnings:
            print(f"warning: {warning}", flush=True)
        if not self.machine.bf16:
            self.report.warnings.append("rows in bf16 left out: the CPU has no AVX512-BF16")
        if self.machine.tiles_hidden:
            self.report.warnings.append(
                "PyTorch without AMX: this virtual machine hides CPUID's description of tiles, "
                "without which oneDNN dies; flux uses them"
            )
        self.cache.mkdir(parents=True, exist_ok=True)
        files = self.files() if parts & options.NEEDS_FLUX else None
        if files and "start" in parts:
            self.start(files)
        if files and "ctr" in parts:
            self.ctr(files)
        if files and "models" in parts and self.machine.bf16:
            self.models(files)
        if files and "lr" in parts:
            self.lr(files)
        if files and "fm" in parts:
            self.fm(files)
        if "words" in parts:
            self.words()
        if "parquet" in parts:
            self.parquet()
        if files and "cluster" in parts:
            self.cluster(files)
        if files and "lr_policy" in parts:
            self.lr_policy(files)
        if "threads" in parts:
            self.more_threads()
        if files and "old" in parts:
            self.old(files)
        if "counting" in parts:
            self.counting()
        if "micro" in parts:
            self.report.micro = micro.run_all(self.args.build.resolve() / "bin", self.report.repeat)
            self.report.gemm += [
                line for one in self.report.micro for line in one.lines if line["bench"] == "gemm"
            ]
        shutil.rmtree(self.cache / "scratch", ignore_errors=True)
        self.judge(parts)

    def judge(self, parts: frozenset[str]) -> None:
        one = self.report
        first = median(one.first_line_s) if one.first_line_s else None
        one.targets += targets.judge(one.table, first, parts)
        if "cluster" in parts:
            one.targets += targets.judge_cluster(one.cluster, self.threads[0], one.examples)
        if "micro" in parts:
            lines = [line for part in one.micro for line in part.lines]
            one.targets.append(targets.judge_rpc(lines))
            one.targets += targets.judge_formats(lines)
        one.shares = micro.shares(one.table, micro.gemm_peaks(one.gemm))
        one.warnings += report.doubts(self.tables(), one.shares)

    def tables(self) -> list[Table]:
        one = self.report
        return [one.table, one.cluster, one.own_threads, one.versus_old]

    def finish(self) -> int:
        """Prints and keeps the report; the exit status."""
        one = self.report
        folder = self.results()
        report.write(one, folder, [self.cache, ROOT, Path.home()])
        print("\n" + report.render(one))
        print(f"kept in {folder / 'latest.md'} and {folder / one.date}.json")
        failed = any(
            series.failure for table in self.tables() for series in table.series
        )
        missed = any(target.met is False for target in one.targets)
        return 1 if failed or (missed and self.args.check) else 0


def _version(python: Path, package: str) -> str:
    site = sorted((python.parent.parent / "lib").glob("python*/site-packages"))
    found = list(metadata.distributions(name=package, path=[str(path) for path in site]))
    return found[0].version if found else "of unknown version"


def main() -> int:
    # A child has its own session: without this it would outlive a terminated benchmark.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        bench = Bench(options.arguments(__doc__))
        bench.run()
        return bench.finish()
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
