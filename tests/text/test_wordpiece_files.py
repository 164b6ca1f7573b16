"""Tests of reading WordPiece vocabularies and options from files."""

import json
import re
from pathlib import Path

import pytest

from bert_elmo_jax.text import WordPiece, load_tokenizer, load_wordpiece
from bert_elmo_jax.text.tokenizer_folder import find_vocabulary
from bert_elmo_jax.text.tokenizer_specs import compile_spec
from bert_elmo_jax.text.wordpiece_files import (
    WordPieceOptions,
    check_added,
    check_vocabulary,
    guess_options,
    read_options,
    read_vocabulary,
)

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write(folder, pieces, config=None, whole=None):
    folder.mkdir(exist_ok=True)
    if pieces is not None:
        (folder / "vocab.txt").write_bytes(("\n".join(pieces) + "\n").encode())
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if whole is not None:
        (folder / "tokenizer.json").write_text(json.dumps(whole))
    return folder


def whole_file(pieces, added=(), **normalizer):
    return {
        "added_tokens": [{"id": number, "content": piece, "special": True} for number, piece in added],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True} | normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {piece: number for number, piece in enumerate(pieces)},
        },
    }


def test_missing_and_repeated_pieces_are_all_listed(tmp_path):
    write(tmp_path, ["[PAD]", "[UNK]", "a", "b", "a", "[MASK]", "b", "a"])
    with pytest.raises(ValueError) as error:
        load_tokenizer(tmp_path)
    message = str(error.value)
    assert "vocab.txt" in message
    assert "lacks [CLS], [SEP];" in message
    assert "'a' is on lines 3, 5 and 8" in message
    assert "'b' is on lines 4 and 7" in message


def test_empty_vocabulary_lacks_all_special_pieces(tmp_path):
    (tmp_path / "vocab.txt").touch()
    with pytest.raises(ValueError, match=r"\(0 pieces\): it lacks \[PAD\], \[UNK\], \[CLS\], \[SEP\], \[MASK\]"):
        load_tokenizer(tmp_path)


def test_only_newlines_separate_pieces(tmp_path):
    pieces = [*SPECIALS, "\u2028", "\u00a0", "\x85", " ", "a\u3000b", "\x0c", "배", "##를"]
    (tmp_path / "vocab.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(pieces).encode() + b"\r\n\r\n\n")
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.tokens == tuple(pieces)
    tokenizer.save(tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").tokens == tuple(pieces)
    assert load_tokenizer(tmp_path / "again").fingerprint == tokenizer.fingerprint


def test_invalid_utf8_names_the_line(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"\xef\xbb\xbf[PAD]\n[UNK]\nca\xfe\n")
    with pytest.raises(ValueError, match=r"vocab.txt: line 3 is not UTF-8"):
        load_tokenizer(tmp_path)


def test_pieces_with_line_breaks_raise():
    with pytest.raises(ValueError, match=r"'a\\nb' on line 6 holds a line break"):
        WordPiece([*SPECIALS, "a\nb"])


@pytest.mark.parametrize(
    ("pieces", "lowercase", "strip"),
    [
        (["play", "##ing", "[unused1]", "[QUESTION]"], True, True),
        (["Play", "play"], False, False),
        (["play", "##ing", "\u1107", "##\u1162"], True, True),  # uncased multilingual: decomposed Hangul
        (["play", "배", "##를"], True, False),  # lower-cased with composed Hangul, which stripping would split
        (["배", "##를", "!", "漢"], False, False),  # caseless
        (["élan", "play"], True, False),
        (["Ж", "ж"], False, False),
        ([], False, False),
    ],
)
def test_options_are_guessed_from_the_pieces(tmp_path, pieces, lowercase, strip):
    assert guess_options(SPECIALS + pieces) == WordPieceOptions(lowercase=lowercase, strip_accents=strip)
    assert load_wordpiece(write(tmp_path, SPECIALS + pieces)).options.lowercase == lowercase


@pytest.mark.parametrize(
    ("config", "whole", "expected"),
    [
        ({"do_lower_case": False}, None, WordPieceOptions()),
        ({"do_lower_case": True}, None, WordPieceOptions(lowercase=True, strip_accents=True)),
        ({"do_lower_case": True, "strip_accents": False}, None, WordPieceOptions(lowercase=True)),
        ({"do_lower_case": False, "strip_accents": True}, None, WordPieceOptions(strip_accents=True)),
        ({"do_lower_case": False, "tokenize_chinese_chars": False}, None, WordPieceOptions(split_chinese=False)),
        ({"do_lower_case": True, "strip_accents": None}, {}, WordPieceOptions(lowercase=True, strip_accents=True)),
        (None, {"lowercase": False, "strip_accents": None}, WordPieceOptions()),
        (None, {"lowercase": True, "strip_accents": False}, WordPieceOptions(lowercase=True)),
        ({"do_lower_case": False}, {"lowercase": True}, WordPieceOptions()),
        ({"model_max_length": 512}, None, WordPieceOptions(lowercase=True, strip_accents=True)),
    ],
)
def test_options_are_read_from_configurations(tmp_path, config, whole, expected):
    pieces = [*SPECIALS, "play", "##ing"]
    write(tmp_path, pieces, config, None if whole is None else whole_file(pieces, **whole))
    assert load_wordpiece(tmp_path).options == expected


def test_lowercase_overrides(tmp_path):
    pieces = [*SPECIALS, "play", "##ing"]
    assert load_tokenizer(write(tmp_path / "a", pieces), lowercase=False).options == WordPieceOptions()
    both = WordPieceOptions(lowercase=True, strip_accents=True)
    assert load_tokenizer(write(tmp_path / "b", pieces, {"do_lower_case": False}), lowercase=True).options == both
    korean = write(tmp_path / "c", [*SPECIALS, "배", "Play"])
    assert load_tokenizer(korean, lowercase=True).options == WordPieceOptions(lowercase=True)
    assert load_tokenizer(korean, lowercase=True).encode("배", specials=False).tokens == ("배",)


def test_lowercase_override_survives_saving(tmp_path):
    tokenizer = load_tokenizer(write(tmp_path / "a", [*SPECIALS, "play"]), lowercase=False)
    tokenizer.save(tmp_path / "b")
    assert load_tokenizer(tmp_path / "b").fingerprint == tokenizer.fingerprint


def test_splitting_of_chinese_characters_is_optional(tmp_path):
    pieces = [*SPECIALS, "漢", "字", "漢字"]
    assert load_wordpiece(write(tmp_path / "a", pieces)).encode("漢字", specials=False).tokens == ("漢", "字")
    whole = load_wordpiece(write(tmp_path / "b", pieces, {"tokenize_chinese_chars": False}))
    assert whole.encode("漢字", specials=False).tokens == ("漢字",)


def test_tokenizer_json_is_enough(tmp_path):
    pieces = [*SPECIALS, "play", "##ing"]
    folder = write(tmp_path, None, whole=whole_file(pieces, added=list(enumerate(SPECIALS)), lowercase=True))
    tokenizer = load_tokenizer(folder)
    assert tokenizer.tokens == tuple(pieces)
    assert tokenizer.encode("Playing").tokens == ("[CLS]", "play", "##ing", "[SEP]")


def test_longest_word_survives_saving(tmp_path):
    pieces = [*SPECIALS, "a", "##a"]
    whole = whole_file(pieces, lowercase=False)
    whole["model"]["max_input_chars_per_word"] = 5
    tokenizer = load_tokenizer(write(tmp_path / "a", None, whole=whole))
    assert tokenizer.encode("aaaaaa", specials=False).tokens == ("[UNK]",)
    tokenizer.save(tmp_path / "b")
    assert load_tokenizer(tmp_path / "b").options == tokenizer.options


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda whole: whole["model"].update(type="BPE"), "model type is 'BPE'"),
        (lambda whole: whole["normalizer"].update(type="Sequence"), "normalizer is 'Sequence'"),
        (lambda whole: whole["normalizer"].update(type="Fold"), "normalizer is 'Fold'"),
        (lambda whole: whole["pre_tokenizer"].update(type="Metaspace"), "pre_tokenizer is 'Metaspace'"),
        (lambda whole: whole["model"].update(vocab=[["a", 0.5]]), "holds no WordPiece vocabulary"),
        (lambda whole: whole["model"]["vocab"].update(gap=99), "ids of its 7 pieces are not 0 to 6"),
        (lambda whole: whole["added_tokens"].append({"id": 6, "content": "<e>"}), r"'<e>' \(6\)"),
    ],
)
def test_unsupported_tokenizer_json_raises(tmp_path, spoil, message):
    whole = whole_file([*SPECIALS, "play"])
    spoil(whole)
    with pytest.raises(ValueError, match=message):
        load_tokenizer(write(tmp_path, None, whole=whole))


@pytest.mark.parametrize(
    "own", [3, [], "x", {"longest_word": {}}, {"longest_word": 0}, {"longest_word": 10**11}], ids=str
)
def test_own_entries_of_another_kind_raise(tmp_path, own):
    message = "not an object" if not isinstance(own, dict) else "longest word of its tokenizer has"
    with pytest.raises(ValueError, match=message):
        load_tokenizer(write(tmp_path, [*SPECIALS, "play"], {"bert_elmo_jax": own}))


def test_added_pieces_raise(tmp_path):
    pieces = [*SPECIALS, "play"]
    config = {"added_tokens_decoder": {"1": {"content": "[UNK]"}, "6": {"content": "<e1>"}}}
    with pytest.raises(ValueError, match=r"adds pieces .* '<e1>' \(6\)"):
        load_tokenizer(write(tmp_path / "a", pieces, config))
    write(tmp_path / "b", pieces)
    (tmp_path / "b" / "added_tokens.json").write_text('{"<e2>": 6}')
    with pytest.raises(ValueError, match=r"'<e2>' \(6\)"):
        load_tokenizer(tmp_path / "b")


def test_other_word_splitting_raises(tmp_path):
    for config in ({"word_tokenizer_type": "mecab"}, {"do_basic_tokenize": False}):
        with pytest.raises(ValueError, match=f"{next(iter(config))} is .*use encode_words"):
            load_tokenizer(write(tmp_path, [*SPECIALS, "play"], config))


def test_rules_of_options():
    def normalize(text, **options):
        return compile_spec(WordPieceOptions(**options).spec(SPECIALS), "the rules").normalizer.normalize_str(text)

    assert normalize("Café 배", lowercase=True, compose=True) == "café 배"
    assert (len("배"), len(normalize("배", lowercase=True, strip_accents=True))) == (1, 2)


def test_example_of_guess_options():
    assert (guess_options(["play", "##ed"]).lowercase, guess_options(["Play", "play"]).lowercase) == (True, False)
    assert (guess_options(["play", "배"]).strip_accents, guess_options(["배", "##를"]).lowercase) == (False, False)


def test_example_of_read_options():
    assert read_options(Path("no/such/folder"), ["[PAD]", "play", "##ing", "cafe"]).strip_accents


def test_example_of_find_vocabulary():
    assert find_vocabulary(Path("no/such/folder")) is None


def test_example_of_check_vocabulary():
    with pytest.raises(
        ValueError,
        match=re.escape("vocab.txt cannot be used as a vocabulary (5 pieces): it lacks [CLS], [SEP], [MASK]"),
    ):
        check_vocabulary(["[PAD]", "[UNK]", "a", "b", "a"], "vocab.txt")


def test_example_of_check_added():
    check_added(Path("no/such/folder"), ["[PAD]"])


def test_only_line_feeds_end_a_piece(tmp_path):
    # Released vocabularies hold pieces such as U+2028, where `str.splitlines` would split.
    path = tmp_path / "vocab.txt"
    path.write_bytes("[PAD]\r\n\u2028\r\n배\r\n\r\n".encode())
    assert read_vocabulary(path) == ["[PAD]", "\u2028", "배"]


@pytest.mark.parametrize(
    ("pieces", "said"), [(["Play", "play"], "cased"), (["배", "##를"], "cased"), (["play", "배"], "accented")]
)
def test_a_folder_that_does_not_say_its_case_is_lowercased_as_in_transformers(tmp_path, caplog, pieces, said):
    folder = write(tmp_path, [*SPECIALS, *pieces])
    (folder / "config.json").write_text('{"model_type": "bert"}')
    both = WordPieceOptions(lowercase=True, strip_accents=True)
    assert load_tokenizer(folder).options == both
    [line] = caplog.messages
    assert re.search(rf"does not say its case: .* although its pieces look {said}\. Write do_lower_case", line)
    caplog.clear()
    # One that says it is followed, silently, and so are pieces that agree and folders without config.json.
    assert load_tokenizer(folder, lowercase=False).options == WordPieceOptions()
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert load_tokenizer(folder).options == WordPieceOptions()
    agreeing = write(tmp_path / "b", [*SPECIALS, "play", "##ing"])
    (agreeing / "config.json").write_text("{}")
    assert load_tokenizer(agreeing).options == both
    assert not caplog.messages


def test_a_network_with_one_type_reads_pairs_without_types(tmp_path):
    folder = write(tmp_path / "a", [*SPECIALS, "Play", "play"], {"do_lower_case": False})
    (folder / "config.json").write_text('{"type_vocab_size": 1}')
    tokenizer = load_tokenizer(folder)
    encoding = tokenizer.encode("play", "Play")
    assert encoding.ids.tolist() == [2, 6, 3, 5, 3]
    assert (encoding.types.tolist(), encoding.texts.tolist()) == ([0] * 5, [0, 0, 0, 1, 1])
    tokenizer.save(tmp_path / "b")
    assert load_tokenizer(tmp_path / "b").frame == tokenizer.frame
