"""Fresh parameters for an encoder and its heads."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import PRNGKeyArray

from bert_elmo_jax.families.bert.mlm import MaskedLM
from bert_elmo_jax.families.bert.model import Bert, BertConfig
from bert_elmo_jax.families.bert.nsp import NextSentence
from bert_elmo_jax.heads.choice import Choice
from bert_elmo_jax.heads.classify import Classify
from bert_elmo_jax.heads.span import Span
from bert_elmo_jax.heads.tag import Tag

# How to make each head, and the rank of what it reads.
HEADS: dict[str, tuple[Callable[[BertConfig, int], nn.Module], int]] = {
    "mlm": (lambda config, num_labels: MaskedLM(config), 3),
    "nsp": (lambda config, num_labels: NextSentence(config), 2),
    "classify": (Classify, 2),
    "choice": (lambda config, num_labels: Choice(config), 3),
    "tag": (Tag, 3),
    "span": (lambda config, num_labels: Span(config), 3),
}


def init_params(
    config: BertConfig,
    key: PRNGKeyArray,
    heads: Sequence[str] = ("mlm", "nsp"),
    num_labels: int = 2,
    add_pooler: bool = True,
) -> dict[str, Any]:
    """The parameter tree of an encoder and the named heads: `{"encoder": …, "mlm": …, …}`.

    A part's numbers depend on the key and its name alone, not on which other heads are asked for.

    >>> import jax
    >>> from bert_elmo_jax.families.bert.init_params import init_params
    >>> from bert_elmo_jax.families.bert.config import BertConfig
    >>> config = BertConfig(vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=16)
    >>> sorted(init_params(config, jax.random.key(0), heads=("tag",), num_labels=9))
    ['encoder', 'tag']
    """
    unknown = [name for name in heads if name not in HEADS]
    if unknown:
        raise ValueError(f"There is no head {unknown[0]!r}; there are {', '.join(HEADS)}.")
    keys = dict(zip(["encoder", *HEADS], jax.random.split(key, 1 + len(HEADS)), strict=True))
    # Parameters depend neither on what is read nor on how it is computed: shapes will do, of one token, on any device.
    config = dataclasses.replace(config, implementation="reference", dtype="float32")
    token = jax.ShapeDtypeStruct((1, 1), jnp.int32)
    params = {"encoder": Bert(config, add_pooler).lazy_init(keys["encoder"], token)["params"]}
    for name in heads:
        head, rank = HEADS[name]
        read: tuple[Any, ...] = (jax.ShapeDtypeStruct((1,) * (rank - 1) + (config.hidden_size,), jnp.float32),)
        if name == "mlm":
            table = params["encoder"]["embeddings"]["word"]
            read += (jax.ShapeDtypeStruct(table.shape, table.dtype),)
        params[name] = head(config, num_labels).lazy_init(keys[name], *read)["params"]
    return params
