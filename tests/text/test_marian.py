"""Marian's tokenizer: two SentencePiece models, one vocabulary or two, languages, and broken folders."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from bert_elmo_jax.text import Marian, load_tokenizer
from bert_elmo_jax.text.marian import load_marian

from .conftest import ENGLISH, KOREAN

FROZEN = Path(__file__).parents[1] / "goldens" / "tokenizers" / "marian"


def test_ids_and_texts_are_those_of_transformers():
    tokenizer = load_tokenizer(FROZEN)
    for frozen in json.loads((FROZEN / "encodings.json").read_text()):
        assert tokenizer.encode(frozen["text"]).ids.tolist() == frozen["ids"], frozen
        assert tokenizer.encode_target(frozen["text"]).ids.tolist() == frozen["target"], frozen
        assert tokenizer.decode(frozen["ids"]).replace("[UNK]", "").split() == frozen["decoded"].split(), frozen


def train(text, size):
    model = io.BytesIO()
    lines = text.split("\n") * 3
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=size, hard_vocab_limit=False, minloglevel=2
    )
    return model.getvalue()


@pytest.fixture(scope="module")
def models():
    return train(ENGLISH, 120), train(KOREAN, 140)


def pieces_of(model):
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [library.id_to_piece(number) for number in range(3, library.vocab_size())]


@pytest.fixture(scope="module")
def joint(models):
    """Return a vocabulary of both languages in another order than the models', without some pieces."""
    pieces = [piece for model in models for number, piece in enumerate(pieces_of(model)) if number % 7]
    names = ["</s>", "<unk>", ">>kor<<", *reversed(pieces), "<pad>"]
    return {piece: number for number, piece in enumerate(dict.fromkeys(names))}


@pytest.fixture
def folder(tmp_path, models, joint):
    (tmp_path / "source.spm").write_bytes(models[0])
    (tmp_path / "target.spm").write_bytes(models[1])
    (tmp_path / "vocab.json").write_text(json.dumps(joint))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"source_lang": "eng", "target_lang": "kor"}))
    return tmp_path


def expected(model, text, vocabulary):
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model).encode(text, out_type=str)
    return [vocabulary.get(piece, vocabulary["<unk>"]) for piece in pieces]


@pytest.mark.parametrize("text", [ENGLISH.split("\n")[0], "the  river Ж😀", "", "[MASK] 배를"])
def test_ids_are_those_of_the_vocabulary(folder, models, joint, text):
    tokenizer = load_tokenizer(folder)
    assert tokenizer.kind == "marian" and tokenizer.vocab_size == len(joint)
    assert tokenizer.encode(text).ids.tolist() == [*expected(models[0], text, joint), joint["</s>"]]
    assert tokenizer.encode_target(text).ids.tolist() == [*expected(models[1], text, joint), joint["</s>"]]
    ids, lengths = tokenizer.encode_lines([text, text])
    assert ids.tolist() == 2 * expected(models[0], text, joint) and lengths.tolist() == [len(ids) // 2] * 2


def test_a_language_in_front_is_one_piece(folder, models, joint):
    tokenizer = load_tokenizer(folder)
    encoding = tokenizer.encode(">>kor<< the river")
    assert encoding.ids[0] == joint[">>kor<<"] and encoding.tokens[0] == ">>kor<<"
    assert encoding.ids[1:-1].tolist() == expected(models[0], " the river", joint)
    assert tokenizer.encode(">>xyz<< the").ids[0] == tokenizer.unk_id
    assert tokenizer.encode_lines([">>kor<< the river"])[0].tolist() == encoding.ids[:-1].tolist()


def test_places_words_and_literal_pieces(folder):
    text = "  the river</s> bank"
    encoding = load_tokenizer(folder).encode(text, specials=False)
    assert "".join(text[start:end] for start, end in encoding.offsets) == text.replace(" ", "")
    assert encoding.tokens.count("</s>") == 1 and encoding.word_ids[-1] == 3
    words = load_tokenizer(folder).encode_words(["the", "river"])
    assert sorted(set(words.word_ids.tolist())) == [-1, 0, 1] and words.tokens[-1] == "</s>"


def test_decoding(folder, joint):
    tokenizer = load_tokenizer(folder)
    text = "배를 타고 강"
    ids = [number for number in tokenizer.encode_target(text).ids.tolist() if number != tokenizer.unk_id]
    expected_text = "".join(tokenizer.tokens[number] for number in ids[:-1]).replace("▁", " ").strip()
    assert tokenizer.decode([tokenizer.pad_id, *ids, tokenizer.pad_id]) == expected_text
    assert tokenizer.decode([5, tokenizer.unk_id]).endswith("[UNK]")
    assert tokenizer.normalize("the  river") == "the river" and tokenizer.decode([]) == ""
    with pytest.raises(ValueError, match="is not in this vocabulary"):
        tokenizer.decode([tokenizer.vocab_size])


def test_two_vocabularies(models, tmp_path, caplog):
    source, target = (
        {piece: number for number, piece in enumerate(["<pad>", "<unk>", "</s>", *pieces_of(model)])}
        for model in models
    )
    tokenizer = Marian(*models, source, target)
    text = "배를 타고"
    ids = tokenizer.encode_target(text).ids
    assert ids.tolist() == [*expected(models[1], text, target), 2]
    assert tokenizer.decode(ids) == text
    tokenizer.save(tmp_path)
    again = load_marian(tmp_path)
    assert again.fingerprint == tokenizer.fingerprint and again.separate and not caplog.text
    Marian(*reversed(models), source, target, where="opus")
    assert "opus: source.spm and target.spm seem to be swapped" in caplog.text
    (tmp_path / "target_vocab.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks target_vocab\.json"):
        load_marian(tmp_path)


def test_saved_and_read_again(folder, tmp_path):
    tokenizer = load_tokenizer(folder)
    (tmp_path / "out").mkdir()
    for name, content in tokenizer.files_for_transformers(max_positions=77, types=False).items():
        (tmp_path / "out" / name).write_bytes(content)
    again = load_tokenizer(tmp_path / "out")
    assert again.fingerprint == tokenizer.fingerprint and again.frame.after == (tokenizer.sep_id,)
    np.testing.assert_array_equal(again.encode("the bank").ids, tokenizer.encode("the bank").ids)
    config = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert config["model_max_length"] == 77 and config["source_lang"] == "eng"


BROKEN = [  # file, content and message
    ("source.spm", b"nothing", r"source\.spm is not a SentencePiece model"),
    ("vocab.json", b'{"a": "b"}', "expected an object that maps pieces to whole numbers"),
    ("vocab.json", b'{"</s>": 0, "<unk>": 1, "<pad>": 3}', "the ids of its 3 pieces are not 0 to 2"),
    ("vocab.json", b'{"</s>": 0, "<unk>": 1}', "has no <pad>, which Marian needs"),
]


@pytest.mark.usefixtures("as_users_run")
def test_special_pieces_and_broken_folders(models, joint, folder):
    with pytest.raises(ValueError, match="carries its own normalisation"):
        load_tokenizer(folder, lowercase=True)
    with pytest.raises(TypeError, match="expected a str"):
        load_tokenizer(folder).encode_lines([3])
    for name in ("source.spm", "target.spm", "vocab.json"):
        content = (folder / name).read_bytes()
        (folder / name).unlink()
        with pytest.raises(FileNotFoundError, match=f"lacks {name}: Marian's tokenizer is"):
            load_tokenizer(folder)
        (folder / name).write_bytes(content)
    for name, content, message in BROKEN:
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            load_tokenizer(folder)
        (folder / name).write_bytes(before)
    renamed = {{"<pad>": "<blank>"}.get(piece, piece): number for piece, number in joint.items()}
    (folder / "vocab.json").write_text(json.dumps(renamed))
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": {"content": "<blank>"}}))
    assert load_tokenizer(folder).pad_id == joint["<pad>"]


def test_added_pieces_are_refused_by_name(folder, joint):
    config = folder / "tokenizer_config.json"
    usual = {str(joint[name]): {"content": name} for name in ("</s>", "<unk>", "<pad>", ">>kor<<")}
    config.write_text(json.dumps({"added_tokens_decoder": usual}))
    assert load_tokenizer(folder).vocab_size == len(joint)
    config.write_text(json.dumps({"added_tokens_decoder": usual | {str(len(joint)): {"content": "<nl>"}}}))
    (folder / "added_tokens.json").write_text(json.dumps({">>new<<": len(joint) + 1, "<sep>": len(joint) + 2}))
    with pytest.raises(ValueError, match="adds <nl>, <sep>, >>new<< to Marian's vocabulary; added pieces"):
        load_tokenizer(folder)
