"""Comparison of a model's outputs with frozen ones."""

import numpy as np


def assert_close(ours, theirs, real=None, tolerance=1e-5):
    """Check that the error at real positions is at most `tolerance` times the largest value."""
    assert ours.shape == theirs.shape
    ours, theirs = (np.asarray(x) if real is None else np.asarray(x)[real] for x in (ours, theirs))
    assert np.abs(ours - theirs).max() <= tolerance * np.abs(theirs).max()
