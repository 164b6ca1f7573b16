"""The results of paired benchmarks: `bench.json`; no ratio without the name of its peer."""

import dataclasses
import os
import platform
import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import read_json, write_json

FEWEST = 7  # turns; fewer may be printed, but not kept
PRECISIONS = ("float32", "bfloat16", "int8")


@dataclass(frozen=True)
class Peer:
    """The other side of a comparison: the program, its version, and the precision that it computes in.

    >>> Peer("transformers on PyTorch", "5.23.0, torch 2.13.0", "float32").name
    'transformers on PyTorch'
    >>> Peer("transformers on PyTorch", "", "float32")
    Traceback (most recent call last):
    ValueError: a peer's version is needed, such as 5.23.0; '' was given for 'transformers on PyTorch'
    """

    name: str
    version: str
    precision: str

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError(f"a peer's name is needed, such as transformers on PyTorch; {self.name!r} was given")
        if not re.search(r"\d", self.version):
            raise ValueError(
                f"a peer's version is needed, such as 5.23.0; {self.version!r} was given for {self.name!r}"
            )
        if self.precision not in PRECISIONS:
            expected = ", ".join(PRECISIONS)
            raise ValueError(f"a peer's precision is one of {expected}; {self.precision!r} was given for {self.name!r}")


@dataclass(frozen=True)
class Comparison:
    """Seconds of both sides in turn, for one case of one work, with everything that a reader must know about them."""

    work: str
    case: str
    precision: str  # of our side
    peer: Peer
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    machine: Mapping[str, Any]
    versions: Mapping[str, str]  # of our side: jax, python
    date: str

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision={self.precision!r}: expected one of {', '.join(PRECISIONS)}")
        if len(self.ours) != len(self.theirs):
            raise ValueError(f"{len(self.ours)} turns of ours and {len(self.theirs)} of {self.peer.name}: not in turn")
        if len(self.ours) < FEWEST:
            raise ValueError(f"{len(self.ours)} turns: a result needs {FEWEST} or more")
        for name, missing in (("processor and cores", {"processor", "cores"} - {*self.machine}),
                            ("JAX and Python", {"jax", "python"} - {*self.versions})):  # fmt: skip
            if missing:
                raise ValueError(f"{self.work}: {name} are needed; {', '.join(sorted(missing))} not given")

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The key of a case: a newer comparison with the same precision and minor JAX replaces this one."""
        return self.work, self.case, self.precision, minor(self.versions["jax"])

    @property
    def ratio(self) -> float:
        """The median of the turns' ratios, our time divided by theirs."""
        return median_ratio(self.ours, self.theirs)

    @property
    def medians(self) -> tuple[float, float]:
        """Median seconds of ours and of the peer."""
        return statistics.median(self.ours), statistics.median(self.theirs)


def median_ratio(ours: Iterable[float], theirs: Iterable[float]) -> float:
    """Return the median of the ratios of pairs.

    >>> median_ratio([1, 2, 9], [2, 2, 3])
    1.0
    """
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def minor(version: str) -> str:
    """Return the first two numbers of a version.

    >>> minor("0.12.0.1")
    '0.12'
    """
    return ".".join(version.split(".")[:2])


def read_results(file: Path) -> list[Comparison]:
    """Return the comparisons of a file, [] if there is none yet."""
    if not file.is_file():
        return []
    rows = []
    for entry in read_json(file)["comparisons"]:
        fields = {name: entry[name] for name in ("work", "case", "precision", "machine", "versions", "date")}
        seconds = entry["seconds"]
        peer = Peer(**entry["peer"])
        rows.append(Comparison(**fields, peer=peer, ours=tuple(seconds["ours"]), theirs=tuple(seconds["theirs"])))
    return rows


def write_results(file: Path, results: Iterable[Comparison]) -> None:
    """Write comparisons, with medians and ratios for readers; `read_results` computes these from the seconds."""
    entries = []
    for one in sorted(results, key=lambda one: one.key):
        ours, theirs = one.medians
        entries.append({
            "work": one.work, "case": one.case, "precision": one.precision, "peer": dataclasses.asdict(one.peer),
            "median": {"ours": round(ours, 5), "theirs": round(theirs, 5)}, "ratio": round(one.ratio, 3),
            "turns": len(one.ours), "machine": dict(one.machine), "versions": dict(one.versions), "date": one.date,
            "seconds": {"ours": [round(x, 6) for x in one.ours], "theirs": [round(x, 6) for x in one.theirs]},
        })  # fmt: skip
    write_json(file, {"comparisons": entries})


def merge(old: Iterable[Comparison], new: Iterable[Comparison]) -> list[Comparison]:
    """Return the old comparisons, each replaced by a new one of the same key if there is one."""
    return list({one.key: one for one in (*old, *new)}.values())


def describe_machine() -> dict[str, Any]:
    """Return the processor, the cores that this process may use, memory in GiB, and the instruction sets that matter.

    >>> describe_machine()["cores"] >= 1
    True
    """
    text = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").is_file() else ""
    named = re.search(r"model name\s*: (.*)", text)
    numbers = [match[1] for name in ("cpu family", "model") if (match := re.search(rf"^{name}\s*: (\d+)", text, re.M))]
    processor = named[1] if named else platform.processor() or platform.machine()
    flags = set(re.findall(r"\b(?:avx512f|avx512_bf16|amx_bf16|avx2|asimd)\b", text))
    names = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_bf16": "AVX-512 BF16", "amx_bf16": "AMX", "asimd": "NEON"}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "processor": processor + (f" (family {numbers[0]}, model {numbers[1]})" if len(numbers) == 2 else ""),
        "cores": cores,
        "memory_gib": round(memory / 2**30),
        "instructions": [name for flag, name in names.items() if flag in flags],
        "amx": "amx_bf16" in flags,
        "system": platform.system(),
    }
