"""Detection of formats, and ambiguous folders."""

import json
import shutil

import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.inference.read_model import choose_reader, detect, read_model, read_weights

FORMATS = [  # a frozen model, or names of empty files, and the format
    ("bert_tiny", "huggingface"),
    ("bert_tiny_tf", "google"),
    ("bert_tiny_tf/bert_model.ckpt", "google"),
    ("elmo_tiny", "elmo"),
    ("elmo_tiny/weights.hdf5", "elmo"),
    (["model.safetensors"], "huggingface"),
    (["model.safetensors.index.json"], "huggingface"),
    (["pytorch_model.bin"], "huggingface"),
    (["model.safetensors", "pytorch_model.bin", "tf_model.h5", "flax_model.msgpack", "config.json"], "huggingface"),
    (["tf_model.h5"], "huggingface"),
    (["flax_model.msgpack.index.json"], "huggingface"),
    (["model.safetensors", "vectors.h5", "tf_model.h5"], "huggingface"),
    (["model.safetensors", "options.json", "tf_model.h5"], "huggingface"),  # tf_model.h5 is that model again
    (["a_options.json", "a_weights.hdf5"], "elmo"),
    (["options.json", "WEIGHTS.HDF5", "b.h5"], "elmo"),
]


@pytest.mark.parametrize(("names", "format"), FORMATS)
def test_formats(goldens, tmp_path, names, format):
    if isinstance(names, str):
        assert detect(goldens / names) == detect(str(goldens / names)) == format
    else:
        for name in names:
            (tmp_path / name).touch()
        assert detect(tmp_path) == format


HALF = r" ELMo \(weights, .*An ELMo needs both weights and options, found only "
UNREADABLE = [
    ([], r"Looked for Hugging Face \(model.safetensors, .*\), Google .* Found nothing"),
    (["rust_model.ot", "안녕.txt"], r"Found rust_model.ot, 안녕.txt. rust_model.ot is not supported: convert it"),
    (["uncased_L-12/bert_model.ckpt.index"], r"Subfolders with weights: uncased_L-12; give that path"),
    (["original/options.json", "original/weights.hdf5"], r"Subfolders with weights: original; give that path"),
    (["options.json"], rf"{HALF}options.json: add"),
    (["weights.hdf5"], rf"{HALF}weights.hdf5: add"),
    (["벡터.h5"], rf"{HALF}벡터.h5: add"),
]


@pytest.mark.parametrize(("names", "message"), UNREADABLE)
def test_folders_without_a_model(tmp_path, names, message):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(FileNotFoundError, match=message):
        detect(tmp_path)


def test_paths_that_are_no_folder(goldens, tmp_path):
    with pytest.raises(ValueError, match=r"model.safetensors is a file: give its folder"):
        detect(goldens / "bert_tiny" / "model.safetensors")
    with pytest.raises(FileNotFoundError, match="neither a folder nor the prefix"):
        detect(tmp_path / "absent")


def test_two_models_in_one_folder(tmp_path, goldens):
    for name in ("bert_tiny", "bert_tiny_tf"):
        shutil.copytree(goldens / name, tmp_path / "both", dirs_exist_ok=True)
    message = r"\(model.safetensors\) and Google \(bert_model.ckpt.index\).*format=.huggingface. or format=.google."
    with pytest.raises(ValueError, match=message):
        read_weights(tmp_path / "both")
    for format in ("huggingface", "google"):
        params, _, _ = read_weights(tmp_path / "both", format=format)
        assert params["encoder"]["embeddings"]["word"].shape == (200, 64)
    with pytest.raises(ValueError, match=r"format='tf' was given"):
        read_weights(tmp_path / "both", format="tf")


def test_a_checkpoint_of_version_1_is_named_as_such(goldens):
    path = goldens / "tensor_bundle" / "version1.ckpt"
    assert detect(path) == "google"
    with pytest.raises(ValueError, match="a TensorFlow checkpoint of version 1"):
        read_weights(path, config=BertConfig())


def test_an_elmo_beside_other_models(tmp_path, goldens):
    for name in ("bert_tiny", "elmo_tiny"):
        shutil.copytree(goldens / name, tmp_path / "both", dirs_exist_ok=True)
    message = (
        r"holds weights in 2 formats: Hugging Face \(model.safetensors\) and ELMo \(options.json, weights.hdf5\). "
        r'Choose one \(format="huggingface" or format="elmo"\), or move the others away'
    )
    with pytest.raises(ValueError, match=message):
        read_weights(tmp_path / "both")
    assert read_weights(tmp_path / "both", format="elmo")[1].width == 12
    shutil.copytree(goldens / "bert_tiny_tf", tmp_path / "both", dirs_exist_ok=True)
    with pytest.raises(ValueError, match=r"holds weights in 3 formats: .*Google \(bert_model.ckpt.index\) and ELMo"):
        read_weights(tmp_path / "both")


def with_model_type(goldens, folder, model_type):
    shutil.copytree(goldens / "distilbert_tiny", folder)
    fields = json.loads((folder / "config.json").read_text())
    del fields["model_type"]
    fields |= {} if model_type is None else {"model_type": model_type}
    (folder / "config.json").write_text(json.dumps(fields))
    return folder


def test_model_type_chooses_the_family(goldens, tmp_path):
    for name in ("bert", "distilbert", "roberta"):
        assert choose_reader(goldens / f"{name}_tiny", "huggingface")[0].name == name
    _, config, _ = read_weights(goldens / "distilbert_tiny")
    assert type(config).__name__ == "DistilBertConfig"
    # Without a model_type it is read as a BERT, as Google's files are.
    assert choose_reader(with_model_type(goldens, tmp_path / "none", None), "huggingface")[0].name == "bert"
    # A configuration says it as well.
    assert choose_reader(tmp_path / "none", "huggingface", config)[0].name == "distilbert"
    with pytest.raises(ValueError, match=r"config= is BertConfig, but the weights in .* need ElmoConfig"):
        read_weights(goldens / "elmo_tiny", config=BertConfig())
    supported = r"which is not supported; .* bert, .*distilbert, .*; did you mean distilbert"
    with pytest.raises(ValueError, match=rf"typo.*model_type 'distillbert', {supported}"):
        read_model(with_model_type(goldens, tmp_path / "typo", "distillbert"))
    with pytest.raises(ValueError, match=r"model_type is 5; it must be a name"):
        read_model(with_model_type(goldens, tmp_path / "number", 5))
