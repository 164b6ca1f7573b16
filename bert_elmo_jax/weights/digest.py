"""A digest of parameters: equal for equal numbers in every file format."""

import hashlib
from collections.abc import Mapping
from typing import Any

import ml_dtypes  # noqa: F401 - teaches numpy the name "bfloat16"
import numpy as np

from bert_elmo_jax.weights.parameter_tree import flatten


def digest(params: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a parameter tree, over name, type, shape and bytes of each tensor in the order of names.

    Bytes are little-endian and in C order. A name is the path in the tree, such as `encoder/layer_0/norm/scale`.

    >>> tree = {"encoder": {"b": np.float32([1, 2]), "a": np.zeros((1, 2), np.float32)}}
    >>> digest(tree)[:16], digest(dict(encoder=dict(reversed(tree["encoder"].items())))) == digest(tree)
    ('46c79667eff6ba51', True)
    >>> digest({"encoder": {**tree["encoder"], "b": np.float32([1, 3])}}) == digest(tree)
    False
    """
    sha256 = hashlib.sha256()
    for name, value in sorted(flatten(params).items()):
        array = np.asarray(value)
        # Each length comes before its content, so that no two trees have the same bytes.
        about = f"{name}\0{array.dtype.name}\0{','.join(map(str, array.shape))}".encode()
        sha256.update(len(about).to_bytes(8, "little") + about)
        sha256.update(array.nbytes.to_bytes(8, "little"))
        plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
        sha256.update(plain.reshape(-1).view(np.uint8).data)
    return sha256.hexdigest()
