"""The layout of sentence-transformers, read and written."""

import json
import shutil

import jax
import numpy as np
import pytest

from bert_elmo_jax import load, save
from bert_elmo_jax.heads.sentence_head import Dense, SentenceHead, init_sentence_head
from bert_elmo_jax.inference.convert import convert

HEAD = SentenceHead(
    ("mean",), (Dense(64, 8, True, "tanh"), "normalize"), 20, True, (("query", "[MASK] "), ("text", "")), "query", False
)
TEXTS = ["[MASK] [MASK]", "[MASK]"]


@pytest.fixture(scope="module")
def folder(goldens, tmp_path_factory):
    """Return a sentence model with every part."""
    encoder = load(goldens / "bert_tiny")
    encoder.sentence_head = HEAD
    encoder.params["sentence"] = init_sentence_head(HEAD, jax.random.key(0))
    folder = tmp_path_factory.mktemp("sentences") / "model"
    encoder.save_sentences(folder)
    return folder


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def change(file, **fields):
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


def test_round_trip(folder, tmp_path):
    first = load(folder)
    assert first.sentence_head == HEAD
    vectors = first.sentences(TEXTS)
    assert vectors.shape == (2, 8)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    first.save_sentences(tmp_path / "again")
    again = load(tmp_path / "again")
    assert again.sentence_head == HEAD and again.fingerprint == first.fingerprint
    for name in sorted(file.relative_to(folder) for file in folder.rglob("*.json")):
        assert (tmp_path / "again" / name).read_text() == (folder / name).read_text()


def test_convert_to_a_run_directory_and_back(folder, tmp_path):
    vectors = load(folder).sentences(TEXTS)
    convert(str(folder), tmp_path / "run", to_format="run")
    assert load(tmp_path / "run").sentence_head == HEAD
    assert np.array_equal(load(tmp_path / "run").sentences(TEXTS), vectors)
    convert(str(tmp_path / "run"), tmp_path / "back", to_format="huggingface")
    assert np.array_equal(load(tmp_path / "back").sentences(TEXTS), vectors)


def test_files_of_other_versions(copy):
    """The encoder in a folder of its own, the pooling by one name, the length with the tokenizer."""
    expected = load(copy).sentences(TEXTS)
    (copy / "0_Transformer").mkdir()
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        (copy / name).rename(copy / "0_Transformer" / name)
    modules = json.loads((copy / "modules.json").read_text())
    modules[0] |= {"path": "0_Transformer", "type": "sentence_transformers.base.modules.transformer.Transformer"}
    (copy / "modules.json").write_text(json.dumps(modules))
    pooling = {"embedding_dimension": 64, "pooling_mode": "mean", "include_prompt": False}
    (copy / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    change(copy / "0_Transformer" / "tokenizer_config.json", model_max_length=20)
    (copy / "0_Transformer" / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    shutil.rmtree(copy / "3_Normalize")  # which git does not keep if it is empty
    assert load(copy).sentence_head == HEAD
    assert np.array_equal(load(copy).sentences(TEXTS), expected)
    pooling["pooling_mode"] = ["lasttoken", "cls"]
    (copy / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    with pytest.raises(ValueError, match="a dense layer reads vectors of 64, but gets 128: its modules"):
        load(copy)


def test_the_width_of_the_folder(as_users_run, copy, tmp_path):
    full = load(copy).sentences(TEXTS)
    change(copy / "config_sentence_transformers.json", truncate_dim=3)
    model = load(copy)
    assert np.array_equal(model.sentences(TEXTS), full[:, :3])
    assert np.array_equal(model.sentences(TEXTS, width=5), full[:, :5])
    model.save_sentences(tmp_path / "again")
    assert load(tmp_path / "again").sentence_head == model.sentence_head
    change(copy / "config_sentence_transformers.json", truncate_dim=99)  # more numbers than there are
    assert np.array_equal(load(copy).sentences(TEXTS), full)


def test_an_activation_by_its_short_name(copy):
    change(copy / "2_Dense/config.json", activation_function="torch.nn.ReLU")
    assert load(copy).sentence_head.layers[0].activation == "relu"


def test_texts_that_are_cut_at_their_start(folder, copy):
    text = " ".join(["[SEP] [PAD]"] * 20)
    head = SentenceHead(("mean",), max_length=8)
    encoders = [load(folder), load(copy)]
    (copy / "tokenizer_config.json").write_text(
        json.dumps(json.loads((copy / "tokenizer_config.json").read_text()) | {"truncation_side": "left"})
    )
    encoders[1] = load(copy)
    assert [encoder.tokenizer.cuts_start for encoder in encoders] == [False, True]
    vectors = []
    for encoder in encoders:
        encoder.sentence_head = head
        vectors.append(encoder.sentences([f"[MASK] {text}", text], overflow="truncate"))
    np.testing.assert_allclose(vectors[1][0], vectors[1][1], rtol=1e-4, atol=1e-5)  # both end alike
    assert np.abs(vectors[0][0] - vectors[0][1]).max() > 1e-3


def test_a_plain_folder_has_a_mean_without_normalisation(goldens):
    assert load(goldens / "bert_tiny").sentence_head == SentenceHead()


def break_modules(copy, number, **fields):
    modules = json.loads((copy / "modules.json").read_text())
    modules[number] |= fields
    (copy / "modules.json").write_text(json.dumps(modules))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda f: change(f / "1_Pooling/config.json", pooling_mode="meen"), "the pooling 'meen' is not known; known"),
        (lambda f: change(f / "1_Pooling/config.json", pooling_mode=3), "pooling_mode is 3; expected"),
        (lambda f: change(f / "1_Pooling/config.json", pooling_mode_attention=True), "pooling_mode_attention is not"),
        (lambda f: change(f / "1_Pooling/config.json", pooling_mode_mean_tokens=False), "turns on no pooling"),
        (lambda f: (f / "1_Pooling/config.json").unlink(), "is missing, which describes the pooling"),
        (lambda f: break_modules(f, 2, type="sentence_transformers.models.LSTM"), "'.*LSTM' is not supported; known"),
        (lambda f: break_modules(f, 2, type="my.Dense"), "module type 'my.Dense' is not supported"),
        (lambda f: break_modules(f, 1, type="sentence_transformers.models.Dense"), "lists Transformer, Dense, Dense"),
        (lambda f: break_modules(f, 1, path="../1_Pooling"), "outside its folder"),
        (lambda f: (f / "modules.json").write_text("{}"), "is not a list of modules"),
        (lambda f: (f / "modules.json").write_text("["), "is not JSON"),
        (lambda f: change(f / "2_Dense/config.json", activation_function="torch.nn.Softmax"), "'torch.nn.Softmax'"),
        (lambda f: change(f / "2_Dense/config.json", use_residual=True), "use_residual is not supported"),
        (lambda f: change(f / "2_Dense/config.json", out_features=9), "has linear.weight of shape .*says .9, 64."),
        (lambda f: change(f / "2_Dense/config.json", in_features=None), "lacks in_features"),
        (lambda f: change(f / "2_Dense/config.json", module_input_name="token_embeddings"), "only 'sentence_embeddi"),
        (lambda f: change(f / "sentence_bert_config.json", max_seq_length=1), "max_seq_length is 1"),
        (
            lambda f: change(f / "sentence_bert_config.json", processing_kwargs={"text": {"max_length": 6}}),
            "processing_kwargs is .*max_length.* not supported",
        ),
        (lambda f: change(f / "config_sentence_transformers.json", truncate_dim=0), "truncate_dim is 0"),
        (
            lambda f: change(f / "config_sentence_transformers.json", prompts=["a"]),
            "expected an object, each value a text",
        ),
        (lambda f: change(f / "config_sentence_transformers.json", default_prompt_name="b"), "default prompt 'b'"),
    ],
)
def test_wrong_folders(as_users_run, copy, harm, message):
    harm(copy)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load(copy)


def test_a_damaged_description(as_users_run, folder, tmp_path):
    convert(str(folder), tmp_path / "run", to_format="run")
    description = json.loads((tmp_path / "run" / "model.json").read_text())
    description["sentences"]["pooling"] = ["meen"]
    (tmp_path / "run" / "model.json").write_text(json.dumps(description))
    with pytest.raises(ValueError, match=r"model[.]json: sentences: pooling 'meen' is not known"):
        load(tmp_path / "run")


@pytest.mark.parametrize("name", ["modernbert_sentiment2", "electra_regression", "distilbert_qa"])
def test_a_pooler_of_a_classifier_is_no_part_of_a_sentence_model(goldens, tmp_path, name):
    released = load(goldens / "released_heads" / name)
    released.save_sentences(tmp_path / "sentences")
    assert "pooler" not in load(tmp_path / "sentences").params["encoder"]
    assert np.array_equal(load(tmp_path / "sentences").sentences(["bread"]), released.sentences(["bread"]))


def test_a_bart_whose_decoder_would_be_pooled_is_refused(folder, goldens, tmp_path):
    """There, a BART's vectors are its decoder's states, and here its encoder's; a run directory keeps these."""
    model = load(goldens / "bart_tiny")
    message = (
        "holds a BART: sentence-transformers pools the states of its decoder, and `sentences` those of its encoder"
    )
    with pytest.raises(ValueError, match=f"{message}.*: write a run directory with `save`"):
        model.save_sentences(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    model.sentence_head = SentenceHead(("cls",))
    save(tmp_path / "run", model)
    with pytest.raises(ValueError, match=f"{message}.*: use --to_format=run"):
        convert(str(tmp_path / "run"), tmp_path / "out")
    convert(str(tmp_path / "run"), tmp_path / "out", to_format="run")
    assert load(tmp_path / "out").sentence_head == SentenceHead(("cls",))
    shutil.copytree(goldens / "bart_tiny", tmp_path / "bart")
    for name in ("modules.json", "1_Pooling"):
        (shutil.copytree if (folder / name).is_dir() else shutil.copy)(folder / name, tmp_path / "bart" / name)
    modules = json.loads((folder / "modules.json").read_text())[:2]
    (tmp_path / "bart" / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ValueError, match=rf"modules.json {message}.*: copy config.json, weights and tokenizer alone"):
        load(tmp_path / "bart")
