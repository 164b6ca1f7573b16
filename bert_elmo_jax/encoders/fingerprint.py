"""Fingerprints of models: equal for equal numbers, from any file."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_elmo_jax.weights.parameter_tree import flatten


def fingerprint(config: Any, params: Mapping[str, Any], words: str = "") -> str:
    """Return 16 hex digits for a configuration, its parameters and the fingerprint of its vocabulary (`words`)."""
    digest = hashlib.sha256(f"{config} {words}".encode())
    for path, value in sorted(flatten(params).items()):
        array = np.ascontiguousarray(value)
        digest.update(f"{path} {array.shape} {array.dtype}".encode())
        digest.update(array.data)
    return digest.hexdigest()[:16]
