"""Examples of `bert_elmo_jax.text.wordpiece_files`."""

from pathlib import Path

from bert_elmo_jax.text.wordpiece_files import WordPieceOptions, guess_options, read_options


def test_example_of_wordpieceoptions():
    assert WordPieceOptions(lowercase=True, compose=True).normalizer().normalize_str("Café 배") == "café 배"
    assert (len("배"), len(WordPieceOptions(lowercase=True, strip_accents=True).normalizer().normalize_str("배"))) == (
        1,
        2,
    )


def test_example_of_guess_options():
    assert (guess_options(["play", "##ed"]).lowercase, guess_options(["Play", "play"]).lowercase) == (True, False)
    assert (guess_options(["play", "배"]).strip_accents, guess_options(["배", "##를"]).lowercase) == (False, False)


def test_example_of_read_options():
    assert read_options(Path("no/such/folder"), ["[PAD]", "play", "##ing", "cafe"]).strip_accents
