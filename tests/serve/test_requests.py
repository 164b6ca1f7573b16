"""The server with a model of known answers: batches, limits, errors, figures, the end."""

import asyncio
import contextlib
import dataclasses
import json
import re
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from bert_elmo_jax.inference.predictions import Label, Labels, Number, Numbers, Tags, to_json
from bert_elmo_jax.serve import run_server
from bert_elmo_jax.serve.limits import Limits
from bert_elmo_jax.serve.open_inference import describe_outputs, write_predictions
from bert_elmo_jax.serve.page import page_headers, render_page
from bert_elmo_jax.serve.run_server import bind, check_installed
from bert_elmo_jax.serve.served_model import ServedModel

from .in_process import SECRET, ask, count_characters, get, post, post_all

ROOT = Path(__file__).parents[2]


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_requests_that_arrive_together_are_computed_together():
    model, service, app = count_characters()
    model.may_go.clear()
    opener = threading.Timer(0.3, model.may_go.set)
    opener.start()
    answers = post_all(app, "/predict", [{"inputs": ["a" * n, "b" * n]} for n in range(1, 41)])
    for n, answer in enumerate(answers, start=1):
        assert answer.status == 200
        assert [one["probability"] for one in answer.json["predictions"]] == [n, n]
    assert len(model.batches) <= 4 and max(map(len, model.batches)) <= 64
    text = get(app, "/metrics").body.decode()
    assert 'bert_elmo_jax_requests_total{path="/predict",status="200"} 40' in text
    assert "bert_elmo_jax_batch_inputs_sum 80" in text and "bert_elmo_jax_queue_inputs 0" in text
    assert re.search(r"bert_elmo_jax_inputs_per_second [1-9]", text)
    service.batcher.stop()


def test_every_line_of_the_metrics_is_one_that_prometheus_reads():
    _, _, app = count_characters()
    post(app, "/predict", {"inputs": ["a"]})
    get(app, "/nothing")
    line = re.compile(r'(# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [-+\d.e]+)')
    lines = get(app, "/metrics").body.decode().splitlines()
    assert lines and all(map(line.fullmatch, lines))
    assert 'bert_elmo_jax_requests_total{path="other",status="404"} 1' in lines


def test_a_failing_request_fails_alone_and_shows_no_path(caplog):
    model, _, app = count_characters()
    model.may_go.clear()
    threading.Timer(0.3, model.may_go.set).start()
    contents = [{"inputs": [text]} for text in ("first", "good", "crash", "refuse", "nan", "fine")]
    answers = post_all(app, "/predict", contents)
    assert [answer.status for answer in answers] == [200, 200, 500, 422, 500, 200]
    assert not any(SECRET in answer.body.decode() or "Traceback" in answer.body.decode() for answer in answers)
    assert "cannot be read" in caplog.text  # the log of the server has the reason


def test_a_full_queue_answers_429_and_a_late_result_504():
    model, service, app = count_characters(Limits(queue=4, seconds=0.6, inputs=3))
    model.may_go.clear()
    contents = [{"inputs": ["a", "b", "c"]}] * 6
    answers = post_all(app, "/predict", contents)
    assert {answer.status for answer in answers} == {429, 504}
    assert all(answer.headers["retry-after"] for answer in answers)
    model.may_go.set()
    wait_for(lambda: not service.batcher.waiting)
    assert post(app, "/predict", contents[0]).status == 200
    computed = len(model.batches)
    assert computed <= 3  # a request whose client has its 504 already is not computed


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/predict", b"", 400, "the body is not JSON"),
        ("/predict", b"\xff", 400, "not UTF-8"),
        ("/predict", b"[1]", 422, "no JSON object"),
        ("/predict", b"{}", 422, "inputs is missing"),
        ("/predict", b'{"inputs": []}', 422, "empty list"),
        ("/predict", b'{"inputs": "a"}', 422, "expected a list"),
        ("/predict", b'{"inputs": [" "]}', 422, "input 0 is ' '"),
        ("/predict", b'{"inputs": ["a", {"context": "a"}]}', 422, "input 1 is"),
        ("/predict", b'{"inputs": ["\\ud800"]}', 400, "half of a character"),
        ("/predict", b'{"inputs": ["a"], "path": "/etc"}', 422, "no field 'path'"),
        ("/predict", b'{"inputs": ["a"], "top_k": NaN}', 400, "not finite"),
        ("/predict", b'{"inputs": ["a"], "top_k": 1e999}', 400, "not finite"),
        ("/predict", b'{"inputs": ' + b"9" * 200 + b"}", 400, "100 digits"),
        ("/predict", b"[" * 5000, 400, "not JSON"),
        ("/predict", b'{"a":' * 70 + b"1" + b"}" * 70, 400, "nested too deeply"),
        ("/predict", json.dumps({"inputs": ["a" * 20_001]}).encode(), 422, "20,001 characters"),
        ("/predict", json.dumps({"inputs": ["a"] * 129}).encode(), 422, "at most 128"),
        ("/predict", b"a" * (1 << 20) + b"a", 413, "more than 1,048,576 bytes"),
        ("/predict", b"a" * (1 << 25), 413, "more than 1,048,576 bytes"),
        ("/v1/embeddings", b'{"input": "a"}', 404, "no vectors"),
        ("/rank", b'{"query": "a", "texts": ["a"]}', 404, "does not rank"),
        ("/v2/models/other/infer", b"{}", 404, "no model 'other'"),
        ("/v2/models/folder/infer", b"{}", 422, "no list of the tensors"),
        ("/../etc/passwd", b"{}", 404, "Not Found"),
        ("/health", b"{}", 405, "Method Not Allowed"),
    ],
)  # fmt: skip
def test_wrong_requests_are_refused_with_the_reason(wrong_app, path, body, status, message):
    answer = asyncio.run(ask(wrong_app, "POST", path, body))
    assert answer.status == status
    error = answer.json["error"]
    assert message in (error["message"] if path.startswith("/v1") else error)


@pytest.fixture(scope="module")
def wrong_app():
    return count_characters()[2]


def test_headers_that_promise_too_much_or_compress_are_refused(wrong_app):
    large = [("content-length", "9" * 30)]
    assert post(wrong_app, "/predict", {"inputs": ["a"]}, headers=large).status == 413
    assert post(wrong_app, "/predict", {"inputs": ["a"]}, headers=[("content-encoding", "gzip")]).status == 415


def test_open_inference_protocol():
    _, _, app = count_characters()
    text = {"name": "text", "datatype": "BYTES", "shape": [2], "data": ["a", "bcd"]}
    answer = post(app, "/v2/models/folder/infer", {"id": "7", "inputs": [text]}).json
    assert answer["model_name"] == "folder" and answer["id"] == "7"
    label, prediction = answer["outputs"]
    assert (label["name"], label["shape"], label["data"]) == ("label", [2], ["short", "short"])
    assert json.loads(prediction["data"][1])["probability"] == 3
    assert get(app, "/v2/health/ready").status == get(app, "/v2/health/live").status == 200
    described = get(app, "/v2/models/folder").json
    assert [tensor["name"] for tensor in described["outputs"]] == ["label", "prediction"]
    assert get(app, "/v2/models/folder/ready").json == {"name": "folder", "ready": True}
    for wrong in ({"shape": [3]}, {"datatype": "FP32"}, {"data": [1, 2]}, {"data": "ab"}):
        assert post(app, "/v2/models/folder/infer", {"inputs": [{**text, **wrong}]}).status == 422


@pytest.mark.parametrize(
    ("fields", "prediction"),
    [
        ({}, Label("short", 1.0, {})),
        ({"multi_label": True}, Labels(("short",), {"short": 1.0})),
        ({"kind": "regression", "labels": ()}, Number(0.5)),
        ({"kind": "regression"}, Numbers({"short": 0.5, "long": 1.0})),
        ({"kind": "sentences"}, Number(0.5)),
        ({"kind": "tags"}, Tags(("a",), ("short",), (1.0,))),
    ],
)
def test_the_described_outputs_are_those_of_infer(fields, prediction):
    model = count_characters()[0]
    model.task = dataclasses.replace(model.task, **fields)
    described = {name: kind for name, kind, _ in describe_outputs(ServedModel(model))}
    assert described == {one["name"]: one["datatype"] for one in write_predictions([to_json(prediction)])}


def test_a_stopping_server_answers_what_it_has_and_refuses_the_rest():
    model, service, app = count_characters()
    model.may_go.clear()
    answers = []
    sender = threading.Thread(target=lambda: answers.append(post(app, "/predict", {"inputs": ["a"]})))
    sender.start()
    wait_for(lambda: model.batches)
    service.stopping = True
    refused = post(app, "/predict", {"inputs": ["a"]})
    assert refused.status == get(app, "/health").status == 503 and refused.headers["retry-after"]
    assert refused.headers["connection"] == "close"
    assert get(app, "/metrics").status == 200
    model.may_go.set()
    sender.join()
    assert answers[0].status == 200
    service.batcher.stop()


def test_the_page_is_escaped_and_runs_only_its_own_script():
    description = {"name": "<script>alert(1)</script>", "kind": "encoder", "labels": ["</script><b>"]}
    page = render_page(description)
    assert page.count("<script") == 2 and "<b>" not in page
    assert "sha256-" in page_headers()["content-security-policy"]
    assert not re.search(r"""(src|href)=["']?(https?:|//)""", page)
    _, _, app = count_characters()
    answer = get(app, "/")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/html")
    assert SECRET not in answer.body.decode()


def test_the_page_has_the_same_texts_in_both_languages():
    page = render_page({"name": "a", "kind": "encoder"})
    for block in (r"const words = \{(.*?)\}\};", r"const samples = \{(.*?)\}\};"):
        [body] = re.findall(block, page, re.S)
        english, korean = (re.sub(r'"[^"]*"', "", part) for part in body.split("ko: {"))
        keys = [re.findall(r"(\w+):", part.replace("en: {", "")) for part in (english, korean)]
        assert keys[0] == keys[1] and len(keys[0]) > 5
        texts = re.findall(r'"([^"]*)"', body.split("ko: {")[1])
        assert sum(bool(re.search("[가-힣]", text)) for text in texts) >= len(texts) - 1  # but "English"


def test_a_port_in_use_and_a_wrong_host_are_named():
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} of 127.0.0.1 is in use.*--port={port + 1}"):
            bind("127.0.0.1", port)
    with pytest.raises(ValueError, match=r"--host=192.0.2.1 --port=0 cannot be used"):
        bind("192.0.2.1", 0)


def test_connections_without_complete_headers_are_closed(monkeypatch):
    """Otherwise 256 clients that send half a header, once, would keep all others out."""
    monkeypatch.setattr(run_server, "SECONDS", 0.3)
    _, service, _ = count_characters(limits=Limits(connections=8))
    listener, started = bind("127.0.0.1", 0), threading.Event()
    server = run_server._build_server(service, started.set)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    assert started.wait(20)
    clients = [socket.create_connection(listener.getsockname(), 20) for _ in range(20)]
    starts = [b"", b"GET /health HTTP/1.1\r\nx: ", b"GET /health HTTP/1.1\r\nhost: a\r\n\r\nGET /he", b"\0\xff\r\n" * 9]
    for number, client in enumerate(clients):
        client.sendall(starts[number % len(starts)])
    for client in clients:
        with client, contextlib.suppress(ConnectionResetError):
            while client.recv(1000):
                pass
    with urllib.request.urlopen(f"http://127.0.0.1:{listener.getsockname()[1]}/health", timeout=20) as answer:
        assert answer.status == 200
    server.should_exit = True
    thread.join(20)
    service.batcher.stop()
    listener.close()


def test_a_second_signal_ends_the_server_at_once(caplog):
    """Its request gets a 503 in JSON, and the computation is not awaited."""
    model, service, _ = count_characters()
    model.may_go.clear()
    listener, started = bind("127.0.0.1", 0), threading.Event()
    port = listener.getsockname()[1]
    server = run_server._build_server(service, started.set)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    assert started.wait(20)
    errors = []

    def send():
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/predict", b'{"inputs": ["a"]}', timeout=20)
        except urllib.error.HTTPError as error:
            errors.append((error.code, json.loads(error.read())))

    sender = threading.Thread(target=send)
    sender.start()
    wait_for(lambda: model.batches)
    server.handle_exit(signal.SIGTERM, None)
    thread.join(0.5)
    assert thread.is_alive()  # it waits for the request
    server.handle_exit(signal.SIGTERM, None)
    thread.join(5)
    assert not thread.is_alive() and not service.batcher.ended
    sender.join(5)
    assert errors == [(503, {"error": "the server is stopping"})] and "Traceback" not in caplog.text
    model.may_go.set()
    service.batcher.stop(5.0)
    assert service.batcher.ended
    listener.close()


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ImportError, match=r"pip install 'bert_elmo_jax\[serve\]'"):
        check_installed()


def test_only_the_server_imports_the_extra():
    files = [file for file in (ROOT / "bert_elmo_jax").rglob("*.py") if file.parent.name != "serve"]
    assert not [
        file for file in files if re.search(r"import (starlette|uvicorn)|from (starlette|uvicorn)", file.read_text())
    ]
