"""Tests of reading the contents of a `tokenizer.json`."""

import re

import pytest

from bert_elmo_jax.text import Frame
from bert_elmo_jax.text.tokenizer_specs import (
    TINY,
    add_specials,
    compile_spec,
    find_frame,
    find_parts,
    find_special_ids,
    hide_specials,
    read_settings,
)

IDS = {"pad": 1, "unk": 3, "cls": 0, "sep": 2, "mask": 4}
INDEX = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "<|endoftext|>": 5}


def template(single, pair):
    def steps(text):
        steps = (step.split(":") for step in text.split())
        return [
            {"Sequence" if name in "AB" else "SpecialToken": {"id": name, "type_id": int(kind)}} for name, kind in steps
        ]

    specials = {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [2], "tokens": []}}
    return {"type": "TemplateProcessing", "single": steps(single), "pair": steps(pair), "special_tokens": specials}


def test_templates():
    part = template("<s>:0 A:0 </s>:0", "<s>:0 A:0 </s>:0 </s>:0 B:1 </s>:1")
    sequence = {"type": "Sequence", "processors": [{"type": "ByteLevel"}, part]}
    assert find_frame({"post_processor": sequence}, IDS, "x") == Frame((0,), (2, 2), (2,))
    assert find_frame({"post_processor": template("A:0", "A:0 B:1")}, IDS, "x") == Frame()
    for single, pair in (
        ("<s>:0 A:0", "<s>:0 A:0 </s>:0 B:1 </s>:1"),
        ("<s>:0 A:0 </s>:0", "<s>:0 B:1 </s>:0 A:0 </s>:1"),
        ("<s>:0 A:0 </s>:0", "<s>:0 A:0 </s>:0"),
        ("A:0 <s>:2", "A:0 B:1 <s>:2"),
    ):
        with pytest.raises(ValueError, match="x: the post_processor's template for pairs is not"):
            find_frame({"post_processor": template(single, pair)}, IDS, "x")


def test_frames_without_a_template():
    assert find_frame({}, IDS, "x") == Frame((0,), (2,), (2,))
    assert find_frame({}, dict.fromkeys(IDS, 5), "x") == Frame()
    bert = {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}
    assert find_frame({"post_processor": bert}, IDS, "x") == Frame((0,), (2,), (2,))


def test_special_pieces():
    assert find_special_ids(INDEX, {}, "x") == IDS
    assert find_special_ids(INDEX, {"pad_token": {"content": "</s>"}}, "x")["pad"] == 2
    assert set(find_special_ids({"<|endoftext|>": 0, "a": 1}, {}, "x").values()) == {0}
    assert find_special_ids({"<end>": 0, "<pad>": 1}, {"eos_token": "<end>"}, "x") == dict.fromkeys(IDS, 0) | {"pad": 1}
    assert set(find_special_ids({"<|endoftext|>": 0, "[SEP]": 1}, {"eos_token": "<|endoftext|>"}, "x").values()) == {0}
    with pytest.raises(ValueError, match=re.escape("x does not hold mask_token '[MASK]' of its configuration files")):
        find_special_ids(INDEX, {"mask_token": "[MASK]"}, "x")
    with pytest.raises(ValueError, match=re.escape("x has no piece for: mask ([MASK] or <mask>). Encoders need")):
        find_special_ids({name: number for name, number in INDEX.items() if name != "<mask>"}, {}, "x")


def test_a_gpt2_with_a_first_piece_needs_no_mask():
    index = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    settings = {"tokenizer_class": "GPT2Tokenizer", "eos_token": "</s>"}
    assert find_special_ids(index, settings, "x") == IDS | {"mask": 3}
    with pytest.raises(ValueError, match="x has no piece for: mask"):
        find_special_ids(index, {"eos_token": "</s>"}, "x")


def test_special_pieces_are_marked():
    spec = {"added_tokens": [{"id": 4, "content": "<mask>", "lstrip": True, "special": False}]}
    tokens = {number: piece for piece, number in INDEX.items()}
    settings = {"cls_token": {"content": "<s>", "rstrip": True}}
    added = add_specials(spec, IDS, tokens, settings)["added_tokens"]
    assert [entry["content"] for entry in added] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    assert all(entry["special"] for entry in added)
    assert (added[0]["rstrip"], added[4]["lstrip"], added[1]["lstrip"]) == (True, True, False)


def test_parts_that_the_library_cannot_run_are_all_named():
    assert compile_spec({"model": TINY}, "x").get_vocab() == {"a": 0}
    with pytest.raises(ValueError, match=r"x: normalizer is 'Fold', pre_tokenizer is 'Cut', which the library"):
        compile_spec({"model": TINY, "normalizer": {"type": "Fold"}, "pre_tokenizer": {"type": "Cut"}}, "x")


def test_parts_and_hidden_special_pieces():
    inner = {"type": "ByteLevel", "trim_offsets": True}
    assert find_parts({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, inner]}, "ByteLevel") == [inner]
    assert find_parts(None, "NFC") == []
    spec = {"added_tokens": [{"id": 0, "content": "<s>"}], "model": {"vocab": {"<s>": 0, "a": 1}}}
    hidden = hide_specials(spec, [0])
    assert list(hidden["model"]["vocab"].values()) == [0, 1]
    assert hidden["added_tokens"][0]["content"] in hidden["model"]["vocab"] and "<s>" not in hidden["model"]["vocab"]
    unigram = {"model": {"vocab": [["<s>", 0.0], ["a", -1.0]]}}
    assert hide_specials(spec | unigram, [0])["model"]["vocab"][1] == ["a", -1.0]


def test_later_settings_win(tmp_path):

    (tmp_path / "special_tokens_map.json").write_text('{"mask_token": "<mask>", "pad_token": "<pad>"}')
    (tmp_path / "tokenizer_config.json").write_text('{"pad_token": "[PAD]"}')
    assert read_settings(tmp_path) == {"mask_token": "<mask>", "pad_token": "[PAD]"}
