"""ELMo, tagging networks and models that write, exported, give the numbers, tags and texts of the loaded ones."""

import dataclasses
import types
import unicodedata

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.exports.export_model import export_model
from bert_elmo_jax.exports.plain_forward import plain_forward
from bert_elmo_jax.exports.plain_writer import plain_writer
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.inference.word_encoder import layer_shape, word_encoder
from bert_elmo_jax.networks import TaggerConfig, network_shapes
from bert_elmo_jax.text import Lexicon
from bert_elmo_jax.text.vectors import WordVectors
from bert_elmo_jax.text.word_features import WordFeatures

from .test_export_model import GOLDENS, LONG, compare, onnxruntime, read_module, run_folder, run_runner  # noqa: F401 -- a fixture

LABELS = ("B-LOC", "I-LOC", "O")
SENTENCES = ["The river is old .", "강가의 은행", "bank"]
# Words without pieces, others that are bytes, and a decomposed one.
ODD_SENTENCES = ["old \u200b river 🙂 ñ ß", "\u0325 bank ① don't", unicodedata.normalize("NFD", "강가의 bank")]
TAGGERS = {
    "alone": ("unk", None, {}),
    "characters": ("characters", None, {"cell": "gru", "output": "softmax", "characters": True}),
    "elmo": ("characters", "elmo_tiny", {"characters": True, "places": "input,output"}),
    "bert": ("vectors", "bert_tiny", {"layers": "0,-1"}),
    "roberta": ("vectors", "roberta_tiny", {"layers": "0,-1"}),
    "random": ("vectors_or_random", None, {}),
}


def tagger(name):
    """Return a tagger with random weights."""
    unknown, golden, fields = TAGGERS[name]
    encoder = None if golden is None else word_encoder(str(GOLDENS / golden))
    later = WordVectors(("old", "은행"), np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32), 2, 0)
    lexicon = Lexicon(["river", "The", "강가의"], unknown, 4, later=later if unknown.startswith("vectors") else None)
    sizes = (0, 0) if encoder is None else layer_shape(encoder)
    config = TaggerConfig(
        num_tags=3, num_words=3, word_size=4, lstm_size=5, character_size=6, scheme="IOB2", encoder_layers=sizes[0],
        encoder_width=sizes[1], **fields,
    )  # fmt: skip
    draw = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: draw.normal(0, 0.5, leaf.shape).astype(np.float32), network_shapes(config))
    task = dataclasses.replace(task_named("tags"), labels=LABELS)
    return TaskNetwork(config, params, lexicon, name, task, encoder)


@pytest.mark.parametrize("name", ["alone", *(pytest.param(name, marks=LONG) for name in list(TAGGERS)[1:])])
def test_taggers_have_the_scores_and_the_path_of_the_model(name, onnxruntime, tmp_path):  # noqa: F811
    model = tagger(name)
    expected = [list(prediction.tags) for prediction in model.predict([text.split() for text in SENTENCES])]
    plain = plain_forward(model)
    for to in ("onnx", "stablehlo"):
        export_model(model, tmp_path / to, to=to)
        module = read_module(tmp_path / to)
        assert [[tag for _, tag in row] for row in module.predict(SENTENCES)] == expected
        odd = [list(prediction.tags) for prediction in model.predict([text.split() for text in ODD_SENTENCES])]
        assert [[tag for _, tag in row] for row in module.predict(ODD_SENTENCES)] == odd
        compare(plain, module.load_graph("model", plain.outputs))
    assert [[tag for _, tag in row] for row in run_folder(tmp_path / "onnx", SENTENCES)] == expected
    assert module.predict([]) == []
    lines = run_runner(tmp_path / "onnx", [], stdin=b"\n".join([b"The river", *[b"bank"] * 32, b"", b"bank"]))
    assert lines.stdout.count("\n") == 32  # the first 32 are printed
    assert lines.stderr == "run.py: sentence 33 is ''; expected words, not an empty text\n"


@pytest.mark.long
@pytest.mark.parametrize("name", ["bert_ner", "roberta_ner", "network"])
def test_taggers_of_characters_tag_characters(name, tmp_path):
    model = tagger("alone") if name == "network" else load(GOLDENS / "released_heads" / name)
    model.task = dataclasses.replace(model.task, layout=task_named("klue_ner").layout)
    texts = ["서울역 앞  은행", "  The river\tis old 🙂 "]
    expected = [list(zip(prediction.words, prediction.tags)) for prediction in model.predict(texts)]
    export_model(model, tmp_path / "out", to="stablehlo")
    module = read_module(tmp_path / "out")
    assert module.predict(texts) == expected
    if name != "network":  # which reads texts of any length
        [tags] = module.predict(["서울역 앞 은행 " * 60])
        assert tags[0][1] in model.labels and tags[-1] == (" ", None)


@LONG
@pytest.mark.parametrize("to, rule", [("onnx", None), ("stablehlo", "whitespace")])
def test_elmo_reads_words_of_any_script(to, rule, onnxruntime, tmp_path):  # noqa: F811
    model = load(GOLDENS / "elmo_tiny")
    model._reads = types.SimpleNamespace(rule=rule)  # one that was pretrained here reads composed words
    export_model(model, tmp_path / "out", to=to)
    sentences = [*SENTENCES, unicodedata.normalize("NFD", "강가의 은행")]
    encoded = model.encode(sentences)
    for row, layers in enumerate(run_folder(tmp_path / "out", sentences)):
        assert np.abs(np.array(layers) - encoded.layers[:, row, : len(layers[0])]).max() < 5e-4


def test_a_network_that_the_runner_cannot_feed_is_refused(tmp_path):
    model = tagger("alone")
    model.lexicon.unknown = "classes"
    with pytest.raises(ValueError, match=r"config\.unknown=classes, which the runner of an export does not know"):
        export_model(model, tmp_path / "out", to="stablehlo")
    model = tagger("alone")
    model.lexicon.features = WordFeatures(capitals=True)
    with pytest.raises(ValueError, match=r"reads hand-made features .*: train without them to export"):
        export_model(model, tmp_path / "out", to="stablehlo")


WRITERS = [
    pytest.param("gpt2_tiny", "onnx"),
    *(
        pytest.param(name, to, marks=LONG)
        for name in ("gpt2_tiny", "bart_tiny", "transformer_tiny")
        for to in ("onnx", "stablehlo")
        if (name, to) != ("gpt2_tiny", "onnx")
    ),
]


@pytest.mark.parametrize("name, to", WRITERS)
def test_writers_have_the_steps_and_the_pieces_of_the_model(name, to, onnxruntime, tmp_path):  # noqa: F811
    model = load(GOLDENS / name)
    if model.reads is None:
        model._reads = load(GOLDENS / "bert_tiny").reads
    export_model(model, tmp_path / "out", to=to, generate=True)
    module = read_module(tmp_path / "out")
    for file, plain in plain_writer(model).items():
        compare(plain, module.load_graph(file, plain.outputs))
    source, prompts = model.find_decoder().first is not None, [[7, 9, 8], [5]]
    expected = model.generate(**{"source" if source else "tokens": prompts}, max_new=6, beams=1, min_new=0)
    for ids, [text] in zip(prompts, expected):
        assert module.write(ids, 6) == text.ids


@LONG
def test_a_writer_repeats_no_sequence_if_its_model_says_so(tmp_path):
    model = load(GOLDENS / "bart_tiny")
    assert model.find_decoder().defaults["no_repeat_ngram_size"] == 3
    export_model(model, tmp_path / "out", to="stablehlo", generate=True)
    [[written]] = model.generate(["The river is old"], max_new=32, beams=1)
    assert read_module(tmp_path / "out").predict(["The river is old"]) == [written.text]


@LONG
def test_a_writer_continues_texts_without_this_package(onnxruntime, tmp_path):  # noqa: F811
    model = load(GOLDENS / "gpt2_tiny")
    export_model(model, tmp_path / "out", generate=True)
    [[written]] = model.generate(["the river"], max_new=32)
    assert run_folder(tmp_path / "out", ["the river"])[0].strip() == written.text.strip()
