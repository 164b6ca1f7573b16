"""A description of this machine for bug reports: versions, devices, what works on them, memory, and a self-test."""

import importlib.metadata
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bert_elmo_jax import load, train
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.nn.attention import fused, reference
from bert_elmo_jax.text import train_wordpiece
from bert_elmo_jax.train.devices import describe_devices
from bert_elmo_jax.weights.hub import hub_cache

PACKAGES = ("bert_elmo_jax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "tokenizers", "sentencepiece",
            "huggingface-hub")  # fmt: skip
OPTIONAL = {"ray": "sweeps and preparation on a cluster", "optuna": "search", "matplotlib": "figures as PNG"}
GIB = 2**30


def check_machine() -> Iterator[tuple[str, str, bool]]:
    """Yield (name, finding, True if it is fine) after each check.

    >>> next(check_machine()) == ("python", platform.python_version(), True)
    True
    """
    checks: dict[str, Callable[[], str]] = {
        "python": platform.python_version,
        "system": lambda: f"{platform.platform()}, {os.cpu_count()} cores{_vector_units()}",
        "packages": lambda: ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
        "optional packages": lambda: ", ".join(f"{name} ({use}): {_version(name)}" for name, use in OPTIONAL.items()),
        "devices": lambda: f"{describe_devices()}, backend {jax.default_backend()}",
        "bfloat16": _compare_dtypes,
        "fused attention": _check_fused,
        "memory": _measure_memory,
        "disk": lambda: f"{shutil.disk_usage(Path.cwd()).free / GIB:.1f} GiB free in this folder",
        "hub cache": _describe_hub_cache,
        "Hangul fonts": _find_fonts,
        "self-test": _test_model,
    }
    for name, check in checks.items():
        try:
            yield name, check(), True
        except Exception as error:  # every failure belongs in the report
            yield name, f"{type(error).__name__}: {error}", False


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _vector_units() -> str:
    information = Path("/proc/cpuinfo")
    if not information.is_file():
        return ""
    line = next((line for line in information.read_text().splitlines() if line.startswith("flags")), "")
    features = [name for name in ("avx2", "avx512f", "amx_bf16") if f" {name} " in f"{line} "]
    return f", {' '.join(features) or 'no AVX'}"


def _compare_dtypes() -> str:
    slow, fast = (train.matmul_rate(dtype) for dtype in (jnp.float32, jnp.bfloat16))
    return f"a large product at {fast / slow:.2f} × the rate of float32 ({slow / 1e9:,.0f} GFLOP/s)"


def _check_fused() -> str:
    dtype = jnp.bfloat16 if jax.default_backend() == "gpu" else jnp.float32
    q, k, v = jax.random.normal(jax.random.key(0), (3, 2, 64, 4, 64), dtype)
    apart = float(jnp.abs(fused(q, k, v) - reference(q, k, v)).max())
    if not apart < (3e-2 if dtype == jnp.bfloat16 else 1e-5):
        raise ArithmeticError(f"differs from the reference by {apart:.2g}")
    return f"works in {q.dtype}, within {apart:.1g} of the reference"


def _measure_memory() -> str:
    memories = []
    if Path("/proc/meminfo").is_file():
        lines = Path("/proc/meminfo").read_text().splitlines()
        kib = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith("kB")}
        memories.append(f"{kib['MemAvailable'] * 1024 / GIB:.1f} of {kib['MemTotal'] * 1024 / GIB:.1f} GiB free")
    statistics = jax.devices()[0].memory_stats() or {}
    if "bytes_limit" in statistics:
        used, limit = statistics["bytes_in_use"] / GIB, statistics["bytes_limit"] / GIB
        memories.append(f"{limit - used:.1f} of {limit:.1f} GiB free on the first device")
    return "; ".join(memories) or "unknown on this system"


def _describe_hub_cache() -> str:
    folder = hub_cache()
    models = len(list(folder.glob("models--*"))) if folder.is_dir() else 0
    offline = ", HF_HUB_OFFLINE is set" if os.environ.get("HF_HUB_OFFLINE") else ""
    return f"{folder}: {models} models{offline}"


def _find_fonts() -> str:
    try:
        from matplotlib import font_manager
    except ImportError:
        return "needed for figures as PNG only, which need matplotlib: pip install 'bert_elmo_jax[figures]'"
    names = ("Nanum", "Noto Sans CJK", "Noto Sans KR", "Malgun", "Apple SD Gothic", "UnDotum", "Baekmuk")
    fonts = {font.name for font in font_manager.fontManager.ttflist if font.name.startswith(names)}
    return ", ".join(sorted(fonts)[:3]) or "none of the known ones: figures as PNG will lack Hangul"


def _test_model() -> str:
    """Save, load and use a tiny model, which takes about ten seconds."""
    began = time.perf_counter()
    texts = ["배를 타고 강을 건넜다 .", "The old ship sank ."]
    tokenizer = train_wordpiece(texts * 9, vocab_size=100)
    family = get_family("bert")
    config = family.config(vocab_size=tokenizer.vocab_size, **family.presets["tiny"])
    with tempfile.TemporaryDirectory() as folder:
        params = init_params(family, config, jax.random.key(0), tuple(family.heads))
        write_run_directory(folder, config, params, tokenizer, run={})
        model = load(folder)
        if not np.isfinite(model.encode(texts).last).all() or len(model.fill_mask("The old [MASK] sank .")[0]) == 0:
            raise ArithmeticError("the vectors of a tiny model are not finite")
    return f"passed in {time.perf_counter() - began:.0f} seconds"
