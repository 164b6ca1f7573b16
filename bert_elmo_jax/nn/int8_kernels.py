"""Dense layers in int8: kernels with a scale per output, quantised once, and inputs with a scale per row, at run time.

A kernel in int8 replaces the float32 one in the parameter tree, with its scales next to it as `kernel_scale [O]`.
Everything else stays float32: embeddings, norms, softmax, poolers and heads.
"""

import re
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int8

from bert_elmo_jax.nn.any_array import AnyArray

SCALE = "kernel_scale"
LARGEST = 127  # -128 is not used, so that the range is symmetric
LAYER = re.compile(r"layer_\d+")  # the parts of a tree whose kernels are quantised


def quantise_layers(params: Mapping[str, Any], inside: bool = False) -> dict[str, Any]:
    """Return parameters whose layers have kernels in int8; kernels outside of layers stay unchanged.

    >>> rows = np.array([[1.0, -0.5], [0.5, 0.25]], np.float32)
    >>> params = quantise_layers({"layer_0": {"up": {"kernel": rows}}, "pooler": {"kernel": rows}})
    >>> params["layer_0"]["up"]["kernel"].tolist(), params["pooler"]["kernel"].dtype
    ([[127, -127], [64, 64]], dtype('float32'))
    """
    quantised: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, Mapping):
            quantised[name] = quantise_layers(value, inside or LAYER.fullmatch(name) is not None)
        elif inside and name == "kernel" and np.ndim(value) == 2 and SCALE not in params:
            kernel = np.asarray(value, np.float32)
            scale = np.maximum(np.abs(kernel).max(axis=0), np.finfo(np.float32).tiny * LARGEST) / LARGEST
            quantised |= {name: np.round(kernel / scale).astype(np.int8), SCALE: scale.astype(np.float32)}
        else:
            quantised[name] = value
    return quantised


def is_int8(params: Mapping[str, Any]) -> bool:
    """Return True if parameters have kernels in int8.

    >>> is_int8({"layer_0": {"kernel": np.ones((2, 2), np.float32)}})
    False
    """
    return SCALE in params or any(is_int8(value) for value in params.values() if isinstance(value, Mapping))


def refuse_int8(params: Mapping[str, Any], source: str) -> None:
    """Raise ValueError if the model would be trained although it is int8."""
    if is_int8(params):
        raise ValueError(
            f"{source} is an int8 model, which can predict but not be trained: train the model that it was made from, "
            "and convert the result with --dtype=int8"
        )


def drop_scales(shapes: Mapping[str, tuple[int, ...]], source: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a model by path, without the scales; raise if a scale does not fit its kernel.

    >>> drop_scales({"up/kernel": (4, 3), "up/kernel_scale": (3,)}, "runs/small")
    {'up/kernel': (4, 3)}
    """
    for path, shape in shapes.items():
        if path.endswith(f"/{SCALE}"):
            kernel = shapes.get(path.removesuffix(SCALE) + "kernel", ())
            if len(kernel) != 2 or kernel[1:] != tuple(shape):
                raise ValueError(
                    f"{source}: {path} has the shape {list(shape)}, and its kernel {list(kernel)}: expected one scale "
                    "per output; copy it again"
                )
    return {path: shape for path, shape in shapes.items() if not path.endswith(f"/{SCALE}")}


def check_scales(params: Mapping[str, Any], source: str) -> None:
    """Raise unless the kernels in int8, and only they, have scales, which are positive; `params` are by path.

    >>> check_scales({"up/kernel": np.ones((2, 3), np.int8)}, "runs/small")
    Traceback (most recent call last):
    ValueError: runs/small: up/kernel is int8, and has no positive float32 scales; copy it again
    """
    for path, value in params.items():
        if path.endswith(f"/{SCALE}"):
            path, value = path.removesuffix("_scale"), params[path.removesuffix("_scale")]
        elif value.dtype != np.int8:
            continue
        scale = params.get(f"{path}_scale")
        if value.dtype != np.int8 or scale is None or scale.dtype != np.float32 or not np.all(np.asarray(scale) > 0):
            problem = "no positive float32 scales" if value.dtype == np.int8 else "scales as of int8"
            raise ValueError(f"{source}: {path} is {value.dtype}, and has {problem}; copy it again")


@jax.custom_jvp
def multiply_int8(
    x: Float[Array, "N I"], kernel: Int8[AnyArray, "I O"], scale: Float[AnyArray, " O"]
) -> Float[Array, "N O"]:
    """Return `x @ (kernel · scale)` in the type of `x`, from a product of int8 matrices that is summed in int32.

    >>> multiply_int8(jnp.array([[1.0, 0.5]]), jnp.array([[127], [-127]], jnp.int8), jnp.array([1 / 127])).round(2)
    Array([[0.5]], dtype=float32)
    """
    wide = x.astype(jnp.float32)
    largest = jnp.maximum(jnp.abs(wide).max(axis=-1, keepdims=True), jnp.finfo(jnp.float32).tiny * LARGEST)
    narrow = jnp.round(wide * (LARGEST / largest)).astype(jnp.int8)
    sums = lax.dot_general(narrow, jnp.asarray(kernel), (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    return (sums.astype(jnp.float32) * (largest * (1 / LARGEST)) * jnp.asarray(scale)[None, :]).astype(x.dtype)


@multiply_int8.defjvp
def _refuse_gradients(primals: Any, tangents: Any) -> Any:
    raise TypeError(
        "an int8 model has no gradients: load it without dtype='int8' to train it, and convert the result with "
        "--dtype=int8"
    )
