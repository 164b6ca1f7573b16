"""Tests of word splitting and `WordVocabulary`."""

import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.text import WordPiece, WordVocabulary, split_words, word_spans
from bert_elmo_jax.text.words import split_texts

NOTHING = ["<S>", "</S>", "<UNK>"]
WORD = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=6).filter(
    lambda word: word == word.strip() and word not in NOTHING
)


def test_split_words_matches_bert(texts):
    basic = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    for text in [*texts, "漢字かな交じり文, a+b=c $3.50 (e.g. 한국어) «quoted» ¡olé!", "नमस्ते दुनिया। สวัสดี"]:
        assert " ".join(split_words(text)) == basic.normalize(text)
    assert split_words("") == split_words(" \n ") == []
    assert split_words("cafe\u0301s e\u0301") == ["cafe\u0301s", "e\u0301"]
    assert list(split_texts("punctuation", lambda: [(1, "좋은 영화.")])) == [(1, ["좋은", "영화", "."])]
    for split in (split_words, word_spans):
        with pytest.raises(ValueError, match=r"no rule 'moses'.*whitespace, punctuation"):
            split("a", "moses")


@given(text=st.text(max_size=30))
def test_split_words_loses_only_spaces_of_any_text(text):
    assert "".join(split_words(text)) == re.sub(r"\s", "", text)
    assert split_words(text, "whitespace") == re.findall(r"\S+", text)


def test_order_is_frequency_then_code_point():
    vocabulary = WordVocabulary.build({"b": 2, "a": 2, "배": 9, "é": 2, "rare": 1}, min_count=2)
    assert vocabulary.words == (*NOTHING, "배", "a", "b", "é")
    assert vocabulary.counts.tolist() == [0, 0, 1, 9, 2, 2, 2]
    assert (vocabulary.bos_id, vocabulary.eos_id, vocabulary.unk_id) == (0, 1, 2)
    assert len(vocabulary) == vocabulary.vocab_size == 7
    assert "é" in vocabulary
    assert "rare" not in vocabulary


def test_literal_special_words_are_unknown():
    vocabulary = WordVocabulary.build({"<S>": 50, "<UNK>": 3, "a": 1})
    assert vocabulary.words == (*NOTHING, "a")
    assert vocabulary.counts.tolist() == [0, 0, 53, 1]
    assert vocabulary.ids(["<S>", "a", "</S>", "<UNK>", "zzz"]).tolist() == [2, 3, 2, 2, 2]
    assert "<S>" not in vocabulary


def test_size_includes_the_special_words():
    assert WordVocabulary.build({"a": 3, "b": 2, "c": 1}, size=4).words == (*NOTHING, "a")
    assert WordVocabulary.build({"a": 3}, size=3).counts.tolist() == [0, 0, 3]
    with pytest.raises(ValueError, match="size=2 has no room"):
        WordVocabulary.build({"a": 3}, size=2)


@given(counts=st.dictionaries(WORD, st.integers(1, 5), max_size=20))
def test_save_and_load(tmp_path_factory, counts):
    folder = tmp_path_factory.mktemp("words")
    vocabulary = WordVocabulary.build(reversed(list(counts.items())))
    vocabulary.save(folder)
    again = WordVocabulary.load(folder)
    assert again.words == vocabulary.words == WordVocabulary.build(counts).words
    assert again.counts.tolist() == vocabulary.counts.tolist()
    assert again.counts.dtype == np.int64
    assert again.fingerprint == vocabulary.fingerprint
    assert again.ids(list(counts)).tolist() == [vocabulary.words.index(word) for word in counts]
    assert (folder / "words.txt").read_bytes().decode().split("\n") == [*vocabulary.words, ""]


def test_released_vocabularies_without_counts(tmp_path):
    file = tmp_path / "vocab-2016.txt"
    file.write_bytes("</S>\r\n<S>\r\n<UNK>\r\nthe\r\n배\r\n".encode())
    vocabulary = WordVocabulary.load(file)
    assert (vocabulary.bos_id, vocabulary.eos_id, vocabulary.unk_id) == (1, 0, 2)
    assert vocabulary.counts is None
    assert vocabulary.ids(["배", "sea"]).tolist() == [4, 2]
    WordVocabulary.build({"a": 1}).save(tmp_path / "a")
    vocabulary.save(tmp_path / "a")  # removes the counts of the one before
    again = WordVocabulary.load(tmp_path / "a")
    assert (again.fingerprint, again.counts) == (vocabulary.fingerprint, None)


def test_a_line_that_bilm_tf_skips_is_no_word(tmp_path):
    file = tmp_path / "vocab-2016.txt"
    file.write_text("</S>\n<S>\n<UNK>\nthe\n!!!MAXTERMID\n")
    assert WordVocabulary.load(file).words == ("</S>", "<S>", "<UNK>", "the")


BAD = [  # lines after the three special words, or a whole file, and parts of the message
    ("the\n<S>\n</S>\n<UNK>\n", ["first three lines should be <S>, </S>, <UNK>; they are 'the', '<S>', '</S>'"]),
    ("", ["first three lines", "blank: line 1"]),
    ("<S>\n</S>\n<UNK>\na\n\nb\n\n \n", ["blank: line 5, 7, 8"]),
    ("<S>\n</S>\n<UNK>\na\nb\na\nb\na\n", ["'a' is on lines 4, 6 and 8", "'b' is on lines 5 and 7"]),
    ("<S>\n</S>\n<UNK>\na\n<UNK>\n", ["'<UNK>' is on lines 3 and 5"]),
    ("<S>\n</S>\n<UNK>\n b\nc\u00a0\n", ["4 (' b'), 5 ('c\\xa0')"]),
]


def test_bad_files_name_their_lines(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected a words.txt"):
        WordVocabulary.load(tmp_path)
    for content, messages in BAD:
        (tmp_path / "words.txt").write_text(content, "utf-8")
        with pytest.raises(ValueError, match=r"words\.txt") as error:
            WordVocabulary.load(tmp_path)
        assert all(message in str(error.value) for message in messages), str(error.value)
    WordVocabulary.build({"a": 3, "b": 2}).save(tmp_path)
    for counts, message in (
        ([0, 0, 0, 3], "5 words but 4 counts"),
        ([0, 0, 0, 3, 4], r"line 5 \('b'\) is more frequent than the one before"),
    ):
        np.save(tmp_path / "counts.npy", np.array(counts))
        with pytest.raises(ValueError, match=message):
            WordVocabulary.load(tmp_path)
    (tmp_path / "counts.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(ValueError, match=r"counts.npy is not a complete array of counts"):
        WordVocabulary.load(tmp_path)


def test_words_that_no_file_can_hold_raise():
    for counts, message in (
        ({"a\nb": 1}, "line break"),
        ([("a", 2), ("a", 1)], "'a' is on lines 4 and 5"),
        ({"\ud83d": 1}, "lone surrogate"),
    ):
        with pytest.raises(ValueError, match=message):
            WordVocabulary.build(counts)


PARTS = ["배를 ", "탔다.", "\r\n", "\t", "café", "cafe\u0301", "😀👍🏽", "漢字", "\u3000", "\xa0", "$3.50", "한", "'s"]
TEXT = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PARTS), max_size=12).map("".join))


@given(text=TEXT, rule=st.sampled_from(["punctuation", "whitespace"]))
def test_spans_match_split_words(text, rule):
    words, spans = word_spans(text, rule)
    assert list(words) == split_words(text, rule)
    assert [text[start:end] for start, end in spans.tolist()] == list(words)
    assert (np.diff(spans.ravel()) >= 0).all()  # in order, without overlap
    assert (spans[:, 0] < spans[:, 1]).all() and spans.shape == (len(words), 2)


def test_a_vocabulary_encodes_and_decodes_texts():
    """It encodes words as a tokenizer does pieces, with offsets; there are no special words around a text."""
    vocabulary = WordVocabulary.build({"sea": 2, "배": 5, ".": 1})
    for rule, words in ((None, ("배", "sea.")), ("punctuation", ("배", "sea", "."))):
        vocabulary.rule = rule
        encoding = vocabulary.encode("배  sea.")
        assert encoding.tokens == words and encoding.word_ids.tolist() == list(range(len(words)))
        assert ["배  sea."[start:end] for start, end in encoding.offsets] == list(words)
    assert encoding.ids.tolist() == [3, 4, 5] and vocabulary.frame.count(pair=False) == 0
    assert vocabulary.decode([0, *encoding.ids, 2, 99, 1]) == "배 sea . <UNK> <UNK>"
    assert len(vocabulary.encode("")) == 0 and vocabulary.decode([]) == ""
    assert vocabulary.tokens == vocabulary.target_tokens == vocabulary.words
    decomposed = unicodedata.normalize("NFD", "a 배.")  # as macOS writes it
    assert vocabulary.encode(decomposed).ids.tolist() == [2, 3, 5]
    assert vocabulary.encode(decomposed).offsets.tolist() == [[0, 1], [2, 4], [4, 5]]


def test_decomposed_words_are_those_of_the_vocabulary():
    decomposed = unicodedata.normalize("NFD", "한국어")
    for stored in ("한국어", decomposed):
        vocabulary = WordVocabulary.build({stored: 3, "sea": 2})
        assert vocabulary.ids(["한국어", decomposed, "sea", "바다"]).tolist() == [3, 3, 4, 2]
        assert "한국어" in vocabulary and decomposed in vocabulary and "<S>" not in vocabulary
