"""One scenario for each promise about faults: which job, which faults, which figures.

A figure that `must` hold fails the scenario (nothing lost, nothing doubled, every fault repaired);
the others are times and shares, reported beside their targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import mean, median, variance
from typing import Any

from jobs import Job, JobError, Result, Runner

FailedError = JobError
DIRECT_POINTS = ("before_apply,after_apply,after_commit,before_forward,after_forward,before_reply,"
                 "after_reply,before_confirm,backup_before_apply,backup_after_apply,"
                 "backup_before_ack,before_save,mid_save,after_save")
MOVING_POINTS = ("copy_begin,copy_mid,copy_end,install_begin,install_mid,install_end,seal,promote,"
                 "assign")
REPLICATED = ("replicas=2",)
COMPARABLE = 1.1  # more goodput than this: the undisturbed run is no measure
AUC_TARGET = 0.0005
EPOCHS_OF_QUALITY = {"lr": 4, "ctr": 1}


def number(value: float) -> str:
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.5f}"


@dataclass
class Figure:
    name: str
    value: float
    target: str
    met: bool | None = None
    must: bool = False

    def shown(self) -> str:
        return number(self.value)


@dataclass
class Outcome:
    figures: list[Figure] = field(default_factory=list)
    line: str = ""


def at_most(name: str, value: float, limit: float, must: bool = False) -> Figure:
    return Figure(name, value, f"<= {number(limit)}", value <= limit, must)


def at_least(name: str, value: float, limit: float, must: bool = False) -> Figure:
    return Figure(name, value, f">= {number(limit)}", value >= limit, must)


def exact(result: Result, faults: int) -> list[Figure]:
    """What holds after every scenario: all faults were made, and each example counts once."""
    summary = result.summary
    made = result.drill["faults_made"]
    return [
        Figure("faults made", made, f">= {faults}", made >= faults, made == 0),
        at_most("lost", summary["lost"], 0, must=True),
        at_most("doubled", summary["doubled"], 0, must=True),
        at_least("applied once", summary["applied_once"], summary["expected"], must=True),
        Figure("complete", float(summary["state"] == "complete"), "1",
               summary["state"] == "complete", True),
        *same_content(result),
    ]


def same_content(result: Result) -> list[Figure]:
    """Rows and hash of the model are those of an undisturbed run in one process.

    Where a shard went back to a checkpoint, gradients computed before that are applied to older
    rows, as async training allows: each once, but the last bits may differ.
    """
    right = result.content
    if not right:
        return []
    same = result.summary["model_hash"] == right["model_hash"]
    return [Figure("rows", result.summary["rows"], f"{right['rows']:,}",
                   result.summary["rows"] == right["rows"], True),
            Figure("content hash equal", float(same), "1",
                   None if result.rolled_back and not same else same, not result.rolled_back)]


def recovered(result: Result, *labels: str) -> dict[str, float]:
    """Spread of recovery over several labels; the worst of each counts.

    What that is for which fault: docs/using/drill.md."""
    spreads = [result.times(label, "recovered") for label in labels]
    return {key: max((s[key] for s in spreads), default=0.0) for key in ("p50", "p99", "max")}


def goodput(result: Result, share: float, allowed: float = 1.0) -> Figure:
    """Unique examples per second, disturbed over undisturbed; `allowed`: what the faults take."""
    value = float(result.drill["goodput"] or 0)
    figure = at_least("goodput", value, share * allowed)
    # Faults do not make a job faster: then the machine was busier before.
    if value > COMPARABLE or not result.baseline:
        figure.met = None
    return figure


def against_rest(result: Result, share: float) -> Figure:
    """Examples per second while faults come, over those of the same run after the last of them.

    The drill looks at the job many times a second in both parts, and the machine is the same.
    """
    columns = result.drill["sample_columns"]
    t, applied = columns.index("t"), columns.index("applied")
    samples = result.drill["samples"]
    times = [fault["t"] for fault in result.drill["faults"]] or [0.0]
    settled = 5.0  # seconds, after a fault and before the end

    def rate(begin: float, end: float) -> float:
        part = [s for s in samples if begin <= s[t] <= end]
        if len(part) < 2 or part[-1][t] - part[0][t] < 2 * settled:
            return 0.0
        return float((part[-1][applied] - part[0][applied]) / (part[-1][t] - part[0][t]))

    during = rate(times[0], times[-1] + settled)
    rest = rate(times[-1] + settled, samples[-1][t] - settled)
    figure = at_least("speed while faults come, over the rest of the run",
                      during / rest if rest else 0.0, share)
    if not during or not rest:
        figure.met = None
    return figure


def worst_stall(result: Result, limit: float) -> Figure:
    return at_most("worst stall, s", result.drill["worst_stall_s"], limit)


def killed_workers(runner: Runner, kills: int) -> Outcome:
    job = Job(seconds=2.0 * (kills + 2))
    result = runner.drill(job, "--kill", "worker", "--every", "2s", "--times", str(kills))
    noticed = result.times("kill worker", "noticed")
    # A worker is away while its process starts: what that takes of all workers is not counted.
    away = result.times("kill worker", "back")["p50"] / 2.0 / job.workers
    return Outcome([*exact(result, kills), at_most("its blocks are leased again, p99 s",
                                                   noticed["p99"], 1.0),
                    goodput(result, 0.9, 1 - min(away, 0.9)), worst_stall(result, 1.0)],
                   result.drill["line"])


def paused_workers(runner: Runner, pauses: int) -> Outcome:
    """Out for much longer than its lease, and not replaced meanwhile: it comes back."""
    length = 30 if pauses >= 20 else 6
    job = Job(seconds=(length + 5.0) * (pauses + 1), sets=("hung_after=120",))
    result = runner.drill(job, "--pause", "worker", "--pause-for", f"{length}s", "--every",
                          f"{length + 5}s", "--times", str(pauses))
    return Outcome([*exact(result, pauses)], result.drill["line"])


def spare(kills: int) -> int:
    """A point may not be passed in time: some more are tried, so that enough are hit."""
    return kills + kills // 8


def killed_primaries(runner: Runner, kills: int) -> Outcome:
    """Half at random moments, half at the named points of a push and of a save."""
    job = Job(servers=3, seconds=3.0 * (spare(kills) + 2), sets=REPLICATED, checkpoint_s=1)
    result = runner.drill(job, "--kill", "server", "--at", DIRECT_POINTS, "--every", "3s",
                          "--jitter", "0.4", "--at-wait", "2500ms", "--times", str(spare(kills)))
    back = recovered(result, "kill server", "die at point")
    points = {f["what"].split()[3].split(":")[0]
              for f in result.drill["faults"] if f["kind"] == "die at point"}
    return Outcome([*exact(result, kills), at_most("shard serves again, p50 s", back["p50"], 1.0),
                    at_most("shard serves again, p99 s", back["p99"], 2.0),
                    at_least("named points hit", len(points), min(len(DIRECT_POINTS.split(",")),
                                                                  kills // 2)),
                    at_most("workers restarted", result.drill["workers_restarted_unasked"], 0)],
                   result.drill["line"])


def killed_while_moving(runner: Runner, kills: int) -> Outcome:
    """The points of a move: the other server is killed so that they are passed."""
    job = Job(servers=3, seconds=10.0 * (spare(kills) + 2), sets=REPLICATED, checkpoint_s=5)
    result = runner.drill(job, "--at", MOVING_POINTS, "--every", "10s", "--at-wait", "5s",
                          "--at-pass", "1", "--times", str(spare(kills)))
    points = {f["what"].split()[3].split(":")[0]
              for f in result.drill["faults"] if f["kind"].startswith("die at point")}
    return Outcome([*exact(result, kills), at_least("named points hit", len(points),
                                                    min(len(MOVING_POINTS.split(",")), kills))],
                   result.drill["line"])


def primary_and_backup(runner: Runner, kills: int) -> Outcome:
    every = 12 if kills > 1 else 6
    job = Job(servers=2, seconds=every * (kills + 2.0), sets=REPLICATED, checkpoint_s=5)
    result = runner.drill(job, "--kill", "server:0+server:1", "--every", f"{every}s", "--times",
                          str(kills))
    back = recovered(result, "kill server+server")
    return Outcome([*exact(result, kills), at_most("trains again, max s", back["max"], 10.0)],
                   result.drill["line"])


def killed_coordinators(runner: Runner, kills: int) -> Outcome:
    job = Job(model="counting_long", seconds=5.0 * (kills + 2))
    result = runner.drill(job, "--kill", "coordinator", "--kill", "coordinator~log", "--every",
                          "5s", "--times", str(kills))
    back = recovered(result, "kill coordinator", "kill coordinator and its log")
    return Outcome([*exact(result, kills), at_most("back, max s", back["max"], 2.0),
                    against_rest(result, 0.95), worst_stall(result, 1.0)], result.drill["line"])


def everything_at_once(runner: Runner, kills: int) -> Outcome:
    job = Job(seconds=6.0 * (kills + 2), checkpoint_s=2)
    result = runner.drill(job, "--kill", "all", "--every", "6s", "--jitter", "0.3", "--times",
                          str(kills))
    back = recovered(result, "kill all")
    return Outcome([*exact(result, kills), at_most("first step, max s", back["max"], 10.0)],
                   result.drill["line"])


def elastic(runner: Runner, changes: int) -> Outcome:
    job = Job(servers=2, workers=4, seconds=3.0 * (changes + 2), sets=REPLICATED)
    result = runner.drill(job, "--scale", "workers=1..8", "--scale", "servers=2,4,3", "--every",
                          "3s", "--times", str(changes))
    return Outcome([*exact(result, changes), worst_stall(result, 1.0)], result.drill["line"])


def partitions(runner: Runner, cuts: int) -> Outcome:
    """Between any two roles, both ways and one way; `make netns` cuts real networks."""
    pairs = ["worker-server", "worker>server", "server>worker", "worker-coordinator",
             "worker>coordinator", "coordinator>worker", "server-coordinator",
             "server>coordinator", "coordinator>server", "server-server", "server>server"]
    job = Job(servers=3, seconds=8.0 * (cuts + 2), sets=REPLICATED)
    words = [word for pair in pairs for word in ("--partition", pair)]
    result = runner.drill(job, *words, "--partition-for", "4s", "--every", "8s", "--times",
                          str(cuts))
    healed = recovered(result, *{f["kind"] for f in result.drill["faults"]})
    return Outcome([*exact(result, cuts), at_most("healed, max s after", healed["max"], 2.0)],
                   result.drill["line"])


def side_by_side(runner: Runner, one: Job, other: Job, pairs: int) -> tuple[float, str]:
    """Median speed of `other` over that of `one`, in turns; undisturbed."""
    speeds: tuple[list[float], list[float]] = ([], [])
    for again in range(pairs):
        for job, into in zip((one, other), speeds, strict=True):
            into.append(runner.baseline(job, again=again)[0]["examples_per_s"])
    first, second = median(speeds[0]), median(speeds[1])
    return second / first, f"{first:,.0f} and {second:,.0f} examples/s, median of {pairs}"


def checkpoints(runner: Runner, pairs: int) -> Outcome:
    """A checkpoint every 10 s against none; `checkpoint_bench` has the latency of pushes."""
    calm = Job(model="ctr_dnn", workers=2, fixed_epochs=3)
    share, line = side_by_side(runner, calm, replace(calm, checkpoint_s=10), pairs)
    return Outcome([at_least("throughput with checkpoints", share, 0.99)], line)


def replication_cost(runner: Runner, pairs: int) -> Outcome:
    one = Job(model="ctr_dnn", workers=2, fixed_epochs=1, sets=("replicas=1",))
    share, line = side_by_side(runner, one, replace(one, sets=REPLICATED), pairs)
    return Outcome([at_least("throughput, replicas 2 over 1", share, 0.8)], line)


MODES = ("async", "half_async", "sync")


def quality(runner: Runner, seeds: int, model: str = "lr") -> Outcome:
    """AUC after kills of every role against undisturbed runs of the same seeds, in every mode."""
    figures: list[Figure] = []
    lines: list[str] = []
    faults = lost = doubled = 0
    for mode in MODES:
        calm: list[float] = []
        hurt: list[float] = []
        for seed in range(1, seeds + 1):
            job = Job(model=model, sets=(f"seed={seed}", *REPLICATED), checkpoint_s=5,
                      fixed_epochs=EPOCHS_OF_QUALITY[model])
            result = replace(runner, seed=seed, mode=mode).drill(
                job, "--kill", "worker", "--kill", "server", "--kill", "coordinator",
                "--every", "2s", "--times", "3")
            faults += result.drill["faults_made"]
            lost += result.summary["lost"]
            doubled += result.summary["doubled"]
            calm.append(result.baseline["auc"])
            hurt.append(result.summary["auc"])
        figures += distance_of_means(mode, calm, hurt)
        lines.append(f"{mode}: {mean(calm):.5f} undisturbed, {mean(hurt):.5f} under kills")
    counts = [Figure("faults made", faults, ">= 1", faults > 0, True),
              at_most("lost", lost, 0, must=True), at_most("doubled", doubled, 0, must=True)]
    return Outcome([*counts, *figures], "; ".join(lines))


def quality_of_dnn(runner: Runner, seeds: int) -> Outcome:
    return quality(runner, seeds, "ctr")


def distance_of_means(mode: str, calm: list[float], hurt: list[float]) -> list[Figure]:
    """Judged only if the runs are alike enough for the difference to mean something."""
    pairs = [h - c for c, h in zip(calm, hurt, strict=True)]  # runs of one seed belong together
    distance = at_most(f"AUC in {mode}, distance of means", abs(mean(pairs)), AUC_TARGET)
    error = sqrt(variance(pairs) / len(pairs)) if len(pairs) > 1 else 1.0
    if error > AUC_TARGET / 2:
        distance.met = None
    return [distance,
            Figure(f"AUC in {mode}, standard error of that", error, f"<= {AUC_TARGET / 2}")]


@dataclass(frozen=True)
class Scenario:
    name: str
    promise: str
    run: Callable[[Runner, Any], Outcome]
    full: int  # faults, or pairs of runs, or seeds
    short: int | None  # in `make test`; None: not there


ALL = [
    Scenario("worker", "worker kill -9 every 2 s: nothing lost or doubled", killed_workers, 300, 3),
    Scenario("pause", "worker paused, then continued: no stale write", paused_workers, 20, 1),
    Scenario("primary", "primary kill -9, at random and at named points", killed_primaries, 200, 3),
    Scenario("moving", "kill -9 inside a move", killed_while_moving, 27, None),
    Scenario("both", "primary and backup together", primary_and_backup, 20, 1),
    Scenario("coordinator", "coordinator kill -9 every 5 s, some with its log deleted",
             killed_coordinators, 100, 2),
    Scenario("all", "everything kill -9 at once: the same command resumes", everything_at_once, 50,
             1),
    Scenario("elastic", "workers 1..8 each 3 s, servers 2, 4, 3", elastic, 100, 3),
    Scenario("partition", "partitions between any two roles, one-way too", partitions, 44, 2),
    Scenario("checkpoint", "checkpoint every 10 s costs at most 1 %", checkpoints, 3, None),
    Scenario("replicas", "two replicas reach 80 % of the speed of one", replication_cost, 5, None),
    Scenario("quality", "test AUC over 5 seeds in each mode", quality, 5, None),
    Scenario("quality_dnn", "the same for a small CTR-DNN, whose runs differ more", quality_of_dnn,
             5, None),
]
