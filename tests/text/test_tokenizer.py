"""Tests of all kinds of tokenizers, and of `load_tokenizer`."""

import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bert_elmo_jax.text import Tokenizer, WordVocabulary, load_tokenizer, train_wordpiece
from bert_elmo_jax.text.tokenizer import check_fingerprint

# Characters of the corpora, and difficult ones: marks, spaces, control characters, jamo, astral, and [MASK].
FRIENDLY = [*"theriv sailed.,'\"!", *"배를타고강은행ㅋㅠé"]
MARKS = "\u0301\u11ab\u1112\u1161"
HOSTILE = [*"  \t\n\r\u3000\u200b\u00a0\0\x01\x85\u2028\ufeff▁#[]", *"漢字😀ẞİıß", *MARKS, "[MASK]", "##"]
LETTERS = st.sampled_from(FRIENDLY) | st.sampled_from(HOSTILE)
ANY_TEXT = st.lists(LETTERS, max_size=40).map("".join)
QUICK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_implements_the_protocol_and_special_pieces_come_first(tokenizer):
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.vocab_size == len(tokenizer.tokens) == len(tokenizer.word_starts)
    assert tokenizer.tokens[:5] == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    ids = [tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id]
    assert ids == [0, 1, 2, 3, 4]
    assert not tokenizer.word_starts[:5].any()


@QUICK
@given(text=ANY_TEXT)
def test_decode_inverts_encode_lines(tokenizer, text):
    ids, lengths = tokenizer.encode_lines([text])
    assert lengths.tolist() == [len(ids)]
    assert ids.dtype == np.int32
    assert lengths.dtype == np.int64
    assert not np.isin(ids, [0, 2, 3, 4]).any(), "corpus text never turns into special pieces"
    if tokenizer.unk_id not in ids:
        assert tokenizer.decode(ids) == tokenizer.normalize(text)


@QUICK
@given(text=ANY_TEXT)
def test_normalize_is_idempotent(tokenizer, text):
    # SentencePiece normalises in one pass; a second pass would compose characters around a removed control character.
    text = "".join(character for character in text if character not in MARKS)
    once = tokenizer.normalize(text)
    assert tokenizer.normalize(once) == once
    assert once == once.strip(" ")
    assert "  " not in once


@QUICK
@given(lines=st.lists(ANY_TEXT, max_size=5))
def test_encode_lines_agrees_with_encode(tokenizer, lines):
    lines = [line.replace("[MASK]", "") for line in lines]
    ids, lengths = tokenizer.encode_lines(lines)
    singles = [tokenizer.encode(line, specials=False).ids for line in lines]
    assert lengths.tolist() == [len(single) for single in singles]
    assert ids.tolist() == [number for single in singles for number in single]


@QUICK
@given(text=ANY_TEXT, pair=st.none() | ANY_TEXT, specials=st.booleans())
def test_encoding_is_consistent(tokenizer, text, pair, specials):
    encoding = tokenizer.encode(text, pair, specials=specials)
    assert [tokenizer.tokens[number] for number in encoding.ids] == list(encoding.tokens)
    assert len(encoding) == len(encoding.types) == len(encoding.word_ids) == len(encoding.offsets)
    added = encoding.word_ids == -1
    assert added.sum() == (0 if not specials else 2 if pair is None else 3)
    assert (encoding.offsets[added] == 0).all()
    for number, original in enumerate([text] if pair is None else [text, pair]):
        mine = (encoding.types == number) & ~added
        offsets, words = encoding.offsets[mine], encoding.word_ids[mine]
        assert (offsets[:, 0] <= offsets[:, 1]).all()
        assert (offsets <= len(original)).all()
        assert (np.diff(offsets[:, 0]) >= 0).all()
        assert (np.diff(words) >= 0).all()
        assert (np.diff(words) <= 1).all()
        assert words[:1].tolist() in ([], [0])
        single_encoding = tokenizer.encode(original, specials=False)
        assert encoding.ids[mine].tolist() == single_encoding.ids.tolist()


def test_pairs_have_the_layout_of_bert(tokenizer):
    encoding = tokenizer.encode("the river", "배를")
    first = len(tokenizer.encode("the river", specials=False))
    second = len(tokenizer.encode("배를", specials=False))
    assert encoding.types.tolist() == [0] * (first + 2) + [1] * (second + 1)
    assert encoding.ids[[0, first + 1, -1]].tolist() == [tokenizer.cls_id, tokenizer.sep_id, tokenizer.sep_id]
    assert encoding.offsets[first + 2 :][:-1, 1].max() == 2, "the second text's offsets point into the second text"


def test_offsets_point_into_the_text(tokenizer):
    text = "  The river,  배를\t타고 river"
    encoding = tokenizer.encode(text, specials=False)
    cut = {}
    for word, (start, end) in zip(encoding.word_ids.tolist(), encoding.offsets.tolist()):
        cut[word] = cut.get(word, "") + text[start:end]
    words = list(cut.values())
    expected = ["The", "river", ",", "배를", "타고", "river"]
    assert words == (expected if tokenizer.kind == "wordpiece" else ["The", "river,", "배를", "타고", "river"])


def test_decomposed_hangul_is_composed_with_original_offsets(tokenizer):
    composed = "배를 타고 강을 건너서"
    decomposed = unicodedata.normalize("NFD", composed)
    one, other = tokenizer.encode(composed, specials=False), tokenizer.encode(decomposed, specials=False)
    assert tokenizer.unk_id not in one.ids
    assert one.ids.tolist() == other.ids.tolist()
    for (start, end), (start_nfd, end_nfd) in zip(one.offsets.tolist(), other.offsets.tolist()):
        assert unicodedata.normalize("NFC", decomposed[start_nfd:end_nfd]) == composed[start:end]
    assert tokenizer.decode(other.ids) == composed
    assert tokenizer.normalize("ㅋㅋ ㅠㅠ") == "ㅋㅋ ㅠㅠ"


def test_literal_mask_is_special_only_in_encode(tokenizer):
    text = "the [MASK] sailed [SEP]"
    encoding = tokenizer.encode(text, specials=False)
    where = encoding.tokens.index("[MASK]")
    assert encoding.ids[where] == tokenizer.mask_id
    assert encoding.offsets[where].tolist() == [4, 10]
    assert encoding.word_ids[where] == 1
    assert encoding.ids[-1] == tokenizer.sep_id
    assert tokenizer.encode_words(["the", "[MASK]"], specials=False).ids[-1] == tokenizer.mask_id
    ids, _ = tokenizer.encode_lines([text])
    assert not np.isin(ids, [tokenizer.mask_id, tokenizer.sep_id]).any()
    assert tokenizer.decode(encoding.ids) == "the [MASK] sailed"


@QUICK
@given(words=st.lists(st.lists(LETTERS, max_size=6).map("".join), max_size=8))
def test_word_ids_index_the_given_words(tokenizer, words):
    encoding = tokenizer.encode_words(words, specials=False)
    for word, (start, end) in zip(encoding.word_ids.tolist(), encoding.offsets.tolist()):
        assert 0 <= start <= end <= len(words[word])
    for number, word in enumerate(words):
        mine = encoding.ids[encoding.word_ids == number]
        unknown = [tokenizer.unk_id] if word else []
        assert mine.tolist() == (tokenizer.encode(word, specials=False).ids.tolist() or unknown)


def test_word_that_normalises_to_nothing_is_unknown(tokenizer):
    encoding = tokenizer.encode_words(["river", "\x07", "", "배를"])
    assert set(encoding.word_ids.tolist()) == {-1, 0, 1, 3}
    [place] = np.flatnonzero(encoding.word_ids == 1)
    assert (encoding.ids[place], encoding.tokens[place]) == (tokenizer.unk_id, tokenizer.tokens[tokenizer.unk_id])
    assert encoding.offsets[place].tolist() == [0, 1] and len(encoding.types) == len(encoding)
    assert (np.diff(encoding.word_ids[1:-1]) >= 0).all()
    pair = tokenizer.encode_words([], ["river"])
    assert pair.types.tolist() == [0, 0, *[1] * (len(pair) - 2)]


def test_empty_long_and_dirty_inputs(tokenizer):
    assert len(tokenizer.encode("", specials=False)) == 0
    assert tokenizer.encode("").ids.tolist() == [tokenizer.cls_id, tokenizer.sep_id]
    assert tokenizer.encode(" \t\n ", "\0").ids.tolist() == [2, 3, 3]
    ids, lengths = tokenizer.encode_lines([])
    assert (ids.size, lengths.size, ids.dtype) == (0, 0, np.int32)
    assert tokenizer.encode_lines(["", "river", " "])[1].tolist()[::2] == [0, 0]
    assert tokenizer.decode([]) == tokenizer.normalize("") == ""
    assert len(tokenizer.encode("the river " * 5000, specials=False)) >= 10_000  # not truncated
    for dirty in ("ri\0ver", "ri\x07ver", "ri\u200bver", "ri\ufeffver", "ri\ufffdver", "\r\nriver\u3000"):
        assert tokenizer.normalize(dirty) == "river", ascii(dirty)
    assert tokenizer.normalize("the\u00a0\triver") == "the river"


def test_lone_surrogates_and_ids_outside_the_vocabulary_raise(tokenizer):
    for call in (
        lambda t: t.encode("ok", "half \ud83d"),
        lambda t: t.encode_words(["ok", "half \ud83d"]),
        lambda t: t.encode_lines(["ok", "half \ud83d"]),
        lambda t: t.normalize("half \ud83d"),
    ):
        with pytest.raises(ValueError, match=r"text \d holds a lone surrogate, U\+D83D at character 5.*Decode the"):
            call(tokenizer)
    for ids in ([0, tokenizer.vocab_size], np.array([5, -1])):
        with pytest.raises(ValueError, match=r"at position 1 is not in this vocabulary of \d+ pieces; use the"):
            tokenizer.decode(ids)


def test_decode_shows_unk_and_drops_boundaries(tokenizer):
    assert tokenizer.decode(np.array([6, 7], np.uint16)) == tokenizer.decode([6, 7])
    text = tokenizer.decode([tokenizer.cls_id, tokenizer.unk_id, tokenizer.mask_id, tokenizer.sep_id, tokenizer.pad_id])
    assert text.replace(" ", "") == "[UNK][MASK]"


def test_save_and_load(tokenizer, texts, tmp_path):
    tokenizer.save(tmp_path / "a" / "b")
    again = load_tokenizer(tmp_path / "a" / "b")
    assert again.kind == tokenizer.kind
    assert again.fingerprint == tokenizer.fingerprint
    assert again.tokens == tokenizer.tokens
    assert again.encode_lines(texts)[0].tolist() == tokenizer.encode_lines(texts)[0].tolist()
    again.save(tmp_path / "c")
    names = sorted(path.name for path in (tmp_path / "c").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "a" / "b").iterdir())
    for name in names:
        assert (tmp_path / "c" / name).read_bytes() == (tmp_path / "a" / "b" / name).read_bytes()


def test_the_side_at_which_texts_are_cut_is_saved(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "usual")
    config = json.loads((tmp_path / "usual" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert "truncation_side" not in config and not load_tokenizer(tmp_path / "usual").cuts_start
    (tmp_path / "usual" / "tokenizer_config.json").write_text(json.dumps(config | {"truncation_side": "left"}), "utf-8")
    left = load_tokenizer(tmp_path / "usual")
    left.save(tmp_path / "left")
    again = load_tokenizer(tmp_path / "left")
    assert again.cuts_start and again.fingerprint == tokenizer.fingerprint
    ids = tokenizer.encode("the river, 배를 타고", specials=False).ids.tolist()
    rows = [part.batch(["the river, 배를 타고"], length=5)["tokens"][0].tolist() for part in (tokenizer, again)]
    piece_count = 5 - tokenizer.frame.count(pair=False)
    first = len(tokenizer.frame.before)
    assert [row[first : first + piece_count] for row in rows] == [ids[:piece_count], ids[-piece_count:]]


def test_word_starts(tokenizer):
    encoding = tokenizer.encode("the river, 배를 타고", specials=False)
    begins = np.diff(encoding.word_ids, prepend=-1) == 1
    assert tokenizer.word_starts[encoding.ids].tolist() == begins.tolist()


def test_folders_without_a_single_tokenizer_raise(wordpiece, sentencepiece, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        load_tokenizer(tmp_path / "nowhere")
    (tmp_path / "notes.md").write_text("")
    with pytest.raises(FileNotFoundError, match=r"expected vocab.txt.*sentencepiece.model.*there is notes.md$"):
        load_tokenizer(tmp_path)
    WordVocabulary.build({"sea": 1}).save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is .*words.txt .*use WordVocabulary.load"):
        load_tokenizer(tmp_path)
    wordpiece.save(tmp_path)
    (tmp_path / "spiece.model").write_bytes(sentencepiece._model)
    with pytest.raises(ValueError, match=r"both vocab.txt and .*spiece.model"):
        load_tokenizer(tmp_path)
    assert load_tokenizer(tmp_path / "vocab.txt").kind == "wordpiece"
    (tmp_path / "tokenizer_config.json").unlink()
    assert load_tokenizer(tmp_path / "spiece.model").kind == "sentencepiece"
    with pytest.raises(ValueError, match="leave lowercase out"):
        load_tokenizer(tmp_path / "spiece.model", lowercase=True)


def test_broken_configurations_and_edited_vocabularies_raise(wordpiece, tmp_path):
    wordpiece.save(tmp_path)
    for name, content, message in (
        ("vocab.txt", "\n".join([*wordpiece.tokens, "extra\n"]), r"vocab.txt does not match the tokenizer_config.json"),
        ("tokenizer_config.json", "{", r"tokenizer_config.json is not JSON"),
        ("tokenizer_config.json", "[]", r"should hold a JSON object"),
        ("tokenizer_config.json", '{"do_lower_case": "yes"}', r"do_lower_case is 'yes'; expected true or false"),
    ):
        (tmp_path / name).write_text(content, "utf-8")
        with pytest.raises(ValueError, match=message):
            load_tokenizer(tmp_path)
    check_fingerprint({"do_lower_case": False}, "0123", Path("vocab.txt"))


def test_fingerprints_depend_on_options_and_pieces(texts):
    options = ({}, {"lowercase": True}, {"strip_accents": True})
    fingerprints = {train_wordpiece(texts, 300, **flags).fingerprint for flags in options}
    assert len(fingerprints | {train_wordpiece(texts, 299).fingerprint}) == 4


def test_configuration_is_written_first(wordpiece, tmp_path, monkeypatch):
    # If the process dies between the two files, the folder has no vocabulary and cannot be loaded.
    real = Path.replace

    def fail(self, target):
        if Path(target).name == "vocab.txt":
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        wordpiece.save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is tokenizer_config.json"):
        load_tokenizer(tmp_path)
