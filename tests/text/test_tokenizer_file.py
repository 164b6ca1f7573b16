"""Tests of tokenizers that a `tokenizer.json` or its like describes, against frozen results of transformers."""

import json
import shutil

import numpy as np
import pytest

from bert_elmo_jax.text import Frame, TokenizerFile, load_tokenizer, load_tokenizer_file, train_sentencepiece
from bert_elmo_jax.text.tokenizer_file import BYTE_OF
from bert_elmo_jax.text.tokenizer_json import tokenizer_json

FOLDERS = ("roberta_tiny", "gpt2_tiny", "modernbert_packed", "xlmr_tiny")


@pytest.fixture(scope="session")
def folders(goldens):
    return goldens / "tokenizers"


def copy(folder, target, *names):
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copyfile(folder / name, target / name)
    return target


def edit(folder, target, change, name="tokenizer.json"):
    """Copy a folder and change one of its files."""
    copy(folder, target, *(path.name for path in folder.iterdir() if path.name != "encodings.json"))
    content = json.loads((target / name).read_text("utf-8"))
    change(content)
    (target / name).write_text(json.dumps(content), "utf-8")
    return target


def check_golden(tokenizer, file):
    golden = json.loads(file.read_text("utf-8"))
    golden = golden if isinstance(golden, dict) else {"single": golden}
    assert len(golden["single"]) > 20
    for entry in golden["single"]:
        texts = entry["text"] if isinstance(entry["text"], list) else [entry["text"]]
        encoding = tokenizer.encode(*texts)
        assert encoding.ids.tolist() == entry["ids"], texts
        assert encoding.offsets.tolist() == entry["offsets"], texts
    for entry in golden.get("pairs", []):
        encoding = tokenizer.encode(entry["a"], entry["b"])
        assert encoding.ids.tolist() == entry["ids"], entry
        assert not encoding.types.any()
        assert tokenizer.encode(entry["b"], specials=False).ids.tolist() == [
            number for number, text, word in zip(encoding.ids, encoding.texts, encoding.word_ids) if text and word >= 0
        ]


@pytest.mark.parametrize("name", FOLDERS)
def test_hostile_strings(folders, name, tmp_path):
    tokenizer = load_tokenizer(folders / name)
    check_golden(tokenizer, folders / name / "encodings.json")
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert again.fingerprint == tokenizer.fingerprint
    assert (again.frame, again.kind, again.tokens) == (tokenizer.frame, tokenizer.kind, tokenizer.tokens)
    check_golden(again, folders / name / "encodings.json")


@pytest.mark.parametrize("name", ["roberta_tiny", "gpt2_tiny"])
def test_vocabulary_and_merges_alone(folders, name, tmp_path):
    tokenizer = load_tokenizer(copy(folders / name, tmp_path / "a", "vocab.json", "merges.txt"))
    check_golden(tokenizer, folders / name / "encodings.json")
    assert tokenizer.fingerprint == load_tokenizer(folders / name).fingerprint
    assert load_tokenizer(tmp_path / "a" / "vocab.json").fingerprint == tokenizer.fingerprint


def test_special_pieces_and_frames(folders):
    roberta, gpt, modern, xlmr = (load_tokenizer(folders / name) for name in FOLDERS)
    for tokenizer in (roberta, xlmr):
        assert (tokenizer.cls_id, tokenizer.pad_id, tokenizer.sep_id, tokenizer.unk_id) == (0, 1, 2, 3)
        assert tokenizer.frame == Frame((0,), (2, 2), (2,), (0, 0))
    assert xlmr.tokens[xlmr.mask_id] == "<mask>" and xlmr.mask_id == xlmr.vocab_size - 1
    assert modern.frame == Frame((356,), (357,), (357,), (0, 0))
    assert gpt.frame == Frame() and gpt.tokens[gpt.sep_id] == "<|endoftext|>"
    assert gpt.encode("배").ids.tolist() == gpt.encode("배", specials=False).ids.tolist()


def test_mask_swallows_the_space_before_it_if_the_file_says_so(folders, tmp_path):
    folder = edit(folders / "roberta_tiny", tmp_path / "a", lambda spec: spec["added_tokens"][4].update(lstrip=True))
    tokenizer = load_tokenizer(folder)
    # As transformers has it.
    assert tokenizer.encode("A b <mask>").ids.tolist() == [0, 37, 276, 4, 2]
    assert tokenizer.encode("A b <mask>").offsets.tolist() == [[0, 0], [0, 1], [2, 3], [4, 10], [0, 0]]
    assert tokenizer.decode(tokenizer.encode("A b <mask>").ids) == "A b <mask>"
    assert load_tokenizer(folders / "roberta_tiny").encode("A b <mask>").ids.tolist() == [0, 37, 276, 225, 4, 2]
    copy(folders / "roberta_tiny", tmp_path / "b", "vocab.json", "merges.txt")
    mask = {"content": "<mask>", "lstrip": True, "normalized": False}
    (tmp_path / "b" / "tokenizer_config.json").write_text(json.dumps({"mask_token": mask}))
    assert load_tokenizer(tmp_path / "b").encode("A b <mask>").ids.tolist() == [0, 37, 276, 4, 2]


def test_flags_of_the_settings_overrule_the_file(folders, tmp_path):
    stored = {"content": "<mask>", "lstrip": False, "rstrip": True, "normalized": False, "special": True}
    folder = copy(folders / "roberta_tiny", tmp_path, "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": {"4": stored}}))
    assert load_tokenizer(folder).encode("<mask> <mask>", specials=False).ids.tolist() == [4, 4]
    assert load_tokenizer(folder).encode("a <mask>", specials=False).offsets[-1].tolist() == [2, 8]


def test_settings_beside_the_file(folders, tmp_path):
    settings = {"add_prefix_space": True, "trim_offsets": False}
    for number, names in enumerate((("vocab.json", "merges.txt"), ("tokenizer.json",))):
        folder = copy(folders / "roberta_tiny", tmp_path / str(number), *names)
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        encoding = load_tokenizer(folder).encode("A b <mask>")
        # As transformers has it for the same files.
        assert encoding.ids.tolist() == [0, 349, 276, 225, 4, 2]
        assert encoding.offsets.tolist() == [[0, 0], [0, 1], [1, 3], [3, 4], [4, 10], [0, 0]]


def test_normalisation_of_the_file_is_followed(folders, tmp_path):
    lower = {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}
    folder = edit(folders / "roberta_tiny", tmp_path, lambda spec: spec.update(normalizer=lower))
    tokenizer = load_tokenizer(folder)
    plain = load_tokenizer(folders / "roberta_tiny")
    assert tokenizer.encode("Ａ RIVER 배").ids.tolist() == plain.encode("a river 배").ids.tolist()
    assert tokenizer.normalize("Ａ RIVER 배") == "a river 배"
    assert tokenizer.fingerprint != plain.fingerprint
    with pytest.raises(ValueError, match=r"tokenizer.json .* carries its own normalisation: leave lowercase out"):
        load_tokenizer(folder, lowercase=True)


def test_wordpiece_with_rules_of_its_own(tmp_path):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "##ing", "배", "##를"]
    spec = {
        "version": "1.0",
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
        | {"max_input_chars_per_word": 100, "vocab": {piece: number for number, piece in enumerate(pieces)}},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    tokenizer = load_tokenizer(tmp_path)
    encoding = tokenizer.encode("PLAYING [MASK]", "배를")
    assert encoding.ids.tolist() == [2, 5, 6, 4, 3, 7, 8, 3]
    assert encoding.types.tolist() == encoding.texts.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert tokenizer.decode(encoding.ids) == "playing [MASK] 배를"
    assert tokenizer.word_starts.tolist() == [False] * 5 + [True, False, True, False]


def test_literal_special_pieces_are_text_in_a_corpus(folders):
    for name in FOLDERS:
        tokenizer = load_tokenizer(folders / name)
        text = f"a {tokenizer.tokens[tokenizer.sep_id]} b"
        assert tokenizer.sep_id in tokenizer.encode(text, specials=False).ids
        ids, lengths = tokenizer.encode_lines([text, "", "배"])
        assert tokenizer.sep_id not in ids
        assert lengths.sum() == len(ids) and lengths[1] == 0


@pytest.mark.parametrize("name", ["roberta_tiny", "gpt2_tiny", "modernbert_packed"])
def test_decoding_gives_the_text(folders, name):
    tokenizer = load_tokenizer(folders / name)
    for text in ("Hello, world!", "  two  spaces ", "배를 타고 강을\n건넜다. 👩\u200d🚀", "null\0byte", ""):
        assert tokenizer.decode(tokenizer.encode(text).ids) == tokenizer.normalize(text) == text


def test_words_are_numbered_by_their_spaces(folders):
    tokenizer = load_tokenizer(folders / "roberta_tiny")
    # A piece inside a syllable spans it.
    assert tokenizer.encode("배를", specials=False).offsets.tolist() == [[0, 1]] * 3 + [[1, 2]] * 3
    encoding = tokenizer.encode("Hello, world <mask>", specials=False)
    words = {}
    for word, token in zip(encoding.word_ids.tolist(), encoding.tokens):
        words[word] = words.get(word, "") + token
    assert list(words.values()) == ["Hello,", "Ġworld", "Ġ", "<mask>"]
    joined = tokenizer.encode("Hello 배를 don't", specials=False)
    presplit = tokenizer.encode_words(["Hello", "배를", "", "don't"], specials=False)
    assert presplit.ids.tolist() == joined.ids.tolist()
    assert sorted(set(presplit.word_ids.tolist())) == [0, 1, 3]
    for word, (start, end) in zip(presplit.word_ids.tolist(), presplit.offsets.tolist()):
        assert 0 <= start <= end <= len(["Hello", "배를", "", "don't"][word])


def test_added_pieces(folders, tmp_path):
    modern = load_tokenizer(folders / "modernbert_packed")
    assert modern.encode("a    b", specials=False).ids[1] == 352
    folder = copy(folders / "roberta_tiny", tmp_path, "vocab.json", "merges.txt")
    (folder / "added_tokens.json").write_text('{"<e1>": 400, "<e2>": 401}')
    tokenizer = load_tokenizer(folder)
    assert (tokenizer.vocab_size, tokenizer.tokens[401]) == (402, "<e2>")
    assert 401 in tokenizer.encode("a<e2>b").ids
    ids, config = tokenizer.encode("river").ids.tolist(), folder / "tokenizer_config.json"
    config.write_text(json.dumps({"additional_special_tokens": [tokenizer.tokens[300]]}))
    assert load_tokenizer(folder).encode(f"a{tokenizer.tokens[300]}b").ids.tolist().count(300) == 1
    assert load_tokenizer(folder).encode("river").ids.tolist() == ids
    (folder / "added_tokens.json").write_text('{"<e1>": 405}')
    with pytest.raises(ValueError, match=r"adds the piece '<e1>' with the id 405, but the ids before it end at 399"):
        load_tokenizer(folder)


FOLD = {"type": "Fold"}
NOT_HONOURED = [  # a change of the file, and the message
    (lambda w: w.update(normalizer=FOLD), r"tokenizer.json: normalizer is 'Fold', which the library"),
    (lambda w: w.update(normalizer={"type": "Sequence", "normalizers": [FOLD]}), "normalizer is 'Fold'"),
    (lambda w: w.update(post_processor={"type": "Frames"}), "post_processor is 'Frames'"),
    (lambda w: w["model"].update(type="WordLevel"), "model type is 'WordLevel' with pre_tokenizer 'ByteLevel'"),
    (lambda w: w["pre_tokenizer"].update(type="Whitespace"), "model type is 'BPE' with pre_tokenizer 'Whitespace'"),
    (lambda w: w["model"].update(end_of_word_suffix="</w>"), "supported are WordPiece"),
    (lambda w: w["model"]["merges"].append(["q", "zzz"]), "model is 'BPE'.*zzz"),
    (lambda w: w["model"]["vocab"].update(gap=1000), "the ids of its 401 pieces are not 0 to 400"),
]


def test_files_that_cannot_be_honoured_raise(folders, tmp_path):
    for change, message in NOT_HONOURED:
        with pytest.raises(ValueError, match=message):
            load_tokenizer(edit(folders / "roberta_tiny", tmp_path / "a", change))
    folder = edit(folders / "gpt2_tiny", tmp_path / "b", lambda s: s.update(mask_token="<m>"), "tokenizer_config.json")
    with pytest.raises(ValueError, match=r"tokenizer.json does not hold mask_token '<m>' of its configuration"):
        load_tokenizer(folder)
    load_tokenizer(folders / "roberta_tiny").save(tmp_path / "edited")
    file = tmp_path / "edited" / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | {"normalizer": {"type": "Lowercase"}}))
    with pytest.raises(ValueError, match=r"does not match the tokenizer_config.json in its folder"):
        load_tokenizer(file.parent)


def test_other_ways_to_split_are_refused(goldens, folders, tmp_path):
    """transformers splits by them; the class that reads only `tokenizer.json` ignores the first."""
    punctuation = r"tokenizer_config.json: split_by_punct is true; only false, DeBERTa's own rules, is supported"
    for config in ({"tokenizer_class": "DebertaV2Tokenizer"}, {}):
        folder = copy(goldens / "deberta_v3_tiny", tmp_path, "spm.model")
        (folder / "config.json").write_text('{"model_type": "deberta-v2"}')
        (folder / "tokenizer_config.json").write_text(json.dumps(config | {"split_by_punct": True}))
        with pytest.raises(ValueError, match=punctuation):
            load_tokenizer(folder)
        (folder / "spm.model").unlink()
        (folder / "tokenizer.json").write_bytes(tokenizer_json(load_tokenizer(goldens / "deberta_v3_tiny")))
        with pytest.raises(ValueError, match=punctuation):
            load_tokenizer(folder)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "TokenizersBackend", "split_by_punct": true}')
    assert load_tokenizer(folder).tokens == load_tokenizer(goldens / "deberta_v3_tiny").tokens
    change = {"split_special_tokens": True}
    folder = edit(
        folders / "roberta_tiny", tmp_path / "b", lambda config: config.update(change), "tokenizer_config.json"
    )
    with pytest.raises(ValueError, match=r"split_special_tokens is true; only false is supported: encode reads"):
        load_tokenizer(folder)


def test_truncation_and_padding_of_the_file_are_left_to_batches(folders, tmp_path):
    def change(spec):
        spec["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
        spec["padding"] = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None}
        spec["padding"] |= {"pad_id": 1, "pad_type_id": 0, "pad_token": "<pad>"}

    folder = edit(folders / "roberta_tiny", tmp_path, change)
    check_golden(load_tokenizer(folder), folders / "roberta_tiny" / "encodings.json")


def test_files_for_transformers(folders, byte_bpe):
    spaces = [json.loads(load_tokenizer(folders / name).files()["tokenizer_config.json"]).get("add_prefix_space")
              for name in ("gpt2_tiny", "xlmr_tiny")]  # fmt: skip
    # transformers 4 sets the rule to this field, which is false by default.
    assert [json.loads(byte_bpe.files()["tokenizer_config.json"])["add_prefix_space"], *spaces] == [True, None, None]
    tokenizer = load_tokenizer(folders / "roberta_tiny")
    files = tokenizer.files_for_transformers(max_positions=48, types=False)
    config = json.loads(files["tokenizer_config.json"])
    assert (config["model_max_length"], config["mask_token"]) == (48, "<mask>")
    assert config["model_input_names"] == ["input_ids", "attention_mask"]
    assert files["tokenizer.json"] == tokenizer.files()["tokenizer.json"]


GENERATIVE = [  # pieces behind the vocabulary of a GPT-2, settings, and the special ids
    ([], {}, [0, 0, 0, 0, 0]),
    (["<|pad|>", "[SEP]"], {"pad_token": "<|pad|>", "sep_token": "[SEP]"}, [400, 0, 0, 0, 0]),
    (["<pad>", "<sep>"], {"pad_token": "<|endoftext|>"}, [0, 0, 0, 0, 0]),
    (["<s>", "</s>", "<pad>", "<unk>"], {"eos_token": "</s>", "unk_token": "<unk>"}, [402, 403, 400, 401, 403]),
]


@pytest.mark.parametrize(("pieces", "names", "special_ids"), GENERATIVE)
def test_special_pieces_of_a_gpt2_are_read_back(folders, tmp_path, pieces, names, special_ids):
    added = [{"id": 400 + number, "content": piece, "special": True} for number, piece in enumerate(pieces)]
    folder = edit(folders / "gpt2_tiny", tmp_path / "a", lambda spec: spec.update(added_tokens=added))
    settings = {"eos_token": "<|endoftext|>"} | names
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = load_tokenizer(folder)
    assert [getattr(tokenizer, f"{kind}_id") for kind in ("pad", "unk", "cls", "sep", "mask")] == special_ids
    tokenizer.save(tmp_path / "b")
    again = load_tokenizer(tmp_path / "b")
    assert (again.fingerprint, again.frame) == (tokenizer.fingerprint, Frame())
    saved = json.loads((tmp_path / "b" / "tokenizer_config.json").read_text())
    assert saved["eos_token"] == settings["eos_token"]
    assert saved.get("pad_token", "<|endoftext|>") == tokenizer.tokens[tokenizer.pad_id]
    assert pieces or tokenizer.fingerprint == load_tokenizer(folders / "gpt2_tiny").fingerprint


def test_decoding_leaves_added_special_pieces_out(folders, tmp_path):
    folder = copy(folders / "gpt2_tiny", tmp_path, "vocab.json", "merges.txt")
    (folder / "added_tokens.json").write_text('{"<|sep|>": 400, "<e>": 401}')
    (folder / "tokenizer_config.json").write_text('{"additional_special_tokens": ["<|sep|>"]}')
    tokenizer = load_tokenizer(folder)
    ids = tokenizer.encode("a<|sep|> b<e>").ids
    assert {400, 401} <= set(ids.tolist()) and tokenizer.decode(ids) == "a b<e>"


def test_every_byte_has_a_character():
    assert sorted(BYTE_OF.values()) == list(range(256))
    assert (BYTE_OF["Ġ"], BYTE_OF["Ċ"], BYTE_OF["a"]) == (32, 10, 97)


def test_a_specification_is_enough(folders):

    spec = json.loads((folders / "gpt2_tiny" / "tokenizer.json").read_text("utf-8"))
    tokenizer = TokenizerFile(spec)
    assert tokenizer.fingerprint == load_tokenizer_file(folders / "gpt2_tiny").fingerprint
    assert np.flatnonzero(tokenizer.word_starts).size == sum(piece.startswith("Ġ") for piece in tokenizer.tokens)


ADDED_IDS = {  # of transformers 5.24, for pieces that `add_tokens` and `add_special_tokens` put behind the model
    "the <e1>river</e1> rose": [1, 4, 11, 4, 261, 136, 135, 18, 3, 8, 258, 3, 123, 7, 8, 2],
    "a [E2] b": [1, 32, 263, 67, 2],
    "강남역에서 배를": [1, 262, 4, 14, 102, 4, 3, 207, 2],
    "a[MASK]b": [1, 32, 260, 67, 2],
}


def test_pieces_behind_a_sentencepiece_model(goldens, tmp_path):
    folder = copy(goldens / "deberta_v3_tiny", tmp_path, "spm.model", "tokenizer_config.json")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    plain = load_tokenizer(folder)
    assert plain.kind == "sentencepiece" and not isinstance(plain, TokenizerFile)
    (folder / "added_tokens.json").write_text('{"[MASK]": 260, "<e1>": 261, "강남역": 262, "[E2]": 263}')
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"extra_special_tokens": ["[E2]"]}))
    tokenizer = load_tokenizer(folder)
    assert tokenizer.vocab_size == 264
    for text, ids in ADDED_IDS.items():
        assert tokenizer.encode(text).ids.tolist() == ids
    assert tokenizer.encode("the river,", "강가의").ids.tolist() == plain.encode("the river,", "강가의").ids.tolist()
    tokenizer.save(tmp_path / "saved")
    assert load_tokenizer(tmp_path / "saved").fingerprint == tokenizer.fingerprint
    # A tokenizer.json beside the model has the pieces, too.
    (folder / "added_tokens.json").unlink()
    (folder / "tokenizer.json").write_bytes((tmp_path / "saved" / "tokenizer.json").read_bytes())
    for text, ids in ADDED_IDS.items():
        assert load_tokenizer(folder).encode(text).ids.tolist() == ids


def test_pieces_behind_a_model_of_merges_need_the_whole_file(tmp_path):
    train_sentencepiece(["배를 타고", "배를 보다"] * 9, vocab_size=30, model="bpe").save(tmp_path)
    (tmp_path / "added_tokens.json").write_text('{"<e1>": 30}')
    with pytest.raises(ValueError, match=r"adds pieces \(<e1>\) to a SentencePiece model that is no unigram"):
        load_tokenizer(tmp_path)
