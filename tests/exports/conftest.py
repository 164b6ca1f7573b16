"""Exported functions are traced with symbolic sizes, which are no `int` for the type checks of `make proofs`."""

import pytest


@pytest.fixture(autouse=True)
def symbolic_sizes(as_users_run):
    """Turn off the type checks that only tests make."""
