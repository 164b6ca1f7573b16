"""The small ELMo of `elmo_parts`, made once per file."""

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.elmo.encoder import ElmoEncoder

from .elmo_parts import CONFIG, VOCABULARY, WIDE, WORD_CONFIG, WORDS, fresh, lively


@pytest.fixture(scope="module")
def params():
    return lively(fresh(CONFIG, 0))


@pytest.fixture(scope="module")
def elmo(params):
    return ElmoEncoder(CONFIG, params)


@pytest.fixture(scope="module")
def by_words():
    return ElmoEncoder(WORD_CONFIG, lively(fresh(WORD_CONFIG, 1)), VOCABULARY, "weights")


@pytest.fixture(scope="module")
def golden(goldens):
    return load(goldens / "elmo_tiny")


@pytest.fixture(scope="module")
def sentences():
    coins = np.random.default_rng(0)
    return [coins.choice(WORDS, n).tolist() for n in coins.integers(1, WIDE - 1, 19)]
