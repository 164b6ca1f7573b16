"""Import torch and transformers for comparisons, with their warnings suppressed."""

import contextlib
import logging
import warnings

import pytest


@pytest.fixture(scope="module")
def peers():
    """Return torch and transformers, imported without their warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch", reason="needs the peers extra")
        transformers = pytest.importorskip("transformers", reason="needs the peers extra")
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        torch.set_num_threads(1)
    return torch, transformers


@contextlib.contextmanager
def their_warnings():
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:  # a missing package leaves by an exception
        logging.disable(logging.NOTSET)
