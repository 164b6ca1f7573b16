"""Tests of byte-level BPE: its files, and vocabularies trained here."""

import json

import pytest

from bert_elmo_jax.text import load_tokenizer
from bert_elmo_jax.text.bpe import byte_bpe_spec, byte_level, read_merges, read_vocabulary_and_merges

VOCABULARY = {piece: number for number, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b", "ab"])}


def write(folder, vocabulary=VOCABULARY, merges="#version: 0.2\na b\n"):
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    (folder / "merges.txt").write_text(merges, "utf-8")
    return folder


def test_files_are_enough(tmp_path):
    tokenizer = load_tokenizer(write(tmp_path))
    assert tokenizer.encode("ab", "ba").ids.tolist() == [0, 7, 2, 2, 6, 5, 2]
    assert load_tokenizer(tmp_path / "merges.txt").fingerprint == tokenizer.fingerprint
    assert read_merges(tmp_path / "merges.txt", VOCABULARY) == [("a", "b")]
    spec = read_vocabulary_and_merges(tmp_path, {})
    assert spec == byte_bpe_spec(VOCABULARY, [("a", "b")], byte_level(prefix=False), spec["post_processor"])
    assert spec["post_processor"]["sep"] == ["</s>", 2]


def test_no_piece_is_added_with_the_tokenizer_of_a_gpt2(tmp_path):
    """A GPT-2 may have a vocabulary with the special pieces of a RoBERTa; transformers frames no text of it."""
    write(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    for post_processor in (None, byte_level(prefix=False), "no file"):
        if post_processor != "no file":
            spec = byte_bpe_spec(VOCABULARY, [("a", "b")], byte_level(prefix=False), post_processor)
            (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
        tokenizer = load_tokenizer(tmp_path)
        assert tokenizer.encode("ab", "ba").ids.tolist() == [7, 6, 5]
        assert tokenizer.encode("ab").ids.tolist() == [7]
        (tmp_path / "tokenizer.json").unlink(missing_ok=True)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "RobertaTokenizer"}))
    assert load_tokenizer(tmp_path).encode("ab").ids.tolist() == [0, 7, 2]
    (tmp_path / "config.json").unlink()
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer"}))
    tokenizer = load_tokenizer(tmp_path)
    tokenizer.save(tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").encode("ab").ids.tolist() == tokenizer.encode("ab").ids.tolist() == [7]


BROKEN = [  # changed files and the message
    ({"merges": "a b\nab\n"}, r"merges.txt: line 2 is 'ab'; expected two pieces"),
    ({"merges": "a b c\n"}, r"line 1 is 'a b c'; expected two pieces"),
    ({"merges": "#version: 0.2\nb a\n"}, r"merges.txt does not belong to the vocab.json .* line 2 .*'ba' is not in"),
    ({"vocabulary": ["a", "b"]}, "vocab.json should hold a JSON object"),
    ({"vocabulary": VOCABULARY | {"c": "8"}}, "vocab.json is not a BPE vocabulary"),
    ({"vocabulary": {"a": 0, "b": 1, "ab": 2}}, r"no piece for: pad \(\[PAD\] or <pad>\), unk .*, mask \("),
    ({"vocabulary": VOCABULARY | {"c": 9}}, "ids of its 9 pieces are not 0 to 8"),
]


@pytest.mark.parametrize(("files", "message"), BROKEN)
def test_broken_files_raise(tmp_path, files, message):
    with pytest.raises(ValueError, match=message):
        load_tokenizer(write(tmp_path, **files))


def test_missing_files_are_named_and_two_vocabularies_refused(tmp_path):
    for name in ("vocab.json", "merges.txt"):
        (write(tmp_path) / name).unlink()
        with pytest.raises(FileNotFoundError, match=f"lacks {name}: a BPE is vocab.json and merges.txt together"):
            load_tokenizer(tmp_path)
    (write(tmp_path) / "vocab.txt").write_text("[PAD]\n")
    with pytest.raises(ValueError, match=r"both vocab.txt and vocab.json and merges.txt"):
        load_tokenizer(tmp_path)


def test_a_trained_vocabulary_knows_every_text(byte_bpe):
    assert byte_bpe.tokens[:5] == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert all(len(piece) == 1 for piece in byte_bpe.tokens[5:261])
    text = "漢字 😀 ꀀ \u1100"
    encoding = byte_bpe.encode(text)
    assert byte_bpe.unk_id not in encoding.ids
    assert byte_bpe.decode(encoding.ids) == text
    assert "Ġthe" in byte_bpe.tokens
    assert any(byte_bpe.decode([number]) == "배" for number in range(byte_bpe.vocab_size))


@pytest.mark.peers
def test_saved_tokenizers_load_in_transformers(byte_bpe, tmp_path):
    transformers = pytest.importorskip("transformers")
    byte_bpe.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in ("The naïve captain [MASK] sailed.", "배를 타고 강을 건너서", ""):
        assert theirs(text)["input_ids"] == byte_bpe.encode(text).ids.tolist()
        expected, ours = theirs(text, "배"), byte_bpe.encode(text, "배")
        assert (expected["input_ids"], expected["token_type_ids"]) == (ours.ids.tolist(), ours.types.tolist())
