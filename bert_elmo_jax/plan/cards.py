"""GPUs that are not here: devices to compile for, and how their programs are traced without one."""

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from unittest import mock

import jax


class Card(NamedTuple):
    """The properties of a GPU that XLA's compiler knows; all have 32 threads per warp and 65,536 registers per core."""

    name: str
    capability: tuple[int, int]  # of CUDA
    memory: int  # bytes
    bandwidth: float  # bytes a second
    cores: int
    units: int  # of each core, in float32
    clock: float  # GHz
    shared: int  # bytes of each core that its threads share
    cache: int  # bytes of the second level


# Makers' figures, as openxla/xla lists them in xla/backends/gpu/target_config/specs.
CARDS = {
    "a100": Card("NVIDIA A100-SXM4-80GB", (8, 0), 85100068864, 2039e9, 108, 64, 1.41, 167936, 41943040),
    "h100": Card("NVIDIA H100 80GB HBM3", (9, 0), 84942979072, 3352e9, 132, 128, 1.98, 233472, 52428800),
    "h200": Card("NVIDIA H200 141GB HBM3e", (9, 0), 151397597184, 4800e9, 132, 128, 1.98, 233472, 52428800),
}
CUDNN = (9, 10, 0)  # the version whose kernels of attention are planned with


def describe_card(card: Card) -> str:
    """Return the description of a card that XLA reads, a `GpuTargetConfigProto` as text.

    >>> describe_card(CARDS["h200"]).splitlines()[1]
    '  core_count: 132'
    """
    major, minor = card.capability
    fields = {
        "core_count": card.cores, "fpus_per_core": card.units, "clock_rate_ghz": card.clock,
        "memory_bandwidth": int(card.bandwidth), "device_memory_size": card.memory, "l2_cache_size": card.cache,
        "shared_memory_per_core": card.shared, "shared_memory_per_block_optin": card.shared - 1024,
        "shared_memory_per_block": 49152, "registers_per_core_limit": 65536, "registers_per_block_limit": 65536,
        "threads_per_warp": 32, "threads_per_block_limit": 1024, "threads_per_core_limit": 2048,
        "thread_dim_limit_x": 1024, "thread_dim_limit_y": 1024, "thread_dim_limit_z": 64,
        "block_dim_limit_x": 2**31 - 1, "block_dim_limit_y": 65535, "block_dim_limit_z": 65535,
        "device_address_bits": 64, "ecc_enabled": "true", "name": f'"{card.name}"', "device_vendor": '"NVIDIA"',
    }  # fmt: skip
    lines = [f"  {name}: {value}" for name, value in fields.items()]
    features = " feature_extension: ACCELERATED_FEATURES" if major >= 9 else ""
    lines.append(f"  cuda_compute_capability {{ major: {major} minor: {minor}{features} }}")
    version = "dnn_version_info {{ major: {} minor: {} patch: {} }}".format(*CUDNN)
    tail = ['platform_name: "CUDA"', version, f'device_description_str: "{card.name}"']
    return "\n".join(["gpu_device_info {", *lines, "}", *tail])


def find_plugin(version: int) -> bool:
    """Return whether XLA's compiler for this version of CUDA is installed."""
    try:
        return importlib.util.find_spec(f"jax_plugins.xla_cuda{version}") is not None
    except ModuleNotFoundError:  # no plugin of any kind is
        return False


def find_cards(kind: str, count: int) -> list[Any]:
    """Return so many devices of one host, for compiling only."""
    from jax.experimental import topologies

    if not (find_plugin(13) or find_plugin(12)):
        raise ImportError(
            f"--topology={kind}:{count} needs the GPU's compiler: pip install 'bert_elmo_jax[gpu]' (no GPU is needed)"
        )
    description = describe_card(CARDS[kind])
    try:
        topology = topologies.get_topology_desc(kind, "cuda", topology=f"1x1x{count}", target_config=description)
    except jax.errors.JaxRuntimeError as error:
        raise ValueError(f"--topology={kind}:{count}: error of XLA's compiler: {str(error)[:300]}") from None
    return list(topology.devices)


@contextlib.contextmanager
def as_if_present(devices: Sequence[Any]) -> Iterator[None]:
    """Trace for these GPUs: JAX asks a GPU which kernels of attention and of Triton it can run, and there is none."""
    capability = devices[0].compute_capability
    attention = importlib.import_module("jax._src.cudnn.fused_attention_stablehlo")
    answers = [
        (jax, "device_count", lambda: len(devices)),
        (attention, "check_cudnn_version", lambda: 10_000 * CUDNN[0] + 100 * CUDNN[1] + CUDNN[2]),
        (attention, "check_compute_capability", lambda least: parse_version(capability) >= parse_version(least)),
        (attention, "is_cuda_compute_capability_equal", lambda other: other == capability),
    ]
    with contextlib.suppress(ImportError):  # before JAX 0.11, Triton assumes a card like an H100 if there is none
        triton = importlib.import_module("jax._src.pallas.triton.gpu_info")
        number = int(capability.replace(".", ""))
        info = triton.GpuInfo(gpu_version=None, arch_name=capability, compute_capability=number)
        answers.append((triton, "get_gpu_info", lambda: info))
    with contextlib.ExitStack() as stack:
        for module, name, answer in answers:
            stack.enter_context(mock.patch.object(module, name, answer))
        yield


def parse_version(text: str) -> tuple[int, ...]:
    """Return the numbers of a version.

    >>> parse_version("9.0")
    (9, 0)
    """
    return tuple(map(int, text.split(".")))
