"""AWD-LSTM's pretraining objective: the next word of streams of text, and two penalties of the last layer's outputs."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from ml_collections import ConfigDict

from bert_elmo_jax.data.rows.stream import LanguageModelExamples
from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.model import AwdLstm, init_awd_lstm_params, softmax_params, zero_state
from bert_elmo_jax.families.family import Objective, Phase
from bert_elmo_jax.families.piece_objective import count_weights
from bert_elmo_jax.losses import full_softmax, perplexity
from bert_elmo_jax.losses.loss_types import Batch, Loss, Terms
from bert_elmo_jax.nn.dropout import dropout_options

COEFFICIENTS = {"lm": 1.0, "activation": 2.0, "change": 1.0}


def lm_objective(config: ConfigDict, model: AwdLstmConfig) -> Objective:
    """Return the language model of a run's config."""
    layers = [f"layer_{n}" for n in range(model.num_layers)]
    predicted = model.vocab_size * model.embedding_size
    streams = config.reading == "streams"
    spread = config.spread if streams else 0
    return Objective(
        init=lambda key: init_awd_lstm_params(model, key, lm=True),
        loss=awd_lstm_loss(model),
        held_out_loss=awd_lstm_loss(model, penalties=False),
        coefficients=COEFFICIENTS,
        phases=(Phase(config.steps, config.batch_size, _examples(config, spread)),),
        work=lambda params, length: 6.0 * (count_weights([params["encoder"][name] for name in layers]) + predicted),
        figures=name_figures,
        score="held_out/score",
        width=model.hidden_size,
        size=lambda batch: int(batch["lengths"].sum()),
        carry=lambda rows: put_rows_third(zero_state(model, rows)) if streams else None,
        held_out=_examples(config, 0),
    )


def _examples(config: ConfigDict, spread: int) -> LanguageModelExamples:
    return LanguageModelExamples(config.reading, config.length, "words", spread=spread, pieces=True)


def name_figures(means: Mapping[str, float]) -> dict[str, float]:
    """Return the perplexity."""
    per_word = perplexity(means["lm"], 1)
    return {"held_out/perplexity": per_word, "held_out/score": -per_word}


def awd_lstm_loss(config: AwdLstmConfig, *, penalties: bool = True, chunk: int = 8192) -> Loss:
    """Return `loss(params, batch, key, state)` with the term `lm`, and the state after the batch.

    With `penalties`, there are two more terms of the last layer: `activation`, the mean square of its outputs after
    dropout, and `change`, the mean square of their changes from step to step before dropout (Merity et al. 2017,
    https://arxiv.org/abs/1708.01009). Without a state, every row starts from zeros, and None is returned. Without a key
    there is no dropout. The softmax takes `chunk` words at a time.
    """

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Terms, Terms, Any]:
        read = {name: jnp.asarray(batch[name]) for name in ("lengths", "fresh")}
        of = {name: jnp.asarray(batch[f"{config.direction}_{name}"]) for name in ("targets", "weights")}
        output: Any = AwdLstm(config).apply(
            {"params": params["encoder"]},
            batch[f"words_{config.direction}"],
            read["lengths"],
            state=None if carry is None else put_rows_first(carry),
            fresh=None if carry is None else read["fresh"],
            **dropout_options(key),
        )
        hidden = output.dropped.reshape(-1, config.embedding_size)
        table, bias = softmax_params(config, params)
        terms: Terms = {
            "lm": full_softmax(hidden, table, bias, of["targets"].reshape(-1), of["weights"].reshape(-1), chunk)
        }
        if penalties:
            steps = jnp.arange(output.last.shape[1], dtype=jnp.int32)
            real = steps[None, :] < read["lengths"][:, None]
            terms["activation"] = mean_square(output.dropped, real)
            terms["change"] = mean_square(output.last[:, 1:] - output.last[:, :-1], real[:, 1:])
        after = None if carry is None else jax.lax.stop_gradient(put_rows_third(output.state))
        return terms, {}, after

    return loss


def mean_square(x: Float[Array, "B T E"], real: Bool[Array, "B T"]) -> tuple[Array, Array]:
    """Return the sum of squares of real positions, and the number of their elements."""
    squares = jnp.where(real[..., None], jnp.square(x.astype(jnp.float32)), 0.0)
    return squares.sum(), (real.sum() * x.shape[-1]).astype(jnp.float32)


def put_rows_third(state: Any) -> Any:
    """Return a state whose rows are the third axis, as in the carry of a training step."""
    return jax.tree.map(lambda part: part[None, None], state)


def put_rows_first(carry: Any) -> Any:
    """Undo `put_rows_third`."""
    return jax.tree.map(lambda part: part[0, 0], carry)
