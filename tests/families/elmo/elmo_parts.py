"""A small ELMo for the tests of its encoder, and the same computed by hand."""

import functools

import jax
import numpy as np

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import Elmo, init_elmo_params
from bert_elmo_jax.text import WordVocabulary
from bert_elmo_jax.text.characters import boundary_characters, character_table

WORDS = (
    "the bank of river 강가의 은행 배를 타고 건넜다 a strengths-of-materials 초등학교에서 . Æon New\u00a0York".split(
        " "
    )
)


CONFIG = ElmoConfig.preset("toy", cell_size=24, projection_size=8, filters=((1, 4), (2, 4), (3, 8)))


WIDE = 22  # the longest sentence here, and its marks


WORD_CONFIG = ElmoConfig(input="words", vocab_size=7, cell_size=24, projection_size=8)


VOCABULARY = WordVocabulary(["</S>", "<S>", "<UNK>", "강", "river", "배", "bank"])


def fresh(config, seed):
    return jax.jit(init_elmo_params, static_argnums=0)(config, jax.random.key(seed))


def lively(params):
    """Return larger weights than a training starts from, so that words, neighbours and state have visible effects.

    Much larger weights would enlarge the rounding of every sum to a visible difference.
    """
    return jax.tree.map(lambda x: np.asarray(x) * (2 if x.ndim > 1 else 1), params)


def close(values, expected, within=1e-6):
    assert values.shape == expected.shape
    assert np.abs(values - expected).max(initial=0) <= within * max(1, np.abs(expected).max(initial=0))


@functools.partial(jax.jit, static_argnums=0)
def module(config, params, words, lengths, characters, state):
    return Elmo(config).apply({"params": params["encoder"]}, words, lengths, characters=characters, state=state)


def by_hand(encoder, words, state=None):
    """Return layers and state of one sentence from the module, which gets each word separately and at full width."""
    begin, end = boundary_characters(50)
    rows, length = np.arange(WIDE)[None], len(words) + 2
    table = np.concatenate([[begin], character_table(words), [end], np.zeros((WIDE - length, 50), np.int32)])
    state = encoder.zero_state(1) if state is None else state
    output = jax.device_get(module(encoder.config, encoder.params, rows, np.array([length]), table[None], state))
    return output.layers[:, 0, 1 : length - 1], output.state
