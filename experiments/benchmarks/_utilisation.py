"""Utilisation of the accelerator at hand: a training step's operations per second, divided by the chip's peak."""

import datetime
import os
import platform
import re
import statistics
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from bert_elmo_jax.files import write_json
from bert_elmo_jax.plan.chips import CHIPS
from bert_elmo_jax.programs import CONFIGS, find_file
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.text import boundary_characters, character_table
from bert_elmo_jax.train import matmul_rate

from ._inputs import make_batch
from .ours.step import make_step

# Peaks of dense bfloat16 products in operations per second, as the makers state them. A key is a part of JAX's name of
# the device; longer keys come first, so that "H100 PCIe" is not read as "H100".
PEAKS = {
    "H200": 989e12,  # https://www.nvidia.com/en-us/data-center/h200/ (half of the figure "with sparsity")
    "H100 PCIe": 756e12,  # https://www.nvidia.com/en-us/data-center/h100/
    "H100 NVL": 835e12,
    "H100": 989e12,
    "A100": 312e12,  # https://www.nvidia.com/en-us/data-center/a100/
    "A10G": 70e12,  # https://aws.amazon.com/ec2/instance-types/g5/
    "L40S": 362e12,  # https://www.nvidia.com/en-us/data-center/l40s/
    "L4": 121e12,  # https://www.nvidia.com/en-us/data-center/l4/
    "RTX 4090": 165e12,  # https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf
    "V100": 125e12,  # float16: this card has no bfloat16
    "T4": 65e12,  # float16
    # JAX names TPUs "TPU v4", "TPU v5 lite", "TPU v5" (v5p) and "TPU v6 lite".
    "TPU v4": CHIPS["v4"].bfloat16,
    "TPU v5 lite": CHIPS["v5e"].bfloat16,
    "TPU v5e": CHIPS["v5e"].bfloat16,
    "TPU v5": CHIPS["v5p"].bfloat16,
    "TPU v6": CHIPS["v6e"].bfloat16,
}


class Case(NamedTuple):
    """A recipe and a batch."""

    family: str
    recipe: str
    rows: int
    length: int
    fields: Mapping[str, Any]  # of the model
    sequences: int = 1  # that share a row; attention keeps them apart

    @property
    def name(self) -> str:
        """The case in one line."""
        fields = ", ".join(f"{name}={value}" for name, value in self.fields.items())
        packed = f" with {self.sequences} sequences each" if self.sequences > 1 else ""
        return f"{self.recipe}, {self.rows} × {self.length}{packed}, {fields}"


FUSED = {"dtype": "bfloat16", "attention": "fused", "attention_dropout": 0.0}
REFERENCE = {"dtype": "bfloat16", "attention": "reference", "attention_dropout": 0.1}
# The cases that matter most come first: those that the time does not suffice for are left out, and listed.
CASES = (
    Case("bert", "bert.py:base", 256, 128, FUSED),
    Case("bert", "bert.py:base", 64, 512, FUSED),
    Case("elmo", "elmo.py:original", 128, 20, {"dtype": "bfloat16"}),
    Case("gpt", "gpt.py:small", 32, 512, {**FUSED, "max_positions": 1024}),
    Case("bert", "bert.py:base", 64, 512, FUSED, sequences=4),
    Case("bert", "bert.py:large", 64, 512, FUSED),
    Case("elmo", "elmo.py:original", 512, 20, {"dtype": "bfloat16"}),
    Case("bert", "bert.py:base", 256, 128, REFERENCE),
    Case("bert", "bert.py:base", 64, 512, REFERENCE),
    Case("elmo", "elmo.py:small", 128, 20, {"dtype": "bfloat16"}),
    Case("bert", "bert.py:large", 256, 128, FUSED),
)
TINY = (
    Case("bert", "bert.py:tiny", 2, 16, {"num_layers": 1, "hidden_size": 16, "num_heads": 2, "feed_forward_size": 32}),
    Case(
        "gpt",
        "gpt.py:small",
        2,
        16,
        {"num_layers": 1, "hidden_size": 16, "num_heads": 2, "feed_forward_size": 32, "max_positions": 16},
        sequences=2,
    ),
    Case("elmo", "elmo.py:small", 2, 4, {"cell_size": 8, "projection_size": 4, "filters": ((1, 4), (2, 4))}),
)


def find_peak(kind: str, peak: float | None) -> float:
    """Return the peak of a device in operations per second; `peak`, in TFLOP/s, takes precedence over the table.

    >>> find_peak("NVIDIA H100 80GB HBM3", None) == find_peak("some card", 989.0) == 989e12
    True
    """
    if peak is not None:
        if not peak > 0:
            raise ValueError(f"--peak={peak}: expected a number of TFLOP/s above 0")
        return peak * 1e12
    for name in sorted(PEAKS, key=len, reverse=True):
        if re.search(rf"\b{re.escape(name)}(?![a-z\d])", kind, re.I):
            return PEAKS[name]
    raise ValueError(
        f"the peak of {kind!r} is not known: give the TFLOP/s of its bfloat16 products, as the maker states them "
        f"without sparsity, such as --peak=312. Known are {', '.join(PEAKS)}"
    )


def list_cases(tiny: bool) -> Iterator[Case]:
    """Yield the cases whose family and recipe exist."""
    for case in TINY if tiny else CASES:
        if find_file(case.recipe.partition(":")[0], CONFIGS).is_file():
            yield case


def make_words(rows: int, length: int, vocab_size: int, widest: int) -> dict[str, np.ndarray]:
    """Return a word batch of one shard: full rows of words that repeat as in running text."""
    draw = np.random.default_rng(0)
    frequency = 1 / np.arange(1, vocab_size + 1)
    words = draw.choice(vocab_size, (rows, length + 1), p=frequency / frequency.sum()).astype(np.int32)
    places = np.unique(words, return_inverse=True)[1].reshape(words.shape).astype(np.int32) + 2
    spelled = ["".join(map(chr, draw.integers(97, 123, draw.integers(2, 10)))) for _ in range(int(places.max()) - 1)]
    table = np.concatenate([boundary_characters(), character_table(spelled)])[:, :widest]
    height = -(-len(table) // 64) * 64
    table = np.concatenate([table, np.full((height - len(table), table.shape[1]), 261)]).astype(np.int32)
    ones = np.ones((rows, length), np.float32)
    return {
        "characters": table[None], "words_forward": places[:, :-1], "words_backward": places[:, :0:-1],
        "lengths": np.full(rows, length, np.int32), "fresh": np.zeros(rows, bool),
        "forward_targets": words[:, 1:], "forward_weights": ones,
        "backward_targets": words[:, -2::-1], "backward_weights": ones,
    }  # fmt: skip


def measure_case(case: Case, repeats: int) -> dict[str, Any]:
    """Return the milliseconds of a training step of a case, its tokens, and its operations per second."""
    config, _ = read_config(case.recipe)
    with config.unlocked():
        config.update({"batch_size": case.rows, "length": case.length, "accumulate": 1})
        if "sequences" in config:
            config.sequences = case.sequences
        config.model.update(case.fields)
    from bert_elmo_jax.families import get_family

    family = get_family(config.family)
    if "negatives" in config:  # a recipe for words
        size = min(family.inputs.vocab_size, 50_000) if case in CASES else 100
        with config.unlocked():
            config.model.vocab_size = size
            config.negatives = min(config.negatives or 0, size // 2)
        batch = make_words(case.rows, case.length, size, widest=16)
    else:
        model = family.config(**config.model)
        batch = make_batch(model, case.rows, case.length, config.masking.kind, case.sequences)
    began = time.perf_counter()
    run, objective, params = make_step(config, batch)
    run()
    compiled, seconds = time.perf_counter() - began, []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    tokens = case.rows * case.length
    rate = tokens * objective.work(params, case.length) / statistics.median(seconds)
    return {
        "case": case.name, "milliseconds": round(1000 * statistics.median(seconds), 3), "steps": repeats,
        "tokens_per_second": round(tokens / statistics.median(seconds)), "operations_per_second": rate,
        "first_step_seconds": round(compiled, 1),
    }  # fmt: skip


def measure_utilisation(
    output: Path, *, tiny: bool, peak: float | None, minutes: float = 7.0, repeats: int = 20
) -> None:
    """Measure all cases on the first device, print each, and write them with the device's name to a file."""
    began, device = time.monotonic(), jax.devices()[0]
    top = find_peak(device.device_kind, peak)
    product = matmul_rate(jax.numpy.bfloat16, 64 if tiny else None)
    print(f"{device.device_kind}: peak {top / 1e12:.0f} TFLOP/s; a large product runs at {product / top:.1%} of it")
    record: dict[str, Any] = {
        "card": device.device_kind, "platform": device.platform, "peak": top, "product": product,
        "date": datetime.date.today().isoformat(), "cores": os.cpu_count(),
        "versions": {"jax": version("jax"), "jaxlib": version("jaxlib"), "python": platform.python_version()},
        "cases": [], "left_out": [],
    }  # fmt: skip
    for case in list_cases(tiny):
        if time.monotonic() - began > 60 * minutes:
            record["left_out"].append({"case": case.name, "reason": f"{minutes:g} minutes are over"})
        else:
            try:
                one = measure_case(case, 2 if tiny else repeats)
            except Exception as error:  # such as too little memory on this card: the other cases are still measured
                record["left_out"].append({"case": case.name, "reason": f"{type(error).__name__}: {error}"[:500]})
            else:
                share = one.pop("operations_per_second") / top
                record["cases"].append({**one, "utilisation": share})
                print(
                    f"{case.name}: {one['milliseconds']:.1f} ms, {one['tokens_per_second']:,} tokens/s, "
                    f"utilisation {share:.1%}",
                    flush=True,
                )
        write_json(output, record)  # after each case: a time limit may end the program
    for left in record["left_out"]:
        print(f"{left['case']}: left out: {left['reason']}")
    print(output)
