r"""Our training step on the GPU at hand, with chosen kernels, and the table of its kernels from a trace.

  python -m experiments.benchmarks.gpu_steps --cases=base128,base512 --kernels=none,all
  python -m experiments.benchmarks.gpu_steps --cases=base128 --trace
  python -m experiments.benchmarks.gpu_steps --cases=base128,gpt512 --topology=h100:1      # without a GPU: an estimate

Each line is JSON: the case, the kernels that were switched on (`bert_elmo_jax.gpu_switches`), the median of the steps
that were waited for one by one, and the mean of steps that were waited for together. Rows are full. Without the switch
`full_rows` attention gets their lengths, as rows with padding need. With `--topology`, each line has the kernels, the
bytes and the memory of the step as compiled for that card, and an estimate of its time.
"""

import json
import statistics
import tempfile
import time
from typing import Any

import jax
from absl import flags

from bert_elmo_jax import train
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.piece_objective import mark_full
from bert_elmo_jax.gpu_switches import DEFAULT, SWITCHES, using
from bert_elmo_jax.nn.gpu.launch import LAUNCH
from bert_elmo_jax.plan.chips import Topology, find_topology
from bert_elmo_jax.plan.gpu_step import estimate_range, read_gpu_step
from bert_elmo_jax.plan.plan import trace_for
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import build_step
from bert_elmo_jax.train.ahead_of_time import compile_step

from ..command_line.start import start
from ._inputs import make_batch
from ._kernel_table import kernel_table
from ._utilisation import FUSED, find_peak, make_words
from .ours.step import make_step

FLAGS = flags.FLAGS
NOT_AGAIN = {"remat": False, "scan": False}
CASES: dict[str, tuple[str, int, int, dict[str, Any]]] = {
    "base128": ("bert.py:base", 256, 128, FUSED),
    "base512": ("bert.py:base", 64, 512, FUSED),
    "large512": ("bert.py:large", 64, 512, FUSED | NOT_AGAIN),
    "large512again": ("bert.py:large", 64, 512, FUSED),
    "gpt512": ("gpt.py:small", 32, 512, {**FUSED, "max_positions": 1024}),
    "modern512": ("modernbert.py:base", 64, 512, FUSED | NOT_AGAIN),
    "elmo": ("elmo.py:original", 128, 20, {"dtype": "bfloat16"}),
    "tiny": ("bert.py:tiny", 2, 16, {"num_layers": 1, "hidden_size": 64, "num_heads": 2, "feed_forward_size": 128}),
}


def define() -> None:
    """Define the flags."""
    flags.DEFINE_list("cases", ["base128", "base512"], f"Of {', '.join(CASES)}.")
    flags.DEFINE_list(
        "kernels",
        ["none", "all"],
        f"all, default (those that runs use), none, {', '.join(SWITCHES)}; several joined by +.",
    )
    flags.DEFINE_integer("steps", 20, "To measure.", lower_bound=2)
    flags.DEFINE_bool("trace", False, "Also print the table of kernels of three steps.")
    flags.DEFINE_string("launch", None, "How to launch each kernel: the output of gpu_kernels.")
    card = "Measure nothing: compile for a card that is not here, such as h100:1, and estimate."
    flags.DEFINE_string("topology", None, card)
    flags.DEFINE_float("peak", None, "The chip's peak in TFLOP/s of bfloat16 products.")


def build(case: str) -> tuple[Any, Any, int, int]:
    """Return the config of a case, a batch, its rows and its length."""
    recipe, rows, length, fields = CASES[case]
    config, _ = read_config(recipe)
    with config.unlocked():
        config.update({"batch_size": rows, "length": length, "accumulate": 1})
        config.model.update({name: value for name, value in fields.items() if name in config.model})
    family = get_family(config.family)
    if "negatives" in config:
        with config.unlocked():
            config.model.vocab_size = 50_000
        batch: Any = make_words(rows, length, 50_000, widest=16)
    else:
        batch = mark_full(make_batch(family.config(**config.model), rows, length, config.masking.kind, 1))
    return config, batch, rows, length


def measure(case: str, kernels: str, steps: int, trace: bool, peak: float | None) -> dict[str, Any]:
    """Return the milliseconds of a step, and with `trace` the table of its kernels."""
    with using(*list_switches(kernels)):
        began = time.perf_counter()
        config, batch, rows, length = build(case)
        run, objective, params = make_step(config, batch)
        run()
        first = time.perf_counter() - began
        run()
        seconds = [_timed(run) for _ in range(steps)]
        together = statistics.median(_timed(lambda: _run_together(run, steps)) / steps for _ in range(3))
        middle = statistics.median(seconds)
        work = rows * length * objective.work(params, length)
        line = {
            "case": case, "kernels": kernels, "card": jax.devices()[0].device_kind, "jax": jax.__version__,
            "milliseconds": round(1000 * middle, 3), "together": round(1000 * together, 3),
            "fastest": round(1000 * min(seconds), 3), "first_step_seconds": round(first, 1),
            "utilisation": round(work / middle / find_peak(jax.devices()[0].device_kind, peak), 4),
            "memory": (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use"),
        }  # fmt: skip
        if trace:
            with tempfile.TemporaryDirectory() as folder:
                with jax.profiler.trace(folder):
                    for _ in range(3):
                        run()
                line["table"] = kernel_table(folder, steps=3)
    return line


def list_switches(kernels: str) -> list[str]:
    """Return the switches of an entry of `--kernels`.

    >>> list_switches("gelu+qkv"), "pre_norm" in list_switches("default+pre_norm")
    (['gelu', 'qkv'], True)
    """
    named = {"all": SWITCHES, "default": DEFAULT, "none": ()}
    return sorted({switch for part in kernels.split("+") for switch in named.get(part, (part,))})


def plan_case(case: str, kernels: str, name: str, topology: Topology) -> dict[str, Any]:
    """Return the kernels, memory and estimated milliseconds of a step, compiled for a card that is not here."""
    with using(*list_switches(kernels)), trace_for(topology.devices):
        config, batch, rows, _ = build(case)
        family = get_family(config.family)
        objective = family.objective(config, family.config(**config.model))
        _, method, step = build_step(config, objective)
        state = jax.eval_shape(
            lambda key: train.new_state(objective.init(key), method, key, objective.carry(rows)), jax.random.key(0)
        )
        shapes = {name: jax.ShapeDtypeStruct(values.shape, values.dtype) for name, values in batch.items()}
        mesh = train.make_mesh(devices=topology.devices)
        compiled = compile_step(step, state, shapes, mesh, (*family.sharding, *train.RULES))
    assert compiled.text is not None and topology.chip is not None
    found = read_gpu_step(compiled.text)
    low, middle, high = estimate_range(found, topology.chip)
    return {
        "case": case, "kernels": kernels, "topology": name, "jax": jax.__version__,
        "kernels_of_a_step": sum(found.kernels.values()), "gigabytes": round(found.other_bytes / 1e9, 2),
        "memory": round(compiled.total), "estimate": round(1000 * middle, 2),
        "between": [round(1000 * low, 2), round(1000 * high, 2)],
    }  # fmt: skip


def _run_together(run: Any, steps: int) -> None:
    for step in range(steps):
        run(wait=step == steps - 1)


def _timed(run: Any) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def main() -> None:
    """Measure every case with every set of kernels."""
    topology = None
    if FLAGS.topology:
        jax.config.update("jax_platforms", "cpu")
        topology = find_topology(FLAGS.topology)
        if topology.devices[0].platform != "gpu":
            raise ValueError(f"--topology={FLAGS.topology}: expected GPUs, such as h100:1")
    elif jax.default_backend() != "gpu" and FLAGS.cases != ["tiny"]:
        raise ValueError(
            f"--cases={','.join(FLAGS.cases)} would take hours on {jax.default_backend()}, the only device here: "
            "--cases=tiny tries the program without a GPU, and --topology=h100:1 estimates"
        )
    if FLAGS.launch:
        with open(FLAGS.launch, encoding="utf-8") as file:
            LAUNCH.update({name: tuple(way) for name, way in json.load(file).items()})
    for case in FLAGS.cases:
        for kernels in FLAGS.kernels:
            try:
                if topology is None:
                    line = measure(case, kernels, FLAGS.steps, FLAGS.trace, FLAGS.peak)
                else:
                    line = plan_case(case, kernels, FLAGS.topology, topology)
            except Exception as error:  # such as too little memory: the others are still measured
                line = {"case": case, "kernels": kernels, "error": f"{type(error).__name__}: {error}"[:1500]}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    start("benchmarks.gpu_steps", define, main)
