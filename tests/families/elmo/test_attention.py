"""A biLM of two directions of attention: neither sees the other side, and padding changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.encoder import ElmoEncoder
from bert_elmo_jax.families.elmo.model import Elmo, init_elmo_params
from bert_elmo_jax.families.elmo.objective import bilm_objective
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.text import WordVocabulary

CONFIG = ElmoConfig(
    input="words", vocab_size=9, projection_size=8, cell_size=8, projection=False, reader="attention", num_heads=2
)


def test_each_direction_sees_its_own_side_only_and_no_padding():
    params = init_elmo_params(CONFIG, jax.random.key(0), lm=True)["encoder"]
    words, lengths = jnp.array([[1, 2, 3, 4, 5], [3, 4, 0, 0, 0]]), jnp.array([5, 2])
    read = jax.jit(Elmo(CONFIG).apply)
    layers = read({"params": params}, words, lengths).layers
    other = read({"params": params}, words.at[0, 3].set(7), lengths).layers
    changed = np.abs(np.asarray(layers - other))[2, 0].reshape(5, 2, 8).max(axis=-1) > 0
    assert changed[:, 0].tolist() == [False, False, False, True, True]
    assert changed[:, 1].tolist() == [True, True, True, True, False]
    padded = read({"params": params}, words.at[1, 2:].set(8), lengths).layers
    np.testing.assert_array_equal(layers, padded)


def test_a_state_is_refused():
    """It is not used, so a text would be read as if there was none before it."""
    vocabulary = WordVocabulary(["<S>", "</S>", "<UNK>", *"abcdef"])
    encoder = ElmoEncoder(CONFIG, init_elmo_params(CONFIG, jax.random.key(0)), vocabulary)
    state = encoder.zero_state(1)
    for call, name in (
        (lambda: encoder.encode(["a b"], state=state), "state"),
        (lambda: encoder.encode(["a b"], warmup=1), "warmup"),
        (lambda: encoder.encode_batches(["a b"], warmup=1), "warmup"),
        (lambda: encoder.forward(words=np.array([[3, 4]]), state=state), "state"),
    ):
        with pytest.raises(ValueError, match=f"weights reads with attention, and so has no state: leave out {name}="):
            call()


def test_wrong_attention_settings_are_refused():
    with pytest.raises(ValueError, match="num_heads is 3; it must divide projection_size, 8 here"):
        ElmoConfig(input="words", vocab_size=9, projection_size=8, reader="attention", num_heads=3)
    with pytest.raises(ValueError, match="files of ELMo have only LSTMs"):
        CONFIG.to_options()
    config, _ = read_config("elmo:toy")
    with pytest.raises(ValueError, match=r"--config\.reading=sentences"):
        bilm_objective(config, CONFIG)
