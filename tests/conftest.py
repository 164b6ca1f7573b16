"""Strict JAX for every test: eight CPU devices, no silent rank promotion, shapes and types checked on each call."""

import os
from pathlib import Path

# Before anything imports jax: both are read once.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"

import pytest
from jaxtyping import install_import_hook

install_import_hook("bert_elmo_jax", "beartype.beartype")

GOLDENS = Path(__file__).parent / "goldens"
SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture
def strict_dtypes():
    """Strict dtype promotion, for our layers, models and losses (optax does not survive it)."""
    import jax

    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture
def as_users_run():
    """Without the checks of types that only tests make, to see what a user who passes something else is told."""
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def quick_compiles():
    """For tests that compile much and compute little."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    jax.clear_caches()  # what was compiled so rounds otherwise, and the next file must not meet it


@pytest.fixture(scope="session")
def goldens() -> Path:
    """The frozen reference outputs that travel with the repository."""
    return GOLDENS


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder beside the checkout with real data sets and other projects' outputs; absent on most machines."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the folder {SHARED.name}/ beside the checkout")
    return SHARED
