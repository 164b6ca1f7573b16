"""Examples of `bert_elmo_jax.weights.huggingface_files`."""

from bert_elmo_jax.weights.huggingface_files import tokenizer_files


def test_example_of_tokenizer_files():
    assert tokenizer_files(["[PAD]", "강"], {"do_lower_case": False}, 2, 512)["vocab.txt"] == "[PAD]\n강\n"
