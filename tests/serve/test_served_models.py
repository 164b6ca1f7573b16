"""The server with real models: the results of `load(folder).predict`, for every kind of model."""

import asyncio
import base64
import dataclasses
import json
import re

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.rows import packed_rows
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.encoders.unfamiliar_texts import UnfamiliarTexts
from bert_elmo_jax.inference.predictions import to_json
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.networks import BidafConfig, ParserConfig, init_network
from bert_elmo_jax.serve import served_model
from bert_elmo_jax.serve.app import Service
from bert_elmo_jax.serve.limits import Limits
from bert_elmo_jax.serve.served_model import Embed, Predict, ServedModel
from bert_elmo_jax.text import Lexicon

from ..inference.test_task_model import write
from .in_process import ask, get, post, post_all
from .malformed_requests import draw_request

TEXTS = ["The river had risen.", "She'd brought bread, and the water was high.", "배", "a " * 40]
PAIRS = [(text, TEXTS[0]) for text in TEXTS]
HEADS = "released_heads"


@pytest.fixture(scope="module")
def serve(goldens):
    """Return the model of a folder, and its application."""
    services = []

    def start(folder):
        model = load(goldens / folder)
        services.append(Service(ServedModel(model, "model"), Limits(inputs=128)))
        return model, services[-1].build_app()

    yield start
    for service in services:
        service.batcher.stop()


def assert_close(answer, expected):
    """Compare JSON values; numbers to rounding, since a batch has other shapes."""
    if isinstance(expected, dict):
        assert answer.keys() == expected.keys()
        for key in expected:
            assert_close(answer[key], expected[key])
    elif isinstance(expected, list | tuple):
        assert len(answer) == len(expected)
        for one, other in zip(answer, expected):
            assert_close(one, other)
    elif isinstance(expected, float):
        assert answer == pytest.approx(expected, abs=1e-5)
    else:
        assert answer == expected


def as_list(value):
    return list(value) if isinstance(value, tuple) else value


KINDS = [
    ("roberta_nli3", PAIRS, {}, ("text", "pair")),
    ("bert_multilabel", TEXTS, {}, None),
    ("electra_regression", TEXTS, {}, None),
    ("bert_ner", TEXTS, {"aggregation": "first"}, None),
    ("bert_ner", [*TEXTS, ["two", "words"]], {}, None),
    ("distilbert_qa", PAIRS, {"top_k": 2, "no_answer": True}, ("question", "context")),
]


@pytest.mark.parametrize(("folder", "inputs", "options", "names"), KINDS)
def test_predictions_are_those_of_predict(serve, folder, inputs, options, names):
    model, app = serve(f"{HEADS}/{folder}")
    expected = [to_json(one) for one in model.predict(inputs, **options)]
    expected = json.loads(json.dumps(expected))
    # Each in a request of its own, at the same time.
    answers = post_all(app, "/predict", [{"inputs": [as_list(value)], **options} for value in inputs])
    assert [answer.status for answer in answers] == [200] * len(inputs)
    assert_close([answer.json["predictions"][0] for answer in answers], expected)
    if names:
        named = [dict(zip(names, value)) for value in inputs]
        assert_close(post(app, "/predict", {"inputs": named, **options}).json["predictions"], expected)
    assert get(app, "/").status == 200


@pytest.fixture(scope="module")
def chooser(tmp_path_factory):
    service = Service(ServedModel(load(write(tmp_path_factory.mktemp("run") / "swag", "swag"))))
    yield service.model.model, service.build_app()
    service.batcher.stop()


def test_choices(chooser):
    model, app = chooser
    inputs = [("the ship", ["sank", "where ?"]), ("배", ["강가에", "있다", "A"])]
    named = [{"text": text, "choices": choices} for text, choices in inputs]
    answer = post(app, "/predict", {"inputs": named})
    assert_close(answer.json["predictions"], json.loads(json.dumps([to_json(one) for one in model.predict(inputs)])))
    for wrong in ({"text": "a"}, {"text": "a", "choices": ["b"]}, {"text": "a", "choices": ["b"] * 65}, ["a", "b"]):
        assert post(app, "/predict", {"inputs": [wrong]}).status == 422


def test_choices_are_refused_as_tensors(chooser):
    _, app = chooser
    [entry] = get(app, "/v1/models").json["data"]
    path = f"/v2/models/{entry['id']}"
    for refused in (get(app, path), post(app, f"{path}/infer", {"inputs": []})):
        assert refused.status == 404 and "use /predict" in refused.json["error"]


@pytest.mark.parametrize(("folder", "name", "message"), [("distilbert_tiny", "a/b", "has a slash")])
def test_models_that_cannot_be_served_are_refused(goldens, folder, name, message):
    with pytest.raises(ValueError, match=message):
        ServedModel(load(goldens / folder), name)


def test_a_reranker_ranks(serve):
    model, app = serve("reranker")
    answer = post(app, "/rank", {"query": "Who brought bread?", "texts": TEXTS, "top_k": 3})
    expected = model.rank("Who brought bread?", TEXTS, top_k=3)
    assert_close(answer.json["results"], [vars(one) for one in expected])
    assert post(app, "/rank", {"query": "a", "texts": TEXTS, "top_k": 0}).status == 422
    assert post(app, "/rank", {"texts": TEXTS}).status == 422


@pytest.mark.parametrize("folder", ["distilbert_tiny", "elmo_tiny"])
def test_vectors_of_encoders(serve, folder):
    model, app = serve(folder)
    texts = ["[MASK] [MASK]", "[MASK]"] if folder != "elmo_tiny" else ["The river", "bread"]
    if folder == "elmo_tiny":
        expected = [one.last[0].mean(axis=0) for one in model.encode(texts)]
    else:
        expected = model.sentences(texts)
    plain = post(app, "/v1/embeddings", {"input": texts, "model": "any", "user": "x"}).json
    assert [one["index"] for one in plain["data"]] == [0, 1] and plain["model"] == "model"
    assert plain["usage"]["total_tokens"] == (7 if folder != "elmo_tiny" else 3)
    for one, vector in zip(plain["data"], expected, strict=True):
        np.testing.assert_allclose(one["embedding"], vector, atol=1e-5)
    packed = post(app, "/v1/embeddings", {"input": texts[0], "encoding_format": "base64", "dimensions": 8}).json
    vector = np.frombuffer(base64.b64decode(packed["data"][0]["embedding"]), "<f4")
    np.testing.assert_allclose(vector, expected[0][:8], atol=1e-5)
    tensor = {"name": "text", "datatype": "BYTES", "shape": [2], "data": texts}
    [output] = post(app, "/v2/models/model/infer", {"inputs": [tensor]}).json["outputs"]
    np.testing.assert_allclose(np.reshape(output["data"], output["shape"]), expected, atol=1e-5)
    refused = post(app, "/predict", {"inputs": texts})
    assert refused.status == 404 and "/v1/embeddings" in refused.json["error"]
    for wrong in ({"dimensions": 10**6}, {"prompt_name": "query"}, {"encoding_format": "hex"}, {"input": [1, 2]}):
        assert post(app, "/v1/embeddings", {"input": texts, **wrong}).status == 422


def test_options_of_another_kind_are_refused(serve):
    _, app = serve(f"{HEADS}/bert_ner")
    for options in ({"top_k": 1}, {"aggregation": "most"}, {"stride": 2}, {"aggregation": "max", "stride": 10**6}):
        assert post(app, "/predict", {"inputs": TEXTS, **options}).status == 422
    assert post(app, "/predict", {"inputs": TEXTS, "aggregation": None}).status == 200


def test_a_stride_is_at_most_half_of_a_row(serve):
    """With a larger one, a small request could have thousands of rows."""
    model, app = serve(f"{HEADS}/bert_ner")
    half = model.task.max_length // 2
    for stride, status in ((half, 200), (half + 1, 422)):
        assert post(app, "/predict", {"inputs": TEXTS, "aggregation": "max", "stride": stride}).status == status


def test_options_that_a_reader_ignores_are_refused(serve, tmp_path):
    _, app = serve(f"{HEADS}/distilbert_qa")
    assert post(app, "/predict", {"inputs": [["who ?", "a boat"]], "n_best": 2}).status == 422
    lexicon = Lexicon(["boat", "river"], "unk", width=4)
    config = BidafConfig(num_words=2, word_size=4, lstm_size=3)
    params = init_network(config, jax.random.key(0), *lexicon.table())
    write_run_directory(tmp_path / "run", config, params, lexicon, run={}, task=task_named("squad"))
    _, app = serve(tmp_path / "run")
    inputs = [{"question": "who ?", "context": "a boat on the river"}]
    for options in ({"top_k": 2}, {"n_best": 2}, {"top_k": 2, "no_answer": True}):
        answer = post(app, "/predict", {"inputs": inputs, **options})
        assert len(answer.json["predictions"][0]["n_best"]) == 2


def test_a_parser_that_reads_tags_is_served(serve, tmp_path):
    lexicon = Lexicon(["boat", "river"], "unk", width=4)
    config = ParserConfig(num_labels=2, root_relation=1, num_words=2, word_size=4, hidden_size=3, num_tags=2)
    task = task_named("dependencies", tag_column="upos")
    task = dataclasses.replace(task, labels=("nsubj", "root"), tags=("NOUN", "VERB"))
    params = init_network(config, jax.random.key(0), *lexicon.table())
    write_run_directory(tmp_path / "run", config, params, lexicon, run={}, task=task)
    model, app = serve(tmp_path / "run")
    words, tags = ["boat", "sank"], ["NOUN", "VERB"]
    [expected] = json.loads(json.dumps([to_json(one) for one in model.predict([(words, tags)])]))
    for value in ({"text": words, "tags": tags}, {"text": "boat sank", "tags": "NOUN VERB"}):
        assert post(app, "/predict", {"inputs": [value]}).json["predictions"] == [expected]
    tensors = [
        {"name": name, "datatype": "BYTES", "shape": [1], "data": [" ".join(items)]}
        for name, items in (("text", words), ("tags", tags))
    ]
    outputs = post(app, "/v2/models/model/infer", {"inputs": tensors}).json["outputs"]
    assert json.loads(outputs[0]["data"][0]) == expected
    for wrong in ("boat", {"text": words}, {"text": words, "tags": ["NOUN"]}, {"text": words, "tags": 1}):
        refused = post(app, "/predict", {"inputs": [wrong]})
        assert refused.status == 422 and "input 0" in refused.json["error"]
    described = ServedModel(model).describe()
    assert described["tags"] and not described["pairs"]


def test_texts_of_another_language_warn_once(serve):
    _, app = serve(f"{HEADS}/bert_multilabel")
    with pytest.warns(UnfamiliarTexts) as warned:
        for count in (1, 2, 3):
            assert post(app, "/predict", {"inputs": ["ਪੰਜਾਬੀ ਨਦੀ ਕੰਢਾ"] * count}).status == 200
    assert len(warned) == 1


def test_a_long_text_does_not_pad_the_vectors_of_short_ones(serve, monkeypatch):
    model, app = serve("elmo_tiny")
    texts = [*("the river bank " * count for count in range(1, 40)), "a " * 4000]
    encode, sizes = model.encode, []

    def count_words(*args, **options):
        encoded = encode(*args, **options)
        sizes.append(encoded.mask.size)
        return encoded

    encoded = encode(texts)
    expected = (encoded.last * encoded.mask[:, :, None]).sum(axis=1) / encoded.mask.sum(axis=1)[:, None]
    monkeypatch.setattr(model, "encode", count_words)
    answer = post(app, "/v1/embeddings", {"input": texts, "encoding_format": "base64"}).json
    vectors = [np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in answer["data"]]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert max(sizes) <= 1 << 14


def test_inputs_of_too_many_pieces_are_refused(serve, chooser, monkeypatch):
    """The memory of attention grows with the square of a row's pieces."""
    monkeypatch.setattr(served_model, "LONG", 8)
    long = "the river " * 20
    for model, path, small, large in (
        (serve("distilbert_tiny")[0], "/v1/embeddings", {"input": ["[MASK]"]}, {"input": ["[MASK]", "[MASK] " * 18]}),
        (serve("reranker")[0], "/rank", {"query": "a", "texts": ["a"]}, {"query": "a", "texts": ["a", long]}),
        (serve(f"{HEADS}/bert_ner")[0], "/predict", {"inputs": ["a"]}, {"inputs": ["a", long]}),
        (chooser[0], "/predict", {"inputs": [["배", ["A", "강"]]]}, {"inputs": [["배", ["A"] * 2], ["배", ["A"] * 8]]}),
    ):
        service = Service(ServedModel(model), Limits(pieces=15))
        app = service.build_app()
        assert post(app, path, small).status == 200
        refused = post(app, path, large)
        assert refused.status == 422 and re.search(r"input 1 has \d\d pieces; at most 15 are read", str(refused.json))
        service.batcher.stop()


@pytest.mark.parametrize(
    ("folder", "call", "work"),
    [("distilbert_tiny", "sentences", Embed()), (f"{HEADS}/bert_multilabel", "predict", Predict())],
)
def test_few_long_inputs_are_computed_together(serve, monkeypatch, folder, call, work):
    for module in (packed_rows, served_model):
        monkeypatch.setattr(module, "LONG", 8)
    model, _ = serve(folder)
    compute, sizes = getattr(model, call), []

    def count(texts, *, batch_size, **options):
        sizes.append(batch_size)
        return compute(texts, **options)

    monkeypatch.setattr(model, call, count)
    for words in (1, 14, 46):  # and two special pieces
        ServedModel(model).compute(work, ["[MASK] " * words])
    assert sizes == [32, 8, 1]


def test_a_first_text_that_is_null_is_refused(serve):
    _, app = serve(f"{HEADS}/roberta_nli3")
    for value in ({"text": None, "pair": "It was high."}, {"text": None}):
        refused = post(app, "/predict", {"inputs": [value]})
        assert refused.status == 422 and "input 0 is {" in refused.json["error"]


FOLDERS_AT_NIGHT = [
    pytest.param(folder, marks=pytest.mark.long) for folder in (f"{HEADS}/bert_ner", "distilbert_tiny", "reranker")
]


@pytest.mark.parametrize("folder", [f"{HEADS}/roberta_nli3", *FOLDERS_AT_NIGHT])
def test_malformed_requests_are_refused(serve, folder):
    _, app = serve(folder)
    seeds = range(1000)

    async def send_all():
        return [await ask(app, *draw_request(seed)) for seed in seeds]

    answers = asyncio.run(send_all())
    wrong = [seed for seed, answer in zip(seeds, answers, strict=True) if not 400 <= answer.status < 500]
    # A change by chance may give a request that is valid.
    assert all(answers[seed].status == 200 for seed in wrong) and len(wrong) < 10, wrong[:9]
    assert {400, 404, 405, 413, 415, 422} <= {answer.status for answer in answers}
    assert all("error" in answer.json for answer in answers if answer.status >= 400 and answer.body)
