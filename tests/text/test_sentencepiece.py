"""Tests of SentencePiece: trained models, released models and invalid ones."""

import io
import re
import unicodedata

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.text import SentencePiece, load_sentencepiece, load_tokenizer, train_sentencepiece
from bert_elmo_jax.text.sentencepiece import find_specials, read_sentencepiece
from bert_elmo_jax.text.shifted_pieces import spec_of_shifted_model
from bert_elmo_jax.text.training import nfc_rules


def foreign_model(texts, **options) -> bytes:
    """Train a model with the library's own normalisation."""
    sentencepiece.set_min_log_level(2)
    written = io.BytesIO()
    options = {"vocab_size": 200, "model_type": "bpe", "num_threads": 1, "minloglevel": 2} | options
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(texts), model_writer=written, hard_vocab_limit=False, **options
    )
    return written.getvalue()


@pytest.fixture(scope="module")
def xlnet_like(texts) -> bytes:
    specials = ["<cls>", "<sep>", "<pad>", "<mask>"]
    return foreign_model(texts, control_symbols=specials, byte_fallback=True, vocab_size=500)


@pytest.fixture(scope="module")
def albert_like(texts) -> bytes:
    specials = {"control_symbols": ["[CLS]", "[SEP]"], "user_defined_symbols": ["[MASK]"]}
    return foreign_model(texts, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, **specials)


def test_rules_compose_every_spelling_of_every_character():
    rules = dict(nfc_rules())
    normalizer = sentencepiece.SentencePieceNormalizer(
        norm_map=list(nfc_rules()), add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=False
    )
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    composite = [c for c in characters if unicodedata.normalize("NFD", c) != c and c not in rules]
    assert len(composite) > 12_000
    for form in ("NFC", "NFD"):
        spelled = [unicodedata.normalize(form, c) for c in composite]
        composed = [unicodedata.normalize("NFC", c) for c in composite]
        assert [s for s, w in zip(spelled, composed) if normalizer.normalize(s) != w] == []
    assert normalizer.normalize("ấ ấ ậ ậ") == "ấ ấ ậ ậ"
    assert normalizer.normalize("ㅋㅋ ½ ﬁ Ａ ①") == "ㅋㅋ ½ ﬁ Ａ ①", "nothing but composition: no compatibility"


@given(text=st.text(st.sampled_from("각가한글ㅋaeo Åáǖậ\u11a8\u1100\u1161"), max_size=12))
def test_trained_models_compose_like_unicode(sentencepiece, text):
    ours = sentencepiece.normalize(unicodedata.normalize("NFD", text))
    assert ours == unicodedata.normalize("NFC", " ".join(part for part in text.split(" ") if part))


def test_model_file_is_self_contained(sentencepiece, tmp_path):
    sentencepiece.save(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "sentencepiece.model").rename(tmp_path / "other.model")
    again = load_tokenizer(tmp_path)
    assert again.fingerprint == sentencepiece.fingerprint
    assert again.normalize("하\u11ab글\u00a0ㅋㅋ") == "한글 ㅋㅋ"


def test_models_hold_the_whole_alphabet_and_literal_marks_are_text(texts):
    for model in ("unigram", "bpe"):
        tokenizer = train_sentencepiece(texts, 400, model=model)
        assert tokenizer.unk_id not in tokenizer.encode_lines(texts)[0]
    assert "x" not in train_sentencepiece(["x" * 10_000, "the sea"], 50).tokens
    # Literal special pieces, the library's own marks and its column separator are ordinary text.
    tokenizer = train_sentencepiece(["[MASK] <unk> ▁ a\tb ▅ [CLS]"] * 3, 60)
    assert tokenizer.tokens[:5] == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert tokenizer.normalize("a\tb ▁ c") == "a b c"


def test_other_names_of_special_pieces(xlnet_like, albert_like):
    tokenizer = SentencePiece(xlnet_like)
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
    assert [tokenizer.tokens[number] for number in special] == ["<pad>", "<unk>", "<cls>", "<sep>", "<mask>"]
    encoding = tokenizer.encode("the <mask> sailed")
    assert (encoding.tokens[0], encoding.tokens[-1]) == ("<cls>", "<sep>")
    assert tokenizer.mask_id in encoding.ids
    assert tokenizer.mask_id not in tokenizer.encode_lines(["the <mask> sailed"])[0]
    assert tokenizer.decode(encoding.ids) == "the [MASK] sailed"
    # A user-defined mask is no mask in the text of a corpus.
    tokenizer = SentencePiece(albert_like)
    assert sentencepiece.SentencePieceProcessor(model_proto=albert_like).encode("the [MASK]")[-1] == tokenizer.mask_id
    assert tokenizer.mask_id not in tokenizer.encode_lines(["the [MASK] sailed"])[0]
    assert tokenizer.mask_id in tokenizer.encode("the [MASK] sailed").ids


@pytest.mark.parametrize(("folder", "unknown"), [("albert_tiny", "<unk>"), ("deberta_v3_tiny", "[UNK]")])
def test_a_literal_unknown_piece_is_that_piece_as_in_transformers(goldens, folder, unknown):
    encoding = load_tokenizer(goldens / folder).encode(f"the {unknown} river", specials=False)
    assert encoding.tokens == ("▁", "the", unknown, "▁ri", "ve", "r")
    assert encoding.offsets[2].tolist() == [4, 4 + len(unknown)]


def test_byte_fallback_round_trip(xlnet_like):
    tokenizer = SentencePiece(xlnet_like)
    text = "the 龘 😀 river"
    encoding = tokenizer.encode(text, specials=False)
    spans = [span for token, span in zip(encoding.tokens, encoding.offsets.tolist()) if token.startswith("<0x")]
    assert {text[start:end] for start, end in spans} == {"龘", "😀"}
    assert tokenizer.decode(encoding.ids) == text


def test_released_models_keep_their_normalisation(albert_like, tmp_path):
    (tmp_path / "spiece.model").write_bytes(albert_like)
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.normalize("ﬁ Ａ") == "fi A", "the library's own rules, NFKC"
    tokenizer.save(tmp_path / "again")
    assert (tmp_path / "again" / "sentencepiece.model").read_bytes() == albert_like
    assert load_tokenizer(tmp_path / "again").fingerprint == tokenizer.fingerprint


def test_model_without_dummy_prefix(texts):
    options = {"add_dummy_prefix": False, "remove_extra_whitespaces": False, "normalization_rule_name": "identity"}
    model = foreign_model(texts, control_symbols=["[PAD]", "[CLS]", "[SEP]", "[MASK]"], **options)
    tokenizer = SentencePiece(model)
    for text in ("  the  river ", "the", ""):
        ids, _ = tokenizer.encode_lines([text])
        assert tokenizer.decode(ids) == tokenizer.normalize(text) == text
    assert tokenizer.encode("the river", specials=False).word_ids[[0, -1]].tolist() == [0, 1]


def test_missing_special_pieces_are_listed(texts, tmp_path):
    (tmp_path / "spiece.model").write_bytes(foreign_model(texts))
    with pytest.raises(ValueError, match=r"spiece.model has no piece for: pad \(\[PAD\] or <pad>\), mask \(") as error:
        load_tokenizer(tmp_path)
    assert "cls" not in str(error.value), "<s> and </s> are there"
    message = re.escape("x.model has no piece for: pad ([PAD] or <pad>), mask ([MASK] or <mask>).")
    with pytest.raises(ValueError, match=message):
        find_specials(["<unk>", "<s>", "</s>"], None, "x.model")


def test_invalid_models_raise(sentencepiece, albert_like, tmp_path):
    file, model = tmp_path / "spiece.model", sentencepiece._model
    for content in (b"", b"not a model", model[: len(model) // 2]):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"spiece.model is not a SentencePiece model, or an incomplete one"):
            load_tokenizer(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"expected a .model file"):
        load_sentencepiece(tmp_path / "nowhere.model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"a single one or one named sentencepiece.model"):
        load_sentencepiece(tmp_path / "empty")
    piece = max(sentencepiece.tokens, key=len).encode()
    damaged = model.replace(piece, b"\xff" * len(piece))
    assert damaged != model
    with pytest.raises(ValueError, match=r"spiece.model is not a .* \(one of its pieces is not UTF-8\)"):
        read_sentencepiece(damaged, "spiece.model")
    with pytest.raises(ValueError, match=r"x.model is not a SentencePiece model"):
        spec_of_shifted_model(damaged, "x.model")
    sentencepiece.save(tmp_path / "replaced")
    (tmp_path / "replaced" / "sentencepiece.model").write_bytes(albert_like)
    with pytest.raises(ValueError, match=r"does not match the tokenizer_config.json"):
        load_tokenizer(tmp_path / "replaced")


def test_lower_casing_outside_the_model(albert_like, tmp_path):
    (tmp_path / "spiece.model").write_bytes(albert_like)
    for value, folded in (("true", True), ("false", False), ("null", False)):
        (tmp_path / "tokenizer_config.json").write_text(f'{{"do_lower_case": {value}}}')
        tokenizer = load_tokenizer(tmp_path)
        assert (tokenizer.normalize("Ab") == tokenizer.normalize("ab")) == folded
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": "yes"}')
    with pytest.raises(ValueError, match="do_lower_case is 'yes'; expected true or false"):
        load_tokenizer(tmp_path)
