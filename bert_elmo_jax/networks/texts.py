"""What networks of labelled texts share: pairs as rows one behind the other, and the loss of a label."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float32, PRNGKeyArray

from bert_elmo_jax.losses import cross_entropy
from bert_elmo_jax.networks.word_network import Batch, Encode, NetworkConfig, Sums, run_network

TARGETS = ("labels", "weights")  # of a batch: one for each text or pair, whatever it has of words


def flatten_pairs(batch: Batch) -> dict[str, Any]:
    """A batch of pairs [B, 2, …] as one of texts [2B, …], the two of a pair behind each other.

    >>> import numpy as np
    >>> batch = {"words": np.array([[[1, 2], [3, 0]]]), "lengths": np.array([[2, 1]]), "labels": np.array([0])}
    >>> {name: array.tolist() for name, array in flatten_pairs(batch).items()}
    {'words': [[1, 2], [3, 0]], 'lengths': [2, 1], 'labels': [0]}
    """
    texts = {name: jnp.asarray(array) for name, array in batch.items() if name not in TARGETS}
    flat = {name: array.reshape(array.shape[0] * 2, *array.shape[2:]) for name, array in texts.items()}
    return flat | {name: batch[name] for name in TARGETS if name in batch}


def other_of_pair(x: Array) -> Array:
    """For each text of pairs that stand behind each other, the other one's row.

    >>> import jax.numpy as jnp
    >>> other_of_pair(jnp.arange(4)).tolist()
    [1, 0, 3, 2]
    """
    return x.reshape(x.shape[0] // 2, 2, *x.shape[1:])[:, ::-1].reshape(x.shape)


def label_scores(
    module: nn.Module,
    config: NetworkConfig,
    pairs: bool,
    params: Any,
    batch: Batch,
    key: PRNGKeyArray | None = None,
    encode: Encode | None = None,
) -> tuple[Float32[Array, "B K"], Float32[Array, ""]]:
    """The score of each label, and the penalty on the weights of the mixtures; without a key there is no dropout.

    The batch is one of `run_network`, and of pairs all of its arrays are [B, 2, …].
    """
    found: tuple[Array, Array] = run_network(
        module, config, params, flatten_pairs(batch) if pairs else batch, key, encode
    )
    return found


def label_loss(
    module: nn.Module, config: NetworkConfig, pairs: bool, encode: Encode | None = None
) -> Callable[[Any, Batch, PRNGKeyArray | None, Any], tuple[Sums, Sums, Any]]:
    """`loss(params, batch, key, carry)` for `train.make_step`: `cross_entropy` of `labels` [B], with `weights` [B].

    `mix_l2`, where an encoder is read, is λ·‖w‖² of the mixtures' weights.
    """

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Sums, Sums, Any]:
        batch = {name: jnp.asarray(values) for name, values in batch.items()}
        scores, penalty = label_scores(module, config, pairs, params, batch, key, encode)
        terms: Sums = {"cross_entropy": cross_entropy(scores, batch["labels"], batch["weights"])}
        if config.encoder_layers:
            terms["mix_l2"] = (penalty, jnp.ones(()))
        return terms, {}, carry

    return loss


def label_coefficients(config: NetworkConfig) -> dict[str, float]:
    """How much each term of the loss counts.

    >>> from bert_elmo_jax.networks import BcnConfig
    >>> label_coefficients(BcnConfig(num_labels=2, num_words=9, encoder_layers=3, encoder_width=8))
    {'cross_entropy': 1.0, 'mix_l2': 1.0}
    """
    return {"cross_entropy": 1.0} | ({"mix_l2": 1.0} if config.encoder_layers else {})
