"""One scenario for each promise about faults: which job, which faults, which figures.

A figure that `must` hold fails the scenario (nothing lost, nothing doubled, every fault repaired);
the others are times and shares, reported beside their targets, and in a short run held against
wide bounds (figures.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import mean, median
from typing import Any

from figures import (
    LAX_SHARE,
    Figure,
    Outcome,
    against_rest,
    at_least,
    at_most,
    changes_of,
    distance_of_means,
    exact,
    goodput,
    in_time,
    pause_p99,
    points_hit,
    recovered,
    share_of_speed,
    worst_stall,
)
from jobs import Job, JobError, Result, Runner
from network import networks_cut

FailedError = JobError
DIRECT_POINTS = ("before_apply,after_apply,after_commit,before_forward,after_forward,before_reply,"
                 "after_reply,before_confirm,backup_before_apply,backup_after_apply,"
                 "backup_before_ack,before_save,mid_save,after_save")
MOVING_POINTS = ("copy_begin,copy_mid,copy_end,install_begin,install_mid,install_end,seal,promote,"
                 "assign")
MOVING_LABELS = ("die at point, moving", "die at point, newcomer")
REPLICATED = ("replicas=2",)
EPOCHS_OF_QUALITY = {"lr": 4, "ctr": 1}


def killed_workers(runner: Runner, kills: int) -> Outcome:
    job = Job(seconds=2.0 * (kills + 2))
    result = runner.drill(job, "--kill", "worker", "--every", "2s", "--times", str(kills))
    noticed = result.times("kill worker", "noticed")
    # A worker is away while its process starts: what that takes of all workers is not counted.
    away = result.times("kill worker", "back")["p50"] / 2.0 / job.workers
    return Outcome([*exact(result, kills),
                    in_time(runner, "its blocks are leased again, p99 s", noticed["p99"], 1.0),
                    goodput(result, 0.9, 1 - min(away, 0.9)), worst_stall(runner, result, 1.0)],
                   result.drill["line"])


def paused_workers(runner: Runner, pauses: int) -> Outcome:
    """Out for much longer than its lease, and not replaced meanwhile: it comes back.

    What it pushes then was trained by others. Each of these late pushes must be answered as one
    that the shard had before, or refused; one that was applied would be a doubled example.
    """
    length = 30 if pauses >= 20 else 6
    job = Job(seconds=(length + 5.0) * (pauses + 1), sets=("hung_after=120",))
    result = runner.drill(job, "--pause", "worker", "--pause-for", f"{length}s", "--every",
                          f"{length + 5}s", "--times", str(pauses))
    pushes = result.summary["pushes"]
    return Outcome([*exact(result, pauses),
                    at_least("late pushes refused or known", pushes["duplicates"] +
                             pushes["refused"], 1, must=True),
                    at_most("stale writes accepted", result.summary["doubled"], 0, must=True)],
                   result.drill["line"])


def spare(kills: int) -> int:
    """A point may not be passed in time: some more are tried, so that enough are hit."""
    return kills + kills // 8


def killed_primaries(runner: Runner, kills: int) -> Outcome:
    """Half at random moments, half at the named points of a push and of a save."""
    job = Job(servers=3, seconds=3.0 * (spare(kills) + 2), sets=REPLICATED, checkpoint_s=1)
    result = runner.drill(job, "--kill", "server", "--at", DIRECT_POINTS, "--every", "3s",
                          "--jitter", "0.4", "--at-wait", "2500ms", "--times", str(spare(kills)))
    back = recovered(result, "kill server", "die at point")
    return Outcome([*exact(result, kills), *served_again(runner, result, back),
                    at_least("named points hit", points_hit(result),
                             min(len(DIRECT_POINTS.split(",")), kills // 2))],
                   result.drill["line"])


def served_again(runner: Runner, result: Result, back: dict[str, float]) -> list[Figure]:
    return [in_time(runner, "shard serves again, p50 s", back["p50"], 1.0),
            in_time(runner, "shard serves again, p99 s", back["p99"], 2.0),
            at_most("workers restarted", result.drill["workers_restarted_unasked"], 0)]


def killed_while_moving(runner: Runner, kills: int) -> Outcome:
    """The points of a move: the other server is killed so that they are passed.

    So two of three servers are lost at once, and shards may go back to a checkpoint: they serve
    again when workers train again, be it what was trained before; for new examples the promise is
    that of `both`. The points of a successor are passed out of the drill's sight: its times are
    from the kill of the server before it.
    """
    every = 10 if kills > 1 else 4
    job = Job(servers=3, seconds=every * (spare(kills) + 2.0), sets=REPLICATED, checkpoint_s=5)
    result = runner.drill(job, "--at", MOVING_POINTS, "--every", f"{every}s", "--at-wait", "5s",
                          "--at-pass", "1", "--times", str(spare(kills)))
    back = recovered(result, *MOVING_LABELS, column="trains")
    new = recovered(result, *MOVING_LABELS)
    return Outcome([*exact(result, kills), *served_again(runner, result, back),
                    in_time(runner, "new examples again, max s", new["max"], 10.0),
                    at_least("named points hit", points_hit(result),
                             min(len(MOVING_POINTS.split(",")), kills))], result.drill["line"])


def primary_and_backup(runner: Runner, kills: int) -> Outcome:
    every = 12 if kills > 1 else 6
    job = Job(servers=2, seconds=every * (kills + 2.0), sets=REPLICATED, checkpoint_s=5)
    result = runner.drill(job, "--kill", "server:0+server:1", "--every", f"{every}s", "--times",
                          str(kills))
    back = recovered(result, "kill server+server")
    return Outcome([*exact(result, kills),
                    in_time(runner, "trains again, max s", back["max"], 10.0),
                    *ages(runner, result, kills)], result.drill["line"])


def ages(runner: Runner, result: Result, kills: int) -> list[Figure]:
    """Of the checkpoints that shards went back to, which say so aloud; never a fresh start."""
    return [at_least("returns to a checkpoint", len(result.ages), kills, must=runner.short),
            in_time(runner, "age of that checkpoint, max s", max(result.ages, default=0.0), 10.0)]


def killed_coordinators(runner: Runner, kills: int) -> Outcome:
    job = Job(model="counting_long", seconds=5.0 * (kills + 2))
    result = runner.drill(job, "--kill", "coordinator", "--kill", "coordinator~log", "--every",
                          "5s", "--times", str(kills))
    back = recovered(result, "kill coordinator", "kill coordinator and its log")
    return Outcome([*exact(result, kills), in_time(runner, "back, max s", back["max"], 2.0),
                    against_rest(result, 0.95), worst_stall(runner, result, 1.0)],
                   result.drill["line"])


def everything_at_once(runner: Runner, kills: int) -> Outcome:
    job = Job(seconds=6.0 * (kills + 2), checkpoint_s=2)
    result = runner.drill(job, "--kill", "all", "--every", "6s", "--jitter", "0.3", "--times",
                          str(kills))
    back = recovered(result, "kill all")
    return Outcome([*exact(result, kills), in_time(runner, "first step, max s", back["max"], 10.0)],
                   result.drill["line"])


def elastic(runner: Runner, changes: int) -> Outcome:
    """So many changes of workers, and after every few of them one of servers: 4, 3, 2, 4, ..."""
    in_a_row = 10 if changes >= 10 else 2
    faults = changes + changes // in_a_row
    every = 2.7  # so that workers change every 3 s
    job = Job(servers=2, workers=4, seconds=every * (faults + 1) * (1.0 if runner.short else 0.8),
              sets=REPLICATED, compared=False)
    result = runner.drill(job, *["--scale", "workers=1..8"] * in_a_row, "--scale", "servers=4,3,2",
                          "--every", f"{every}s", "--times", str(faults))
    return Outcome([*exact(result, faults),
                    at_least("changes of workers", changes_of(result, "workers", job.workers),
                             changes, must=runner.short),
                    at_least("changes of servers", changes_of(result, "servers", job.servers),
                             changes // in_a_row, must=runner.short),
                    pause_p99(runner, result, 1.0)], result.drill["line"])


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
    return Outcome([*exact(result, cuts),
                    in_time(runner, "healed, max s after", healed["max"], 2.0)],
                   result.drill["line"])


@dataclass
class Compared:
    """The same job in two forms, run in turns, undisturbed; medians."""

    share: float  # of the first one's speed that the second has
    p99_ms: tuple[float, float]  # of pushes
    line: str


def side_by_side(runner: Runner, one: Job, other: Job, pairs: int) -> Compared:
    """In a short run until a pair is good enough, as anybody may be busy beside it."""
    runs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for again in range(pairs):
        first, second = (runner.baseline(job, again=again)[0] for job in (one, other))
        runs.append((first, second))
        if runner.short and second["examples_per_s"] >= LAX_SHARE * first["examples_per_s"]:
            runs = runs[-1:]
            break
    speeds = [median(pair[i]["examples_per_s"] for pair in runs) for i in (0, 1)]
    p99 = [median(pair[i]["pushes"]["p99_ms"] for pair in runs) for i in (0, 1)]
    return Compared(speeds[1] / speeds[0], (p99[0], p99[1]),
                    f"{speeds[0]:,.0f} and {speeds[1]:,.0f} examples/s, pushes p99 {p99[0]:.2f} "
                    f"and {p99[1]:.2f} ms, median of {len(runs)}")


def checkpoints(runner: Runner, pairs: int) -> Outcome:
    """A checkpoint every 10 s (in a short run every second) against none."""
    calm = Job(model="ctr_dnn", workers=2, fixed_epochs=3)
    if runner.short:
        calm = Job(model="ctr_short", workers=2, seconds=4.0)
    found = side_by_side(runner, calm, replace(calm, checkpoint_s=1 if runner.short else 10), pairs)
    return Outcome([share_of_speed(runner, "throughput with checkpoints", found.share, 0.99),
                    in_time(runner, "push latency added, p99 ms",
                            max(0.0, found.p99_ms[1] - found.p99_ms[0]), 20.0)], found.line)


def replication_cost(runner: Runner, pairs: int) -> Outcome:
    one = Job(model="ctr_dnn", workers=2, fixed_epochs=1, sets=("replicas=1",))
    if runner.short:
        one = replace(one, model="ctr_short", seconds=3.0, fixed_epochs=0)
    found = side_by_side(runner, one, replace(one, sets=REPLICATED), pairs)
    return Outcome([share_of_speed(runner, "throughput, replicas 2 over 1", found.share, 0.8)],
                   found.line)


MODES = ("async", "sync")
# Seeds and modes take turns, so that three seeds have had all of them in every mode.
QUALITY_FAULTS = (
    ("--kill", "worker", "--kill", "server", "--kill", "coordinator", "--times", "3"),
    ("--kill", "all", "--pause", "worker", "--pause-for", "3s", "--times", "2"),
    ("--partition", "worker-server", "--partition-for", "3s", "--scale", "workers=1..4", "--times",
     "2"),
)
QUALITY_KINDS = 7


def quality_job(runner: Runner, model: str, seed: int) -> Job:
    job = Job(model=model, sets=(f"seed={seed}", *REPLICATED), checkpoint_s=5,
              fixed_epochs=EPOCHS_OF_QUALITY[model])
    if runner.short:
        return replace(job, model=f"{model}_short", seconds=3.0, checkpoint_s=1, fixed_epochs=0)
    return job


def quality(runner: Runner, seeds: int, model: str = "lr") -> Outcome:
    """AUC after faults of all kinds against undisturbed runs of the same seeds, in every mode."""
    figures: list[Figure] = []
    lines: list[str] = []
    lost = doubled = 0
    every = "1s" if runner.short else "2s"
    for mode in MODES:
        calm: list[float] = []
        hurt: list[float] = []
        kinds: list[str] = []
        for seed in range(1, seeds + 1):
            faults = QUALITY_FAULTS[(seed - 1 + MODES.index(mode)) % len(QUALITY_FAULTS)]
            result = replace(runner, seed=seed, mode=mode).drill(
                quality_job(runner, model, seed), "--every", every, *faults)
            kinds += [fault["kind"] for fault in result.drill["faults"]]
            lost += result.summary["lost"]
            doubled += result.summary["doubled"]
            calm.append(result.baseline["auc"])
            hurt.append(result.summary["auc"])
        figures += [at_least(f"faults made in {mode}", len(kinds), seeds, must=True),
                    at_least(f"kinds of them in {mode}", len(set(kinds)),
                             QUALITY_KINDS if seeds >= len(QUALITY_FAULTS) else 1),
                    *distance_of_means(mode, calm, hurt, runner.short)]
        lines.append(f"{mode}: {mean(calm):.5f} undisturbed, {mean(hurt):.5f} under faults")
    counts = [at_most("lost", lost, 0, must=True), at_most("doubled", doubled, 0, must=True)]
    return Outcome([*counts, *figures], "; ".join(lines))


def quality_of_dnn(runner: Runner, seeds: int) -> Outcome:
    return quality(runner, seeds, "ctr")


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
    Scenario("moving", "kill -9 inside a move", killed_while_moving, 27, 1),
    Scenario("both", "primary and backup together", primary_and_backup, 20, 1),
    Scenario("coordinator", "coordinator kill -9 every 5 s, some with its log deleted",
             killed_coordinators, 100, 2),
    Scenario("all", "everything kill -9 at once: the same command resumes", everything_at_once, 50,
             1),
    Scenario("elastic", "workers 1..8 each 3 s, servers 2, 4, 3, 2, ...", elastic, 100, 2),
    Scenario("partition", "partitions between any two roles, one-way too", partitions, 44, 2),
    Scenario("netns", "real networks cut between any two roles, one-way too", networks_cut, 18, 2),
    Scenario("checkpoint", "checkpoint every 10 s costs at most 1 %, 20 ms", checkpoints, 3, 3),
    Scenario("replicas", "two replicas reach 80 % of the speed of one", replication_cost, 5, 3),
    Scenario("quality", "test AUC over 5 seeds in each mode", quality, 5, 1),
    Scenario("quality_dnn", "the same for a small CTR-DNN, whose runs differ more", quality_of_dnn,
             5, None),
]
