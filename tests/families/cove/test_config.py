"""Invalid configurations."""

import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.cove.config import CoveConfig
from bert_elmo_jax.families.init_params import param_shapes


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lstm_size": 0}, "lstm_size is 0; it must be a whole number, at least 1"),
        ({"vector_size": 2.5}, "vector_size is 2.5; it must be a whole number"),
        ({"vocab_size": -1}, "vocab_size is -1"),
        ({"num_layers": 1}, "decoder_layers is 2 and num_layers 1: each layer of the decoder starts from"),
        ({"dropout": 1.0}, "dropout is 1.0; a dropout rate is at least 0 and below 1"),
        ({"train_vectors": 1}, "train_vectors is 1; it must be true or false"),
        ({"dtype": "float16"}, "dtype is 'float16'; it is one of float32, bfloat16"),
        ({"vocab_size": 5, "eos_id": 5}, "eos_id is 5; it must be the id of a word, 0 to vocab_size - 1"),
        ({"bos_id": -1}, "bos_id is -1"),
    ],
)
def test_wrong_fields_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        CoveConfig(**fields)


def test_sizes():
    assert CoveConfig().hidden_size == 600 and CoveConfig(vector_size=700).hidden_size == 700
    with pytest.raises(ValueError, match=r"There is no preset 'toi'.*did you mean toy"):
        CoveConfig.preset("toi")
    with pytest.raises(ValueError, match="the parameters have a decoder, but vocab_size is None"):
        param_shapes(get_family("cove"), CoveConfig(4, 3, 1, decoder_layers=1), ("decoder",))
    shapes = param_shapes(get_family("cove"), CoveConfig())  # of the released model
    assert len(shapes) == 12 and shapes["encoder/layer_1/forward/input_kernel"] == (600, 1200)
    assert sum(size * (columns[0] if columns else 1) for size, *columns in shapes.values()) == 3_604_800


def test_the_papers_task_network():
    """Its settings differ from bcn.py's where the paper's do."""
    import importlib

    ours, plain = (importlib.import_module(f"experiments.configs.{name}").get_config() for name in ("bcn_cove", "bcn"))
    changed = {name for name in plain if ours[name] != plain[name]}
    assert changed == {"layers", "mix_l2", "mix_dropout", "tune_words", "feed_size", "lstm_size"}
    assert (ours.layers, ours.feed_size, ours.lstm_size, ours.tune_words) == ("-1", 300, 300, False)
