"""Examples of `bert_elmo_jax.weights.huggingface_files`."""

from pathlib import Path

from bert_elmo_jax.weights.huggingface_files import read_folder, tokenizer_files


def test_example_of_read_folder():
    source, tensors = read_folder("tests/goldens/bert_tiny")
    assert (Path(source).name, tensors["cls.predictions.bias"].shape) == ("model.safetensors", (200,))


def test_example_of_tokenizer_files():
    assert tokenizer_files(["[PAD]", "강"], {"do_lower_case": False}, 2, 512)["vocab.txt"] == "[PAD]\n강\n"
