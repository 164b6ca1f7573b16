"""Low-rank adapters, LoRA (Hu et al. 2021, https://arxiv.org/abs/2106.09685), as a transform of parameters.

The module does not change: `merge` returns parameters whose target kernels are `kernel + scale · down @ up`, and a
gradient reaches `down` and `up` through it. Tables of embeddings can be targets, too. The original is
https://github.com/microsoft/LoRA.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from bert_elmo_jax.did_you_mean import did_you_mean

PAIR = {"down", "up"}  # the matrices of one adapter: [in, rank] and [rank, out]
USUAL_TARGETS = ("query", "value")  # of the paper's experiments


@dataclass(frozen=True)
class Merge:
    """The function that adds adapters to parameters, `merge(params, adapters)`; made by `lora`.

    The product of an adapter is scaled by `alpha / rank`, or with `rslora` by `alpha / √rank` (Kalajdzievski 2023,
    https://arxiv.org/abs/2312.03732).

    >>> Merge(rank=4, alpha=16.0).scale, Merge(rank=4, alpha=16.0, rslora=True).scale
    (4.0, 8.0)
    """

    rank: int
    alpha: float
    rslora: bool = False
    any_rank: bool = False  # matrices of other ranks are scaled already, as `load` does with peft's

    @property
    def scale(self) -> float:
        """The factor of the product of an adapter's matrices."""
        return self.alpha / (self.rank**0.5 if self.rslora else self.rank)

    def __call__(self, params: Mapping[str, Any], adapters: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters with the adapters added to their kernels; raise if they are for other kernels."""
        if not self.any_rank:
            check_ranks(adapters, self.rank)
        return _merge(params, adapters, self.scale, "")


class Lora(NamedTuple):
    """Fresh adapters, which change nothing yet, and the function that adds them to parameters."""

    adapters: dict[str, Any]
    merge: Merge


def lora(
    params: Mapping[str, Any],
    rank: int = 8,
    targets: Sequence[str] = USUAL_TARGETS,
    *,
    alpha: float = 16.0,
    rslora: bool = False,
    key: PRNGKeyArray | None = None,
) -> Lora:
    """Return adapters for the kernels of some layers, and `merge(params, adapters)`.

    `targets` are names of layers of the encoder, or ends of their paths: "query", "attention/query",
    "feed_forward/up"; "all" is every kernel of its layers. Tables of embeddings are named in the same way, such as
    "embeddings/word". Heads have no adapters. The numbers of an adapter depend on the key (default: of the seed 0) and
    on its path alone. An adapter begins as zero.

    >>> params = {"query": {"kernel": jnp.ones((6, 4)), "bias": jnp.ones(4)}, "key": {"kernel": jnp.ones((6, 4))}}
    >>> adapters, merge = lora(params, rank=2, targets=["query"])
    >>> {name: pair["up"].shape for name, pair in adapters.items()}, bool((adapters["query"]["up"] == 0).all())
    ({'query': (2, 4)}, True)
    >>> changed = merge(params, {"query": {"down": jnp.ones((6, 2)), "up": jnp.ones((2, 4))}})
    >>> changed["query"]["kernel"][0].tolist(), changed["key"] is params["key"]
    ([17.0, 17.0, 17.0, 17.0], True)
    """
    if isinstance(targets, str):
        targets = [targets]
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise ValueError(f"rank={rank!r}: expected a whole number from 1")
    if not alpha > 0:
        raise ValueError(f"alpha={alpha!r}: expected a number above 0")
    encoder = {"encoder": params["encoder"]} if "encoder" in params else params
    kernels, tables = dict(list_kernels(encoder)), dict(list_tables(encoder))
    adapters: dict[str, Any] = {}
    key = jax.random.key(0) if key is None else key
    for path in choose_targets(kernels, targets, tables):
        inputs, outputs = kernels.get(path) or tables[path]
        if rank > min(inputs, outputs):
            matrix = "kernel of " if path in kernels else ""
            raise ValueError(f"rank={rank}: the {matrix}{path} is {inputs} x {outputs}, so use {min(inputs, outputs)}")
        path_key = jax.random.fold_in(key, zlib.crc32(path.encode()))
        down, up = jnp.zeros((inputs, rank), jnp.float32), jnp.zeros((rank, outputs), jnp.float32)
        if path in kernels:  # both are drawn as in the original
            bound = inputs**-0.5
            down = jax.random.uniform(path_key, down.shape, jnp.float32, -bound, bound)
        else:
            up = jax.random.normal(path_key, up.shape, jnp.float32)
        _place(adapters, path, {"down": down, "up": up})
    return Lora(adapters, Merge(rank, float(alpha), rslora))


def list_kernels(params: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the path and the shape of each layer with a kernel [in, out].

    >>> dict(list_kernels({"up": {"kernel": np.zeros((2, 3))}, "norm": {"scale": np.zeros(2)}}))
    {'up': (2, 3)}
    """
    for name, part in params.items():
        if isinstance(part, Mapping):
            yield from list_kernels(part, f"{path}/{name}" if path else name)
        elif name == "kernel" and path and len(np.shape(part)) == 2:
            yield path, np.shape(part)


def list_tables(params: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the path and the shape of each table [entries, width] of embeddings.

    >>> dict(list_tables({"embeddings": {"word": np.zeros((9, 3)), "norm": {"scale": np.zeros(3)}}}))
    {'embeddings/word': (9, 3)}
    """
    for name, part in params.items():
        if isinstance(part, Mapping):
            yield from list_tables(part, f"{path}/{name}" if path else name)
        elif name != "kernel" and f"/{path}".endswith("/embeddings") and len(np.shape(part)) == 2:
            yield f"{path}/{name}", np.shape(part)


def list_adapters(adapters: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the path and the matrices of each adapter.

    >>> [path for path, _ in list_adapters({"layer_0": {"query": {"down": 0, "up": 0}}})]
    ['layer_0/query']
    """
    if set(adapters) == PAIR and not any(isinstance(part, Mapping) for part in adapters.values()):
        yield path, adapters
        return
    for name, part in adapters.items():
        if not isinstance(part, Mapping):
            raise ValueError(f"adapters have {path}/{name}, which is neither `down` nor `up` of a layer: see lora()")
        yield from list_adapters(part, f"{path}/{name}" if path else name)


def check_ranks(adapters: Mapping[str, Any], rank: int) -> None:
    """Raise ValueError unless all adapters have this rank: with another one, their factor would be another.

    >>> check_ranks({"query": {"down": np.zeros((6, 2)), "up": np.zeros((2, 4))}}, 4)
    Traceback (most recent call last):
    ...
    ValueError: the adapter of query has rank 2, and `merge` is for rank 4: use the `merge` that `lora` gave with it
    """
    for path, pair in list_adapters(adapters):
        if (size := np.shape(pair["down"])[-1]) != rank:
            raise ValueError(
                f"the adapter of {path} has rank {size}, and `merge` is for rank {rank}: use the `merge` that `lora` "
                "gave with it"
            )


def choose_targets(kernels: Mapping[str, Any], targets: Sequence[str], tables: Mapping[str, Any]) -> list[str]:
    """Return the paths of the kernels and tables that targets name; raise if one of them names none.

    >>> choose_targets({"layer_0/attention/query": 0, "layer_0/attention/key": 0}, ["attention/query"], {})
    ['layer_0/attention/query']
    """
    if not targets:
        raise ValueError(f"targets is empty: name layers, such as {', '.join(USUAL_TARGETS)}, or all")
    chosen: set[str] = set()
    paths = [*kernels, *tables]
    for target in targets:
        matching = [path for path in paths if f"/{path}".endswith(f"/{target}")]
        if target == "all":
            matching += [path for path in kernels if "layer_" in path]
        if not matching:
            names = list(dict.fromkeys(path.split("/")[-1] for path in paths))
            every = ", and all" if any("layer_" in path for path in kernels) else ""
            raise ValueError(
                f"the target {target!r} names no layer with a kernel, and no table of embeddings; there are "
                f"{', '.join(names)}{every}{did_you_mean(target, names)}"
            )
        chosen.update(matching)
    return [path for path in paths if path in chosen]


def count_params(tree: Any) -> int:
    """Return the number of parameters of a tree.

    >>> count_params({"down": np.zeros((6, 2)), "up": np.zeros((2, 4))})
    20
    """
    return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(tree))


def _place(tree: dict[str, Any], path: str, value: Any) -> None:
    *parents, name = path.split("/")
    for parent in parents:
        tree = tree.setdefault(parent, {})
    tree[name] = value


def _merge(params: Mapping[str, Any], adapters: Mapping[str, Any], scale: float, path: str) -> dict[str, Any]:
    if set(adapters) == PAIR and "kernel" in params:
        return {**params, "kernel": _add_product(params["kernel"], adapters, scale, path)}
    parts = {}
    for name, adapter in adapters.items():
        place = f"{path}/{name}" if path else name
        if isinstance(params.get(name), Mapping):
            parts[name] = _merge(params[name], adapter, scale, place)
        elif name in params and isinstance(adapter, Mapping) and set(adapter) == PAIR:
            parts[name] = _add_product(params[name], adapter, scale, place)
        else:
            raise ValueError(
                f"there is an adapter for {place}, which the parameters do not have: it is of another model"
            )
    return {**params, **parts}


def _add_product(matrix: Any, adapter: Mapping[str, Any], scale: float, path: str) -> Any:
    down, up = adapter["down"], adapter["up"]
    if (down.shape[0], up.shape[1]) != matrix.shape or down.shape[1] != up.shape[0]:
        raise ValueError(
            f"the adapter of {path} is for a matrix of {down.shape[0]} x {up.shape[1]} (ranks {down.shape[1]} and "
            f"{up.shape[0]}), and the model's is {' x '.join(map(str, matrix.shape))}: it is of another model"
        )
    if not jnp.issubdtype(matrix.dtype, jnp.floating):
        raise ValueError(f"{path} has numbers of the type {matrix.dtype}: merge adapters before the model is quantised")
    return matrix + (scale * (down @ up)).astype(matrix.dtype)
