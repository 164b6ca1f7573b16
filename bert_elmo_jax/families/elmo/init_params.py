"""Fresh parameters for an ELMo and its language-model head."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from bert_elmo_jax.families.elmo.model import Elmo, ElmoConfig
from bert_elmo_jax.weights.parameter_tree import flatten


def init_elmo_params(config: ElmoConfig, key: PRNGKeyArray, lm: bool = False) -> dict[str, Any]:
    """Return the parameters of an ELMo, initialised as in the original: `{"encoder": …}`, and `"lm"` if requested.

    Both directions share the head, which has no embedding if `tie_softmax` shares the one of the words.
    """
    if lm and config.vocab_size is None:
        raise ValueError("the parameters have a head lm, but vocab_size is None: give the number of its words")
    for_encoder, for_head = jax.random.split(key)
    characters = None if config.input == "words" else jnp.zeros((1, 1, 1), jnp.int32)
    words, lengths = jnp.zeros((1, 1), jnp.int32), jnp.ones(1, jnp.int32)
    init = jax.jit(Elmo(config).init)  # compiled, because then only the random numbers are computed
    params = {"encoder": init(for_encoder, words, lengths, characters=characters)["params"]}
    if lm:
        assert config.vocab_size is not None
        params["lm"] = {"bias": jnp.zeros(config.vocab_size)}
        if not config.tie_softmax:
            drawn = jax.random.normal(for_head, (config.vocab_size, config.width))
            params["lm"]["embedding"] = drawn / config.width**0.5
    return params


def elmo_shapes(config: ElmoConfig, lm: bool = False) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter by its path; `lm` adds the language-model head."""
    tree = jax.eval_shape(lambda key: init_elmo_params(config, key, lm), jax.random.key(0))
    return {path: leaf.shape for path, leaf in flatten(tree).items()}
