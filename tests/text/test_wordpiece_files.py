"""Tests of reading WordPiece vocabularies and options from files."""

import json
import re

import pytest

from bert_elmo_jax.text import Frame, TokenizerFile, WordPiece, load_tokenizer, load_wordpiece
from bert_elmo_jax.text.tokenizer_specs import compile_spec, make_template
from bert_elmo_jax.text.wordpiece_files import WordPieceOptions, guess_options, read_vocabulary

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write(folder, pieces, config=None, spec=None):
    folder.mkdir(exist_ok=True)
    if pieces is not None:
        (folder / "vocab.txt").write_bytes(("\n".join(pieces) + "\n").encode())
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if spec is not None:
        (folder / "tokenizer.json").write_text(json.dumps(spec))
    return folder


def whole_file(pieces, added=(), **normalizer):
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    return {
        "added_tokens": [{"id": number, "content": piece, "special": True} for number, piece in added],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True} | normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": model
        | {"max_input_chars_per_word": 100, "vocab": {piece: number for number, piece in enumerate(pieces)}},
    }


def test_missing_and_repeated_pieces_are_all_listed(tmp_path):
    write(tmp_path, ["[PAD]", "[UNK]", "a", "b", "a", "[MASK]", "b", "a"])
    with pytest.raises(ValueError, match=re.escape("lacks [CLS], [SEP];")) as error:
        load_tokenizer(tmp_path)
    for part in ("vocab.txt", "'a' is on lines 3, 5 and 8", "'b' is on lines 4 and 7"):
        assert part in str(error.value)
    for content, message in (
        (b"", "vocab.txt cannot be used as a vocabulary (0 pieces): it lacks [PAD], [UNK], [CLS], [SEP], [MASK]"),
        (b"\xef\xbb\xbf[PAD]\n[UNK]\nca\xfe\n", "vocab.txt: line 3 is not UTF-8"),
    ):
        (tmp_path / "vocab.txt").write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(message)):
            load_tokenizer(tmp_path)
    with pytest.raises(ValueError, match=r"'a\\nb' on line 6 holds a line break"):
        WordPiece([*SPECIALS, "a\nb"])


def test_only_newlines_separate_pieces(tmp_path):
    """Released vocabularies hold pieces such as U+2028, where `str.splitlines` would split."""
    pieces = [*SPECIALS, "\u2028", "\u00a0", "\x85", " ", "a\u3000b", "\x0c", "배", "##를"]
    (tmp_path / "vocab.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(pieces).encode() + b"\r\n\r\n\n")
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.tokens == tuple(pieces) == tuple(read_vocabulary(tmp_path / "vocab.txt"))
    tokenizer.save(tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").tokens == tuple(pieces)
    assert load_tokenizer(tmp_path / "again").fingerprint == tokenizer.fingerprint


GUESSED = [  # pieces, and whether they are lower-cased and stripped of accents
    (["play", "##ing", "[unused1]", "[QUESTION]"], True, True),
    (["Play", "play"], False, False),
    (["play", "##ing", "\u1107", "##\u1162"], True, True),  # uncased multilingual: decomposed Hangul
    (["play", "배", "##를"], True, False),  # lower-cased with composed Hangul, which stripping would split
    (["배", "##를", "!", "漢"], False, False),  # caseless
    (["élan", "play"], True, False),
    (["Ж", "ж"], False, False),
    ([], False, False),
]
BOTH = WordPieceOptions(lowercase=True, strip_accents=True)
CONFIGURED = [  # configuration, normaliser of the whole file, and the options
    ({"do_lower_case": False}, None, WordPieceOptions()),
    ({"do_lower_case": True}, None, BOTH),
    ({"do_lower_case": True, "strip_accents": False}, None, WordPieceOptions(lowercase=True)),
    ({"do_lower_case": False, "strip_accents": True}, None, WordPieceOptions(strip_accents=True)),
    ({"do_lower_case": False, "tokenize_chinese_chars": False}, None, WordPieceOptions(split_chinese=False)),
    ({"do_lower_case": True, "strip_accents": None}, {}, BOTH),
    (None, {"lowercase": False, "strip_accents": None}, WordPieceOptions()),
    (None, {"lowercase": True, "strip_accents": False}, WordPieceOptions(lowercase=True)),
    ({"do_lower_case": False}, {"lowercase": True}, WordPieceOptions()),
    ({"model_max_length": 512}, None, BOTH),
]


def test_options_are_guessed_from_the_pieces_or_read_from_configurations(tmp_path):
    for pieces, lowercase, strip in GUESSED:
        assert guess_options(SPECIALS + pieces) == WordPieceOptions(lowercase=lowercase, strip_accents=strip)
        assert load_wordpiece(write(tmp_path / "guessed", SPECIALS + pieces)).options.lowercase == lowercase
    pieces = [*SPECIALS, "play", "##ing"]
    for number, (config, normalizer, expected) in enumerate(CONFIGURED):
        content = None if normalizer is None else whole_file(pieces, **normalizer)
        assert load_wordpiece(write(tmp_path / str(number), pieces, config, content)).options == expected


def test_lowercase_overrides(tmp_path):
    pieces = [*SPECIALS, "play", "##ing"]
    tokenizer = load_tokenizer(write(tmp_path / "a", pieces), lowercase=False)
    assert tokenizer.options == WordPieceOptions()
    tokenizer.save(tmp_path / "saved")
    assert load_tokenizer(tmp_path / "saved").fingerprint == tokenizer.fingerprint
    assert load_tokenizer(write(tmp_path / "b", pieces, {"do_lower_case": False}), lowercase=True).options == BOTH
    korean = write(tmp_path / "c", [*SPECIALS, "배", "Play"])
    assert load_tokenizer(korean, lowercase=True).options == WordPieceOptions(lowercase=True)
    assert load_tokenizer(korean, lowercase=True).encode("배", specials=False).tokens == ("배",)


def test_splitting_of_chinese_characters_is_optional(tmp_path):
    pieces = [*SPECIALS, "漢", "字", "漢字"]
    for name, config, tokens in (("a", None, ("漢", "字")), ("b", {"tokenize_chinese_chars": False}, ("漢字",))):
        assert load_wordpiece(write(tmp_path / name, pieces, config)).encode("漢字", specials=False).tokens == tokens


def test_tokenizer_json_is_enough_and_its_longest_word_survives_saving(tmp_path):
    pieces = [*SPECIALS, "play", "##ing", "a", "##a"]
    content = whole_file(pieces, added=list(enumerate(SPECIALS)), lowercase=True)
    content["model"]["max_input_chars_per_word"] = 7
    tokenizer = load_tokenizer(write(tmp_path / "a", None, spec=content))
    assert tokenizer.tokens == tuple(pieces)
    assert tokenizer.encode("Playing").tokens == ("[CLS]", "play", "##ing", "[SEP]")
    assert tokenizer.encode("a" * 8, specials=False).tokens == ("[UNK]",)
    tokenizer.save(tmp_path / "b")
    assert load_tokenizer(tmp_path / "b").options == tokenizer.options


UNSUPPORTED = [  # a change of the file, and the message
    (lambda content: content["model"].update(type="BPE"), "model type is 'BPE'"),
    (lambda content: content["normalizer"].update(type="Sequence"), "normalizer is 'Sequence'"),
    (lambda content: content["normalizer"].update(type="Fold"), "normalizer is 'Fold'"),
    (lambda content: content["pre_tokenizer"].update(type="Metaspace"), "pre_tokenizer is 'Metaspace'"),
    (lambda content: content["model"].update(vocab=[["a", 0.5]]), "holds no WordPiece vocabulary"),
    (lambda content: content["model"]["vocab"].update(gap=99), "ids of its 7 pieces are not 0 to 6"),
    (lambda content: content["added_tokens"].append({"id": 7, "content": "<e>"}), r"do not follow .*'<e>' \(7\)"),
    (lambda content: content["added_tokens"].append({"id": 6, "content": "play"}), r"do not follow .*'play' \(6\)"),
]
ADDED = {"added_tokens_decoder": {"1": {"content": "[UNK]"}, "7": {"content": "<e1>"}}}
WRONG_CONFIGS = [
    *(({"bert_elmo_jax": value}, "not an object") for value in (3, [], "x")),
    *(({"bert_elmo_jax": {"longest_word": n}}, "longest word of its tokenizer has") for n in ({}, 0, 10**11)),
    (ADDED, r"adds pieces .* '<e1>' \(7\)"),
    ({"word_tokenizer_type": "mecab"}, "word_tokenizer_type is .*use encode_words"),
    ({"do_basic_tokenize": False}, "do_basic_tokenize is .*use encode_words"),
]


def test_unsupported_files_raise(tmp_path):
    pieces = [*SPECIALS, "play"]
    for spoil, message in UNSUPPORTED:
        content = whole_file(pieces)
        spoil(content)
        with pytest.raises(ValueError, match=message):
            load_tokenizer(write(tmp_path / "whole", None, spec=content))
    for config, message in WRONG_CONFIGS:
        with pytest.raises(ValueError, match=message):
            load_tokenizer(write(tmp_path / "config", pieces, config))
    write(tmp_path / "added", pieces)
    (tmp_path / "added" / "added_tokens.json").write_text('{"<e2>": 4}')
    with pytest.raises(ValueError, match=r"'<e2>' \(4\)"):
        load_tokenizer(tmp_path / "added")


def test_rules_of_options():
    def normalize(text, **options):
        return compile_spec(WordPieceOptions(**options).spec(SPECIALS), "the rules").normalizer.normalize_str(text)

    assert normalize("Café 배", lowercase=True, compose=True) == "café 배"
    assert (len("배"), len(normalize("배", lowercase=True, strip_accents=True))) == (1, 2)


def test_a_folder_that_does_not_say_its_case_is_lowercased_as_in_transformers(tmp_path, caplog):
    for number, (pieces, kind) in enumerate(
        ((["Play", "play"], "cased"), (["배", "##를"], "cased"), (["play", "배"], "accented"))
    ):
        folder = write(tmp_path / str(number), [*SPECIALS, *pieces])
        (folder / "config.json").write_text('{"model_type": "bert"}')
        assert load_tokenizer(folder).options == BOTH
        [line] = caplog.messages
        assert re.search(rf"does not say its case: .* although its pieces look {kind}\. Write do_lower_case", line)
        caplog.clear()
        # One that says it is followed, silently, and so are pieces that agree and folders without config.json.
        assert load_tokenizer(folder, lowercase=False).options == WordPieceOptions()
        (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
        assert load_tokenizer(folder).options == WordPieceOptions()
    agreeing = write(tmp_path / "agreeing", [*SPECIALS, "play", "##ing"])
    (agreeing / "config.json").write_text("{}")
    assert load_tokenizer(agreeing).options == BOTH
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


def test_pieces_of_the_vocabulary_that_a_folder_adds_are_not_split(tmp_path):
    pieces = [*SPECIALS, "<ent>", "<", ">", "ent", "a"]
    stored = {"content": "<ent>", "special": False, "normalized": True}
    folders = {
        "list": write(tmp_path / "list", pieces, {"additional_special_tokens": ["<ent>", "<other>"]}),
        "object": write(tmp_path / "object", pieces, {"extra_special_tokens": {"entity_token": "<ent>"}}),
        "decoder": write(tmp_path / "decoder", pieces, {"added_tokens_decoder": {"5": stored}}),
        "file": write(tmp_path / "file", None, spec=whole_file(pieces, added=[(5, "<ent>")], lowercase=True)),
    }
    for name, folder in folders.items():
        tokenizer = load_tokenizer(folder)
        assert tokenizer.encode("a<ent> a").ids.tolist() == [2, 9, 5, 9, 3], name
        tokenizer.save(tmp_path / f"{name} saved")
        again = load_tokenizer(tmp_path / f"{name} saved")
        assert again.fingerprint == tokenizer.fingerprint and again.added == tokenizer.added, name
    plain = load_tokenizer(write(tmp_path / "plain", pieces, {"additional_special_tokens": ["[CLS]"]}))
    assert plain.fingerprint == WordPiece(pieces, plain.options).fingerprint
    assert plain.encode("<ent>", specials=False).ids.tolist() == [6, 8, 7]


def test_pieces_behind_the_vocabulary(tmp_path):
    """As `add_tokens` of transformers leaves them; the ids are those of transformers 5.24."""
    pieces = [*SPECIALS, "<", ">", "ent", "a", "서울", "##역"]
    stored = {"content": "서울역", "normalized": True, "special": False}
    whole = whole_file(pieces, lowercase=False)
    whole["added_tokens"] += [{"id": 11, "content": "<ent>", "special": True}, {"id": 12} | stored]
    folders = {
        "file": write(tmp_path / "file", None, spec=whole),
        "decoder": write(
            tmp_path / "decoder", pieces,
            {"added_tokens_decoder": {"12": stored, "11": {"content": "<ent>", "special": True}}},
        ),
        "names": write(tmp_path / "names", pieces, {"additional_special_tokens": ["<ent>"]}),
    }  # fmt: skip
    (tmp_path / "names" / "added_tokens.json").write_text('{"서울역": 12, "<ent>": 11}')
    for name, folder in folders.items():
        tokenizer = load_tokenizer(folder)
        assert (tokenizer.vocab_size, tokenizer.tokens[11:]) == (13, ("<ent>", "서울역")), name
        assert tokenizer.encode("a<ent> 서울역 서울", specials=False).ids.tolist() == [8, 11, 12, 9], name
        assert tokenizer.decode([8, 12]) == "a 서울역"
        tokenizer.save(tmp_path / f"{name} saved")
        again = load_tokenizer(tmp_path / f"{name} saved")
        assert again.fingerprint == tokenizer.fingerprint and again.tokens == tokenizer.tokens, name
        assert len(read_vocabulary(tmp_path / f"{name} saved" / "vocab.txt")) == 11


def test_the_frame_of_a_file_is_followed_as_in_transformers(tmp_path, caplog):
    """transformers makes BERT's frame for its tokenizers, and takes that of the file for the general class."""
    pieces = [*SPECIALS, "[unused1]", "a"]
    ids = {"[CLS]": 2, "[SEP]": 3, "[unused1]": 5}
    spec = whole_file(pieces, lowercase=False, strip_accents=None)
    for number, (template, frame) in enumerate((
        (("[CLS] [unused1] A [SEP]", "[CLS] [unused1] A [SEP] B:1 [SEP]:1"), Frame((2, 5), (3,), (3,))),
        (("A [SEP]", "A [SEP] B:1 [SEP]:1"), Frame((), (3,), (3,))),
        (("[CLS] A [SEP]", "[CLS] A [SEP] B [SEP]"), Frame((2,), (3,), (3,), (0, 0))),
    )):  # fmt: skip
        spec["post_processor"] = make_template(*template, ids)
        for name, expected in (("PreTrainedTokenizerFast", frame), ("BertTokenizer", Frame((2,), (3,), (3,)))):
            folder = write(tmp_path / f"{name} {number}", None, {"tokenizer_class": name}, spec)
            assert load_tokenizer(folder).frame == expected
    assert not caplog.messages
    inputs = {"model_input_names": ["input_ids", "attention_mask"]}  # transformers then passes no types
    spec["post_processor"] = make_template("[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1", ids)
    for name in ("PreTrainedTokenizerFast", "BertTokenizer"):
        folder = write(tmp_path / name, None, {"tokenizer_class": name, **inputs}, spec)
        assert load_tokenizer(folder).frame.types == (0, 0)
    del spec["post_processor"]
    folder = write(tmp_path / "none", None, {"tokenizer_class": "PreTrainedTokenizerFast"}, spec)
    assert load_tokenizer(folder).frame == Frame((2,), (3,), (3,))
    [line] = caplog.messages
    assert "has no post_processor that puts special pieces around a text" in line


def test_classes_that_read_only_tokenizer_json_ignore_options_beside_it(tmp_path):
    """The pieces are those of transformers 4.57 and 5.24."""
    pieces = [*SPECIALS, "the", "The", "café", "강", "漢", "字", "漢字"]
    options = {"do_lower_case": True, "strip_accents": True, "tokenize_chinese_chars": True}
    spec = whole_file(pieces, lowercase=False, strip_accents=None) | {
        "post_processor": make_template("[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1", {"[CLS]": 2, "[SEP]": 3})
    }
    spec["normalizer"]["handle_chinese_chars"] = False
    for name, tokens in (
        ("PreTrainedTokenizerFast", ("The", "café", "강", "漢字")),
        ("TokenizersBackend", ("The", "café", "강", "漢字")),
        ("BertTokenizer", ("the", "[UNK]", "[UNK]", "漢", "字")),
    ):
        folder = write(tmp_path / name, None, {"tokenizer_class": name} | options, spec)
        assert load_tokenizer(folder).encode("The café 강 漢字", specials=False).tokens == tokens


def test_tokenizer_json_is_followed_where_vocab_txt_differs(tmp_path, caplog):
    """As in transformers 4.57 and 5.24."""
    pieces, old = [*SPECIALS, "the", "kimchi"], [*SPECIALS, "the", "[unused0]", "ship"]
    folder = write(tmp_path / "both", old, {"tokenizer_class": "BertTokenizer"}, whole_file(pieces, lowercase=True))
    assert load_tokenizer(folder).encode("the kimchi").ids.tolist() == [2, 5, 6, 3]
    [line] = caplog.messages
    assert "line 7 of vocab.txt is '[unused0]', but tokenizer.json has 'kimchi' there" in line
    caplog.clear()
    assert load_tokenizer(folder / "vocab.txt").tokens == tuple(old)
    assert load_tokenizer(write(folder, pieces)).tokens == tuple(pieces)
    assert not caplog.messages


def test_pieces_of_roberta_in_a_vocabulary_of_bert(tmp_path):
    """Only a folder that names no BERT has RoBERTa's frame then; the pieces are those of transformers 4.57 and 5.24."""
    pieces = [*SPECIALS, "<pad>", "<s>", "</s>", "<mask>", "the", "river"]
    saved = WordPiece(pieces)
    saved.save(tmp_path / "saved")
    assert load_tokenizer(tmp_path / "saved").fingerprint == saved.fingerprint
    for name, first in (("BertTokenizer", "[CLS]"), ("MPNetTokenizer", "<s>")):
        folder = write(tmp_path / name, pieces, {"tokenizer_class": name, "do_lower_case": False})
        assert load_tokenizer(folder).encode("the river").tokens[0] == first
    for name, first in (("bert", "[CLS]"), ("mpnet", "<s>")):
        folder = write(tmp_path / name, pieces, {"do_lower_case": False})
        (folder / "config.json").write_text(f'{{"model_type": "{name}"}}')
        assert load_tokenizer(folder).encode("the river").tokens[0] == first


def test_special_pieces_that_the_configuration_names(tmp_path):
    """The pieces are those of transformers 5.24; of `tokenizer.json` alone 4.57 gives those of the general class."""
    pieces = [*SPECIALS, "[BOS]", "[EOS]", "<mask>", "<unk>", "the", "a"]
    names = {"cls_token": "[BOS]", "sep_token": "[EOS]", "mask_token": {"content": "<mask>"}, "unk_token": "<unk>"}
    frame = make_template("[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1", {"[CLS]": 2, "[SEP]": 3})
    spec = whole_file(pieces, list(enumerate(SPECIALS)), lowercase=True) | {"post_processor": frame}
    tokens = ("[BOS]", "a", "<mask>", "[EOS]", "<unk>", "[EOS]")
    for number, (name, lines, json_file, expected) in enumerate((
        ("BertTokenizer", pieces, None, tokens),
        ("BertTokenizer", [piece for piece in pieces if piece not in SPECIALS[1:]], None, tokens),
        ("BertTokenizer", None, spec, tokens),
        ("PreTrainedTokenizerFast", None, spec, ("[CLS]", "a", "<mask>", "[SEP]", "[UNK]", "[SEP]")),
    )):  # fmt: skip
        folder = write(
            tmp_path / str(number), lines, {"tokenizer_class": name, "do_lower_case": True} | names, json_file
        )
        tokenizer = load_tokenizer(folder)
        assert isinstance(tokenizer, TokenizerFile) and tokenizer.tokens[tokenizer.mask_id] == "<mask>"
        encoding = tokenizer.encode("A <mask>", "ship")
        assert encoding.tokens == expected and encoding.types.tolist() == [0, 0, 0, 0, 1, 1]
        tokenizer.save(tmp_path / f"{number} saved")
        assert load_tokenizer(tmp_path / f"{number} saved").encode("a <mask>", "ship").tokens == expected
    file = write(tmp_path / "0", None) / "vocab.txt"
    assert load_wordpiece(file, lowercase=False).encode("A a", specials=False).tokens == ("<unk>", "a")
    folder = write(tmp_path / "one type", pieces, names | {"model_input_names": ["input_ids"]})
    assert load_tokenizer(folder).frame.types == (0, 0)
    with pytest.raises(ValueError, match=r"vocab.txt does not hold mask_token '<m>' of its configuration files"):
        load_tokenizer(write(tmp_path / "missing", pieces, {"mask_token": "<m>"}))
