"""Strict JAX for every test: no silent rank promotion, and with TEST_TYPES=1 shapes and types checked on each call."""

import contextlib
import ctypes
import functools
import gc
import importlib
import os
import re
import signal
import socket
import sys
import threading
import zlib
from importlib.metadata import version
from pathlib import Path

from . import compiled_programs
from .simulated_devices import DEVICES, FLAG

# Set before JAX is imported, which reads these variables once; programs that tests start inherit them.
# Tests compile much and compute little. Without optimisations, and with the older fusion emitters that JAX 0.10 still
# has, compiling takes two fifths of the time.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" {FLAG}={DEVICES}"
# XLA's concurrent scheduler starts independent collectives in a different order on each simulated device. On two cores,
# all threads can then wait for each other until XLA aborts the process.
os.environ["XLA_FLAGS"] += " --xla_cpu_enable_concurrency_optimized_scheduler=false"
# Where tests share two cores, one of eight simulated devices may keep the others waiting for longer than 40 seconds.
os.environ["XLA_FLAGS"] += " --xla_cpu_collective_call_terminate_timeout_seconds=200"
# All cores are busy anyway, and a program that is compiled as one part needs a fifth less processor time than as many.
os.environ["XLA_FLAGS"] += " --xla_cpu_parallel_codegen_split_count=1"
if version("jaxlib").startswith("0.10."):
    os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
# All workers and programs share one cache of compiled programs, which saves a tenth of the time; the next run of the
# tests uses it, too, which saves a third.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    folder = compiled_programs.kept_folder()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        compiled_programs.tidy(folder)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# A shell's background jobs ignore Ctrl-C, and so would the programs that tests start and stop.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

import hypothesis
import pytest
from absl import flags
from jaxtyping import install_import_hook

# Checking types and shapes on each call takes a third of the time, so only `make proofs` does it.
if os.environ.get("TEST_TYPES"):
    install_import_hook("bert_elmo_jax", "beartype.beartype")
# Tracing makes many long-lived objects; with the default thresholds, garbage collection takes a twentieth of the time.
gc.set_threshold(20_000, 50, 100)


class BlockedNetwork(OSError):
    """A test tried to reach another machine."""


def is_here(address):
    """Return True for a Unix socket, a loopback address, or an address of this machine."""
    host = address[0] if isinstance(address, tuple) else None
    if host is None or host in ("", "localhost", "::1", "0.0.0.0", "::", socket.gethostname()):
        return True
    host = host.decode() if isinstance(host, bytes) else str(host)
    return host.startswith("127.") or host in own_addresses()


@functools.cache
def own_addresses():
    with contextlib.suppress(OSError):
        return socket.gethostbyname_ex(socket.gethostname())[2]
    return []


def block_network():
    """Let sockets reach this machine alone; programs that tests start as processes are not affected."""

    def guard(function):
        @functools.wraps(function)
        def connect(self, address):
            # A datagram socket sends nothing when it connects.
            if self.type != socket.SOCK_DGRAM and not is_here(address):
                raise BlockedNetwork(f"tests do not use the network, and one connects to {address}")
            return function(self, address)

        return connect

    def resolve(host, *arguments, **more):
        if not is_here((host,)) and not re.fullmatch(r"[\d.]+|[\da-fA-F:]+:[\da-fA-F:]*", str(host)):
            raise BlockedNetwork(f"tests do not use the network, and one asks for the address of {host}")
        return find(host, *arguments, **more)

    find, socket.getaddrinfo = socket.getaddrinfo, resolve
    socket.socket.connect = guard(socket.socket.connect)
    socket.socket.connect_ex = guard(socket.socket.connect_ex)


block_network()

# Of tests with drawn examples: a few in `make test`, many every night; some tests set a number of their own.
hypothesis.settings.register_profile("few", max_examples=25, deadline=None)
hypothesis.settings.register_profile("many", max_examples=200, deadline=None)
hypothesis.settings.load_profile("many" if os.environ.get("TEST_TYPES") else "few")

GOLDENS = Path(__file__).parent / "goldens"
SHARED = Path(__file__).parents[2] / "shared"


FIRST = ("test_commands", "test_toy_scale", "test_notebooks", "test_pages", "test_portable")  # files


def pytest_collection_modifyitems(items):
    """Run first what takes longest, with the sweeps: no worker should end with it."""
    items.sort(key=lambda item: (not item.path.name.startswith(FIRST), "sweeps" not in item.path.parts))
    if DEVICES < 8:
        for item in items:
            if item.get_closest_marker("devices"):
                item.add_marker(pytest.mark.skip(reason="needs eight devices: set TEST_DEVICES=8"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run the tests of a file in one worker, but share out the documented commands, which take an hour."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return f"{file} {zlib.crc32(nodeid.encode()) % 3}" if file.endswith("test_commands.py") else file

    return Scheduling(config, log)


def resident_bytes():
    """Return the memory of this process, or infinity on a system without /proc."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return float("inf")


def return_memory():
    """Return freed memory to the system; glibc keeps it otherwise."""
    gc.collect()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(scope="module", autouse=True)
def compiled_for_each_worker():
    """Keep compiled programs for a worker's next files until its memory grows; check that JAX's settings are kept."""
    import jax

    jax.devices()  # before a program of a test starts JAX with other devices
    fixed = "jax_num_cpu_devices"  # once JAX runs, it has no effect
    before = dict(jax.config.values)
    yield
    if resident_bytes() > 2.5e9:
        jax.clear_caches()
        return_memory()
    changed = {name: new for name, new in jax.config.values.items() if new != before.get(name, new) and name != fixed}
    assert not changed, f"a later file, in any order, would see these settings: {changed}"


@pytest.fixture
def strict_dtypes():
    """Turn on strict dtype promotion, for our layers, models and losses; optax does not support it."""
    import jax

    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture
def as_users_run():
    """Turn off the type checks that only tests make, so that users' error messages are tested."""
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def goldens() -> Path:
    """Return the folder of frozen reference outputs in this repository."""
    return GOLDENS


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder next to the checkout with real data sets and other projects' outputs, or skip the test."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the folder {SHARED.name}/ next to the checkout")
    return SHARED


@pytest.fixture(scope="module")
def program():
    """Import a program, or a module by its full name; its flags are removed after the test file."""
    before, defined = set(flags.FLAGS), []

    def take(name):
        module = importlib.import_module(name if "bert_elmo_jax" in name else f"experiments.{name}")
        if hasattr(module, "define") and module not in defined:
            module.define()
            defined.append(module)
        flags.FLAGS.mark_as_parsed()
        return module

    yield take
    for name in set(flags.FLAGS) - before:
        delattr(flags.FLAGS, name)
    for name in [name for name in sys.modules if name.startswith("experiments.")]:
        del sys.modules[name]


@pytest.fixture
def one_device(monkeypatch):
    """Train on one device: compiling for eight takes three times as long."""
    import jax

    from bert_elmo_jax import train

    monkeypatch.setattr(train, "make_mesh", functools.partial(train.make_mesh, devices=jax.devices()[:1]))
