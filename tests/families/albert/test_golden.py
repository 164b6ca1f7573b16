"""ALBERT's shared layers, its classifier and its tokenizer; wrong configurations."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.albert.family import FAMILY, AlbertConfig
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.text import load_tokenizer
from bert_elmo_jax.text.cleaning import Cleaning

SMALL = {"vocab_size": 20, "hidden_size": 8, "num_heads": 2, "feed_forward_size": 8, "embedding_size": 4,
         "max_positions": 8}  # fmt: skip


def test_the_classifier(goldens):
    folder = goldens / "albert_tiny"
    inputs, outputs = np.load(folder / "inputs.npz"), np.load(folder / "classifier" / "outputs.npz")
    model = load(folder / "classifier")
    ours = model.forward(inputs["input_ids"], inputs["token_type_ids"], inputs["attention_mask"])
    assert np.abs(ours.logits - outputs["logits"]).max() <= 1e-5 * np.abs(outputs["logits"]).max()


@pytest.mark.parametrize(
    ("layers", "groups", "inner", "owners"),
    [
        (4, 1, 1, [0, 0, 0, 0]), (4, 2, 1, [0, 0, 1, 1]), (4, 3, 1, [0, 0, 1, 2]), (4, 1, 2, [0, 1, 0, 1]),
        (4, 4, 1, [0, 1, 2, 3]), (8, 2, 2, [0, 1, 0, 1, 2, 3, 2, 3]),
    ],
)  # fmt: skip
def test_owners_of_parameters(layers, groups, inner, owners):
    assert AlbertConfig(**SMALL, num_layers=layers, groups=groups, layers_per_group=inner).layer_owners == owners


@pytest.mark.parametrize(("groups", "inner"), [pytest.param(1, 1, marks=pytest.mark.long), (1, 2)])
def test_layers_share_parameters_and_loops_give_the_same(groups, inner):
    config = AlbertConfig(**SMALL, num_layers=4, groups=groups, layers_per_group=inner)
    params = init_params(FAMILY, config, jax.random.key(0), pooler=False)["encoder"]
    assert sum(name.startswith("layer_") for name in params) == groups * inner
    tokens = np.array([[3, 4, 5]])

    def total(params, **fields):
        last = FAMILY.build(dataclasses.replace(config, **fields)).apply({"params": params}, tokens).last
        return (last**2 * np.arange(8)[None, None]).sum()

    value, gradient = jax.value_and_grad(total)(params)
    for fields in ({"scan": True}, {"remat": True}):
        again, other = jax.value_and_grad(total)(params, **fields)
        np.testing.assert_allclose(again, value, rtol=1e-5)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4), gradient, other)


@pytest.mark.parametrize("fields", [{"groups": 3}, {"num_layers": 3, "layers_per_group": 2}, {"num_layers": 20_000}])
def test_wrong_numbers_of_layers(fields):
    with pytest.raises(ValueError, match=r"num_layers is .*; it must be a multiple of layers_per_group"):
        AlbertConfig(**SMALL, **({"num_layers": 2} | fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_hidden_groups": 9}, r"num_layers is 4; .*, from 9 \(of 9 groups\) to 10000"),
        ({"inner_group_num": "one"}, "inner_group_num is 'one'; it must be a whole number"),
        ({"embedding_size": 0}, r"embedding_size is 0; it must be at least 1 \(embedding_size is its embedding_size\)"),
    ],
)
def test_wrong_files(goldens, fields, message):
    content = json.loads((goldens / "albert_tiny" / "mlm" / "config.json").read_text()) | fields
    with pytest.raises(ValueError, match=message):
        AlbertConfig.from_json(content)


def test_missing_fields_are_those_of_the_largest_model():
    assert AlbertConfig.from_json({"model_type": "albert"}) == AlbertConfig.preset("xxlarge")


def test_tokenizer(goldens, tmp_path):
    tokenizer = load_tokenizer(goldens / "albert_tiny")
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert again.fingerprint == tokenizer.fingerprint
    for entry in json.loads((goldens / "albert_tiny" / "encodings.json").read_text("utf-8")):
        texts = entry["text"] if isinstance(entry["text"], list) else [entry["text"]]
        for ours in (tokenizer.encode(*texts), again.encode(*texts)):
            assert ours.ids.tolist() == entry["ids"] and ours.types.tolist() == entry["types"]
        if len(texts) == 1 and not set("[<") & set(texts[0]):
            assert tokenizer.encode_lines(texts)[0].tolist() == entry["ids"][1:-1]


def test_offsets_are_places_of_the_text_that_was_given(goldens):
    text = "  The  CAFÉ's ``ﬁne''  강물 "
    encoding = load_tokenizer(goldens / "albert_tiny").encode(text, specials=False)
    covered = {place for start, end in encoding.offsets for place in range(start, end)}
    assert "".join(text[place] for place in sorted(covered)) == "TheCAFÉ's``ﬁne''강물"
    assert (np.diff(encoding.offsets[:, 0]) >= 0).all()


@pytest.mark.parametrize(
    ("cleaning", "text", "cleaned"),
    [
        (Cleaning(), " ÀÉ  x ", " ÀÉ  x "), (Cleaning(lowercase=True), "ΑΣ É", "ας é"),
        (Cleaning(strip_accents=True), "Àﬁ½ ক\u0981কা", "Afi1⁄2 কক"),
        (Cleaning(tidy_spaces=True), "\t``a\n ''b ", '"a "b'),
    ],
)  # fmt: skip
def test_cleaning(cleaning, text, cleaned):
    assert cleaning.clean(text) == cleaned
    assert len(cleaning.place(text)[1]) == len(cleaned)
