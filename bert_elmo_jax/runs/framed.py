"""New special pieces around the texts of a task, for a model whose tokenizer has none."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from bert_elmo_jax.data.tasks.task import Kind
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.text import TokenizerFile
from bert_elmo_jax.text.framing import NEW_PIECES, add_frame, has_frame

FRAMED = ("classification", "regression", "choice", "questions")  # kinds of tasks that need a last or a middle piece


def frame_texts(start: Any, kind: Kind, seed: int, report: bool = True) -> Any:
    """Return the model of a start with pieces for the beginning, the middle and the end of a task's texts.

    As in Radford et al. 2018, each gets a fresh row of the word embeddings. If the tokenizer has a frame, or the task
    needs none, nothing changes.
    """
    tokenizer, model = start.tokenizer, start.model
    if kind not in FRAMED or has_frame(tokenizer) or not isinstance(tokenizer, TokenizerFile):
        return start
    framed = add_frame(tokenizer)
    changed = dataclasses.replace(model, vocab_size=max(model.vocab_size, framed.vocab_size))
    stored = start.stored
    if stored is not None:
        first = tokenizer.vocab_size
        params = add_rows(stored.params, first, changed.vocab_size, model.initializer_range, seed)
        stored = dataclasses.replace(stored, params=params, tokenizer=framed, config=changed)
    if report:
        say(f"new pieces around the texts: {', '.join(NEW_PIECES)}")
    return start._replace(model=changed, tokenizer=framed, stored=stored)


def add_rows(params: Mapping[str, Any], first: int, size: int, deviation: float, seed: int) -> dict[str, Any]:
    """Return parameters with fresh word embeddings for the new pieces from `first` on, and `size` rows in all.

    >>> table = {"encoder": {"embeddings": {"word": jnp.ones((4, 2))}}}
    >>> grown = add_rows(table, 4, 7, 0.02, seed=0)["encoder"]["embeddings"]["word"]
    >>> grown.shape, bool((grown[:4] == 1).all()), bool((abs(grown[4:]) < 0.1).all())
    ((7, 2), True, True)
    """
    encoder = params["encoder"]
    word = jnp.asarray(encoder["embeddings"]["word"])
    drawn = deviation * jax.random.normal(jax.random.key(seed), (len(NEW_PIECES), word.shape[1]), word.dtype)
    grown = jnp.concatenate([word, jnp.zeros((max(0, size - len(word)), word.shape[1]), word.dtype)])
    grown = grown.at[first : first + len(NEW_PIECES)].set(drawn)
    return {**params, "encoder": {**encoder, "embeddings": {**encoder["embeddings"], "word": grown}}}
