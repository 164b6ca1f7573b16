"""A BART's files, and the numbers of transformers with them: pieces, texts and classes."""

import dataclasses
import json
import re

import numpy as np
import pytest
import tokenizers
from safetensors.numpy import load_file, save_file

from bert_elmo_jax import load
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.bart.config import BartConfig
from bert_elmo_jax.families.bart.huggingface import read_config, read_weights, write
from bert_elmo_jax.runs.config_files import read_config as read_recipe
from bert_elmo_jax.runs.pretraining import start_model
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.runs.with_head import prepare_head, start_head
from bert_elmo_jax.weights.parameter_tree import flatten

from ..huggingface_models import Model, assert_same, random_params
from ..peers import their_warnings

SMALL = BartConfig(
    vocab_size=50, hidden_size=32, num_layers=2, num_heads=4, feed_forward_size=48, max_positions=24,
    classifier_dropout=0.3,
)  # fmt: skip
DEEP = dataclasses.replace(
    SMALL, num_layers=3, decoder_layers=1, decoder_heads=2, decoder_feed_forward_size=20, scale_embeddings=True,
    activation="relu", pad_id=3, start_id=1, end_ids=(1,), forced_end_id=1, forced_start_id=None, forbidden_ids=(3,),
)  # fmt: skip
WRITES = dataclasses.replace(
    SMALL, max_new=9, min_new=2, beams=3, length_penalty=2.0, early_stopping="never", no_repeat_ngram_size=2
)
MODELS = {
    "BartForConditionalGeneration": Model(SMALL, "model final_logits_bias"),
    "BartForConditionalGeneration deep": Model(DEEP, "model final_logits_bias"),
    "BartForConditionalGeneration writes": Model(WRITES, "model final_logits_bias"),
    "BartForSequenceClassification": Model(SMALL, "model classification_head", ("classify",), pooler=True),
    "BartForSequenceClassification deep": Model(DEEP, "model classification_head", ("classify",), pooler=True),
}
TOKENS = np.array([[0, 8, 9, 1, 2, 11, 2, 1, 3, 3], [0, 7, 2, 5, 1, 6, 12, 13, 2, 1]])
MASK = np.array([[1] * 8 + [0] * 2, [1] * 10])


def make_params(name):
    params = random_params(MODELS[name], scale=0.3)
    if MODELS[name].heads:  # files of classifiers have no bias of the logits of pieces
        params["encoder"]["decoder"]["output_bias"] = np.zeros(50, np.float32)
    return params


def test_the_decoder_may_begin_with_the_first_piece():
    """Files with `decoder_start_token_id` 0 are usual where a text begins with `<s>`."""
    config = dataclasses.replace(SMALL, start_id=0)
    assert BartConfig.from_json(config.to_huggingface()).start_id == 0
    with pytest.raises(ValueError, match="start_id holds -1"):
        dataclasses.replace(SMALL, start_id=-1)


@pytest.mark.parametrize("name", MODELS)
def test_written_and_read_again_is_the_same(tmp_path, name):
    model, params, folder = MODELS[name], make_params(name), tmp_path / "out"
    write(folder, params, model.config)
    read, report = read_weights(folder)
    assert_same(read, params)
    assert report.heads == model.heads and not (report.skipped or report.unexpected or report.missing)
    assert {tensor.split(".")[0] for tensor in load_file(folder / "model.safetensors")} == set(model.parts.split())
    assert json.loads((folder / "config.json").read_text())["architectures"] == name.split()[:1]
    assert read_config(folder) == model.config


@pytest.mark.peers
@pytest.mark.parametrize("name", MODELS)
def test_transformers_gives_the_same_numbers_and_the_same_file(peers, tmp_path, name):
    torch, transformers = peers
    model, params = MODELS[name], make_params(name)
    write(tmp_path / "ours", params, model.config)
    with their_warnings():
        theirs, info = getattr(transformers, name.split()[0]).from_pretrained(
            tmp_path / "ours", output_loading_info=True, attn_implementation="eager"
        )
    assert not (info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"]), info
    inputs = {"input_ids": torch.from_numpy(TOKENS), "attention_mask": torch.from_numpy(MASK)}
    with torch.no_grad():
        expected = theirs.eval()(**inputs)
    if model.heads:
        ours = model.family.build(model.config, pooler=True).apply(
            {"params": params["encoder"]}, TOKENS.astype(np.int32), segments=MASK.astype(np.int32)
        )
        logits = np.asarray(ours.pooled) @ params["classify"]["kernel"] + params["classify"]["bias"]
    else:
        logits = load(tmp_path / "ours").forward(tokens=TOKENS, mask=MASK).logits
    np.testing.assert_allclose(logits, expected.logits.numpy(), rtol=1e-4, atol=1e-4)
    with their_warnings():
        theirs.save_pretrained(tmp_path / "theirs")
    read, report = read_weights(tmp_path / "theirs")
    assert_same(read, params)
    assert not (report.unexpected or report.missing)
    if not model.heads:  # transformers keeps nothing about writing with a classifier
        assert read_config(tmp_path / "theirs") == model.config


@pytest.mark.peers
@pytest.mark.parametrize("name", ["BartForConditionalGeneration deep", "BartForConditionalGeneration writes"])
def test_generated_texts_are_the_same(peers, tmp_path, name):
    torch, transformers = peers
    write(tmp_path / "ours", make_params(name), MODELS[name].config)
    with their_warnings():
        model = transformers.BartForConditionalGeneration.from_pretrained(tmp_path / "ours").eval()
    options = {} if name.endswith("writes") else {"max_new": 7, "beams": 3, "no_repeat_ngram_size": 3}
    theirs = {} if name.endswith("writes") else {"max_new_tokens": 7, "num_beams": 3, "no_repeat_ngram_size": 3}
    for row, mask in zip(TOKENS, MASK):
        source = row[mask == 1].tolist()
        [texts] = load(tmp_path / "ours").generate(source=[source], n_best=3, **options)
        with torch.no_grad(), their_warnings():
            beams = model.generate(
                torch.tensor([source]), num_return_sequences=3, output_scores=True, return_dict_in_generate=True,
                **theirs,
            )  # fmt: skip
        for text, sequence, score in zip(texts, beams.sequences.tolist(), beams.sequences_scores.tolist(), strict=True):
            assert text.ids == sequence[1 : 1 + len(text.ids)] and text.score == pytest.approx(score, abs=1e-4)


def edit(folder, change):
    write(folder, make_params("BartForConditionalGeneration"), SMALL)
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    (folder / "model.safetensors").unlink()
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, folder / "model.safetensors")


def test_older_files_have_copies_of_the_table_and_a_bare_model_has_no_bias(tmp_path):
    def copy_table(tensors):
        for name in ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"):
            tensors[name] = tensors["model.shared.weight"].copy()

    def only_head(tensors):
        tensors["lm_head.weight"] = tensors.pop("model.shared.weight")

    def bare(tensors):
        tensors.pop("final_logits_bias")
        for name in list(tensors):
            tensors[name.removeprefix("model.")] = tensors.pop(name)

    expected = flatten(make_params("BartForConditionalGeneration"))
    for number, change in enumerate((copy_table, only_head, bare)):
        folder = tmp_path / str(number)
        edit(folder, change)
        read, report = read_weights(folder)
        assert not (report.unexpected or report.missing)
        assert set(report.skipped.values()) <= {"a copy of its tied tensor"}
        for path, array in flatten(read).items():
            zeros = change is bare and path.endswith("output_bias")
            np.testing.assert_array_equal(array, 0 * array if zeros else expected[path], err_msg=path)


def test_a_decoder_table_of_its_own_is_refused(tmp_path):
    edit(tmp_path / "a", lambda tensors: tensors.update({"lm_head.weight": tensors["model.shared.weight"] + 1}))
    with pytest.raises(ValueError, match=r"lm_head.weight differs from model.shared.weight, but a BART has one table"):
        read_weights(tmp_path / "a")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"normalize_before": True}, "normalize_before is True; only False is supported"),
        ({"normalize_embedding": False}, "normalize_embedding is False; only True"),
        ({"decoder_layers": 10**8}, "decoder_layers is 100,000,000; at most 10,000"),
        ({"forced_bos_token_id": 50}, "forced_start_id is 50; the ids are 0 to 49"),
        ({"num_beams": "four"}, "beams is 'four' in the fields about writing; it must be a number"),
        ({"early_stopping": "soon"}, "early_stopping is 'soon'; it is true, false or 'never'"),
        ({"model_type": "mbart"}, "model_type 'mbart', which is not supported"),
    ],
)
def test_configurations_of_other_models_are_refused(tmp_path, changes, message):
    write(tmp_path, make_params("BartForConditionalGeneration"), SMALL)
    (tmp_path / "generation_config.json").unlink()
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    with pytest.raises(ValueError, match=re.escape(message)):
        load(tmp_path)


def test_the_first_piece_is_forced_in_older_files_too(tmp_path):
    write(tmp_path, make_params("BartForConditionalGeneration"), SMALL)
    (tmp_path / "generation_config.json").unlink()
    file = tmp_path / "config.json"
    fields = {"force_bos_token_to_be_generated": True, "bos_token_id": 5, "forced_bos_token_id": None}
    file.write_text(json.dumps(json.loads(file.read_text()) | fields | {"min_length": 4, "max_length": 8}))
    config = read_config(tmp_path)
    assert (config.forced_start_id, config.min_new, config.max_new) == (5, 3, 7)


@pytest.mark.peers
def test_filled_gaps_are_those_of_transformers(peers, goldens):
    torch, transformers = peers
    with their_warnings():
        model = transformers.BartForConditionalGeneration.from_pretrained(goldens / "bart_tiny").eval()
    ours = load(goldens / "bart_tiny")
    text = "the <mask> of a <mask> boat"
    ids = ours.tokenizer.encode(text).ids
    with torch.no_grad():
        logits = model(input_ids=torch.from_numpy(np.array(ids, np.int64)[None])).logits[0]
    chances = torch.softmax(logits[torch.from_numpy(np.flatnonzero(ids == ours.tokenizer.mask_id))], -1)
    best, pieces = torch.topk(chances, 3)
    guesses = ours.fill_mask(text, top=3)
    assert [guess.piece for guess in guesses] == [ours.tokenizer.tokens[piece] for piece in pieces.flatten().tolist()]
    np.testing.assert_allclose([guess.probability for guess in guesses], best.flatten().numpy(), rtol=1e-5)


KOBART = {  # fields of its config.json that other folders lack, or have with other values
    "author": "a name", "kobart_version": 2.0, "do_blenderbot_90_layernorm": False, "extra_pos_embeddings": 2,
    "add_bias_logits": False, "add_final_layer_norm": False, "force_bos_token_to_be_generated": False,
    "normalize_before": False, "normalize_embedding": True, "static_position_embeddings": False,
    "tokenizer_class": "PreTrainedTokenizerFast", "id2label": {"0": "NEGATIVE", "1": "POSITIVE"},
    "label2id": {"NEGATIVE": 0, "POSITIVE": 1}, "classif_dropout": 0.1, "num_hidden_layers": 2,
}  # fmt: skip


def test_a_folder_like_kobarts(tmp_path, caplog):
    """Its tokenizer puts no pieces around a text, and the ids of the special pieces are its own."""
    special = ("<s>", "</s>", "<usr>", "<pad>", "<sys>", "<unk>", "<mask>")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = tokenizers.normalizers.NFKC()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=48, special_tokens=list(special), show_progress=False)
    tokenizer.train_from_iterator(["강가의 은행에서 배를 타고", "배를 깎으셨다"] * 5, trainer)
    config = dataclasses.replace(
        SMALL, start_id=1, end_ids=(1,), forced_end_id=1, forced_start_id=None, pad_id=3, max_positions=26
    )
    write(tmp_path, random_params(Model(config, "")), config)
    (tmp_path / "generation_config.json").unlink()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    names = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
    }
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(names))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | KOBART))
    model = load(tmp_path)
    assert model.config == config
    unframed, *fields = sorted(caplog.messages, key=lambda line: "post_processor" not in line)
    assert "tokenizer.json has no post_processor that puts special pieces around a text" in unframed
    assert sorted(re.findall(r"(author|kobart_version) is", " ".join(fields))) == ["author", "kobart_version"]
    assert model.tokenizer.encode("배를 타고").tokens[::3] == ("<s>", "</s>")
    assert model.encode(["강가의 은행에서", "배를"]).last.shape[0] == 2
    [[text]] = model.generate(["배를 타고"], max_new=6)
    assert len(text.ids) <= 6 and text.ids[-1] == 1


def make_summariser(folder, vocab_size, mask=40):
    """Write a BART with a tokenizer of 41 pieces; its mask is the last one in facebook/bart-large-cnn."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *"abcdefghijklmnopqrstuvwxyz0123456789"]
    pieces.insert(mask, "<mask>")
    model = tokenizers.models.BPE({piece: n for n, piece in enumerate(pieces)}, [], unk_token="<unk>")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    tokenizer.add_special_tokens([piece for piece in pieces if piece.startswith("<")])
    config = dataclasses.replace(SMALL, vocab_size=vocab_size, max_positions=26)
    write(folder, random_params(Model(config, "")), config)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    (folder / "special_tokens_map.json").write_text(json.dumps(names | {"mask_token": "<mask>"}))
    return folder


def test_a_mask_without_an_embedding_is_refused_in_texts_alone(tmp_path, caplog):
    model = load(make_summariser(tmp_path, 40))
    [record] = [record for record in caplog.records if "embedding" in record.message]
    assert "has no embedding for <mask>, the last piece of its tokenizer" in record.message
    assert len(model.generate(["ship"], max_new=5)[0][0].ids) <= 5 and model.encode(["ship"]).last.shape[0] == 1
    problem = r"holds <mask> \(id 40\), but the embeddings of .* are for the ids 0 to 39: remove it from the text"
    for work in (model.encode, model.check, model.sentences, lambda texts: model.fill_mask(texts[1])):
        with pytest.raises(ValueError, match=problem):
            work(["ship", "ship <mask>"])
    with pytest.raises(ValueError, match=problem):
        model.word_batch([["ship", "<mask>"]], 1, 4)
    with pytest.raises(ValueError, match="the id 40, which is outside of the vocabulary"):
        model.generate(["ship <mask>"], max_new=5)


def test_a_mask_without_an_embedding_is_refused_by_training(tmp_path):
    """Denoising needs the mask; a task does not, but one of its texts may hold it."""
    source = str(make_summariser(tmp_path / "model", 40))
    config = read_recipe("bart:toy")[0]
    with pytest.raises(ValueError, match="has no embedding for <mask>, which pretraining puts into the texts"):
        start_model(get_family("bart"), config, source, load(source).tokenizer)
    config, files = read_recipe("finetune:base")[0], {}
    for name, word in (("train", "ship"), ("dev", "<mask>")):
        files[name] = str(tmp_path / f"{name}.tsv")
        (tmp_path / f"{name}.tsv").write_text(f"sentence\tlabel\na boat\t0\nthe {word}\t1\n", encoding="utf-8")
    config.update(task="sst2", **files)
    with pytest.raises(ValueError, match=r"a text of the task holds <mask> \(id 40\), but .* remove it"):
        prepare_head(config, read_data(config), start_head(config, source, None))


@pytest.mark.parametrize(("vocab_size", "mask"), [(39, 40), (39, 39), (40, 39)])
def test_a_tokenizer_of_another_model_is_refused(tmp_path, vocab_size, mask):
    with pytest.raises(ValueError, match=f"tokenizer has 41 pieces, the model embeddings for {vocab_size}; they"):
        load(make_summariser(tmp_path, vocab_size, mask))
