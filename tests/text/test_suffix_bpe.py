"""Tests of GPT-1's BPE, whose pieces end words by `</w>`, against frozen results of transformers."""

import json
import shutil

import numpy as np
import pytest

from bert_elmo_jax.data.rows.masking import vocabulary_of
from bert_elmo_jax.text import Frame, load_tokenizer


@pytest.fixture(scope="module")
def folder(goldens):
    return goldens / "tokenizers" / "gpt_tiny"


@pytest.fixture
def files(folder, tmp_path):
    """Return a copy of `vocab.json` and `merges.txt`."""
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(folder / name, tmp_path / name)
    return tmp_path


def check_golden(tokenizer, folder):
    golden = json.loads((folder / "encodings.json").read_text("utf-8"))
    assert len(golden["single"]) > 30
    for entry in golden["single"]:
        encoding = tokenizer.encode(entry["text"])
        assert encoding.ids.tolist() == entry["ids"], entry["text"]
        assert encoding.offsets.tolist() == entry["offsets"], entry["text"]
        assert tokenizer.decode(encoding.ids) == entry["decoded"]
    for entry in golden["pairs"]:
        assert tokenizer.encode(entry["a"], entry["b"]).ids.tolist() == entry["ids"]


def test_hostile_strings(folder, files):
    tokenizer = load_tokenizer(files)
    assert tokenizer.kind == "suffix_bpe"
    check_golden(tokenizer, folder)
    tokenizer.save(files / "again")
    again = load_tokenizer(files / "again")
    assert (again.fingerprint, again.kind, again.tokens) == (tokenizer.fingerprint, tokenizer.kind, tokenizer.tokens)
    check_golden(again, folder)


def special_ids(tokenizer):
    return [getattr(tokenizer, f"{name}_id") for name in ("pad", "unk", "cls", "sep", "mask")]


def test_the_unknown_piece_is_the_only_special_one(files):
    tokenizer = load_tokenizer(files)
    assert tokenizer.frame == Frame()
    assert special_ids(tokenizer) == [0] * 5 and tokenizer.tokens[0] == "<unk>"
    assert tokenizer.word_starts.dtype == np.bool_ and not tokenizer.word_starts[0]
    (files / "added_tokens.json").write_text('{"<pad>": 196, "<end>": 197}')
    (files / "tokenizer_config.json").write_text('{"pad_token": "<pad>", "eos_token": "<end>", "bos_token": null}')
    tokenizer = load_tokenizer(files)
    assert special_ids(tokenizer) == [196, 0, 197, 197, 197]
    assert tokenizer.encode("the<end>").ids.tolist()[-1] == 197


def test_words_end_with_their_last_piece(files):
    tokenizer = load_tokenizer(files)
    encoding = tokenizer.encode("The CAPTAIN's quay")
    words = {}
    for word, token in zip(encoding.word_ids.tolist(), encoding.tokens):
        words[word] = words.get(word, "") + token
    assert list(words.values()) == ["the</w>", "captain</w>", "'</w>", "s</w>", "quay</w>"]
    ids, _ = tokenizer.encode_lines(["The CAPTAIN's quay"])
    assert tokenizer.word_starts[ids].sum() == 5
    assert not vocabulary_of(tokenizer).continues.any()
    presplit = tokenizer.encode_words(["The", "CAPTAIN's", "quay"])
    assert presplit.ids.tolist() == encoding.ids.tolist() and sorted(set(presplit.word_ids.tolist())) == [0, 1, 2]
    # A text of a corpus reads no special piece.
    ids, lengths = tokenizer.encode_lines(["a <unk> b", ""])
    assert lengths.tolist() == [len(ids), 0]
    assert tokenizer.tokens[ids[1]].startswith("<") and tokenizer.encode("<unk>").ids.tolist() == [0]
    assert tokenizer.normalize("A  <unk>, b") == "a < unk > , b"


def test_files_that_are_no_bpe(files):
    vocabulary = json.loads((files / "vocab.json").read_text("utf-8"))
    renamed = {piece.replace("<unk>", "<other>"): number for piece, number in vocabulary.items()}
    for name, text, message in (
        ("merges.txt", "#version: 0.2\nthe river</w> ship\n", r"merges.txt: line 2 is .* expected two pieces with a"),
        ("merges.txt", "#version: 0.2\nq zzz</w>\n", r"does not belong to the vocab.json next to it: line 2 merges"),
        ("vocab.json", '["a", "b"]', r"vocab.json should hold a JSON object"),
        ("vocab.json", '{"a": "b"}', r"vocab.json is not a BPE vocabulary"),
        ("vocab.json", "once upon a time", r"vocab.json is not JSON"),
        ("vocab.json", json.dumps(renamed), r"vocab.json has no piece '<unk>' for unknown characters"),
    ):
        before = (files / name).read_text("utf-8")
        (files / name).write_text(text, "utf-8")
        with pytest.raises(ValueError, match=message):
            load_tokenizer(files)
        (files / name).write_text(before, "utf-8")
