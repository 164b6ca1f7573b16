"""ModernBERT's folders through the public functions: load, encode, forward, fill_mask, save, and wrong folders."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax import load
from bert_elmo_jax.families.modernbert.config import ModernBertConfig
from bert_elmo_jax.families.modernbert.family import FAMILY
from bert_elmo_jax.families.modernbert.formats import WEIGHTS
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.text import WordPiece

from ..huggingface_models import MODERNBERT, assert_same, random_params

read_weights, write = WEIGHTS.read_weights, WEIGHTS.write

pytestmark = pytest.mark.usefixtures("strict_dtypes")


@pytest.fixture(scope="module")
def folder(goldens, tmp_path_factory):
    """The golden with padded and packed rows, without its tokenizer."""
    folder = tmp_path_factory.mktemp("modernbert")
    for name in ("config.json", "model.safetensors"):
        shutil.copy(goldens / "modernbert_packed" / name, folder)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return load(folder)


@pytest.fixture(scope="module")
def encoder(model):
    """The same with a tokenizer of pieces that are single letters."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(ord("a"), ord("z") + 1))]
    return PieceEncoder(FAMILY, model.config, model.params, WordPiece(pieces))


def test_forward_gives_the_numbers_of_transformers(model, packed):
    tokens, mask = packed.inputs["input_ids"], packed.inputs["attention_mask"]
    output = model.forward(tokens=tokens, mask=mask)
    for ours, theirs in ((output.layers, "hidden_states"), (output.logits, "mlm_logits")):
        theirs = packed.outputs[theirs]
        place = (slice(None),) * (theirs.ndim - 3) + (mask == 1,)
        assert np.abs(np.asarray(ours)[place] - theirs[place]).max() <= 1e-5 * np.abs(theirs[place]).max()
    assert output.attentions.shape == packed.outputs["attentions"].shape
    assert output.mlm_logits is output.logits and output.nsp_logits is None
    with_types = model.forward(tokens, np.ones_like(tokens), mask)  # which change nothing
    np.testing.assert_array_equal(with_types.last, output.last)
    rows = {name: packed.inputs[f"packed/{name}"] for name in ("input_ids", "position_ids", "segments")}
    output = model.forward(rows["input_ids"], positions=rows["position_ids"], segments=rows["segments"])
    real, theirs = rows["segments"] > 0, packed.outputs["packed/mlm_logits"]
    assert np.abs(np.asarray(output.logits)[real] - theirs[real]).max() <= 1e-5 * np.abs(theirs[real]).max()
    long = PieceEncoder(FAMILY, ModernBertConfig(), {"encoder": {}}, None)
    with pytest.raises(ValueError, match="rows of 8193 tokens were given to a model with 8192 positions: cut them"):
        long.forward(np.zeros((1, 8193), np.int32))


def test_texts_that_share_rows_get_the_vectors_of_texts_alone(encoder):
    draw = np.random.default_rng(0)
    texts = [" ".join(draw.choice(list("abcdefgh"), n)) for n in (1, 30, 5, 9, 3, 12, 60, 2, 100)]
    family = dataclasses.replace(FAMILY, inputs=Pieces(packs=False))
    reference = PieceEncoder(family, encoder.config, encoder.params, encoder.tokenizer)
    options = {"layers": "all", "overflow": "windows"}
    for one, other in zip(encoder.encode(texts, **options), reference.encode(texts, **options), strict=True):
        for name in ("last", "layers", "pooled"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=5e-6)
    assert encoder.work.padding < 0.3


def test_fill_mask(encoder):
    guesses = encoder.fill_mask("a [MASK] c", top=3)
    assert [guess.mask for guess in guesses] == [0, 0, 0]
    assert guesses[0].probability >= guesses[1].probability > 0


def test_saved_and_read_again_it_is_the_same(folder, tmp_path):
    params, report = read_weights(folder)
    assert not report.unexpected and not report.missing
    # The prediction head is the pooler of a new classifier.
    assert_same(params["encoder"]["pooler"], {name: params["mlm"][name] for name in ("dense", "norm")})
    config = ModernBertConfig.from_json(folder / "config.json")
    write(tmp_path / "out", params, config)
    theirs, ours = (load_file(place / "model.safetensors") for place in (folder, tmp_path / "out"))
    assert_same(theirs, ours)
    assert_same(params, read_weights(tmp_path / "out")[0])
    assert convert(str(folder), tmp_path / "converted")[0] == "huggingface"
    assert_same(theirs, load_file(tmp_path / "converted" / "model.safetensors"))
    params["encoder"]["pooler"]["dense"]["kernel"] = params["encoder"]["pooler"]["dense"]["kernel"] + 1
    with pytest.raises(ValueError, match=r"differs from another part that would have the same name in the file, head"):
        write(tmp_path / "other", params, config)


def test_a_classifier_that_is_not_named(tmp_path):
    params = random_params("ModernBertForTokenClassification")
    write(tmp_path, params, MODERNBERT)
    written = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**written, "architectures": []}))
    read, report = read_weights(tmp_path)
    assert list(read) == ["encoder"] and "pooler" not in read["encoder"]
    assert "give classifier=classify|choice|tag|span" in report.skipped["classifier.weight"]
    assert_same(read_weights(tmp_path, classifier="tag")[0], params)
    del params["encoder"]["pooler"]
    with pytest.raises(ValueError, match="tag cannot be written without its pooler"):
        write(tmp_path / "out", params, MODERNBERT)


def test_a_decoder_without_a_bias(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "bare")
    tensors = load_file(folder / "model.safetensors")
    del tensors["decoder.bias"]
    save_file(tensors, tmp_path / "bare" / "model.safetensors")
    with pytest.raises(ValueError, match=r"missing \(1\): decoder.bias"):
        load(tmp_path / "bare")
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "bare" / "config.json").write_text(json.dumps({**config, "decoder_bias": False}))
    assert load(tmp_path / "bare").heads == ("mlm",)


def test_joined_weights_of_another_size_and_fields_that_cannot_be_honoured(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "wrong")
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.1.attn.Wqkv.weight"] = tensors["model.layers.1.attn.Wqkv.weight"][:93]
    save_file(tensors, tmp_path / "wrong" / "model.safetensors")
    with pytest.raises(ValueError, match=r"layers.1.attn.Wqkv.query.weight: \[31, 32\], expected \[32, 32\]"):
        load(tmp_path / "wrong")
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"]["full_attention"]["rope_type"] = "yarn"
    (tmp_path / "wrong" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"rope_type of rope_parameters.full_attention is 'yarn'; only 'default'"):
        load(tmp_path / "wrong")
