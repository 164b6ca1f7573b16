"""Fresh parameters of an encoder and its heads, and their shapes, for any family."""

import dataclasses
import functools
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from bert_elmo_jax.families.family import Family
from bert_elmo_jax.weights.parameter_tree import flatten

if TYPE_CHECKING:
    from bert_elmo_jax.heads.task_head import TaskHead
else:
    TaskHead = Any  # loading an encoder does not import task heads

# A key is split among these parts in this order; any other part folds in its name.
PARTS = ("encoder", "mlm", "nsp", "classify", "choice", "tag", "span")
PLAIN = {"attention": "reference", "dtype": "float32"}
SIZES = {"choice": 1, "span": 2}  # outputs of the task heads whose size does not depend on the task


def init_params(
    family: Family, config: Any, key: PRNGKeyArray, heads: Sequence[str] = (), *, pooler: bool | None = None
) -> dict[str, Any]:
    """Return the parameters of an encoder and the named pretraining heads: `{"encoder": …, "mlm": …}`.

    The numbers of a part depend on the key and the part's name alone. Without `pooler`, the encoder has one if the
    family has.
    """
    if family.init is not None:
        return family.init(config, key, heads)
    unknown = [name for name in heads if name not in family.heads]
    if unknown:
        raise ValueError(f"{family.called} has no head {unknown[0]!r}; it has {', '.join(family.heads)}")
    # The reference attention has the same parameters on every device.
    plain = dataclasses.replace(config, **{name: value for name, value in PLAIN.items() if hasattr(config, name)})
    token = jax.ShapeDtypeStruct((1, 1), jnp.int32)
    module = family.build(plain, pooler=family.pooler if pooler is None else pooler)
    params = {"encoder": _init(module, _key_of("encoder", key), token)}
    for name in heads:
        if family.heads[name].tied:
            continue
        pooled = family.heads[name].pooled
        read = [jax.ShapeDtypeStruct((1, config.hidden_size) if pooled else (1, 1, config.hidden_size), jnp.float32)]
        if not pooled:
            table = params["encoder"]["embeddings"]["word"]
            read.append(jax.ShapeDtypeStruct(table.shape, table.dtype))
        params[name] = _init(family.head(name, plain), _key_of(name, key), *read)
    return params


def init_task_params(family: Family, config: Any, head: TaskHead, key: PRNGKeyArray) -> dict[str, Any]:
    """Return the parameters of an encoder with a task head, and of the reader of its features if there is one."""
    from bert_elmo_jax.heads.task_head import init_task_head

    params = init_params(family, config, key, pooler=head.pooled)
    width = config.hidden_size
    if head.features is not None:
        width = head.features.width(config.hidden_size, config.num_layers)
    if head_params := init_task_head(head, _key_of(head.name, key), width):
        params[head.name] = head_params
    return params | init_reader(head.features, config.hidden_size, key)


def init_reader(features: Any, hidden_size: int, key: PRNGKeyArray) -> dict[str, Any]:
    """Return `{"reader": …}`, the parameters that read a head's features; {} if there are none."""
    if features is None:
        return {}
    from bert_elmo_jax.heads.features import Reader

    layers = jnp.zeros((len(features.layers), 1, 1, hidden_size))
    reader = Reader(features).init(jax.random.fold_in(key, 1), layers, jnp.ones((1, 1), bool))
    return {"reader": reader["params"]} if reader else {}


def param_shapes(
    family: Family,
    config: Any,
    heads: Sequence[str] = (),
    *,
    pooler: bool | None = None,
    outputs: Mapping[str, int] | None = None,
    features: Any = None,
) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter by its path; `outputs` are the sizes of the task heads among `heads`."""
    pretraining_heads = tuple(name for name in heads if name in family.heads)
    if hasattr(config, "initializer_range"):
        # Zeros have the same shapes, and tracing random numbers would take a third of the time of loading a model.
        config = dataclasses.replace(config, initializer_range=0.0)
    shapes = dict(_trace_shapes(family, config, pretraining_heads, pooler))
    width = config.hidden_size if features is None else features.width(config.hidden_size, config.num_layers)
    for name, size in (SIZES | dict(outputs or {})).items():
        if name in heads:
            shapes[f"{name}/kernel"] = (width, size)
            if family.task_head(name).bias:
                shapes[f"{name}/bias"] = (size,)
    if features is not None:
        reader = jax.eval_shape(lambda: init_reader(features, config.hidden_size, jax.random.key(0)))
        shapes |= {path: leaf.shape for path, leaf in flatten(reader).items()}
    return shapes


@functools.lru_cache(maxsize=32)
def _trace_shapes(
    family: Family, config: Any, heads: tuple[str, ...], pooler: bool | None
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the encoder and of pretraining heads; tracing takes most of the time of a small model."""
    tree = jax.eval_shape(lambda: init_params(family, config, jax.random.key(0), heads, pooler=pooler))
    return {path: leaf.shape for path, leaf in flatten(tree).items()}


def _init(module: nn.Module, key: PRNGKeyArray, *read: jax.ShapeDtypeStruct) -> Any:
    if isinstance(key, jax.core.Tracer):
        # Inside jit or eval_shape, what the parameters do not need is never computed, and tracing takes half the time.
        return module.init(key, *(jnp.zeros(array.shape, array.dtype) for array in read))["params"]
    return module.lazy_init(key, *read)["params"]


def _key_of(name: str, key: PRNGKeyArray) -> PRNGKeyArray:
    """Return the key of a part, which does not depend on the other parts."""
    if name in PARTS:
        return jax.random.split(key, len(PARTS))[PARTS.index(name)]
    return jax.random.fold_in(key, zlib.crc32(name.encode()))
