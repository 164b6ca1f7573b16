"""CoVe's pretraining: translate a sentence, word by word, with the decoder that attends to the encoder."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int, PRNGKeyArray
from ml_collections import ConfigDict

from bert_elmo_jax.data.rows.translation import PairExamples
from bert_elmo_jax.families.cove.config import CoveConfig
from bert_elmo_jax.families.cove.decoder import decode, read_source, score_words
from bert_elmo_jax.families.cove.model import Cove, init_cove_params, look_up_vectors
from bert_elmo_jax.families.family import Objective, Phase
from bert_elmo_jax.families.piece_objective import count_weights
from bert_elmo_jax.losses import accuracy, cross_entropy, perplexity
from bert_elmo_jax.nn.layers import embed
from bert_elmo_jax.text import WordVocabulary, read_vectors, width_of

Sums = dict[str, tuple[Any, Any]]
Batch = Mapping[str, Any]
Loss = Callable[[Any, Batch, PRNGKeyArray | None, Any], tuple[Sums, Sums, Any]]
TABLE = "encoder/embeddings/word"


def translate_objective(config: ConfigDict, model: CoveConfig) -> Objective:
    """Return the translation of a run's config; without `train_vectors`, the word vectors are frozen."""
    assert model.vocab_size is not None
    examples = PairExamples(
        config.length, config.length, start=model.start_id, end=model.end_id, pad=model.end_id, reverse=config.reverse
    )
    loss = translate_loss(model)

    def init(key: PRNGKeyArray) -> dict[str, Any]:
        params = init_cove_params(model, key, decoder=True)
        if config.vectors:
            params["encoder"]["embeddings"]["word"] = read_table(config.vectors, config.data, model)
        return params

    def work(params: Any, length: int) -> float:
        recurrent = {name: part for name, part in params["encoder"].items() if name != "embeddings"}
        decoder = {name: part for name, part in params["decoder"].items() if name != "embedding"}
        return 6.0 * (count_weights([recurrent, decoder]) + 2 * length * model.layer_size)

    return Objective(
        init=init,
        loss=loss,
        held_out_loss=loss,
        coefficients={"words": 1.0},
        phases=(Phase(config.steps, config.batch_size, examples),),
        work=work,
        figures=name_figures,
        score="held_out/score",
        size=lambda batch: int((batch["target_segments"] > 0).sum()),
        frozen=() if model.train_vectors else (TABLE,),
    )


def name_figures(means: Mapping[str, float]) -> dict[str, float]:
    """Return the perplexity per target word, and the shares of words and of whole sentences that are predicted.

    >>> name_figures({"words": 0.0, "accuracy": 0.9, "exact": 0.5})["held_out/perplexity"]
    1.0
    """
    found = perplexity(means["words"], 1)
    return {
        "held_out/perplexity": found,
        "held_out/accuracy": means["accuracy"],
        "held_out/exact": means["exact"],
        "held_out/score": -found,
    }


def translate_loss(config: CoveConfig) -> Loss:
    """Return `loss(params, batch, key, carry)` with the term `words`: the next word of the target.

    The metric `exact` counts targets of which every word is the likeliest one, so that greedy decoding writes them.
    Without a key there is no dropout. Every row holds one pair, and the encoder does not read the end of a source.
    """

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Sums, Sums, Any]:
        batch = {name: jnp.asarray(array) for name, array in batch.items()}
        # A corpus of words numbers those outside of the vocabulary, too, for models that read characters.
        batch |= {name: replace_unknown(config, batch[name]) for name in ("source_tokens", "target_in", "target_out")}
        scores = score_targets(config, params, batch, key)
        real = batch["target_segments"] > 0
        words = (scores, batch["target_out"], real.astype(jnp.float32))
        return {"words": cross_entropy(*words)}, {"accuracy": accuracy(*words), "exact": count_exact(*words)}, carry

    return loss


def replace_unknown(config: CoveConfig, ids: Int[Array, "B T"]) -> Int[Array, "B T"]:
    """Return ids with that of the unknown word in place of those outside of the vocabulary.

    >>> replace_unknown(CoveConfig(vocab_size=9), jnp.array([[8, 9, 12]])).tolist()
    [[8, 2, 2]]
    """
    assert config.vocab_size is not None
    return jnp.where(ids < config.vocab_size, ids, config.unk_id)


def score_targets(
    config: CoveConfig, params: Any, batch: Batch, key: PRNGKeyArray | None = None
) -> Float32[Array, "B T V"]:
    """Return the scores of every word after each word of `target_in`."""
    for_encoder, for_decoder = (None, None) if key is None else jax.random.split(key)
    lengths = jnp.maximum((batch["source_segments"] > 0).sum(axis=1, dtype=jnp.int32) - 1, 0)
    output: Any = Cove(config).apply(
        {"params": params["encoder"]},
        look_up_vectors(config, params, batch["source_tokens"]),
        lengths,
        deterministic=key is None,
        rngs={} if for_encoder is None else {"dropout": for_encoder},
    )
    memory = read_source(config, params["decoder"], output, lengths)
    inputs = embed(params["decoder"]["embedding"], batch["target_in"])
    contexts, _, _ = decode(config, params["decoder"], memory, inputs, for_decoder)
    return score_words(config, params["decoder"], contexts)


def count_exact(
    scores: Float32[Array, "B T V"], targets: Int[Array, "B T"], weights: Float32[Array, "B T"]
) -> tuple[Float32[Array, ""], Float32[Array, ""]]:
    """Return the number of rows whose words all have the largest score, and the number of rows with words.

    >>> scores = jnp.log(jnp.array([[[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]]]))
    >>> right, rows = count_exact(scores, jnp.array([[0, 1], [0, 0]]), jnp.ones((2, 2)))
    >>> float(right), float(rows)
    (1.0, 2.0)
    """
    chosen = jnp.take_along_axis(scores, targets[..., None], axis=-1)[..., 0]
    right = ((chosen >= scores.max(axis=-1)) | (weights == 0)).all(axis=1)
    there = (weights > 0).any(axis=1)
    return (right & there).sum().astype(jnp.float32), there.sum().astype(jnp.float32)


def read_table(vectors: str, data: str, model: CoveConfig) -> Float32[np.ndarray, "V D"]:
    """Return the vectors of a file for the words of a prepared corpus; unknown words are zero."""
    if data == "toyworld":
        raise ValueError("config.vectors names a file, but no file has vectors of the toy world's words: leave it out")
    if (width := width_of(vectors)) != model.vector_size:
        raise ValueError(f"{vectors} has vectors of {width} numbers: set config.model.vector_size={width}")
    first = data.split(",")[0]
    vocabulary = WordVocabulary.load(Path(first.rpartition("=")[0] or first) / "tokenizer")
    known = read_vectors(vectors, vocabulary.words)
    if not known.words:
        raise ValueError(f"{vectors} has no vector for any word of {first}; give one of the source's language")
    table = np.zeros((len(vocabulary), model.vector_size), np.float32)
    table[vocabulary.ids(known.words)] = known.vectors
    table[vocabulary.unk_id] = 0  # words such as "<S>" in the file
    return table
