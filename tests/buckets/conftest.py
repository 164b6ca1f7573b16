"""Buckets in the memory of this process, and in a real S3 server on the loopback; one cache for each machine."""

import itertools

import pytest

from bert_elmo_jax.buckets import cache, lease, objects

NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    """Try again at once, and watch leases for a moment only."""
    monkeypatch.setattr(objects, "FIRST_WAIT", 0.0)
    monkeypatch.setattr(lease, "SETTLE", 0.0)
    monkeypatch.setattr(lease, "PATIENCE", 0.02)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Return a function that moves this process to a machine by name: to an empty cache, or to the one from before."""

    def move(name):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        return cache.cache_folder()

    move("first")
    return move


@pytest.fixture
def bucket(machine):
    """Return the address of an empty bucket in this process's memory."""
    return f"memory://bucket{next(NUMBERS)}"
