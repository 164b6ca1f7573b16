"""The program: started, asked by many clients, stopped by a signal, started again; and refused starts."""

import contextlib
import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ..page_files import write_tagger, write_ulmfit
from ..simulated_devices import program_environment

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.long


def start(*words):
    command = [sys.executable, "-m", "experiments.serve", *map(str, words)]
    environment = {**program_environment(1), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip


def find_port(process):
    line = process.stdout.readline()
    match = re.search(r"http://127\.0\.0\.1:(\d+)", line)
    assert match, line + process.communicate()[1]
    return int(match[1])


def send(port, path, content=None, method="POST"):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, None if content is None else json.dumps(content))
        answer = connection.getresponse()
        return answer.status, answer.read()


def stop(process, name=signal.SIGTERM):
    process.send_signal(name)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in errors, errors
    return errors


def test_a_signal_ends_the_server_after_the_requests_in_progress(goldens):
    folder = goldens / "released_heads" / "roberta_nli3"
    with start(folder, "--port=0", "--warm_rows=1", "--warm_length=8") as process:
        port = find_port(process)
        assert send(port, "/health", method="GET")[0] == 200
        in_use = subprocess.run(
            [sys.executable, "-m", "experiments.serve", str(folder), f"--port={port}"],
            cwd=ROOT, env={**program_environment(1), "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        )  # fmt: skip
        assert in_use.returncode == 2 and in_use.stderr.count("\n") == 1 and "is in use" in in_use.stderr
        answers = []

        def ask_often(number):
            for turn in range(200):
                try:
                    status, body = send(port, "/predict", {"inputs": [f"text {number} " * (turn % 40 + 1)]})
                except ConnectionRefusedError:
                    answers.append("refused")  # the server has ended
                    return
                except ConnectionResetError:
                    answers.append("reset")  # the listening socket was closed before the server took the connection
                    return
                answers.append(status)
                assert status in (200, 503) and json.loads(body)

        clients = [threading.Thread(target=ask_often, args=(number,)) for number in range(8)]
        for client in clients:
            client.start()
        while answers.count(200) < 40:
            assert process.poll() is None
        stop(process)
        for client in clients:
            client.join()
        assert set(answers) <= {200, 503, "refused", "reset"} and 40 <= answers.count(200) < 1600


ENDLESS = """
import dataclasses, jax
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.inference import load_model
from bert_elmo_jax.serve.run_server import serve

class Endless:
    source, text_rows, labels = "endless", None, ("a", "b")
    task = dataclasses.replace(task_named("classification"), labels=labels)

    def predict(self, inputs, **options):
        jax.block_until_ready(jax.jit(lambda: jax.lax.while_loop(lambda n: n >= 0, lambda n: (n + 1) % 9, 0))())

load_model.load = lambda path: Endless()
serve("endless", port=0, warm_rows=0, show=lambda line: print(line, flush=True))
"""


def test_a_second_signal_ends_a_computation():
    """The interpreter's end would abort the process while a thread computes."""
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], cwd=ROOT, env={**program_environment(1), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        port, answers = find_port(process), []
        client = threading.Thread(target=lambda: answers.append(send(port, "/predict", {"inputs": ["a"]})))
        client.start()
        time.sleep(2)  # the computation has begun
        process.send_signal(signal.SIGTERM)
        time.sleep(1)
        stop(process)
        client.join()
        assert answers == [(503, b'{"error":"the server is stopping"}')]


def test_a_killed_server_starts_again_at_its_port(goldens):
    folder, words = goldens / "reranker", ("--warm_rows=0", "--dtype=bfloat16")
    with start(folder, "--port=0", *words) as process:
        port = find_port(process)
        connection = http.client.HTTPConnection("127.0.0.1", port)  # which the kill breaks
        connection.connect()
        process.kill()
        process.communicate()
    connection.close()
    with start(folder, f"--port={port}", *words) as process:
        assert find_port(process) == port
        assert send(port, "/rank", {"query": "a", "texts": ["b", "c"]})[0] == 200
        stop(process)


def write_classifier_of_documents(folder, goldens):
    write_ulmfit(folder)


def write_tagger_of_words(folder, goldens):
    write_tagger(folder, goldens / "elmo_tiny")


@pytest.mark.parametrize(
    ("write", "kind"), [(write_classifier_of_documents, "probability"), (write_tagger_of_words, "tags")]
)
def test_runs_of_other_kinds_are_served(write, kind, goldens, tmp_path):
    write(tmp_path / "run", goldens)
    with start(
        f"--model={tmp_path / 'run'}", "--port=0", "--warm_rows=2", "--warm_length=12", "--name=mine"
    ) as process:
        port = find_port(process)
        status, body = send(port, "/predict", {"inputs": ["really", "영화 river"]})
        answer = json.loads(body)
        assert status == 200 and answer["model"] == "mine" and all(kind in one for one in answer["predictions"])
        assert send(port, "/v1/embeddings", {"input": "a"})[0] == 404
        assert send(port, "/", method="GET")[0] == 200
        stop(process, signal.SIGINT)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("missing",), "missing"),
        ((), "one model is needed"),
        (("tests/goldens/bert_tiny", "--model=other"), "one model is needed"),
        (("tests/goldens/bert_tiny", "--port=70000"), "--port=70000"),
        (("tests/goldens/bert_tiny", "--host=nowhere.invalid"), "--host=nowhere.invalid"),
    ],
)
def test_starts_that_cannot_be_are_refused_in_one_line(words, message):
    process = start(*words)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2 and message in errors and "Traceback" not in errors
    assert len(errors.splitlines()) == 1, errors
