"""What the figures were measured on, and whether anything else was running meanwhile."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

BUSY_FIELDS = (0, 1, 2, 5, 6, 7)  # user, nice, system, irq, softirq, steal of /proc/stat
AMX_LEAF = 0x1D  # of CPUID: what tiles there are
QUIET_CORES = 0.10  # of one core used by others, above which a figure is marked


@dataclass(frozen=True)
class Machine:
    """Names hardware only: no host name, no path."""

    cpu: str
    cores: int
    memory_gib: float
    bf16: bool  # the CPU has AVX512-BF16
    amx: bool = False
    # A virtual machine has AMX but hides CPUID's description of it: oneDNN, and with it PyTorch,
    # dies of an illegal instruction unless it is told to do without.
    tiles_hidden: bool = False


def parse_cpuinfo(text: str) -> tuple[str, frozenset[str], int]:
    """Model name, flags and last leaf of CPUID of the first CPU of a /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, found, value = line.partition(":")
        if found:
            fields.setdefault(name.strip(), value.strip())
    flags = frozenset(fields.get("flags", "").split())
    return fields.get("model name", "unknown CPU"), flags, int(fields.get("cpuid level", "0"))


def parse_meminfo_gib(text: str) -> float:
    for line in text.splitlines():
        if line.startswith("MemTotal:"):
            return round(int(line.split()[1]) / 2**20, 1)
    return 0.0


def describe() -> Machine:
    cpu, flags, leaves = parse_cpuinfo(Path("/proc/cpuinfo").read_text())
    return Machine(
        cpu=cpu,
        cores=len(os.sched_getaffinity(0)),
        memory_gib=parse_meminfo_gib(Path("/proc/meminfo").read_text()),
        bf16="avx512_bf16" in flags,
        amx="amx_bf16" in flags,
        tiles_hidden="amx_bf16" in flags and leaves < AMX_LEAF,
    )


def parse_busy_ticks(text: str) -> int:
    """Ticks that all CPUs together were not idle, from the first line of /proc/stat."""
    values = text.splitlines()[0].split()[1:]
    return sum(int(values[field]) for field in BUSY_FIELDS if field < len(values))


def busy_s() -> float:
    return parse_busy_ticks(Path("/proc/stat").read_text()) / os.sysconf("SC_CLK_TCK")


def noise(seconds: float = 2.0) -> list[str]:
    """Watches for a moment; one warning per reason why the machine is not quiet."""
    before, start = busy_s(), time.monotonic()
    time.sleep(seconds)
    others = (busy_s() - before) / (time.monotonic() - start)
    warnings = []
    if others > QUIET_CORES:
        warnings.append(f"other processes use {others:.2f} cores now: ratios will be noisy")
    load = os.getloadavg()[0]
    if load > 0.5:
        warnings.append(f"load average of the last minute is {load:.2f}, not quiet")
    return warnings
