"""Detection of formats, and ambiguous folders."""

import json
import shutil

import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.inference.read_model import choose_reader, detect, read_model, read_weights


def test_hugging_face_and_google(goldens):
    assert detect(goldens / "bert_tiny") == "huggingface"
    assert detect(str(goldens / "bert_tiny_tf")) == "google"
    assert detect(goldens / "bert_tiny_tf" / "bert_model.ckpt") == "google"


@pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"])
def test_each_hugging_face_file_is_enough(tmp_path, name):
    (tmp_path / name).touch()
    assert detect(tmp_path) == "huggingface"


def test_what_hugging_face_ships_side_by_side(tmp_path):
    for name in ("model.safetensors", "pytorch_model.bin", "tf_model.h5", "flax_model.msgpack", "config.json"):
        (tmp_path / name).touch()
    assert detect(tmp_path) == "huggingface"


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
        read_weights.__wrapped__(tmp_path / "both", format="tf")


def test_nothing_that_can_be_read(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"Looked for Hugging Face \(model.safetensors, .*\), Google .* Found nothing"
    ):
        detect(tmp_path)
    (tmp_path / "tf_model.h5").touch()
    (tmp_path / "안녕.txt").touch()
    with pytest.raises(
        FileNotFoundError, match=r"Found tf_model.h5, 안녕.txt. tf_model.h5 is not supported: convert it"
    ):
        detect(tmp_path)


def test_weights_one_folder_down_are_pointed_at(tmp_path):
    (tmp_path / "uncased_L-12").mkdir()
    (tmp_path / "uncased_L-12" / "bert_model.ckpt.index").touch()
    with pytest.raises(FileNotFoundError, match=r"Subfolders with weights: uncased_L-12; give that path"):
        detect(tmp_path)


def test_a_checkpoint_of_version_1_is_named_as_such(goldens):
    path = goldens / "tensor_bundle" / "version1.ckpt"
    assert detect(path) == "google"
    with pytest.raises(ValueError, match="a TensorFlow checkpoint of version 1"):
        read_weights(path, config=BertConfig())


def test_a_file_where_a_folder_is_wanted(goldens):
    with pytest.raises(ValueError, match=r"model.safetensors is a file: give its folder"):
        detect(goldens / "bert_tiny" / "model.safetensors")


def test_no_folder_at_all(tmp_path):
    with pytest.raises(FileNotFoundError, match="neither a folder nor the prefix"):
        detect(tmp_path / "absent")


def test_an_elmo_in_a_folder_and_by_its_weights(goldens):
    assert detect(goldens / "elmo_tiny") == "elmo"
    assert detect(goldens / "elmo_tiny" / "weights.hdf5") == "elmo"


@pytest.mark.parametrize("names", [("a_options.json", "a_weights.hdf5"), ("options.json", "WEIGHTS.HDF5", "b.h5")])
def test_an_elmo_by_the_names_of_its_files(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    assert detect(tmp_path) == "elmo"


@pytest.mark.parametrize("name", ["options.json", "weights.hdf5", "벡터.h5"])
def test_half_an_elmo(tmp_path, name):
    (tmp_path / name).touch()
    message = rf" ELMo \(weights, .*An ELMo needs both weights and options, found only {name}: add"
    with pytest.raises(FileNotFoundError, match=message):
        detect(tmp_path)


def test_vectors_and_options_beside_a_bert_are_no_elmo(tmp_path):
    for name in ("model.safetensors", "vectors.h5", "tf_model.h5"):
        (tmp_path / name).touch()
    assert detect(tmp_path) == "huggingface"
    (tmp_path / "vectors.h5").unlink()
    (tmp_path / "options.json").touch()
    assert detect(tmp_path) == "huggingface"  # tf_model.h5 is that model again


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


def test_an_elmo_one_folder_down(tmp_path, goldens):
    shutil.copytree(goldens / "elmo_tiny", tmp_path / "original")
    with pytest.raises(FileNotFoundError, match=r"Subfolders with weights: original; give that path"):
        detect(tmp_path)


def with_model_type(goldens, folder, model_type):
    shutil.copytree(goldens / "distilbert_tiny", folder)
    fields = json.loads((folder / "config.json").read_text())
    del fields["model_type"]
    fields |= {} if model_type is None else {"model_type": model_type}
    (folder / "config.json").write_text(json.dumps(fields))
    return folder


def test_model_type_chooses_the_family(goldens, tmp_path):
    assert choose_reader(goldens / "bert_tiny", "huggingface")[0].name == "bert"
    assert choose_reader(goldens / "distilbert_tiny", "huggingface")[0].name == "distilbert"
    assert choose_reader(goldens / "roberta_tiny", "huggingface")[0].name == "roberta"
    _, config, _ = read_weights(goldens / "distilbert_tiny")
    assert type(config).__name__ == "DistilBertConfig"
    # Without a model_type it is read as a BERT, as Google's files are.
    assert choose_reader(with_model_type(goldens, tmp_path / "none", None), "huggingface")[0].name == "bert"
    # A configuration says it as well.
    assert choose_reader(tmp_path / "none", "huggingface", config)[0].name == "distilbert"
    with pytest.raises(ValueError, match=r"config= is BertConfig, but the weights in .* need ElmoConfig"):
        read_weights(goldens / "elmo_tiny", config=BertConfig())


def test_an_unknown_model_type(goldens, tmp_path):
    folder = with_model_type(goldens, tmp_path / "typo", "distillbert")
    message = (
        r"typo.*model_type 'distillbert', which is not supported; .* bert, .*distilbert, .*; did you mean distilbert"
    )
    with pytest.raises(ValueError, match=message):
        read_model(folder)
    with pytest.raises(ValueError, match=r"model_type is 5; it must be a name"):
        read_model(with_model_type(goldens, tmp_path / "number", 5))
