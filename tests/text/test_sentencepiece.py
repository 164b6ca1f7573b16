"""Tests of SentencePiece: trained models, released models and invalid ones."""

import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.text import SentencePiece, load_sentencepiece, load_tokenizer, train_sentencepiece
from bert_elmo_jax.text.sentencepiece import find_specials, read_sentencepiece
from bert_elmo_jax.text.shifted_pieces import spec_of_shifted_model
from bert_elmo_jax.text.tokenizer_folder import find_model
from bert_elmo_jax.text.training import nfc_rules


def foreign_model(texts, **options) -> bytes:
    """Train a model with the library's own normalisation."""
    sentencepiece.set_min_log_level(2)
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(texts),
        model_writer=written,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **{"vocab_size": 200, "model_type": "bpe"} | options,
    )
    return written.getvalue()


@pytest.fixture(scope="module")
def xlnet_like(texts) -> bytes:
    return foreign_model(
        texts, control_symbols=["<cls>", "<sep>", "<pad>", "<mask>"], byte_fallback=True, vocab_size=500
    )


@pytest.fixture(scope="module")
def albert_like(texts) -> bytes:
    return foreign_model(
        texts,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]"],
        user_defined_symbols=["[MASK]"],
    )


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
        wanted = [unicodedata.normalize("NFC", c) for c in composite]
        assert [s for s, w in zip(spelled, wanted) if normalizer.normalize(s) != w] == []
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


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_training_is_deterministic(texts, tmp_path, model):
    rng = np.random.Generator(np.random.PCG64(0))
    lines = ["".join(rng.choice(list("abc가나다 "), 30)) for _ in range(200)] + texts
    here = train_sentencepiece(lines, 250, model=model)
    (tmp_path / "lines.json").write_text(json.dumps([lines[i] for i in rng.permutation(len(lines))]))
    program = (
        "import json, sys; from bert_elmo_jax.text import train_sentencepiece; "
        f"train_sentencepiece(json.load(open(sys.argv[1])), 250, model={model!r}).save(sys.argv[2])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "lines.json", tmp_path],
        env={**os.environ, "OMP_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", ""), "training is silent"
    assert load_sentencepiece(tmp_path).fingerprint == here.fingerprint
    here.save(tmp_path / "here")
    for name in ("sentencepiece.model", "tokenizer_config.json"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_model_holds_the_whole_alphabet(texts):
    for model in ("unigram", "bpe"):
        tokenizer = train_sentencepiece(texts, 400, model=model)
        assert tokenizer.unk_id not in tokenizer.encode_lines(texts)[0]


def test_invalid_training_arguments_raise(texts):
    with pytest.raises(ValueError, match=r"vocab_size=30 is too small: .* alone take \d+"):
        train_sentencepiece(texts, 30)
    with pytest.raises(ValueError, match="no words"):
        train_sentencepiece(["", "\0 \u200b"], 100)
    with pytest.raises(ValueError, match="or only too long ones"):
        train_sentencepiece(["x" * 10_000], 100)
    assert "x" not in train_sentencepiece(["x" * 10_000, "the sea"], 50).tokens
    with pytest.raises(ValueError, match="lone surrogate"):
        train_sentencepiece(["half \ud83d"], 100)
    # Literal special pieces, the library's own marks and its column separator are ordinary text.
    tokenizer = train_sentencepiece(["[MASK] <unk> ▁ a\tb ▅ [CLS]"] * 3, 60)
    assert tokenizer.tokens[:5] == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert tokenizer.normalize("a\tb ▁ c") == "a b c"


def test_other_names_of_special_pieces(xlnet_like):
    tokenizer = SentencePiece(xlnet_like)
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
    assert [tokenizer.tokens[number] for number in special] == ["<pad>", "<unk>", "<cls>", "<sep>", "<mask>"]
    encoding = tokenizer.encode("the <mask> sailed")
    assert encoding.tokens[0] == "<cls>"
    assert encoding.tokens[-1] == "<sep>"
    assert tokenizer.mask_id in encoding.ids
    assert tokenizer.mask_id not in tokenizer.encode_lines(["the <mask> sailed"])[0]
    assert tokenizer.decode(encoding.ids) == "the [MASK] sailed"


def test_byte_fallback_round_trip(xlnet_like):
    tokenizer = SentencePiece(xlnet_like)
    text = "the 龘 😀 river"
    encoding = tokenizer.encode(text, specials=False)
    assert any(token.startswith("<0x") for token in encoding.tokens)
    assert tokenizer.decode(encoding.ids) == text
    for token, (start, end) in zip(encoding.tokens, encoding.offsets.tolist()):
        if token.startswith("<0x"):
            assert text[start:end] in ("龘", "😀")


def test_user_defined_mask_does_not_match_corpus_text(albert_like):
    tokenizer = SentencePiece(albert_like)
    assert sentencepiece.SentencePieceProcessor(model_proto=albert_like).encode("the [MASK]")[-1] == tokenizer.mask_id
    ids, _ = tokenizer.encode_lines(["the [MASK] sailed"])
    assert tokenizer.mask_id not in ids
    assert tokenizer.mask_id in tokenizer.encode("the [MASK] sailed").ids


def test_released_models_keep_their_normalisation(albert_like, tmp_path):
    (tmp_path / "spiece.model").write_bytes(albert_like)
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.normalize("ﬁ Ａ") == "fi A", "the library's own rules, NFKC"
    tokenizer.save(tmp_path / "again")
    assert (tmp_path / "again" / "sentencepiece.model").read_bytes() == albert_like
    assert load_tokenizer(tmp_path / "again").fingerprint == tokenizer.fingerprint


def test_model_without_dummy_prefix(texts):
    model = foreign_model(
        texts,
        control_symbols=["[PAD]", "[CLS]", "[SEP]", "[MASK]"],
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
    )
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


def test_invalid_models_raise(sentencepiece, tmp_path):
    file = tmp_path / "spiece.model"
    for content in (b"", b"not a model", sentencepiece._model[: len(sentencepiece._model) // 2]):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"spiece.model is not a SentencePiece model, or an incomplete one"):
            load_tokenizer(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"expected a .model file"):
        load_sentencepiece(tmp_path / "nowhere.model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"a single one or one named sentencepiece.model"):
        load_sentencepiece(tmp_path / "empty")


def test_pieces_that_are_not_utf8_raise(sentencepiece, tmp_path):
    model = sentencepiece._model
    piece = max(sentencepiece.tokens, key=len).encode()
    damaged = model.replace(piece, b"\xff" * len(piece))
    assert damaged != model
    with pytest.raises(ValueError, match=r"spiece.model is not a .* \(one of its pieces is not UTF-8\)"):
        read_sentencepiece(damaged, "spiece.model")
    with pytest.raises(ValueError, match=r"x.model is not a SentencePiece model"):
        spec_of_shifted_model(damaged, "x.model")


def test_lower_casing_outside_the_model_raises(albert_like, tmp_path):
    (tmp_path / "spiece.model").write_bytes(albert_like)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    with pytest.raises(ValueError, match="asks for lower-casing outside of the model"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert load_tokenizer(tmp_path).kind == "sentencepiece"


def test_model_replaced_after_saving_raises(sentencepiece, albert_like, tmp_path):
    sentencepiece.save(tmp_path)
    (tmp_path / "sentencepiece.model").write_bytes(albert_like)
    with pytest.raises(ValueError, match=r"does not match the tokenizer_config.json"):
        load_tokenizer(tmp_path)


def test_example_of_find_model():
    assert find_model(Path("no/such/folder")) is None


def test_example_of_find_specials():
    with pytest.raises(
        ValueError, match=re.escape("x.model has no piece for: pad ([PAD] or <pad>), mask ([MASK] or <mask>).")
    ):
        find_specials(["<unk>", "<s>", "</s>"], None, "x.model")
