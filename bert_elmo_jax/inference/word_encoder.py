"""Encoders as inputs of task networks: layers [L, T, D] of a sentence's words (first pieces), computed or cached."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.data.tasks.word_rows import Batch, Layers, WordRow
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families import find_family
from bert_elmo_jax.inference.kept_vectors import KeptVectors, keep_vectors
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.word_layers import Encoder

Sentences = Sequence[Sequence[str]]
DIRECTIONS = ("both", "forward", "backward")


def word_encoder(path: str) -> Encoder:
    """Return the encoder of a model without its heads, so that its fingerprint does not depend on them."""
    stored = read_model(path)
    if stored.network:
        raise ValueError(f"{path} is a task network and has no layers; give the encoder that it was trained with")
    family = find_family(stored.config)
    tokenizer = stored.tokenizer if family.inputs.reads_vocabulary(stored.config, ()) else None
    # With its heads first: the vectors of GloVe are sums with the head's, which also shows the words without training.
    full = family.inputs.make_encoder(family, stored.config, stored.params, tokenizer, str(path))
    params = {"encoder": {name: part for name, part in full.params["encoder"].items() if name != "pooler"}}
    encoder: Encoder = family.inputs.make_encoder(family, full.config, params, full.reads, str(path))
    encoder.check_words()
    return encoder


def layer_shape(encoder: Encoder) -> tuple[int, int]:
    """Return the number of layers, embeddings included, and the size of a vector."""
    return encoder.num_layers + 1, encoder.width


def find_columns(encoder: Encoder | None, directions: str) -> tuple[int, ...]:
    """Return the first column of one direction of a language model and the end of its last, or () for all columns.

    >>> elmo = word_encoder("tests/goldens/elmo_tiny")
    >>> find_columns(elmo, "both"), find_columns(elmo, "forward"), find_columns(elmo, "backward")
    ((), (0, 12), (12, 24))
    """
    if directions not in DIRECTIONS:
        hint = did_you_mean(directions, DIRECTIONS)
        raise ValueError(f"config.directions={directions!r} is not known; use {', '.join(DIRECTIONS)}{hint}")
    if directions == "both":
        return ()
    setting = f"config.directions={directions}"
    if encoder is None:
        raise ValueError(f"{setting} needs an encoder: give --config.encoder=…, or leave it out")
    family = find_family(encoder.config)
    directions_known = family.inputs.directions(encoder.config)
    if not directions_known:
        why = f"{encoder.source} is {family.called}, whose layers have no direction of their own"
        raise ValueError(f"{setting}, and {why}: leave it out, or give a language model")
    if directions not in directions_known:
        raise ValueError(
            f"{setting}, and {encoder.source} is {family.called} that reads {', '.join(directions_known)} only"
        )
    columns = directions_known[directions]
    return () if columns == (0, encoder.width) else columns


def encode_words(encoder: Encoder, sentences: Sequence[Sequence[str]]) -> list[Float32[np.ndarray, "L T D"]]:
    """Return all layers of each sentence."""
    return list(encoder.word_layers(sentences, range(encoder.num_layers + 1), pieces="first"))


def frozen_layers(encoder: Encoder) -> Layers:
    """Return the function that adds `layers` to the batches of a network whose encoder is frozen."""
    return lambda rows, height, width: stack_layers(encode_words(encoder, [row.words for row in rows]), height, width)


def stack_layers(sentence_layers: Sequence[Float32[np.ndarray, "L _ D"]], height: int, width: int) -> Batch:
    """Return the layers of sentences, padded, as an entry of a batch."""
    count, _, size = sentence_layers[0].shape
    stacked = np.zeros((height, count, width, size), np.float32)
    for n, layers in enumerate(sentence_layers):
        stacked[n, :, : layers.shape[1]] = layers
    return {"layers": stacked}


def trained_layers(encoder: Encoder) -> Layers:
    """Return the function that adds an encoder's inputs to the batches of a network that fine-tunes it."""
    return lambda rows, height, width: encoder.word_batch([row.words for row in rows], height, width)


class VectorCache:
    """The layers of a folder's sentences, read from the disk one sentence at a time."""

    def __init__(self, vectors: KeptVectors, sentences: Sentences):
        ends = np.cumsum([0, *map(len, sentences)])
        self._places = {tuple(words): int(at) for words, at in zip(sentences, ends)}
        self._layers = [vectors.layer(number) for number in vectors.layers]

    def layers(self, words: Sequence[str]) -> Float32[np.ndarray, "L T D"]:
        """Return the layers of a sentence."""
        at = self._places[tuple(words)]
        return np.stack([layer[at : at + len(words)] for layer in self._layers])

    def batch(self, rows: Sequence[WordRow], height: int, width: int) -> Batch:
        """Return the layers of a batch, padded."""
        return stack_layers([self.layers(row.words) for row in rows], height, width)


def fill_cache(
    folder: str | Path, encoder: Encoder, sentences: Sentences, *, progress: bool | None = None
) -> VectorCache:
    """Return the cache in a folder, after computing what it lacks; each distinct sentence is in it once."""
    distinct = list(dict.fromkeys(map(tuple, sentences)))
    return VectorCache(keep_vectors(encoder, distinct, folder, pieces="first", progress=progress), distinct)
