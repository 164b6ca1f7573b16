"""Files that may have been changed on purpose: a table of (model, change, message), each refused by `load`."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.files import SUMS
from bert_elmo_jax.heads.sentence_head import Dense, SentenceHead, init_sentence_head
from bert_elmo_jax.inference import isolated
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.text import load_tokenizer
from bert_elmo_jax.train.checkpoint import damage, save_params, write_file_list
from bert_elmo_jax.weights.huggingface_files import read_safetensors, write_safetensors

DIGITS = int("9" * 4000)


def edit(file, keys, value):
    """Set a field of a JSON file; `keys` lead to it."""
    content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    file.write_text(json.dumps(content), encoding="utf-8")


CONFIGS = [
    ("transformer_tiny", "d_model", 10**9, "d_model is 1,000,000,000; at most 100,000,000"),
    ("transformer_tiny", "max_position_embeddings", 10**10, "max_position_embeddings is 10,000,000,000; at most"),
    ("transformer_tiny", "decoder_start_token_id", 10**9, "decoder_start_token_id is 1000000000; expected"),
    ("transformer_tiny", "decoder_start_token_id", 70_000, "decoder_start_token_id is 70000, but there are"),
    ("modernbert_tiny", "local_attention", 10**12, "local_attention is 1,000,000,000,000; at most"),
    ("modernbert_tiny", "rope_parameters", {"full_attention": "x"}, "rope_parameters.full_attention is 'x'"),
    ("gpt2_tiny", "n_positions", 10**10, "n_positions is 10,000,000,000; at most"),
    ("gpt2_tiny", "n_head", 0, "n_head is 0 and n_embd 48; both are at least 1"),
    ("gpt2_tiny", "eos_token_id", "x", "eos_token_id is 'x'; expected"),
    ("bert_tiny", "num_labels", -3, "num_labels is -3; expected a whole number from 1"),
    ("bert_tiny", "architectures", [1], "architectures is [1]; expected a list of at most 100 values, each a text"),
    ("bert_tiny", "head_dim", {}, "head_dim is {}; expected a whole number"),
    ("bert_tiny", "hidden_size", DIGITS, "hidden_size is a number of more than 100 digits"),
    ("bert_tiny", "layer_norm_eps", DIGITS, "layer_norm_eps is a number of more than 100 digits"),
    ("bert_tiny", "id2label", ["a"], "id2label is ['a']; expected an object"),
]


@pytest.mark.parametrize(("golden", "field", "value", "message"), CONFIGS, ids=lambda value: str(value)[:30])
def test_configurations(goldens, tmp_path, golden, field, value, message):
    shutil.copytree(goldens / golden, tmp_path / "model")
    edit(tmp_path / "model" / "config.json", [field], value) if value is not DIGITS else write_digits(tmp_path, field)
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        load(tmp_path / "model")
    assert "config.json" in str(refused.value)


def write_digits(folder, field):
    file = folder / "model" / "config.json"
    edit(file, [field], 1234567)
    file.write_text(file.read_text().replace("1234567", "9" * 4000))


def test_a_period_of_layers_that_is_longer_than_any_model(goldens, tmp_path):
    """The first layer is global and all others are local; 3e9 letters would take gigabytes."""
    shutil.copytree(goldens / "modernbert_tiny", tmp_path / "model")
    fields = json.loads((tmp_path / "model" / "config.json").read_text())
    for name in ("layer_types", "global_attn_every_n_layers"):
        fields.pop(name, None)
    fields["global_attn_every_n_layers"] = 3 * 10**9
    (tmp_path / "model" / "config.json").write_text(json.dumps(fields))
    config = load(tmp_path / "model").config
    assert config.kinds == "g" + "l" * (config.num_layers - 1) and len(config.attention_pattern) < 50


@pytest.fixture(scope="module")
def sentence_folder(goldens, tmp_path_factory):
    import jax

    encoder = load(goldens / "bert_tiny")
    encoder.sentence_head = SentenceHead(("mean",), (Dense(64, 8), "normalize"), 20, True)
    encoder.params["sentence"] = init_sentence_head(encoder.sentence_head, jax.random.key(0))
    encoder.save_sentences(tmp_path_factory.mktemp("sentences") / "model")
    return encoder.source and tmp_path_factory.getbasetemp() / "sentences0" / "model"


SENTENCES = [
    ("1_Pooling/config.json", "pooling_mode_mean_tokens", "false", "pooling_mode_mean_tokens is 'false'"),
    ("1_Pooling/config.json", "include_prompt", "no", "include_prompt is 'no'; expected true or false"),
    ("1_Pooling/config.json", "word_embedding_dimension", 9999, "pooling is of vectors of 9999, but the model has 64"),
    ("1_Pooling/config.json", "pooling_mode", ["mean"] * 100_000, "pooling_mode is ['mean'"),
    ("1_Pooling/config.json", "pooling_mode", ["mean", "mean"], "names a mode twice"),
    ("2_Dense/config.json", "bias", "x", "bias is 'x'; expected true or false"),
    ("2_Dense/config.json", "out_features", 0, "out_features is 0; expected a whole number from 1"),
    ("2_Dense/config.json", "activation_function", ["a"], "activation_function is ['a']; expected a text"),
    ("sentence_bert_config.json", "do_lower_case", "x", "do_lower_case is 'x'; expected true or false"),
    ("config_sentence_transformers.json", "similarity_fn_name", "evil", "similarity_fn_name is 'evil'; expected"),
    ("config_sentence_transformers.json", "default_prompt_name", {}, "default_prompt_name is {}; expected a text"),
    ("tokenizer_config.json", "model_max_length", float("-inf"), "model_max_length is -inf; expected a finite"),
    ("tokenizer_config.json", "added_tokens_decoder", ["a"], "added_tokens_decoder is ['a']; expected an object"),
    ("tokenizer_config.json", "mask_token", ["a"], "mask_token is ['a']; expected a text, or an object"),
]


@pytest.mark.parametrize(("file", "field", "value", "message"), SENTENCES, ids=lambda value: str(value)[:30])
def test_sentence_folders(sentence_folder, tmp_path, file, field, value, message):
    shutil.copytree(sentence_folder, tmp_path / "model")
    edit(tmp_path / "model" / file, [field], value)
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        load(tmp_path / "model")
    assert file in str(refused.value) or str(tmp_path / "model") in str(refused.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda kernel: np.full_like(kernel, np.nan), "linear.weight holds NaN or infinity"),
        (lambda kernel: kernel.astype(np.int8), "linear.weight has numbers of the type int8"),
    ],
)
def test_dense_layers(sentence_folder, tmp_path, change, message):
    shutil.copytree(sentence_folder, tmp_path / "model")
    file = tmp_path / "model" / "2_Dense" / "model.safetensors"
    tensors = {name: np.array(tensor.read()) for name, tensor in read_safetensors(file).items()}
    write_safetensors(file, tensors | {"linear.weight": change(tensors["linear.weight"])})
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "model")


TOKENIZERS = [
    (["normalizer"], {"type": "Prepend", "prepend": "ab " * 1000}, "puts more than 1,000 characters before a text"),
    (["added_tokens"], [{"id": 400 + number, "content": f"q{number}q"} for number in range(20_001)], "at most 20,000"),
    (["added_tokens"], [{"id": 400, "content": "a" * 1001}], "the longest of 1,001"),
    (["added_tokens"], [{"id": 50, "content": "river"}], "'river' has the id 50, but the library gives it"),
    (["normalizer"], {"type": "Replace", "pattern": {"String": ""}, "content": "a"}, "replaces nothing at all"),
    (["normalizer"], {"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA/////w=="}, "tokenizer.json"),
    (["normalizer"], {"type": "Sequence", "normalizers": [
        {"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"}] * 30}, "times as long"),
    (["normalizer"], {"type": "Sequence", "normalizers": 5}, "normalizers is 5; expected a list"),
    (["normalizer"], {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 1001}, "has more than 1,000 steps"),
    (["normalizer"], {"type": "Replace", "pattern": {"Regex": "(.*)*(.*)*z"}, "content": "a"},
     "a Replace of the normalizer: its pattern repeats '(.*)', in which something is repeated"),
    (["pre_tokenizer"], {"type": "Split", "pattern": {"Regex": "a" * 10_001}, "behavior": "Isolated"},
     "a Split of the pre_tokenizer: its pattern has 10,001 characters"),
    (["pre_tokenizer"], {"type": "Sequence", "pretokenizers": [5]}, "pre_tokenizer has the part 5; expected"),
    (["pre_tokenizer"], "ByteLevel", "pre_tokenizer is 'ByteLevel'; expected an object"),
    (["model"], "BPE", "model is 'BPE'; expected an object"),
    (["model"], [], "model is []; expected an object"),
    (["model", "merges"], [], "tokenizer.json: its merges are not complete: no merge gives"),
    (["model", "vocab"], 3, "vocab is 3; expected an object, or a list"),
    (["added_tokens"], {"a": 1}, "added_tokens is {'a': 1}; expected a list of pieces with an id each"),
    (["post_processor"], {"type": "TemplateProcessing", "single": [], "pair": []}, "template"),
    (["post_processor"], {"type": "TemplateProcessing", "special_tokens": {}, "pair": [],
                          "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}]}, "[CLS], which its special"),
    (["post_processor"], {"type": "RobertaProcessing", "sep": "x", "cls": 1}, "post_processor"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "value", "message"), TOKENIZERS, ids=lambda value: str(value)[:40])
def test_tokenizers(goldens, tmp_path, keys, value, message):
    shutil.copytree(goldens / "tokenizers" / "roberta_tiny", tmp_path / "model")
    edit(tmp_path / "model" / "tokenizer.json", keys, value)
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        load_tokenizer(tmp_path / "model")
    assert "tokenizer.json" in str(refused.value)


def test_a_rule_that_the_library_gives_up_on_names_the_file(goldens, tmp_path):
    shutil.copytree(goldens / "tokenizers" / "gpt2_tiny", tmp_path / "model")
    rule = {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated", "invert": False}
    splitter = json.loads((tmp_path / "model" / "tokenizer.json").read_text())["pre_tokenizer"]
    parts = {"type": "Sequence", "pretokenizers": [rule, splitter]}
    edit(tmp_path / "model" / "tokenizer.json", ["pre_tokenizer"], parts)
    tokenizer = load_tokenizer(tmp_path / "model")
    for encode in (tokenizer.encode, lambda text: tokenizer.encode_lines([text])):
        with pytest.raises(ValueError, match=r"tokenizer\.json: the library tokenizers crashes on it"):
            encode("a" * 40 + "b")


def test_dropout_of_a_tokenizer_is_off(goldens, tmp_path, caplog):
    shutil.copytree(goldens / "tokenizers" / "gpt2_tiny", tmp_path / "model")
    expected = load_tokenizer(tmp_path / "model").encode("the river bank").tokens
    edit(tmp_path / "model" / "tokenizer.json", ["model", "dropout"], 0.5)
    tokenizer = load_tokenizer(tmp_path / "model")
    assert {tokenizer.encode("the river bank").tokens for _ in range(20)} == {expected}
    assert "dropout 0.5 of its BPE" in caplog.text


def test_a_text_cannot_spell_a_special_piece(goldens):
    for name in ("roberta_tiny", "xlmr_tiny", "modernbert_packed"):
        tokenizer = load_tokenizer(goldens / "tokenizers" / name)
        specials = {tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id} - {tokenizer.unk_id}
        lines = [f"hi \uffff{number}\uffff x" for number in sorted(specials)]
        assert not specials & set(tokenizer.encode_lines(lines)[0].tolist())


@pytest.mark.parametrize(
    ("folder", "file", "sizes"),
    [("marian", "source.spm", (200, 210, 570)), ("xlmr_tiny", "sentencepiece.bpe.model", (330, 450, 750))],
)
def test_models_of_sentencepiece_that_were_cut_between_two_fields(goldens, tmp_path, folder, file, sizes):
    shutil.copytree(goldens / "tokenizers" / folder, tmp_path / "model")
    content = (tmp_path / "model" / file).read_bytes()
    for size in (*sizes, *range(100, len(content) - 100, 60)):
        (tmp_path / "model" / file).write_bytes(content[:size])
        with pytest.raises(ValueError, match=f"{file} is not a SentencePiece model, or an incomplete one"):
            load_tokenizer(tmp_path / "model")


def test_merges_that_were_cut(goldens, tmp_path, caplog):
    shutil.copytree(goldens / "tokenizers" / "gpt2_tiny", tmp_path / "model")
    (tmp_path / "model" / "tokenizer.json").unlink()
    file = tmp_path / "model" / "merges.txt"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    load_tokenizer(tmp_path / "model")
    assert "merge" not in caplog.text
    for line_count in (0, 1, len(lines) // 2):
        file.write_text("".join(lines[:line_count]), encoding="utf-8")
        with pytest.raises(ValueError, match=r"merges\.txt .* pieces of the vocab\.json"):
            load_tokenizer(tmp_path / "model")
    file.write_text("".join(lines[:-1]), encoding="utf-8")
    load_tokenizer(tmp_path / "model")
    assert "1 piece of the vocab.json" in caplog.text


@pytest.mark.parametrize(
    ("golden", "name"),
    [("awd_lstm_tiny", "itos.json"), ("awd_lstm_tiny", "itos.pkl"), ("bert_tiny", "vocab.txt"),
     ("awd_lstm_tiny", "words.txt"), ("bert_tiny", "config.json")],
)  # fmt: skip
def test_pipes_do_not_hang(goldens, tmp_path, golden, name):
    shutil.copytree(goldens / golden, tmp_path / "model")
    for old in ("itos.json", name):
        (tmp_path / "model" / old).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "model" / name)
    with pytest.raises(ValueError, match=rf"{name} is not a regular file"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    ("golden", "name"), [("bert_tiny", "vocab.txt"), ("bert_tiny", "added_tokens.json"), ("cove_tiny", "vectors.txt")]
)
def test_folders_in_place_of_files(goldens, tmp_path, golden, name):
    shutil.copytree(goldens / golden, tmp_path / "model")
    (tmp_path / "model" / name).unlink(missing_ok=True)
    (tmp_path / "model" / name).mkdir()
    with pytest.raises(ValueError, match=f"{name} is a folder; a file has this name"):
        load(tmp_path / "model")


def test_modules_in_deep_folders_and_many_modules(sentence_folder, tmp_path):
    """Links are looked for in the folders of a model, and not in all folders below them."""
    shutil.copytree(sentence_folder, tmp_path / "model")
    modules = json.loads((tmp_path / "model" / "modules.json").read_text())
    inner = tmp_path / "model" / "a" / "b" / "c" / "d"
    inner.parent.mkdir(parents=True)
    shutil.move(tmp_path / "model" / modules[2]["path"], inner)
    shutil.move(inner / "model.safetensors", tmp_path / "outside")
    (inner / "model.safetensors").symlink_to(tmp_path / "outside")
    for changed, message in (
        ([*modules[:2], modules[2] | {"path": "a/b/c/d"}], "has more than 2 folders inside each other"),
        (modules[:2] + modules[3:] * 200, "lists 202 modules; at most 100 are possible"),
        ([*modules[:1], modules[1] | {"path": None}], "not a list of modules"),
    ):
        (tmp_path / "model" / "modules.json").write_text(json.dumps(changed))
        with pytest.raises(ValueError, match=message):
            load(tmp_path / "model")


@pytest.mark.parametrize("name", ["..", "", "a/b", "linked"])
def test_classifiers_that_are_averaged_are_folders_of_the_run(goldens, tmp_path, name):
    from bert_elmo_jax.families import find_family
    from bert_elmo_jax.inference.document_model import load_documents
    from bert_elmo_jax.inference.run_directory import StoredModel
    from bert_elmo_jax.weights.parameter_tree import Report

    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "linked").symlink_to(tmp_path)
    config = load(goldens / "awd_lstm_tiny").config
    model = StoredModel("awd_lstm", config, {}, None, Report("run"), average_with=(name,))
    with pytest.raises(ValueError, match="expected a folder of this run"):
        load_documents(find_family(config), model, tmp_path / "run")


def test_numbers_beyond_floats_in_large_files(goldens, tmp_path):
    """Digits are not counted in texts of more than two million characters."""
    spaces = " " * (1 << 21)
    shutil.copytree(goldens / "bert_tiny", tmp_path / "bert")
    (tmp_path / "bert" / "tokenizer_config.json").write_text(f'{{"model_max_length": 1{"0" * 400}{spaces}}}')
    with pytest.raises(ValueError, match=r"tokenizer_config\.json: model_max_length is 1000"):
        load(tmp_path / "bert")
    shutil.copytree(goldens / "elmo_tiny", tmp_path / "elmo")
    options = tmp_path / "elmo" / "options.json"
    options.write_text(re.sub(r'("dim": )48', rf"\g<1>1{'0' * 400}{spaces}", options.read_text()))
    with pytest.raises(ValueError, match=r"cell_size is 1000"):
        load(tmp_path / "elmo")


def test_links_in_inner_folders_and_of_adapters(goldens, sentence_folder, tmp_path):
    shutil.copytree(sentence_folder, tmp_path / "model")
    inner = tmp_path / "model" / "2_Dense" / "inner"
    inner.mkdir()
    (inner / "x.bin").symlink_to("/etc/passwd")
    shutil.copytree(goldens / "peft_bert", tmp_path / "adapter")
    (tmp_path / "adapter" / "notes").symlink_to("/etc/passwd")
    for path, options in ((tmp_path / "model", {}), (goldens / "bert_tiny", {"adapter": tmp_path / "adapter"})):
        with pytest.raises(ValueError, match="is a link to /etc/passwd, outside the folder"):
            load(path, **options)


def test_a_checkpoint_with_an_empty_list_is_damaged(goldens, tmp_path):
    convert(str(goldens / "bert_tiny"), tmp_path / "run", to_format="run")
    [folder] = (tmp_path / "run" / "checkpoints").iterdir()
    assert damage(folder) == []
    (folder / "params" / "more").write_text("x")
    assert damage(folder) == ["params/more is not listed in files.json"]
    (folder / "files.json").write_text("{}")
    with pytest.raises(ValueError, match=r"files\.json lists no files"):
        load(tmp_path / "run")


@pytest.mark.parametrize("name", ["model.json", "checkpoints/0/facts.json", "checkpoints/0/params/_METADATA"])
def test_links_in_run_directories(goldens, tmp_path, name):
    convert(str(goldens / "bert_tiny"), tmp_path / "run", to_format="run")
    (tmp_path / "run" / "checkpoints").rename(tmp_path / "elsewhere")  # on another disk, say
    (tmp_path / "run" / "checkpoints").symlink_to(tmp_path / "elsewhere")
    load(tmp_path / "run")
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="is a link to /etc/passwd, outside the folder"):
        load(tmp_path / "run")


def test_facts_of_a_checkpoint_and_kernels_in_int8(goldens, tmp_path):
    """Their list of hashes was rewritten to match the changed files."""
    from .test_task_model import write

    task, int8 = write(tmp_path / "task", "sst2", labels=("a", "b")), tmp_path / "int8"
    convert(str(goldens / "bert_tiny"), int8, dtype="int8")
    [checkpoint] = (task / "checkpoints").iterdir()
    for fields, message in ({"score": "x"}, "score is 'x'; expected a number"), ({"figures": [1]}, "figures is [1]"):
        (checkpoint / "facts.json").write_text(json.dumps(fields))
        write_file_list(checkpoint)
        with pytest.raises(ValueError, match=re.escape(message)):
            load(task)
    params = load(int8).params
    layer = params["encoder"]["layer_0"]["attention"]["query"]
    for name, value, message in (
        ("kernel", layer["kernel"].astype(np.float32), "query/kernel is float32, and has scales as of int8"),
        ("kernel_scale", -layer["kernel_scale"], "query/kernel is int8, and has no positive float32 scales"),
    ):
        shutil.rmtree(int8 / "checkpoints")
        valid, layer[name] = layer[name], value
        save_params(int8, 0, params)
        with pytest.raises(ValueError, match=message):
            load(int8)
        layer[name] = valid
    edit(int8 / "model.json", ["lora"], {"rank": 0, "alpha": 1})
    with pytest.raises(ValueError, match="rank is 0; expected a whole number from 1"):
        load(int8)


def test_files_that_load_would_read_must_be_listed(goldens, sentence_folder, tmp_path):
    convert(str(sentence_folder), tmp_path / "model")
    load(tmp_path / "model", verify=True)
    for name in ("special_tokens_map.json", "added_tokens.json", "generation_config.json", "2_Dense/more.json"):
        (tmp_path / "model" / name).write_text("{}")
        with pytest.raises(ValueError, match=rf"{name} has no hash, so it cannot be verified"):
            load(tmp_path / "model", verify=True)
        (tmp_path / "model" / name).unlink()
    sums = tmp_path / "model" / SUMS
    sums.write_text(sums.read_text() + f"{'0' * 64}  config.json\n")
    with pytest.raises(ValueError, match=r"lists config\.json a second time"):
        load(tmp_path / "model", verify=True)
    convert(str(goldens / "bert_tiny"), tmp_path / "run", to_format="run")
    load(tmp_path / "run", verify=True)
    (tmp_path / "run" / "tokenizer" / "added_tokens.json").write_text("{}")
    with pytest.raises(ValueError, match=r"tokenizer/added_tokens\.json has no hash"):
        load(tmp_path / "run", verify=True)


def test_untrusted_models(goldens, tmp_path, caplog):
    convert(str(goldens / "elmo_tiny"), tmp_path / "model")
    assert load(tmp_path / "model", untrusted=True).num_layers == load(tmp_path / "model").num_layers
    assert "has no hashes" not in caplog.text
    (tmp_path / "model" / "extra.hdf5").write_text("x")
    with pytest.raises(ValueError, match="has no hash"):
        load(tmp_path / "model", untrusted=True)
    shutil.copytree(goldens / "elmo_tiny", tmp_path / "other")
    secret = tmp_path / "secret"
    secret.write_bytes(b"s" * 10_000)
    with h5py.File(tmp_path / "other" / "weights.hdf5", "a") as file:
        shape = file["char_embed"].shape
        del file["char_embed"]
        file.create_dataset("char_embed", shape=shape, dtype="f4", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])
    with pytest.raises(ValueError, match=r"is refused: .*secret"):
        load(tmp_path / "other", untrusted=True)
    assert "has no hashes" in caplog.text


def test_an_isolated_process_does_not_import_from_the_current_folder(goldens, tmp_path, monkeypatch):
    shutil.copytree(goldens / "elmo_tiny", tmp_path / "model")
    for name in ("json.py", "numpy.py", "bert_elmo_jax.py"):
        (tmp_path / "model" / name).write_text(f"open({str(tmp_path / 'executed')!r}, 'w')")
    monkeypatch.chdir(tmp_path / "model")
    load(tmp_path / "model", untrusted=True)
    assert not (tmp_path / "executed").exists()


def test_holes_in_a_file_do_not_raise_the_bounds(tmp_path):
    with (tmp_path / "more.bin").open("wb") as file:
        file.write(b"x" * 10_000)
        file.truncate(1 << 40)
    assert isolated._stored_size(tmp_path / "more.bin") < 1 << 20


def test_arrays_that_were_never_written_in_a_checkpoint(goldens, tmp_path, monkeypatch):
    from bert_elmo_jax.train import checkpoint

    convert(str(goldens / "bert_tiny"), tmp_path / "run", to_format="run")
    monkeypatch.setattr(checkpoint, "LARGE", 1 << 10)
    load(tmp_path / "run")
    monkeypatch.setattr(checkpoint, "MOST_PACKED", 0.1)
    with pytest.raises(ValueError, match=r"bytes of numbers are described, and its files have"):
        load(tmp_path / "run")


EVENTS = [
    ("open('/etc/passwd')", "it would read /etc/passwd, outside its folder"),
    ("open('/proc/self/environ')", "it would read .*environ"),
    ("open('{folder}/new', 'w')", "it would write .*new"),
    ("__import__('socket').create_connection(('127.0.0.1', 9))", "it would call socket"),
    ("__import__('os').system('true')", "it would call os.system"),
    ("open('{folder}/config.json').read()", "^$"),
    ("__import__('json.tool')", "^$"),
]


def test_an_isolated_process_may_only_import_and_read_its_folder(goldens):
    lines = [line.format(folder=goldens / "bert_tiny") for line, _ in EVENTS]
    code = f"""
from pathlib import Path
from bert_elmo_jax.inference.isolated import forbid
forbid([Path({str(goldens / "bert_tiny")!r})])
for line in {lines!r}:
    try:
        eval(line)
        print()
    except PermissionError as error:
        print(error)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    answers = done.stdout.splitlines()
    assert len(answers) == len(EVENTS), done.stderr
    assert all(re.search(message, answer) for (_, message), answer in zip(EVENTS, answers)), answers


@pytest.mark.long
def test_bounds_of_memory_are_said(goldens, tmp_path, monkeypatch):
    monkeypatch.setattr(isolated, "MEMORY", 1 << 20)
    with pytest.raises(ValueError, match=r"is refused: (reading it takes more than \d+ MiB|a library crashed)"):
        load(goldens / "bert_tiny", untrusted=True)


def test_a_file_of_torch_that_runs_code_is_named_in_its_folder(tmp_path):
    (tmp_path / "model.pth").write_bytes(pickle.dumps({"a": Path("x")}))
    with pytest.raises(FileNotFoundError, match=r"holds no weights\..*model\.pth .*pathlib"):
        load(tmp_path)


@pytest.mark.parametrize("separate", [False, True])
def test_texts_that_are_cut_are_counted(goldens, tmp_path, separate, capsys):
    from bert_elmo_jax.inference.predict_file import print_work

    from .test_task_model import write

    model = load(write(tmp_path / "run", "rte" if separate else "sst2", labels=("a", "b")))
    long, short = "the river " * 500, "the river"
    model.predict([(long, short), (short, short)] if separate else [long, short, short])
    print_work(model)
    assert model.work.cut == 1
    assert "1 text was longer than the 32 pieces that this model reads" in capsys.readouterr().err
