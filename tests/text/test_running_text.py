"""Examples of `bert_elmo_jax.text.words`."""

from bert_elmo_jax.text.words import split_line, split_texts


def test_example_of_split_line():
    assert (split_line("좋은 영화.", "punctuation"), split_line("좋은 영화.", "whitespace")) == (
        ["좋은", "영화", "."],
        ["좋은", "영화."],
    )


def test_example_of_split_texts():
    assert list(split_texts("punctuation", lambda: [(1, "좋은 영화.")])) == [(1, ["좋은", "영화", "."])]
