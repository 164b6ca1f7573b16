"""The encoder object: wrong inputs, vectors from the source's side, run directories, and Marian folders with text."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax import load
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.marian import write
from bert_elmo_jax.text import load_tokenizer
from bert_elmo_jax.weights.parameter_tree import flatten, nest

FAMILY = get_family("transformer")

pytestmark = pytest.mark.usefixtures("as_users_run")


@pytest.fixture(scope="module")
def tokenizer(goldens):
    return load_tokenizer(goldens / "tokenizers" / "marian")


@pytest.fixture(scope="module")
def config_and_params(tokenizer):
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "feed_forward_size": 24, "max_positions": 30}
    config = FAMILY.config_for(tokenizer, **sizes, output_bias=True)
    return config, random_params(config)


def random_params(config):
    shapes, rng = param_shapes(FAMILY, config, ("decoder",), pooler=False), np.random.default_rng(0)
    return nest({path: rng.normal(0, 0.4, shape).astype(np.float32) for path, shape in shapes.items()})


@pytest.fixture(scope="module")
def folder(goldens, config_and_params, tmp_path_factory):
    """Write a Marian folder with its tokenizer."""
    out = tmp_path_factory.mktemp("marian")
    write(out, config_and_params[1], config_and_params[0])
    for file in (goldens / "tokenizers" / "marian").iterdir():
        if file.name != "encodings.json":
            shutil.copy(file, out)
    return out


@pytest.fixture(scope="module")
def model(folder):
    return load(folder)


def test_ids_of_the_tokenizer_are_fields_of_the_configuration(config_and_params, tokenizer):
    config, _ = config_and_params
    assert (config.start_id, config.pad_id, config.end_ids) == (tokenizer.pad_id, tokenizer.pad_id, (tokenizer.sep_id,))
    assert config.forbidden_ids == (tokenizer.pad_id,)


def test_translations(model):
    texts = ["the river", "It was the best of times.", ">>kor<< the bank"]
    one, two = model.translate(texts, max_new=6), model.translate(texts[::-1], max_new=6)
    assert one == two[::-1] and all(isinstance(text, str) for text in one)
    best = model.generate(texts, max_new=6, beams=4, length_penalty=0.6)
    assert [first.text for first, *_ in best] == one
    assert len(model.best_translations(["the"], max_new=3, beams=1)[0].ids) <= 3


def test_vectors_of_the_source(model):
    texts = ["the river", "the bank of the river"]
    encoded = model.encode(texts, layers="all")
    ids = [model.tokenizer.encode(text).ids for text in texts]
    source, mask = np.zeros((2, 2, max(map(len, ids))), np.int32)
    for n, row in enumerate(ids):
        source[n, : len(row)], mask[n, : len(row)] = row, 1
    apart = np.asarray(model.forward(source=source, source_mask=mask).encoder_layers)
    for n, row in enumerate(ids):
        np.testing.assert_allclose(encoded.layers[:, n, : len(row)], apart[:, n, : len(row)], rtol=1e-5, atol=1e-5)
    vectors = list(model.extract(texts, [0, -1], units="words"))
    assert [array.shape for array in vectors] == [(2, 2, 16), (2, 5, 16)]


def test_fused_attention_has_no_maps_of_the_encoder(folder, model):
    fused = load(folder, attention="fused")
    ids = {"source": [[5, 6, 7, 8]], "source_mask": [[1, 1, 1, 0]], "target": [[3, 8]]}
    one, other = model.forward(**ids), fused.forward(**ids)
    np.testing.assert_allclose(other.logits, one.logits, rtol=1e-4, atol=1e-4)
    assert other.encoder_attentions is None and one.encoder_attentions is not None
    np.testing.assert_allclose(other.cross_attentions, one.cross_attentions, atol=1e-5)


def test_without_a_target_only_the_encoder_runs(model):
    output = model.forward(source=[[5, 6, 7]])
    assert output.encoder_layers.shape == (2, 1, 3, 16) and output.logits is None
    assert "encoder_layers" in repr(output)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"source": np.ones((1, 31), int)}, "rows of 31 tokens were given to a model with 30 positions"),
        ({"source": [[5, 999]]}, "token id 999 at row 0, column 1 is outside the vocabulary"),
        ({"source": [[5]], "target": [[3, -1]]}, "token id -1 at row 0, column 1 is outside the vocabulary"),
        ({"source": [[5]], "target": np.ones((1, 31), int)}, "rows of 31 tokens"),
        ({"source": [[5]], "target": [[3], [4]]}, "target has 2 rows and source 1"),
        ({"source": [[5]], "source_mask": [[2]]}, "source_mask holds other numbers than 0"),
        ({"source": [[5, 6]], "source_mask": [[1]]}, r"source_mask has shape \(1, 1\)"),
        ({"source": [[5, 6], [7]]}, "source has rows of different lengths"),
    ],
)
def test_wrong_ids(model, inputs, message):
    with pytest.raises(ValueError, match=message):
        model.forward(**inputs)


def test_wrong_texts(model, goldens):
    with pytest.raises(TypeError, match="a single string was given"):
        model.translate("the river")
    with pytest.raises(TypeError, match="text 1 is 3; translate takes strings"):
        model.translate(["the", 3])
    with pytest.raises(ValueError, match=r"has .* pieces, but the model has 30 positions"):
        model.translate(["the river " * 20])
    with pytest.raises(TypeError, match="for n_best= call generate"):
        model.translate(["the river"], n_best=2)
    with pytest.raises(ValueError, match="has no tokenizer"):
        load(goldens / "transformer_tiny").translate(["the river"])
    with pytest.raises(ValueError, match="has no masked-language-model head"):
        model.fill_mask("the <unk>")


def copy_with(folder, target, **changes):
    """Write a copy of a folder with other tensors; None leaves one out."""
    shutil.copytree(folder, target)
    tensors = load_file(folder / "model.safetensors") | changes
    save_file({name: value for name, value in tensors.items() if value is not None}, target / "model.safetensors")
    return target


def test_copies_and_constants_in_a_file(folder, model, tmp_path):
    from bert_elmo_jax.families.transformer.embeddings import sinusoids
    from bert_elmo_jax.families.transformer.marian import read_weights

    word = load_file(folder / "model.safetensors")["model.shared.weight"]
    extra = {"lm_head.weight": word, "model.decoder.embed_tokens.weight": word.copy()}
    extra["model.encoder.embed_positions.weight"] = sinusoids(30, 16)
    place = copy_with(folder, tmp_path / "copies", **extra)
    params, report = read_weights(place)
    assert set(report.skipped) == extra.keys() and not report.unexpected
    for path, value in flatten(model.params).items():
        np.testing.assert_array_equal(flatten(params)[path], value)
    with pytest.raises(ValueError, match=r"lm_head\.weight differs from model\.shared\.weight"):
        load(copy_with(folder, tmp_path / "other", **{"lm_head.weight": word + 1}))
    positions = {"model.decoder.embed_positions.weight": np.ones((30, 16), np.float32)}
    with pytest.raises(ValueError, match="the positions of the target are not sines and cosines"):
        load(copy_with(folder, tmp_path / "positions", **positions))


def test_a_pickle_is_read(folder, model, write_torch, tmp_path):
    shutil.copy(folder / "config.json", tmp_path)
    shutil.copy(folder / "generation_config.json", tmp_path)
    write_torch(tmp_path / "pytorch_model.bin", load_file(folder / "model.safetensors"))
    again = load(tmp_path)
    assert again.config == model.config
    for path, value in flatten(model.params).items():
        np.testing.assert_array_equal(flatten(again.params)[path], value)


def test_missing_tensors(folder, tmp_path):
    place = copy_with(folder, tmp_path / "bias", final_logits_bias=None)
    assert not np.any(load(place).params["decoder"]["output_bias"])
    name = "model.decoder.layers.0.encoder_attn.k_proj.weight"
    with pytest.raises(ValueError, match=rf"missing \(1\): {name}"):
        load(copy_with(folder, tmp_path / "one", **{name: None}))
    gone = {name: None for name in load_file(folder / "model.safetensors") if ".decoder." in name}
    with pytest.raises(ValueError, match=r"missing \(26\): model\.decoder\.layers\.0"):
        load(copy_with(folder, tmp_path / "encoder", **gone))
    (place / "config.json").unlink()
    with pytest.raises((FileNotFoundError, ValueError), match="config"):
        load(place)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"positions": "learned"}, "positions='learned' cannot be written"),
        ({"key_size": 4}, "key_size=4 cannot be written"),
        ({"value_size": 3}, "value_size=3 cannot be written"),
    ],
)
def test_fields_that_marian_lacks_are_refused(fields, message, tmp_path):
    config = TransformerConfig(20, 16, 1, 2, feed_forward_size=24, max_positions=9, **fields)
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "out", random_params(config), config)


def test_labels_have_no_place(config_and_params, tmp_path, folder):
    with pytest.raises(ValueError, match="has no classifier"):
        write(tmp_path / "out", config_and_params[1], config_and_params[0], labels=["a", "b"])
    with pytest.raises(FileExistsError, match="already holds weights"):
        write(folder, config_and_params[1], config_and_params[0])
