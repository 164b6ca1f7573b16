"""EuroBERT's classifiers and tagger, padding on the left, packed rows, its tokenizer; wrong configurations."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.eurobert.family import EuroBertConfig
from bert_elmo_jax.families.piece_module import PooledRows, first_or_mean
from bert_elmo_jax.nn.attention import SelfAttention
from bert_elmo_jax.text import load_tokenizer

from ..close_outputs import assert_close


@pytest.fixture(scope="module")
def inputs(goldens):
    return dict(np.load(goldens / "eurobert_tiny" / "inputs.npz"))


@pytest.mark.parametrize("name", ["classifier_late", "classifier_mean", "classifier_bos", "tagger"])
def test_logits_of_heads(goldens, inputs, name):
    folder, mask = goldens / "eurobert_tiny" / name, inputs["attention_mask"]
    logits = np.load(folder / "outputs.npz")["logits"]
    ours = load(folder).forward(inputs["input_ids"], mask=mask).logits
    real = mask == 1 if name == "tagger" else slice(None)
    assert_close(ours[real], logits[real])


def test_padded_on_the_left(goldens, inputs):
    mask, last = inputs["left/attention_mask"], np.load(goldens / "eurobert_tiny" / "mlm" / "outputs.npz")
    ours = load(goldens / "eurobert_tiny" / "mlm").forward(inputs["left/input_ids"], mask=mask).last
    assert_close(ours[mask == 1], last["left/last_hidden_state"][mask == 1])


@pytest.mark.parametrize("name", ["classifier_late", "classifier_mean", "classifier_bos"])
def test_packed_texts_are_pooled_as_texts_alone(goldens, name):
    model = load(goldens / "eurobert_tiny" / name)
    rows = np.array([[356, 70, 71, 72, 357], [356, 80, 81, 357, 0]])
    single = [model.forward(row[None]).pooled[0] for row in (rows[0], rows[1, :4])]
    packed = np.concatenate([rows[0], rows[1, :4]])[None]
    segments, positions = np.array([[1] * 5 + [2] * 4]), np.array([[*range(5), *range(4)]])
    output = model.family.build(model.config, pooler=True).apply(
        {"params": model.params["encoder"]}, packed, None, positions, segments, nsp_positions=np.array([[0, 5]])
    )
    np.testing.assert_allclose(output.pooled[0], single, atol=1e-5)


def test_means_leave_out_padding_on_the_left():
    x, mask = jnp.array([[[9.0], [1.0], [3.0]]]), jnp.array([[0, 1, 1]])
    assert first_or_mean(x, PooledRows(mask, mask, None, None, False, mask), mean=True).item() == 2.0


def test_several_queries_share_a_key_and_a_value():
    shared = SelfAttention(num_heads=4, key_value_heads=2)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(1, 3, 8)), jnp.float32)
    params = shared.init(jax.random.key(0), x)["params"]
    assert params["key"]["kernel"].shape == (8, 4)

    def widen(array):
        return jnp.repeat(array.reshape(*array.shape[:-1], 2, 2), 2, axis=-2).reshape(*array.shape[:-1], 8)

    wide = {name: {part: widen(a) for part, a in params[name].items()} if name in ("key", "value") else params[name]
            for name in params}  # fmt: skip
    ours, theirs = (attention.apply({"params": p}, x, maps=True)
                    for attention, p in ((shared, params), (SelfAttention(num_heads=4), wide)))  # fmt: skip
    np.testing.assert_allclose(ours[0], theirs[0], atol=1e-6)
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-6)


def test_tokenizer(goldens, tmp_path):
    folder = goldens / "eurobert_tiny"
    tokenizer = load_tokenizer(folder)
    tokenizer.save(tmp_path)
    for entry in json.loads((folder / "encodings.json").read_text("utf-8")):
        texts = entry["text"] if isinstance(entry["text"], list) else [entry["text"]]
        for ours in (tokenizer.encode(*texts), load_tokenizer(tmp_path).encode(*texts)):
            assert ours.ids.tolist() == entry["ids"] and ours.offsets.tolist() == entry["offsets"]


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_key_value_heads": 2}, r"key_value_heads is 2; it must divide num_heads, 3 \(num_heads is its num_att"),
        ({"clf_pooling": "mean"}, "classifier_pooling is 'late' but clf_pooling is 'mean': delete one"),
        ({"clf_pooling": "max", "classifier_pooling": "max"}, "pooling is 'max'; it is one of late, mean, bos"),
        ({"rope_parameters": {"rope_theta": 1e4}}, "rope_theta is 250000.0 but rope_parameters.rope_theta is 10000.0"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_type of rope_parameters is 'yarn'; only 'default' is supp"),
        ({"rope_parameters": [1]}, r"rope_parameters is \[1\]; it is an object with rope_theta"),
        ({"rope_parameters": {"rope_theta": "abc"}}, "rope_parameters.rope_theta is 'abc'; it must be a number up to"),
        ({"rope_theta": [1, 2]}, r"rope_theta is \[1, 2\]; it must be a number up to 1e12"),
        ({"rope_theta": math.inf}, "rope_theta is inf; it must be a number up to 1e12"),
        ({"rope_theta": True}, "rope_theta is True; it must be a number up to 1e12"),
        ({"classifier_pooling": ["mean"]}, r"classifier_pooling is \['mean'\]; it must be a text"),
        ({"rope_scaling": {"factor": 2.0}}, r"rope_scaling is \{'factor': 2.0\}; only \{\} is supported"),
        ({"tie_word_embeddings": True}, "tie_word_embeddings is True; only False is supported"),
        ({"rope_theta": -1.0}, "rotary_theta is -1.0; it must be above 0"),
    ],
)
def test_wrong_files(goldens, fields, message):
    content = json.loads((goldens / "eurobert_tiny" / "mlm" / "config.json").read_text()) | fields
    with pytest.raises(ValueError, match=message):
        EuroBertConfig.from_json(content)


def test_both_spellings_are_read_and_written(goldens):
    folder = goldens / "eurobert_tiny"
    old, new = (EuroBertConfig.from_json(folder / name / "config.json") for name in ("mlm", "classifier_late"))
    assert old == new and old.rotary_theta == 250_000.0 and old.pooling == "late"
    fields = old.to_huggingface()
    for left_out in (("rope_theta", "clf_pooling"), ("rope_parameters", "classifier_pooling")):
        assert EuroBertConfig.from_json({k: v for k, v in fields.items() if k not in left_out}) == old
    del fields["num_key_value_heads"]
    assert EuroBertConfig.from_json(fields).key_value_heads is None  # as many as queries
