"""Exported models give the numbers of the loaded ones, at several sizes and without this package."""

import dataclasses
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load, save
from bert_elmo_jax.data.tasks.answers import find_answers
from bert_elmo_jax.data.tasks.pipeline_answers import find_pipeline_answers
from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.exports import export_model as module
from bert_elmo_jax.exports import load_graph, runner
from bert_elmo_jax.exports.export_model import export_model, to_int32
from bert_elmo_jax.exports.jaxpr_to_onnx import convert_function
from bert_elmo_jax.exports.plain_forward import plain_forward
from bert_elmo_jax.exports.quantised_changes import compare_quantised, list_changes, read_lines
from bert_elmo_jax.families.init_params import init_reader
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.sentence_head import Dense, SentenceHead
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.task_model import to_example
from bert_elmo_jax.nn import ACTIVATIONS
from bert_elmo_jax.text import load_tokenizer, train_sentencepiece
from bert_elmo_jax.text.tokenizer_json import tokenizer_json

from ..experiments.programs import run_program

GOLDENS = Path(__file__).parents[1] / "goldens"
SENTENCES = ["The river is old.", "bank"]
LONG = pytest.mark.long
# A folder, and the outputs of its ONNX model.
MODELS = [
    pytest.param("bert_tiny", ["last_hidden_state"], id="bert"),
    pytest.param("released_heads/roberta_nli3", ["logits"], id="classifier"),
    pytest.param("modernbert_tiny", ["last_hidden_state"], id="modernbert", marks=LONG),
    pytest.param("gpt2_tiny", ["last_hidden_state"], id="gpt2", marks=LONG),
    pytest.param("released_heads/bert_ner", ["logits"], id="tagger", marks=LONG),
    pytest.param("released_heads/distilbert_qa", ["start_logits", "end_logits", "logits"], id="reader", marks=LONG),
    pytest.param("released_heads/bert_multilabel", ["logits"], id="multilabel", marks=LONG),
    pytest.param("released_heads/electra_regression", ["logits"], id="regression", marks=LONG),
    pytest.param("reranker", ["logits"], id="reranker", marks=LONG),
    pytest.param("mpnet_tiny", ["last_hidden_state"], id="relative-bias", marks=LONG),
    pytest.param("deberta_v3_tiny/mlm", ["last_hidden_state"], id="disentangled", marks=LONG),
    pytest.param("elmo_tiny", ["last_hidden_state", "layers"], id="elmo", marks=LONG),
]


@pytest.fixture
def onnxruntime():
    pytest.importorskip("onnx", reason="the extra `export` is not installed")
    return pytest.importorskip("onnxruntime", reason="the extra `export` is not installed")


def largest_difference(ours, theirs, mask):
    if ours.ndim > 1 and ours.shape[:2] == mask.shape:
        ours, theirs = ours[mask > 0], theirs[mask > 0]
    return np.abs(ours.astype(float) - theirs).max() / max(np.abs(ours).max(), 1e-9)


@pytest.mark.parametrize("name, outputs", MODELS)
def test_onnx_has_the_numbers_of_the_model_at_three_sizes(name, outputs, onnxruntime, tmp_path):
    model = load(GOLDENS / name)
    if model.reads is None and hasattr(type(model), "tokenizer"):
        model._reads = load(GOLDENS / "bert_tiny").reads
    sizes = export_model(model, tmp_path / "out")
    assert list(sizes) == ["onnx/model.onnx"]
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / "onnx" / "model.onnx"))
    assert [output.name for output in session.get_outputs()] == outputs
    assert {node.type for node in session.get_inputs()} == {"tensor(int64)"}
    # The random weights of this ELMo amplify rounding in every step; see tests/families/elmo/test_encoder.py.
    compare(plain_forward(model), lambda arrays: session.run(outputs, arrays), 1e-4 if "layers" in outputs else 1e-5)


def compare(plain, run, limit=1e-5):
    """Compare an exported model with the function of the loaded one at several sizes."""
    function = jax.jit(plain.function)
    for rows, width in ((1, 4), (2, 9), (5, 16)):
        arrays = plain.example(rows, width, seed=rows)
        ours = function(plain.params, *to_int32(arrays))
        mask = arrays.get("attention_mask", np.ones((0, 0)))
        for a, b in zip(ours, run(arrays), strict=True):
            assert largest_difference(np.asarray(a), np.asarray(b), mask) < limit


def run_runner(folder, texts, stdin=b"", **environment):
    """Run `run.py` in a process that cannot import this package."""
    path = os.pathsep.join(part for part in sys.path if part and "bert_elmo_jax" not in part and Path(part).is_dir())
    blocked = folder.parent / "blocked" / "bert_elmo_jax"
    blocked.mkdir(parents=True, exist_ok=True)
    (blocked / "__init__.py").write_text("raise ImportError('the runner imported the package')")
    environment = {**os.environ, "PYTHONPATH": f"{blocked.parent}{os.pathsep}{path}", **environment}
    done = subprocess.run(
        [sys.executable, folder / "run.py", *texts], input=stdin, capture_output=True, env=environment, check=False
    )
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def run_folder(folder, texts, **environment):
    """Return what `run.py` prints for texts."""
    done = run_runner(folder, texts, **environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def read_module(folder):
    """Import `run.py` of a folder."""
    spec = importlib.util.spec_from_file_location("exported_run", folder / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sentence_model(folder):
    model = load(GOLDENS / "bert_tiny")
    model.sentence_head = SentenceHead(("mean", "max"), ("normalize",))
    model.save_sentences(folder)
    return load(folder)


@pytest.mark.long
def test_sentence_model_runs_without_this_package(tmp_path):
    model = sentence_model(tmp_path / "model")
    folder = tmp_path / "stablehlo"
    assert list(export_model(model, folder, to="stablehlo")) == ["model.stablehlo"]
    vectors = np.array(run_folder(folder, SENTENCES))
    assert np.abs(vectors - model.sentences(SENTENCES)).max() < 1e-5
    refused = run_runner(folder, ["a text", ""])
    assert (refused.returncode, refused.stderr) == (1, "run.py: text 1 is ''; expected one text, not empty\n")
    for texts, line in ((["a\tb\tc"], "text 0 is ('a', 'b', 'c'); expected one text, not empty"), ([], "")):
        refused = run_runner(folder, texts)
        assert (refused.returncode, refused.stderr) == ((1, f"run.py: {line}\n") if line else (0, ""))
    lines = run_runner(folder, [], stdin=b"\n".join([b"the river", *[b"bank"] * 32, b"", b"bank"]))
    assert (lines.returncode, lines.stdout.count("\n")) == (1, 32)  # the first 32 are printed
    assert lines.stderr == "run.py: text 33 is ''; expected one text, not empty\n"
    expected = model.sentences(["the river", "bank"])
    assert np.abs(np.array([json.loads(line) for line in lines.stdout.splitlines()[:2]]) - expected).max() < 1e-5
    broken = run_runner(folder, [], PYTHONIOENCODING="ascii", stdin=b"so good\nbad\xff\n")
    assert broken.stderr.startswith("run.py: 'utf-8' codec can't decode byte 0xff")
    (folder / "tokenizer.json").rename(folder / "moved.json")
    refused = run_runner(folder, ["a text"])
    assert refused.returncode == 1 and refused.stderr.startswith("run.py: this folder has no tokenizer.json")
    (folder / "moved.json").rename(folder / "tokenizer.json")
    assert run_runner(folder, ["--help"]).stdout.startswith("Runs the model of this folder")
    assert (folder / "modules.json").is_file() and (folder / "1_Pooling" / "config.json").is_file()


def list_paths(folder):
    """Return the files of a folder that hold the path of this repository or of the folder."""
    paths = [str(GOLDENS.parents[1]).encode(), str(folder.parent).encode()]
    return [file for file in folder.rglob("*") if file.is_file() and any(path in file.read_bytes() for path in paths)]


@pytest.mark.parametrize("has_all_frames", [True, False])
def test_stablehlo_has_no_paths_and_equal_models_have_equal_files(has_all_frames, tmp_path):
    model = load(GOLDENS / "bert_tiny")
    model.encode(["the river"])  # traces functions, with the lines that call them
    previous = jax.config.jax_include_full_tracebacks_in_locations
    jax.config.update("jax_include_full_tracebacks_in_locations", has_all_frames)
    try:
        export_model(model, tmp_path / "a", to="stablehlo")
        export_model(model, tmp_path / "b", to="stablehlo")
        assert jax.config.jax_include_full_tracebacks_in_locations == has_all_frames
        assert jax.config.jax_traceback_in_locations_limit != 0
    finally:
        jax.config.update("jax_include_full_tracebacks_in_locations", previous)
    assert list_paths(tmp_path / "a") == []
    assert (tmp_path / "a" / "model.stablehlo").read_bytes() == (tmp_path / "b" / "model.stablehlo").read_bytes()


def test_quantised_onnx_runs_and_keeps_the_head(onnxruntime, tmp_path, caplog, monkeypatch):
    model = load(GOLDENS / "released_heads" / "roberta_nli3")
    sizes = export_model(model, tmp_path / "out", int8=True)
    assert "pre-processing" not in caplog.text
    assert sizes["onnx/model_quantized.onnx"] < sizes["onnx/model.onnx"]
    texts = [("The river had risen.", "The water was high.")]
    expected = model.predict(texts)[0]
    probabilities = set()
    for quantized, limit in (("", 1e-5), ("0", 1e-5), ("1", 0.1)):
        (label,) = run_folder(tmp_path / "out", ["\t".join(text) for text in texts], QUANTIZED=quantized)
        probabilities.add(label["probability"])
        assert label["label"] == expected.label and abs(label["probability"] - expected.probability) < limit
    assert len(probabilities) == 2
    marked = run_runner(tmp_path / "out", [], stdin=b"\xef\xbb\xbf" + "\t".join(texts[0]).encode())
    assert json.loads(marked.stdout)["probability"] in probabilities, "a byte-order mark is no part of a text"
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    report = compare_quantised(tmp_path / "out", texts)
    assert report == ["int8 changes 0 of 1 rows"]
    assert not (tmp_path / "out" / "__pycache__").exists() and list_paths(tmp_path / "out") == []
    differences = json.loads((tmp_path / "out" / "export.json").read_text())["differences"]
    assert differences["onnx/model.onnx"]["logits"] < 1e-5 < differences["onnx/model_quantized.onnx"]["logits"] < 0.1
    labels = json.loads((tmp_path / "out" / "config.json").read_text())["id2label"]
    assert list(labels.values()) == list(model.labels)


@LONG
def test_tags_and_answers_are_those_of_predict(tmp_path):
    released = GOLDENS / "released_heads"
    tagger, reader = load(released / "roberta_ner"), load(released / "distilbert_qa")
    export_model(tagger, tmp_path / "tagger", to="stablehlo")
    texts = ["  The river\tis old", "강가의 은행 🙂", "a \u200b river ñ"]
    expected = [list(prediction.tags) for prediction in tagger.predict(texts)]
    assert [[tag for _, tag in row] for row in run_folder(tmp_path / "tagger", texts)] == expected
    export_model(reader, tmp_path / "reader", to="stablehlo")
    pairs = [("where?", "The (old) river, by the bank."), ("where is the old bank", "강가의 은행. bank-river")]
    answers = run_folder(tmp_path / "reader", ["\t".join(pair) for pair in pairs])
    assert [answer["answer"] for answer in answers] == [answer.answer for answer in reader.predict(pairs)]
    assert answers[0]["answer"] == "The (old) river"  # without the comma, which is a word of its own
    pair = "\t".join(pairs[1]).encode()
    assert json.loads(run_runner(tmp_path / "reader", [], PYTHONIOENCODING="ascii", stdin=pair).stdout) == answers[1]
    long = ("what " * 600, "the river")
    assert run_folder(tmp_path / "reader", ["\t".join(long)])[0]["answer"] == reader.predict([long])[0].answer


@pytest.fixture
def describe(monkeypatch, tmp_path):
    """Return the function that gives the runner a model's description and tokenizer, without the model."""

    def write(name, tokenizer=None, **fields):
        model = load(GOLDENS / "released_heads" / name)
        model.task = dataclasses.replace(model.task, **fields)
        if tokenizer is not None:
            model._reads = load_tokenizer(GOLDENS / tokenizer)
        (tmp_path / "tokenizer.json").write_bytes(tokenizer_json(model.tokenizer))
        monkeypatch.setattr(runner, "MODEL", module._describe(model, plain_forward(model)))
        monkeypatch.setattr(runner, "find_tokenizer", lambda: str(tmp_path / "tokenizer.json"))
        for cached in (runner.load_tokenizer, runner.load_plain_tokenizer):
            cached.cache_clear()
        return model

    yield write
    runner.load_tokenizer.cache_clear()
    runner.load_plain_tokenizer.cache_clear()


@pytest.mark.parametrize("cuts_start", [False, True])
@pytest.mark.parametrize("tokenizer", [None, "roberta_tiny"])
def test_long_pairs_are_cut_as_in_predict(tokenizer, cuts_start, describe):
    pairs = [("river " * 20, "bank " * 30), ("bank", "river bank " * 20), ("river " * 30, "bank"), ("a", "b")]
    for released in (False, True):
        model = describe("bert_multilabel", tokenizer, pipeline=released, max_length=32)
        model.tokenizer.cuts_start = runner.MODEL["cuts_start"] = cuts_start
        rows = make_rows(model.task, [to_example(model.task, p, 0) for p in pairs], model.tokenizer, labelled=False)
        _, arrays = runner.encode(pairs)
        for row, ids, mask, types in zip(rows, *arrays.values(), strict=True):
            assert ids[mask > 0].tolist() == row.ids[0].tolist() and types[mask > 0].tolist() == row.types[0].tolist()


@pytest.mark.parametrize("fields", [{}, {"pipeline": False, "question_length": 6, "max_length": 24}])
def test_a_question_keeps_as_many_pieces_as_in_predict(fields, describe):
    model = describe("distilbert_qa", **fields)
    pairs = [("where is the old river bank " * 9, "The river is old. " * 9), ("where?", "The river.")]
    windows = make_rows(model.task, [to_example(model.task, p, n) for n, p in enumerate(pairs)], model.tokenizer)
    first, *_, last = [row.window for row in windows]
    read, _ = runner.encode(pairs)
    for row, window in zip(read, (first, last), strict=True):
        size = len(window.ids)
        assert row.ids[:size] == window.ids.tolist()
        context = [offsets for offsets, part in zip(row.offsets, row.sequence_ids) if part == 1]
        assert context == [tuple(span) for span in window.spans.tolist() if span[0] >= 0]
    describe("distilbert_qa", pipeline=False, question_length=64, max_length=24)
    with pytest.raises(ValueError, match="a question leaves no room for its context in 24 pieces"):
        runner.encode(pairs)


@pytest.mark.parametrize(("tokenizer", "answer"), [("deberta_v3_tiny", " old river"), ("albert_tiny", "old river")])
def test_answers_of_released_readers_begin_as_in_predict(tokenizer, answer, describe):
    """A DeBERTa's words begin with the space before, as in transformers' pipeline."""
    model = describe("distilbert_qa", tokenizer)
    pair = ("where ?", "  the  old river  ")
    [row] = make_rows(model.task, [to_example(model.task, pair, 0)], model.tokenizer)
    [read], _ = runner.encode([pair])
    assert read.ids[: len(row.ids[0])] == row.ids[0].tolist()
    words = [model.tokenizer.tokens[number].strip("▁") for number in read.ids]
    starts, ends = np.zeros((2, len(read.ids)), np.float32)
    starts[words.index("old")] = ends[words.index("ri")] = 99
    [expected] = find_pipeline_answers([to_example(model.task, pair, 0)], [row.window], [starts], [ends])
    ours = expected.answer
    assert runner._answer(pair, read, starts, ends) == {"answer": ours.text, "start": ours.start, "end": ours.end}
    assert ours.text == answer


@pytest.mark.parametrize("tokenizer", ["gpt2_tiny", "roberta_tiny"])
def test_answers_begin_and_end_with_a_letter(tokenizer, describe):
    """Pieces of bytes begin with the space before a word."""
    model = describe("distilbert_qa", tokenizer, pipeline=False)
    pair = ("where ?", "the old river  ")
    [row] = make_rows(model.task, [to_example(model.task, pair, 0)], model.tokenizer)
    [read], _ = runner.encode([pair])
    context = [n for n, part in enumerate(read.sequence_ids) if part == 1]
    starts, ends = np.zeros((2, len(read.ids)), np.float32)
    starts[context[1]] = ends[context[-1]] = 9
    question = to_example(model.task, pair, 0)
    expected = find_answers([question], [row.window], [starts], [ends])[0].answer
    answer = runner._answer(pair, read, starts, ends)
    assert answer == {"answer": expected.text, "start": expected.start, "end": expected.end}
    assert answer["answer"] == answer["answer"].strip()


def test_sentence_vectors_have_the_prompt_and_the_cut_of_the_model(tmp_path):
    model = load(GOLDENS / "roberta_tiny")
    model.tokenizer.cuts_start = True
    prompts = {"prompts": (("query", "The River: "),), "default_prompt": "query", "include_prompt": False}
    model.sentence_head = SentenceHead(("mean",), lowercase=True, max_length=20, **prompts)
    export_model(model, tmp_path / "out", to="stablehlo")
    run = read_module(tmp_path / "out")
    for text in ("Old Bank", "the old bank " * 9):
        assert np.abs(np.array(run.predict([text])) - model.sentences([text], overflow="truncate")).max() < 1e-5


@pytest.mark.parametrize("activation", ["identity", pytest.param("tanh", marks=pytest.mark.long)])
def test_probabilities_are_those_of_predict_for_any_activation(activation, tmp_path):
    for name in ("reranker", "released_heads/roberta_nli3"):
        model = load(GOLDENS / name)
        model.task = dataclasses.replace(model.task, activation=activation)
        export_model(model, tmp_path / name, to="stablehlo")
        pair = ("The river had risen.", "The water was high.")
        [ours], [theirs] = read_module(tmp_path / name).predict([pair]), model.predict([pair])
        assert ours["label"] == theirs.label and abs(ours["probability"] - theirs.probability) < 1e-5


def test_a_reranker_keeps_activation_length_and_prompt_for_sentence_transformers(tmp_path):
    shutil.copytree(GOLDENS / "reranker", tmp_path / "model")
    for name, fields in {
        "config.json": {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
        "tokenizer_config.json": {"model_max_length": 32},
        "config_sentence_transformers.json": {"prompts": {"query": "The River: "}, "default_prompt_name": "query"},
    }.items():
        file = tmp_path / "model" / name
        content = json.loads(file.read_text("utf-8")) if file.is_file() else {"model_type": "CrossEncoder"}
        file.write_text(json.dumps({**content, **fields}))
    export_model(tmp_path / "model", tmp_path / "out", to="stablehlo")
    convert(str(tmp_path / "model"), tmp_path / "converted")
    files = {file.name for file in (tmp_path / "converted").glob("*.json")} - {"tokenizer.json"}
    assert {"config_sentence_transformers.json", "modules.json", "tokenizer_config.json"} <= files
    for name in files:
        ours, theirs = (json.loads((tmp_path / part / name).read_text("utf-8")) for part in ("out", "converted"))
        assert ours == theirs, name


def test_a_regression_of_several_numbers_gives_each_its_name(tmp_path):
    shutil.copytree(GOLDENS / "released_heads" / "roberta_nli3", tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps({**config, "problem_type": "regression"}))
    model = load(tmp_path / "model")
    export_model(model, tmp_path / "out", to="stablehlo")
    [ours], [theirs] = read_module(tmp_path / "out").predict(["The river"]), model.predict(["The river"])
    assert ours["values"] == pytest.approx(theirs.values, abs=1e-5) and len(ours["values"]) == 3
    assert list_changes([ours], [ours]) == ["int8 moves numbers by up to 0% of the largest"]


def test_vectors_are_of_single_texts_and_dense_layers_have_a_gelu(onnxruntime, tmp_path):
    model = load(GOLDENS / "bert_tiny")
    layer = Dense(model.width, 4, activation="gelu")
    model.params["sentence"] = {"dense_0": {"kernel": np.eye(model.width, 4, dtype=np.float32), "bias": np.zeros(4)}}
    model.sentence_head = SentenceHead(("mean",), (layer,))
    export_model(model, tmp_path / "out", to="onnx")
    run = read_module(tmp_path / "out")
    assert np.abs(np.array(run.predict(["the river"])) - model.sentences(["the river"])).max() < 1e-5
    with pytest.raises(ValueError, match="expected one text, not empty"):
        run.predict([("the river", "a boat")])


def test_onnx_has_the_values_of_all_activations(onnxruntime):
    x = np.array([-12, -3, -0.5, 0, 0.3, 1, 5, 7, 30], np.float32)
    inputs = {"x": jax.ShapeDtypeStruct(x.shape, x.dtype)}
    graph = convert_function(lambda params, x: [f(x) for f in ACTIVATIONS.values()], {}, inputs, list(ACTIVATIONS))
    results = onnxruntime.InferenceSession(graph.SerializeToString()).run(list(ACTIVATIONS), {"x": x})
    for function, result in zip(ACTIVATIONS.values(), results, strict=True):
        np.testing.assert_allclose(result, function(jnp.asarray(x)), rtol=1e-5, atol=1e-5)


def test_a_head_on_features_and_parameters_in_bfloat16_are_exported(onnxruntime, tmp_path):
    encoder, features = load(GOLDENS / "bert_tiny"), Features(layers=(-1,))
    params = {"encoder": {k: v for k, v in encoder.params["encoder"].items() if k != "pooler"}}
    params["classify"] = {"kernel": np.ones((encoder.width, 2), np.float32), "bias": np.array([0.0, 0.5], np.float32)}
    params |= init_reader(features, encoder.width, jax.random.key(0))
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.bfloat16), params)
    model = load(save(tmp_path / "model", encoder, params, labels=["a", "b"], features=features))
    export_model(model, tmp_path / "out", to="onnx")
    [ours], [theirs] = read_module(tmp_path / "out").predict(["the river"]), model.predict(["the river"])
    assert (ours["label"], ours["probability"]) == (theirs.label, pytest.approx(theirs.probability, abs=2e-2))
    assert json.loads((tmp_path / "out" / "config.json").read_text())["id2label"] == {"0": "a", "1": "b"}


def test_a_reader_says_that_there_is_no_answer(tmp_path):
    model = load(GOLDENS / "released_heads" / "distilbert_qa")
    model.task = dataclasses.replace(model.task, pipeline=False, unanswerable=True, null_threshold=-0.5)
    export_model(model, tmp_path / "out", to="stablehlo")
    run, pair = read_module(tmp_path / "out"), ("where?", "The old river, by the bank.")
    assert run.MODEL["null_threshold"] == -0.5
    [answer] = model.predict([pair])
    for threshold, is_empty in ((answer.null_score - 0.001, True), (answer.null_score + 0.001, False)):
        run.MODEL["null_threshold"] = threshold
        assert (run.predict([pair])[0]["answer"] == "") == is_empty


def test_without_tokenizer_json_the_export_warns_and_the_runner_refuses_texts(tmp_path, caplog):
    model = load(GOLDENS / "bert_tiny")
    model._reads = train_sentencepiece(["배를 타고", "배를 보다"] * 9, vocab_size=30, model="bpe")
    export_model(model, tmp_path / "out", to="stablehlo")
    assert "(sentencepiece) cannot be written as tokenizer.json, so run.py reads no texts: give ids" in caplog.text
    with pytest.raises(ValueError, match=r"this folder has no tokenizer\.json, which reading texts needs"):
        read_module(tmp_path / "out").predict(["배를"])


def test_rows_for_jax_have_few_widths(monkeypatch, tmp_path):
    monkeypatch.setattr(load_graph, "FOLDER", tmp_path)
    assert load_graph.choose_width(33, 50) == 33
    (tmp_path / "model.stablehlo").touch()
    assert [load_graph.choose_width(longest, 50) for longest in (1, 17, 33)] == [16, 32, 50]


REFUSED = {
    "to='tflite' is not known; it is one of onnx, stablehlo": {"to": "tflite"},
    "int8 is for ONNX, not for --to=stablehlo": {"to": "stablehlo", "int8": True},
    "is not empty; give another --output": {"full": True},
    "(CoveEncoder) cannot be exported, only encoders": {"model": "cove_tiny", "to": "stablehlo"},
    "(CoveEncoder) cannot be exported with generate": {"model": "cove_tiny", "generate": True, "to": "stablehlo"},
    "a BERT does not write": {"generate": True, "to": "stablehlo"},
    "is an int8 model: export the model that it was made from": {"dtype": "int8", "to": "stablehlo"},
    "computes in bfloat16: load it without dtype=": {"dtype": "bfloat16", "to": "stablehlo"},
}


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("message", REFUSED)
def test_wrong_requests_are_refused(message, tmp_path):
    request = dict(REFUSED[message])
    if request.pop("full", False):
        (tmp_path / "file").touch()
        target = tmp_path
    else:
        target = tmp_path / "out"
    model = GOLDENS / request.pop("model", "bert_tiny")
    if "dtype" in request:
        model = load(model, dtype=request.pop("dtype"))
    with pytest.raises(ValueError, match=re.escape(message)):
        export_model(model, target, **request)
    assert [path.name for path in tmp_path.iterdir()] in ([], ["file"])


def test_an_output_that_cannot_be_written_is_refused_before_loading(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"file/out cannot be written \(Not a directory\); give another folder"):
        export_model("no/such/model", tmp_path / "file" / "out", to="stablehlo")


def test_a_folder_with_a_similar_name_is_kept(tmp_path):
    (tmp_path / "nli.partial").mkdir()
    (tmp_path / "nli.partial" / "mine.txt").touch()
    with pytest.raises(OSError, match="no/such/model"):
        export_model("no/such/model", tmp_path / "nli", to="stablehlo")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["nli.partial", "nli.partial/mine.txt"]


def test_texts_to_compare_are_the_lines_of_a_file(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_bytes("so\u2028good\r\n\n so\x85 \x0cbad\na text\tits pair".encode())
    assert read_lines(file, "classify") == ["so\u2028good", " so\x85 \x0cbad", ("a text", "its pair")]
    for kind in ("tag", "words", "network", "write"):
        assert read_lines(file, kind) == ["so\u2028good", " so\x85 \x0cbad", "a text\tits pair"]


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        ("", "vectors", "texts.txt has no texts: write a text, or two with a tab between them on each line"),
        (" \n\t\n", "vectors", "texts.txt has no texts"),
        ("a\n\nb\tc\td", "vectors", r"texts.txt, line 3: 'b\\tc\\td' is not a text, or two with a tab between them"),
        ("a\t ", "vectors", "line 1: .* none empty: correct the line"),
        ("who?\tthe river\nwho?", "read", "line 2: 'who[?]' is not two texts with a tab between them"),
        ("a\tb", "sentences", r"line 1: 'a\\tb' is not one text, without tabs"),
    ],
)
def test_texts_to_compare_are_checked_before_the_export(content, kind, message, tmp_path):
    (tmp_path / "texts.txt").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_lines(tmp_path / "texts.txt", kind)
    if kind == "vectors":
        flags = [f"--texts={tmp_path / 'texts.txt'}", f"--output={tmp_path / 'out'}"]
        done = run_program("export", f"--model={GOLDENS / 'bert_tiny'}", "--int8", *flags)
        assert (done.status, done.err.count("\n")) == (2, 1) and re.search(message, done.err)


@pytest.mark.parametrize(
    "opset, problem", [(9, "too old: use 13 to"), (99, "too new for the installed onnx: use 13 to")]
)
def test_opsets_that_do_not_work_are_refused(opset, problem, onnxruntime, tmp_path):
    with pytest.raises(ValueError, match=f"opset {opset} is {problem}"):
        export_model(GOLDENS / "bert_tiny", tmp_path / "out", opset=opset)


def test_missing_libraries_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(module.NEEDED, "onnx", ("a_library_that_is_not_there",))
    with pytest.raises(ImportError, match=r"--to=onnx needs a_library.*pip install 'bert_elmo_jax\[export\]'"):
        export_model(GOLDENS / "bert_tiny", tmp_path / "out")
