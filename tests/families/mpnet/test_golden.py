"""MPNet's distances: padding on the left, far pieces, packed rows, buckets; its tokenizer; wrong configurations."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.mpnet.family import MPNet, MPNetConfig
from bert_elmo_jax.nn.attention import attention_maps, fused, reference
from bert_elmo_jax.nn.relative_bias import relative_bias, relative_buckets
from bert_elmo_jax.text import load_tokenizer

from ..close_outputs import assert_close


@pytest.fixture(scope="module")
def golden(goldens):
    folder = goldens / "mpnet_tiny"
    return load(folder), *(dict(np.load(folder / f"{name}.npz")) for name in ("inputs", "outputs"))


def test_padded_on_the_left(golden):
    model, inputs, outputs = golden
    mask = inputs["left/attention_mask"]
    last = model.forward(inputs["left/input_ids"], mask=mask).last
    assert_close(last[mask == 1], outputs["left/last_hidden_state"][mask == 1])


def test_far_pieces(golden):
    model, inputs, outputs = golden
    ours = model.forward(inputs["far/input_ids"])
    assert_close(ours.last, outputs["far/last_hidden_state"])
    assert_close(ours.attentions[0, :, :, 0], outputs["far/first_query_of_layer_0"].reshape(1, 3, -1))


def test_packed_texts_have_the_vectors_of_texts_alone(golden):
    model = golden[0]
    texts = ["The river had risen", ("in the night", "강물은 밤사이에"), "x", "the river and the ship " * 4]
    packed = model.encode(texts)
    assert model.work.positions < 4 * packed.last.shape[1]  # texts share rows
    for vectors, encoding in zip(packed.last, packed.texts):
        single = model.forward(np.array([encoding.ids])).last[0]
        np.testing.assert_allclose(vectors[: len(encoding)], single, atol=2e-5)


def test_buckets_are_the_original_ones(goldens):
    frozen = np.load(goldens / "mpnet_tiny" / "buckets.npz")
    np.testing.assert_array_equal(relative_buckets(frozen["key_minus_query"]), frozen["bucket"])


@pytest.mark.parametrize("length", [1, 2, 40])
def test_the_bias_and_its_gradient_equal_look_ups(length):
    table = jax.random.normal(jax.random.key(0), (33, 2))
    places = np.arange(length)
    buckets = relative_buckets((places[None] - places[:, None]).ravel()).reshape(length, length)
    weights = jax.random.normal(jax.random.key(1), (1, 2, length, length))

    def looked_up(table):
        return table[buckets].transpose(2, 0, 1)[None]

    np.testing.assert_array_equal(relative_bias(table, length), looked_up(table))
    ours, theirs = (jax.grad(lambda t, f=f: (f(t) * weights).sum())(table)
                    for f in (lambda table: relative_bias(table, length), looked_up))  # fmt: skip
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_a_bias_is_added_before_the_mask():
    q, k, v = jax.random.normal(jax.random.key(0), (3, 2, 5, 3, 4))
    bias, segments = jax.random.normal(jax.random.key(1), (1, 3, 5, 5)), jnp.array([[1, 1, 2, 2, 0]] * 2)
    same = np.asarray(segments)[:, None, :, None] == np.asarray(segments)[:, None, None, :]
    scores = np.exp(np.einsum("btah,bsah->bats", q, k) / 2 + bias) * same
    maps = scores / scores.sum(-1, keepdims=True)
    np.testing.assert_allclose(attention_maps(q, k, segments, bias=bias), maps, atol=1e-6)
    for attend in (reference, fused):
        out = np.einsum("bats,bsah->btah", maps, v)
        np.testing.assert_allclose(attend(q, k, v, segments, bias=bias), out, atol=2e-6)


@pytest.mark.long
def test_scan_and_remat_compute_the_same(golden):
    model, inputs, _ = golden
    outputs = [
        MPNet(dataclasses.replace(model.config, **fields), add_pooler=False).apply(
            {"params": model.params["encoder"]}, inputs["input_ids"]
        ).last
        for fields in ({}, {"scan": True}, {"remat": True})
    ]  # fmt: skip
    for other in outputs[1:]:
        np.testing.assert_allclose(other, outputs[0], atol=1e-5)


def test_tokenizer(goldens, tmp_path):
    folder = goldens / "mpnet_tiny"
    tokenizer = load_tokenizer(folder)
    tokenizer.save(tmp_path / "saved")
    again = load_tokenizer(tmp_path / "saved")
    assert tokenizer.fingerprint == again.fingerprint
    for entry in json.loads((folder / "encodings.json").read_text("utf-8")):
        texts = entry["text"] if isinstance(entry["text"], list) else [entry["text"]]
        for ours in (tokenizer.encode(*texts), again.encode(*texts)):
            assert ours.ids.tolist() == entry["ids"]
            assert ours.offsets.tolist() == entry["offsets"]


def test_a_vocabulary_of_another_model_is_refused(goldens, tmp_path):
    (tmp_path / "tokenizer_config.json").write_text('{"cls_token": "<cls>"}')
    (tmp_path / "vocab.txt").write_text("<s>\n<pad>\n</s>\n[UNK]\n<mask>\nthe\n")
    with pytest.raises(ValueError, match=r"vocab.txt has no piece <cls>: copy the vocabulary"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"relative_buckets": 16}, "relative_buckets is 16; distances have 32 buckets or more"),
        ({"attention": "splash"}, "attention 'splash' has no argument bias"),
        ({"num_heads": 7}, "hidden_size 768 cannot be split evenly among num_heads 7"),
    ],
)
def test_wrong_sizes(fields, message):
    with pytest.raises(ValueError, match=message):
        MPNetConfig(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"relative_attention_num_buckets": 8}, r"relative_buckets is 8; .* \(relative_buckets is its relative_att"),
        ({"max_position_embeddings": 2}, "max_positions is 0; it must be at least 1"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps is 'small'; it must be a number"),
    ],
)
def test_wrong_files(goldens, fields, message):
    content = json.loads((goldens / "mpnet_tiny" / "config.json").read_text()) | fields
    with pytest.raises(ValueError, match=message):
        MPNetConfig.from_json(content)
