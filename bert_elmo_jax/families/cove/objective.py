"""CoVe's pretraining: translate a sentence, word by word, with the decoder that attends to the encoder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, PRNGKeyArray
from ml_collections import ConfigDict

from bert_elmo_jax.families.cove.config import CoveConfig
from bert_elmo_jax.families.cove.decoder import decode, init_cove_params, read_source, score_words
from bert_elmo_jax.families.cove.model import Cove, look_up_vectors
from bert_elmo_jax.families.family import Objective
from bert_elmo_jax.families.pair_objective import pair_objective
from bert_elmo_jax.families.piece_objective import count_weights
from bert_elmo_jax.nn.dropout import dropout_options
from bert_elmo_jax.nn.layers import embed
from bert_elmo_jax.text import WordVocabulary, read_vectors, width_of

TABLE = "encoder/embeddings/word"


def translate_objective(config: ConfigDict, model: CoveConfig) -> Objective:
    """Return the translation of a run's config; without `train_vectors`, the word vectors are frozen."""

    def init(key: PRNGKeyArray) -> dict[str, Any]:
        params = init_cove_params(model, key, decoder=True)
        if config.vectors:
            params["encoder"]["embeddings"]["word"] = read_table(config.vectors, config.data, model)
        return params

    objective = pair_objective(
        config,
        model,
        init=init,
        logits=lambda params, batch, key: score_targets(model, params, batch, key),
        start=model.bos_id,
        end=model.eos_id,
        pad=model.eos_id,
        packs=False,
    )
    return objective._replace(work=count_work, frozen=() if model.train_vectors else (TABLE,))


def count_work(params: Mapping[str, Any], length: int) -> float:
    """Return the operations per word of either text, half of the weights for each; tables of vectors are not counted.

    >>> count_work({"encoder": {"layer_0": jnp.ones((2, 3))}, "decoder": {"output": jnp.ones((2, 2))}}, 8)
    30.0
    """
    del length
    tables = ("embeddings", "embedding")
    return 3.0 * count_weights(
        [part for side in ("encoder", "decoder") for name, part in params[side].items() if name not in tables]
    )


def score_targets(
    config: CoveConfig, params: Any, batch: Mapping[str, Any], key: PRNGKeyArray | None = None
) -> Float32[Array, "B T V"]:
    """Return the scores of every word after each word of `target_in`; without a key there is no dropout.

    Every row holds one pair.
    """
    for_encoder, for_decoder = (None, None) if key is None else jax.random.split(key)
    lengths = (batch["source_segments"] > 0).sum(axis=1, dtype=jnp.int32)
    vectors = look_up_vectors(config, params, batch["source_tokens"])
    output: Any = Cove(config).apply({"params": params["encoder"]}, vectors, lengths, **dropout_options(for_encoder))
    memory = read_source(config, params["decoder"], output, lengths)
    inputs = embed(params["decoder"]["embedding"], batch["target_in"])
    contexts, _, _ = decode(config, params["decoder"], memory, inputs, for_decoder)
    return score_words(config, params["decoder"], contexts)


def read_table(vectors: str, data: str, model: CoveConfig) -> Float32[np.ndarray, "V D"]:
    """Return the vectors of a file for the words of a prepared corpus; unknown words are zero."""
    if data == "toyworld":
        raise ValueError("config.vectors names a file, but no file has vectors of the toy world's words: leave it out")
    if (width := width_of(vectors)) != model.vector_size:
        raise ValueError(f"{vectors} has vectors of {width} numbers: set config.model.vector_size={width}")
    first = data.split(",")[0]
    vocabulary = WordVocabulary.load(Path(first.rpartition("=")[0] or first) / "tokenizer")
    file_vectors = read_vectors(vectors, vocabulary.words)
    if not file_vectors.words:
        raise ValueError(f"{vectors} has no vector for any word of {first}; give one of the source's language")
    table = np.zeros((len(vocabulary), model.vector_size), np.float32)
    table[vocabulary.ids(file_vectors.words)] = file_vectors.vectors
    table[vocabulary.unk_id] = 0  # words such as "<S>" in the file
    return table
