"""The chips of TPUs and GPUs, the slices of them that exist, and the devices of a slice."""

import contextlib
import math
import os
import re
from typing import Any, NamedTuple

import jax

from bert_elmo_jax.plan.cards import CARDS, find_cards
from bert_elmo_jax.plan.compiled_cost import Cost

GIB = 2**30
SIMULATED = 1_024  # the most devices of a processor; starting and compiling for more takes minutes


class Chip(NamedTuple):
    """The memory of one chip in bytes, and its peaks per second in operations and bytes."""

    memory: float
    bfloat16: float  # operations of products in bfloat16; a TPU uses them for float32, too, by default
    bandwidth: float
    link: float  # one wire to a neighbour in one direction
    wraps: int  # an axis of a slice is a ring if its length is a multiple of this, otherwise a line
    slices: str  # the existing ones


FLAT = "1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16"
HOST = "any number from 1 to 8"
CUBES = "2x2x1, 2x2x2, 2x2x4, 2x4x4, or AxBxC in multiples of 4"
CHIPS = {
    # 275 TFLOPS, 32 GiB at 1,200 GB/s: https://cloud.google.com/tpu/docs/v4; six links of 50 GB/s each way: Jouppi et
    # al. 2023, https://arxiv.org/abs/2304.01433, table 4.
    "v4": Chip(32 * GIB, 275e12, 1200e9, 50e9, 4, CUBES),
    # 197 TFLOPS, 16 GB at 819 GB/s, 400 GB/s both ways over four links: https://cloud.google.com/tpu/docs/v5e
    "v5e": Chip(16 * GIB, 197e12, 819e9, 50e9, 16, FLAT),
    # 459 TFLOPS, 95 GB at 2,765 GB/s, 1,200 GB/s both ways over six links: https://cloud.google.com/tpu/docs/v5p
    "v5p": Chip(95 * GIB, 459e12, 2765e9, 100e9, 4, CUBES),
    # 918 TFLOPS, 32 GB at 1,638 GB/s, 800 GB/s both ways over four links: https://cloud.google.com/tpu/docs/v6e
    "v6e": Chip(32 * GIB, 918e12, 1638e9, 100e9, 16, FLAT),
    # Dense bfloat16 and NVLink, 600 and 900 GB/s both ways: https://www.nvidia.com/en-us/data-center/a100,
    # https://www.nvidia.com/en-us/data-center/h100 and https://www.nvidia.com/en-us/data-center/h200
    "a100": Chip(CARDS["a100"].memory, 312e12, CARDS["a100"].bandwidth, 300e9, 1, HOST),
    "h100": Chip(CARDS["h100"].memory, 989e12, CARDS["h100"].bandwidth, 450e9, 1, HOST),
    "h200": Chip(CARDS["h200"].memory, 989e12, CARDS["h200"].bandwidth, 450e9, 1, HOST),
}


class Topology(NamedTuple):
    """Devices to compile for; `chip` is None for simulated ones."""

    devices: list[Any]
    chip: Chip | None
    links: int  # wires that even the chip with the fewest can send over


def find_topology(name: str) -> Topology:
    """Return the devices of `--topology`: `v5e:2x4`, a slice of a TPU, `h100:8`, GPUs, or `cpu:8`, simulated ones."""
    kind, _, size = name.partition(":")
    if kind == "cpu" and re.fullmatch(r"0*[1-9][0-9]{0,8}", size):
        if int(size) > SIMULATED:
            raise ValueError(f"--topology={name}: expected 1 to {SIMULATED:,} simulated devices, such as cpu:8")
        return Topology(simulate_devices(int(size)), None, 0)
    if kind in CARDS and re.fullmatch("[1-8]", size):
        return Topology(find_cards(kind, int(size)), CHIPS[kind], int(size) > 1)
    if (
        kind not in CHIPS
        or not re.fullmatch(r"\d+(x\d+)+", size)
        or not slice_exists(kind, shape := tuple(map(int, size.split("x"))))
    ):
        listed = "; ".join(f"{kind}: {chip.slices}" for kind, chip in CHIPS.items())
        raise ValueError(f"--topology={name!r} is not known. There are {listed}; or cpu:8, eight simulated devices")
    return Topology(find_tpu(name), CHIPS[kind], count_links(CHIPS[kind], shape))


def slice_exists(kind: str, shape: tuple[int, ...]) -> bool:
    """Return True if there are slices of this shape."""
    if CHIPS[kind].slices == FLAT:
        return "x".join(map(str, shape)) in FLAT.split(", ")
    small = ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))
    return shape in small or (len(shape) == 3 and all(axis and axis % 4 == 0 for axis in shape))


def count_links(chip: Chip, shape: tuple[int, ...]) -> int:
    """Return the number of links that every chip of a slice has: two along a ring, one along a line, as at its ends."""
    return sum(0 if axis == 1 else 2 if axis % chip.wraps == 0 else 1 for axis in shape)


def simulate_devices(count: int) -> list[Any]:
    """Return so many CPU devices; raise ValueError if JAX was started with fewer."""
    with contextlib.suppress(RuntimeError):  # JAX is running: its number of devices is fixed
        jax.config.update("jax_num_cpu_devices", count)
    if len(jax.devices("cpu")) < count:
        how = f"set XLA_FLAGS=--xla_force_host_platform_device_count={count}, or unset it"
        raise ValueError(f"--topology=cpu:{count}: JAX was started with {len(jax.devices('cpu'))} devices; {how}")
    return jax.devices("cpu")[:count]


def find_tpu(name: str) -> list[Any]:
    """Return the devices of a TPU slice, for compiling only; the compiler, libtpu, runs on any x86 host."""
    try:
        import libtpu
    except ImportError:
        raise ImportError(
            f"--topology={name} needs the TPU's compiler: pip install 'bert_elmo_jax[tpu]' (or use --topology=cpu:8)"
        ) from None
    from jax.experimental import topologies

    # By default libtpu asks Google's cloud for the TPU of this host, and locks it for one process. Here it has none.
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")
    os.environ.setdefault("TPU_ACCELERATOR_TYPE", "v5litepod-8")
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
    # A v4 or v5p chip has two cores, which JAX uses as one device.
    config: dict[str, Any] = {"chip_config_name": "megacore"} if name.startswith(("v4", "v5p")) else {}
    if name.endswith(":1x1"):  # the only chip of its host, as on Colab
        config["chips_per_host_bounds"] = (1, 1, 1)
    try:
        return list(topologies.get_topology_desc(name, platform="tpu", **config).devices)
    except jax.errors.JaxRuntimeError as error:
        raise ValueError(f"--topology={name}: error of libtpu {libtpu.__version__}: {str(error)[:300]}") from None


def compute_roofline(cost: Cost, chip: Chip, links: int) -> dict[str, float]:
    """Return lower bounds for the seconds of a step: from the chip's peak, memory and links, each fully used.

    >>> cost = Cost(flops=197000000000000.0, bytes=819000000000.0 / 2)
    >>> compute_roofline(cost, CHIPS["v5e"], links=2)
    {'compute': 1.0, 'memory': 0.5, 'network': 0.0}
    """
    network = cost.sent / (links * chip.link) if links else (math.inf if cost.sent else 0.0)
    return {"compute": cost.flops / chip.bfloat16, "memory": cost.bytes / chip.bandwidth, "network": network}
