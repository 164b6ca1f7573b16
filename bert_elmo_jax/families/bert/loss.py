"""BERT's pretraining objectives as a loss of a batch, for `train.make_step` and for held-out evaluation."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.pretraining_logits import pretraining_logits
from bert_elmo_jax.losses import accuracy, cross_entropy

Sums = dict[str, tuple[Any, Any]]
Loss = Callable[[Any, Mapping[str, Any], PRNGKeyArray | None, Any], tuple[Sums, Sums, Any]]


def bert_loss(config: BertConfig, pairs: bool = True) -> Loss:
    """`loss(params, batch, key, carry)` with the term `mlm`, and `nsp` where the batches have pairs (NSP or SOP).

    What `mlm` predicts is up to the batch: masked words, or with a causal model and `Masking("next")` the next token.
    Without a key there is no dropout. The carry is passed on.

    >>> import jax, numpy as np
    >>> from bert_elmo_jax.families.bert.init_params import init_params
    >>> from bert_elmo_jax.families.bert.loss import bert_loss
    >>> config = BertConfig(vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=16)
    >>> one, two = np.ones((1, 2), np.int32), np.ones((1, 1), np.int32)
    >>> batch = {"tokens": one, "types": one, "positions": one, "segments": one}
    >>> batch |= {"mlm_positions": two, "mlm_targets": two, "mlm_weights": two}
    >>> batch |= {"nsp_positions": two, "nsp_targets": two, "nsp_weights": two}
    >>> terms, metrics, _ = jax.jit(bert_loss(config))(init_params(config, jax.random.key(0)), batch, None, None)
    >>> sorted(terms), sorted(metrics)
    (['mlm', 'nsp'], ['mlm_accuracy', 'nsp_accuracy'])
    """

    def loss(params: Any, batch: Mapping[str, Any], key: PRNGKeyArray | None, carry: Any) -> tuple[Sums, Sums, Any]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        logits = pretraining_logits(
            config,
            params,
            batch["tokens"],
            batch["types"],
            batch["positions"],
            batch["segments"],
            mlm_positions=batch["mlm_positions"],
            nsp_positions=batch["nsp_positions"] if pairs else None,
            dropout_key=key,
        )
        words = (logits.mlm, batch["mlm_targets"], batch["mlm_weights"])
        terms, metrics = {"mlm": cross_entropy(*words)}, {"mlm_accuracy": accuracy(*words)}
        if logits.nsp is not None:
            order = (logits.nsp, batch["nsp_targets"], batch["nsp_weights"])
            terms["nsp"], metrics["nsp_accuracy"] = cross_entropy(*order), accuracy(*order)
        return terms, metrics, carry

    return loss
