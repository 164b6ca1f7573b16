"""Models of words as plain functions: ELMo, whose words are characters, and tagging networks with their encoder."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bert_elmo_jax.data.tasks.labels import legal_transitions
from bert_elmo_jax.data.tasks.word_rows import CHARACTERS
from bert_elmo_jax.exports.plain_graph import IDS, MASK, VECTORS, Input, PlainForward
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.losses import viterbi
from bert_elmo_jax.networks.word_network import run_network
from bert_elmo_jax.text.characters import NUM_CHARACTERS, boundary_characters

WORDS, WORD_MASK, LETTERS, FIRST = "word_ids", "word_mask", "characters", "first_pieces"
DRAWN = "word_vectors"  # of the words without a row, whose id is -1
TEXTS = "batch, words"


def plain_words(model: Any) -> PlainForward | None:
    """Return the function of an ELMo with characters or of a tagging network; None for another model.

    >>> from bert_elmo_jax import load
    >>> plain = plain_words(load("tests/goldens/elmo_tiny"))
    >>> plain.inputs, plain.outputs, plain.read["characters"].sizes
    (('characters',), ('last_hidden_state', 'layers'), 'batch, words, 50')
    """
    if isinstance(model, TaskNetwork):
        return _network(model)
    if not _reads_characters(model):
        return None
    encode = model.word_function()
    size = model.config.max_characters

    def function(params: Any, characters: Any) -> tuple[Any, ...]:
        layers = encode(params["encoder"], add_marks(characters, size), None)
        layers = jnp.where((characters > 0).any(axis=2)[None, :, :, None], layers, 0.0)
        return layers[-1], layers.swapaxes(0, 1)

    read = {LETTERS: Input(f"{TEXTS}, {size}", NUM_CHARACTERS)}
    return PlainForward("words", function, read, (VECTORS, "layers"), None, {"encoder": model.params["encoder"]})


def _reads_characters(model: Any) -> bool:
    """Return True for an encoder whose words are rows of characters."""
    return hasattr(model, "word_batch") and hasattr(model, "cache") and model.config.input == "characters"


def add_marks(characters: Any, size: int) -> dict[str, Any]:
    """Return the batch of an ELMo: the rows of words with the marks of begin and end, padded by zeros."""
    begin, end = jnp.asarray(boundary_characters(size))
    lengths = (characters > 0).any(axis=2).sum(axis=1).astype(jnp.int32)
    rows, words = characters.shape[:2]
    first = jnp.broadcast_to(begin[None, None], (rows, 1, size))
    marked = jnp.concatenate([first, characters, jnp.zeros((rows, 1, size), jnp.int32)], axis=1)
    places = jnp.broadcast_to(jnp.arange(words + 2, dtype=jnp.int32)[None], (rows, words + 2))
    marked = jnp.where((places == lengths[:, None] + 1)[:, :, None], end[None, None], marked)
    return {"elmo_words": places, "elmo_lengths": lengths + 2, "elmo_characters": marked}


def _network(model: TaskNetwork) -> PlainForward:
    """Return the function of a tagger: its scores, and the best legal path (Viterbi)."""
    config: Any = model.config
    encoder: Any = model.encoder
    if model.task.kind != "tags":
        raise ValueError(f"{model.source} is {config.CALLED}; of the networks on words only taggers can be exported")
    if model.lexicon.unknown == "classes":
        raise ValueError(
            f"{model.source} was trained with config.unknown=classes, which the runner of an export does not know: "
            "train with unk, characters, vectors or random to export"
        )
    if model.lexicon.features is not None:
        raise ValueError(
            f"{model.source} reads hand-made features (suffixes, capitals, a gazetteer), which the runner of an export "
            "does not compute: train without them to export"
        )
    read = {WORDS: Input(TEXTS, len(model.lexicon)), WORD_MASK: Input(TEXTS)}
    if model.lexicon.characters:
        read[LETTERS] = Input(f"{TEXTS}, {CHARACTERS}", NUM_CHARACTERS)
    draws = model.lexicon.unknown.endswith("random")
    if draws:
        read[DRAWN] = Input(f"{TEXTS}, {model.lexicon.width}", dtype=np.float32)
    encode, make_batch, encoder_read = _encoder(model)
    read |= encoder_read
    params, config = _with_kept_vectors(model)
    if encode is not None and "encoder" not in params:
        params["encoder"] = encoder.params["encoder"]
    legal = legal_transitions(model.task.labels, config.scheme or None)

    def function(params: Any, *arrays: Any) -> tuple[Any, ...]:
        values = dict(zip(read, arrays, strict=True))
        lengths = values[WORD_MASK].sum(axis=1).astype(jnp.int32)
        batch = {"words": values[WORDS], "lengths": lengths, **make_batch(values)}
        if model.lexicon.characters:
            batch["characters"] = values[LETTERS]
        if draws:
            batch["brought"] = values[DRAWN]
        scores, transitions, _ = run_network(config, params, batch, encode=encode)
        if config.output == "softmax":
            scores = jax.nn.log_softmax(scores, axis=-1)
        # One more place, because the loop over the words after the first may not have zero steps in ONNX Runtime.
        longer = jnp.pad(scores, ((0, 0), (0, 1), (0, 0)))
        path, _ = viterbi(longer, transitions, lengths, legal)
        return scores, path[:, :-1]

    limit = encoder.config.max_positions if IDS in read else None
    return PlainForward("network", function, read, ("logits", "tags"), limit, params)


def _with_kept_vectors(model: TaskNetwork) -> tuple[dict[str, Any], Any]:
    """Return parameters and configuration whose table of words also has the vectors that the lexicon keeps."""
    params, vectors = dict(model.params), model.lexicon.kept_vectors
    config: Any = model.config
    if vectors is None:
        return params, config
    tables = [params["words"]["table"]] if config.num_words else []
    table = np.concatenate([*map(np.asarray, tables), np.asarray(vectors.vectors, np.float32)])
    params["words"] = {**params["words"], "table": table}
    return params, dataclasses.replace(config, num_words=len(table))


def _encoder(model: TaskNetwork) -> tuple[Any, Callable[[Mapping[str, Any]], dict[str, Any]], dict[str, Input]]:
    """Return the function of a tagger's encoder, the function that makes its batch, and the inputs of that one."""
    if model.encoder is None:
        return None, lambda values: {}, {}
    if _reads_characters(model.encoder):
        size = model.encoder.config.max_characters
        name = LETTERS if size == CHARACTERS else f"encoder_{LETTERS}"
        read = {name: Input(f"{TEXTS}, {size}", NUM_CHARACTERS)}
        return model.encoder.word_function(), lambda values: add_marks(values[name], size), read
    if "first" in model.encoder.word_batch([["a"]], 1, 1):
        rows = "batch, length"
        read = {IDS: Input(rows, model.encoder.config.vocab_size), MASK: Input(rows), FIRST: Input(TEXTS, 4)}
        names = {"pieces": IDS, "segments": MASK, "first": FIRST}
        return model.encoder.word_function(), lambda values: {key: values[names[key]] for key in names}, read
    raise ValueError(
        f"{model.source} reads the layers of {model.encoder.source}, and a tagger is exported only with an encoder of "
        "pieces or an ELMo with characters, or without one"
    )
