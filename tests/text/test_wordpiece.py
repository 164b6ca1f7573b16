"""Tests of WordPiece with released and trained vocabularies."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.implementations import BertWordPieceTokenizer

from bert_elmo_jax.text import WordPiece, load_tokenizer, load_wordpiece, train_wordpiece
from bert_elmo_jax.text.tokenizer_specs import TEXT_FLAGS
from bert_elmo_jax.text.wordpiece_files import WordPieceOptions

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCES = [
    "The quick brown Fox can't jump: naïve café, unaffable — 3.14%!",
    "배를 타고 강을 건넜다. ㅋㅋ 한국어 BERT",
    "漢字かな交じり文 и русский текст, العربية ¿Qué?",
    "it's [MASK] or [SEP]; ##ing 😀 \u200b\x00 tab\there\u3000wide",
    "Ångström ÉCOLE İstanbul ẞ ﬁ ½ “quotes” …",
]


def python_wordpiece(text: str, pieces: set[str], lowercase: bool) -> list[str]:
    """Reimplement the published algorithm for text without control or Chinese characters."""
    words: list[str] = []
    for word in text.split():
        if lowercase:
            word = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")
        current = ""
        for character in word:
            mark = unicodedata.category(character)[0] == "P" or (character.isascii() and not character.isalnum())
            words += [w for w in (current, character) if w] if mark else []
            current = "" if mark else current + character
        words += [current] if current else []
    tokens = []
    for word in words:
        start, mine = 0, []
        while start < len(word):
            prefix = "##" if start else ""
            ends = [end for end in range(len(word), start, -1) if prefix + word[start:end] in pieces]
            if not ends or len(word) > 100:
                mine, start = ["[UNK]"], len(word)
            else:
                mine.append(prefix + word[start : ends[0]])
                start = ends[0]
        tokens += mine
    return tokens


@given(text=st.text(st.sampled_from("abcdeilnorstuvAEÉéüñÇ .,-'$+배를한국"), max_size=40), lowercase=st.booleans())
def test_agrees_with_the_published_algorithm(text, lowercase):
    pieces = [*SPECIALS, *"abcdeilnorstuv.,-'$", *(f"##{c}" for c in "abcdeilnorstuv")]
    pieces += ["the", "##est", "in", "##ion", "ve", "##ue", "é", "##É", "A", "배", "##를", "배를", "\u1112\u1161\u11ab"]
    tokenizer = WordPiece(pieces, WordPieceOptions(lowercase=lowercase, strip_accents=lowercase))
    assert list(tokenizer.encode(text, specials=False).tokens) == python_wordpiece(text, set(pieces), lowercase)


RELEASED = [  # vocabulary, options, size, and texts with their ids
    (
        "bert-base-uncased",
        WordPieceOptions(lowercase=True, strip_accents=True),
        30522,
        {
            "Hello, world! unaffable": [101, 7592, 1010, 2088, 999, 14477, 20961, 3468, 102],
            "The café [MASK].": [101, 1996, 7668, 103, 1012, 102],
        },
    ),
    ("bert-base-cased", WordPieceOptions(), 28996, {"Hello, World!": [101, 8667, 117, 1291, 106, 102]}),
    ("koelectra", WordPieceOptions(), 32200, {}),
]


@pytest.mark.parametrize(("name", "options", "size", "encodings"), RELEASED, ids=lambda value: str(value)[:17])
def test_released_vocabularies(released, tmp_path, name, options, size, encodings):
    file = released / f"{name}-vocab.txt"
    tokenizer = load_wordpiece(file)
    assert (tokenizer.vocab_size, tokenizer.options) == (size, options)
    for text, ids in encodings.items():
        assert tokenizer.encode(text).ids.tolist() == ids
    peer = BertWordPieceTokenizer(str(file), lowercase=options.lowercase, strip_accents=options.strip_accents)
    for first, second in [(s, None) for s in SENTENCES] + [(SENTENCES[0], SENTENCES[1])]:
        ours, theirs = tokenizer.encode(first, second), peer.encode(first, second)
        assert ours.ids.tolist() == theirs.ids
        assert ours.types.tolist() == theirs.type_ids
        assert [tuple(offset) for offset in ours.offsets.tolist()] == theirs.offsets
        assert list(ours.tokens) == theirs.tokens
    tokenizer.save(tmp_path)
    assert load_wordpiece(tmp_path).fingerprint == tokenizer.fingerprint


def test_hangul_of_released_vocabularies(released):
    """The uncased one splits it, the Korean one keeps it composed."""
    tokenizer = load_wordpiece(released / "bert-base-uncased-vocab.txt")
    text = "배를 타고"
    ids, _ = tokenizer.encode_lines([text])
    assert tokenizer.unk_id not in ids
    assert tokenizer.decode(ids) == tokenizer.normalize(text) == unicodedata.normalize("NFD", text)
    tokenizer = load_wordpiece(released / "koelectra-vocab.txt")
    ids, _ = tokenizer.encode_lines(["한국어 문장을 배웠다"])
    assert tokenizer.decode(ids) == "한국어 문장을 배웠다"


def test_trained_tokenizers_keep_accents_case_and_hangul_by_default(texts):
    text = "Naïve CAFÉ 배를"
    assert train_wordpiece(texts, 600).normalize(text) == text
    assert train_wordpiece(texts, 600, lowercase=True).normalize(text) == "naïve café 배를"
    assert train_wordpiece(texts, 600, strip_accents=True).normalize(text) == "Naive CAFE 배를"
    both = train_wordpiece(texts, 600, lowercase=True, strip_accents=True)
    assert both.normalize(unicodedata.normalize("NFD", text)) == "naive cafe 배를"
    ids, _ = both.encode_lines([text])
    assert both.decode(ids) == "naive cafe 배를"


def test_encode_words_has_original_offsets(wordpiece):
    words = [unicodedata.normalize("NFD", word) for word in ("café", "배를")] + ["river"]
    encoding = wordpiece.encode_words(words, specials=False)
    for word in range(3):
        mine = encoding.offsets[encoding.word_ids == word]
        assert mine[0, 0] == 0
        assert mine[-1, 1] == len(words[word])
        assert (mine[1:, 0] == mine[:-1, 1]).all()


def test_a_trained_vocabulary_is_in_canonical_order_and_knows_its_characters(wordpiece):
    singles = [piece for piece in wordpiece.tokens[5:] if len(piece.removeprefix("##")) == 1 and piece != "##"]
    assert list(wordpiece.tokens[:5]) == SPECIALS
    assert list(wordpiece.tokens[5 : 5 + len(singles)]) == sorted(singles)
    assert "배" in singles
    assert "##." not in singles, "a mark that never joins a word has no continuation"
    assert wordpiece.unk_id not in wordpiece.encode("dlrowton 건강배타 evïan").ids
    # Words beyond the limit are unknown, and no pieces are learned from them.
    assert wordpiece.encode("the" * 33, specials=False).tokens != ("[UNK]",)
    assert wordpiece.encode("the" * 34, specials=False).tokens == ("[UNK]",)
    assert "x" not in train_wordpiece(["x" * 101, "the sea"], 50).tokens


def test_rare_characters_do_not_crowd_out_the_rest(texts):
    rare = "".join(chr(code) for code in range(0x4E00, 0x4E00 + 200))
    tokenizer = train_wordpiece([*texts * 500, rare], 900)
    alphabet = sum(len(piece.removeprefix("##")) == 1 for piece in tokenizer.tokens)
    assert alphabet <= 900 // 3
    assert tokenizer.unk_id in tokenizer.encode(rare).ids
    assert tokenizer.unk_id not in tokenizer.encode_lines(texts)[0]


@pytest.mark.parametrize("options", [{}, {"lowercase": True}, {"lowercase": True, "strip_accents": True}], ids=str)
@pytest.mark.parametrize("one_type", [False, True])
def test_the_tokenizer_json_for_transformers_composes_text(texts, tmp_path, options, one_type):
    trained = train_wordpiece([*texts, "Café naïve"] * 9, 600, **options)
    extra = {"id": trained.vocab_size, "content": "<e1>", "special": True} | TEXT_FLAGS
    ours = WordPiece(trained.tokens, trained.options, one_type=one_type, added=[extra])
    for name, content in ours.files_for_transformers(max_positions=48).items():
        (tmp_path / name).write_bytes(content)
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    again = load_tokenizer(tmp_path)
    assert type(again) is WordPiece and (again.fingerprint, again.options) == (ours.fingerprint, ours.options)
    for text in (*SENTENCES, *texts[:20], "Café <e1> naïve"):
        for form in ("NFC", "NFD"):
            both = (unicodedata.normalize(form, text), "배를")
            expected = ours.encode(*both)
            assert theirs.encode(*both).ids == expected.ids.tolist() == again.encode(*both).ids.tolist()
            assert theirs.encode(*both).type_ids == expected.types.tolist() == again.encode(*both).types.tolist()
    config = json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8"))
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert ("token_type_ids" in config["model_input_names"]) is not one_type
    assert load_tokenizer(tmp_path, lowercase=True).normalize("ABC") == "abc"


@pytest.mark.peers
def test_saved_tokenizers_load_in_transformers(texts, tmp_path):
    transformers = pytest.importorskip("transformers")
    for lowercase in (False, True):
        ours = train_wordpiece(texts, 600, lowercase=lowercase)
        ours.save(tmp_path / str(lowercase))
        (folder := tmp_path / f"converted-{lowercase}").mkdir()
        for name, content in ours.files_for_transformers(max_positions=48).items():
            (folder / name).write_bytes(content)
        for text in ("The naïve captain [MASK] sailed.", "배를 타고 강을 건너서"):
            theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / str(lowercase))
            assert theirs(text)["input_ids"] == ours.encode(text).ids.tolist()
            theirs, decomposed = transformers.AutoTokenizer.from_pretrained(folder), unicodedata.normalize("NFD", text)
            assert theirs(text)["input_ids"] == theirs(decomposed)["input_ids"] == ours.encode(text).ids.tolist()
            assert theirs(text)["token_type_ids"] == ours.encode(text).types.tolist()
