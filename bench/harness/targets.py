"""What flux must reach, judged from a table. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness import cluster
from harness.micro import Line
from harness.ratio import NOT_COMPARABLE, Ratio, Side
from harness.rows import Series, Table

FP32_RATIO = 1.75
BF16_RATIO = 1.8
BF16_REACH = 2.0
MODEL_RATIO = 1.75
BF16_AUC_DELTA = 0.0005
LR_RATIO = 3.0
FM_RATIO = 3.0
MEMORY_SHARE = 1 / 3
FIRST_LINE_S = 1.0
PADDLE_FP32_RATIO = 3.0
PADDLE_BF16_RATIO = 4.5
CLUSTER_AUC_DELTA = 0.0005
EMBEDDED_SHARE = 0.85
SERVER_CPU_SHARE = 1 / 5
RPC_CPU_RATIO = 3.0
# MB/s of one core, whatever the examples.
FORMAT_SPEEDS = (("criteo_tsv", 500), ("multislot", 500), ("feasign", 500), ("blocks", 1500))
RPC_REQUEST_BYTES, RPC_REPLY_BYTES = 80_000, 440_000  # a pull of 10,000 keys and its rows

MODELS = (("deepfm", "DeepFM"), ("dcn_v2", "DCN-v2"))

AUC_PEERS = (  # part, ours, theirs, name
    ("ctr", "flux_fp32", "torch_fp32", "CTR-DNN fp32"),
    ("ctr", "flux_bf16", "torch_bf16", "CTR-DNN bf16"),
    ("lr", "flux_lr", "vw", "LR"),
    ("fm", "flux_fm", "xlearn", "FM"),
)


@dataclass(frozen=True)
class Target:
    name: str
    wanted: str
    measured: str
    met: bool | None  # None: not measured, or cannot be judged
    why: str = ""  # what keeps a ratio from being judged by its figure
    ratio: Ratio | None = None  # all that it was judged by

    def verdict(self) -> str:
        if self.why:
            return f"{'not judged' if self.met is None else 'missed'} ({self.why})"
        return {True: "met", False: "MISSED", None: "not measured"}[self.met]


def judged(
    name: str, wanted: str, ratio: Ratio | None, met: bool, measured: str | None = None
) -> Target:
    """A target on a ratio, or on a figure (`measured`) of the two sides of one.

    It is met only if the two can be compared, and judged only if that is known.
    """
    if ratio is None or not ratio.pairs():
        return Target(name, wanted, "-", None)
    if not ratio.comparable():
        return Target(name, wanted, ratio.text(), False, NOT_COMPARABLE, ratio)
    shown = ratio.text() if measured is None else f"{measured} ({ratio.details()})"
    if not ratio.recorded():
        assert ratio.measure
        why = f"{ratio.measure.name} not recorded"
        return Target(name, wanted, shown, None, why, ratio)
    return Target(name, wanted, shown, met, "", ratio)


def at_least(name: str, least: float, ratio: Ratio | None) -> Target:
    met = ratio is not None and bool(ratio.pairs()) and ratio.value() >= least
    return judged(name, f">= {least:.2f}x", ratio, met)


def _ratio(table: Table, key: str, to: str, threads: int, name: str, least: float) -> Target:
    name = f"{name}, {threads} threads" if threads > 1 else f"{name}, 1 thread"
    return at_least(name, least, table.ratio(key, to, threads))


def _auc(table: Table, key: str, peer: str, threads: int, name: str) -> Target:
    ours, theirs = table.find(key, threads), table.find(peer, threads)
    mine = ours.auc() if ours else None
    other = theirs.auc() if theirs else None
    return Target(
        name=f"test AUC {name} not below the peer's, threads {threads}",
        wanted="-" if other is None else f">= {other:.5f}",
        measured="-" if mine is None else f"{mine:.5f}",
        met=None if mine is None or other is None else mine >= other,
    )


def _auc_delta(table: Table, keys: tuple[str, str], threads: int, name: str, most: float) -> Target:
    series = [table.find(key, threads) for key in keys]
    values = [value for one in series if one and (value := one.auc()) is not None]
    delta = abs(values[0] - values[1]) if len(values) == 2 else None
    return Target(
        name=f"{name}, threads {threads}",
        wanted=f"|difference| <= {most}",
        measured="-" if delta is None else f"{delta:.5f}",
        met=None if delta is None else delta <= most,
    )


def _is_ctr_of_torch(key: str) -> bool:
    return key.startswith("torch_") and key not in {f"torch_{model}" for model, _ in MODELS}


def _memory(table: Table, threads: int) -> Target:
    """The largest of flux against the leanest of PyTorch."""
    flux = [table.find(key, threads) for key in ("flux_fp32", "flux_bf16")]
    torch = [
        series
        for series in table.series
        if _is_ctr_of_torch(series.row.key) and series.row.threads == threads and series.samples
    ]
    ours = max((one for one in flux if one), key=Series.peak_rss_bytes, default=None)
    theirs = min(torch, key=Series.peak_rss_bytes, default=None)
    name = f"peak memory of flux / leanest PyTorch row, threads {threads}"
    wanted = f"<= {MEMORY_SHARE:.2f}"
    if ours is None or theirs is None:
        return Target(name, wanted, "-", None)
    share = ours.peak_rss_bytes() / theirs.peak_rss_bytes()
    sides = Ratio(ours.side(), theirs.side())
    return judged(name, wanted, sides, share <= MEMORY_SHARE, f"{share:.2f}")


def judge(table: Table, first_line_s: float | None, parts: frozenset[str]) -> list[Target]:
    """Targets of the parts that were run, for every thread count in the table."""
    targets: list[Target] = []
    for threads in table.threads():
        if "ctr" in parts:
            fp32 = ("flux_fp32", "torch_fp32", threads, "fp32 from text / PyTorch fp32 from memory")
            bf16 = ("flux_bf16", "torch_bf16", threads, "bf16 from text / PyTorch bf16 from memory")
            targets.append(_ratio(table, *fp32, FP32_RATIO))
            targets.append(_ratio(table, *bf16, BF16_RATIO))
            targets.append(_ratio(table, *bf16[:3], bf16[3] + " (reach)", BF16_REACH))
            if threads == 1:  # the same batches in the same order: only the precision differs
                keys = ("flux_fp32", "flux_bf16")
                name = "AUC of bf16 against fp32"
                targets.append(_auc_delta(table, keys, threads, name, BF16_AUC_DELTA))
            targets.append(_memory(table, threads))
        if "models" in parts:
            for model, name in MODELS:
                keys = (f"flux_{model}", f"torch_{model}")
                what = f"{name} bf16 from text / PyTorch bf16 from memory"
                targets.append(_ratio(table, *keys, threads, what, MODEL_RATIO))
                targets.append(_auc(table, *keys, threads, name))
        if "lr" in parts:
            lr = ("flux_lr", "vw", threads, "LR end to end / vowpal wabbit")
            targets.append(_ratio(table, *lr, LR_RATIO))
        if "fm" in parts:
            fm = ("flux_fm", "xlearn", threads, "FM end to end / xLearn")
            targets.append(_ratio(table, *fm, FM_RATIO))
        for part, key, peer, name in AUC_PEERS:
            if part in parts:
                targets.append(_auc(table, key, peer, threads, name))
    if "start" in parts:
        targets.append(
            Target(
                name="first progress line of flux run on a pipe",
                wanted=f"<= {FIRST_LINE_S:.1f} s",
                measured="-" if first_line_s is None else f"{first_line_s:.2f} s",
                met=None if first_line_s is None else first_line_s <= FIRST_LINE_S,
            )
        )
    return targets


def _server_cpu(table: Table, threads: int, examples: int) -> Target:
    ours = cluster.server_cpu(table, "cluster_fp32", threads, examples)
    theirs = cluster.server_cpu(table, cluster.PADDLE, threads, examples)
    most = None if theirs is None else theirs * SERVER_CPU_SHARE
    name = f"CPU of the server per million examples, 1/5 of Paddle's, threads {threads}"
    wanted = "-" if most is None else f"<= {most:.2f} s"
    if ours is None or most is None:
        return Target(name, wanted, "-" if ours is None else f"{ours:.2f} s", None)
    sides = table.ratio("cluster_fp32", cluster.PADDLE, threads)
    return judged(name, wanted, sides, ours <= most, f"{ours:.2f} s")


def judge_cluster(table: Table, threads: int, examples: int) -> list[Target]:
    """Targets of the cluster part, `threads` being those that train in its main rows."""
    peer, name = cluster.PADDLE, "1 server + 1 worker"
    fp32 = ("cluster_fp32", peer, threads, f"{name} fp32 / Paddle async")
    bf16 = ("cluster_bf16", peer, threads, f"{name} bf16 / Paddle async")
    same = ("cluster_fp32", "embedded_fp32", threads, f"{name} / one process, fp32")
    result = [
        _ratio(table, *fp32, PADDLE_FP32_RATIO),
        _ratio(table, *bf16, PADDLE_BF16_RATIO),
        _ratio(table, *same, EMBEDDED_SHARE),
    ]
    for precision, count in (("fp32", threads), ("bf16", threads), ("fp32", 1)):
        keys = (f"cluster_{precision}", f"embedded_{precision}")
        title = f"AUC of {name} against one process, {precision}"
        one = _auc_delta(table, keys, count, title, CLUSTER_AUC_DELTA)
        if one not in result:  # one thread in all: the same once more
            result.append(one)
    return [*result, _server_cpu(table, threads, examples)]


def rpc_cpu_us(lines: Sequence[Line], system: str) -> dict[int, float]:
    """CPU of a call of the big size by round, client and server together.

    Of several lines of a round the dearest counts.
    """
    found: dict[int, float] = {}
    for line in lines:
        if (
            (line.get("bench"), line.get("system")) == ("rpc", system)
            and (line.get("request"), line.get("reply")) == (RPC_REQUEST_BYTES, RPC_REPLY_BYTES)
            and "cpu_us" in line
        ):
            number = int(str(line.get("round", 1)))
            found[number] = max(found.get(number, 0.0), float(str(line["cpu_us"])))
    return found


def judge_rpc(lines: Sequence[Line]) -> Target:
    ours, theirs = rpc_cpu_us(lines, "flux tcp"), rpc_cpu_us(lines, "grpc tcp")
    both = sorted(set(ours) & set(theirs))
    sides = [
        Side(tuple(1 / cpu_us[number] for number in both), threads=None, seeds=())
        for cpu_us in (ours, theirs)
    ]
    name = "CPU of a call of 80 KB / 440 KB: gRPC / ours with checksum, TCP"
    return at_least(name, RPC_CPU_RATIO, Ratio(sides[0], sides[1], measure=None))


def format_speed(lines: Sequence[Line], name: str) -> float | None:
    """MB/s of a format in its slowest row."""
    found = [
        float(row["mb_per_s"])
        for line in lines
        if line.get("bench") == "formats"
        for key, row in line.items()
        if isinstance(row, dict) and key.split()[-1] == name
    ]
    return min(found, default=None)


def judge_formats(lines: Sequence[Line]) -> list[Target]:
    result = []
    for name, least in FORMAT_SPEEDS:
        speed = format_speed(lines, name)
        result.append(
            Target(
                name=f"{name} to batches, one core",
                wanted=f">= {least} MB/s",
                measured="-" if speed is None else f"{speed:.0f} MB/s",
                met=None if speed is None else speed >= least,
            )
        )
    return result
