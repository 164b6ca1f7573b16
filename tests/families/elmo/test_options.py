"""Examples of `bert_elmo_jax.families.elmo.files`."""

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.files import contradictions, from_options


def test_example_of_from_options():
    assert (
        from_options({"lstm": {"dim": 8, "projection_dim": 4}}, {"embedding": (100, 4)}, "The options").vocab_size
        == 100
    )


def test_example_of_contradictions():
    config = ElmoConfig(input="words", vocab_size=9)
    assert contradictions(config, {"RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B": (8192,)}) == [
        "lstm.n_layers is 2, but the weights have 1 (Cell0)",
        "lstm.dim is 4096, but the weights have 2048",
    ]
