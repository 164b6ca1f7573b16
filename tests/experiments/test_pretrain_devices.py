"""Pretraining has the same result on one device, on eight, under pmap, and as two processes."""

import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus, toy_pairs
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics

from ..simulated_devices import program_environment

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.long
MODELS = {
    "bert": ["--config.model.num_layers=1", "--config.length=32"],
    "elmo": ["--config.model.cell_size=32", "--config.length=10", "--config.model.max_characters=12"],
    "transformer": ["--config.model.num_layers=1", "--config.model.hidden_size=32", "--config.translations=4"],
    "gpt": ["--config.model.num_layers=1", "--config.model.hidden_size=32", "--config.length=32"],
    "awd_lstm": ["--config.model.num_layers=1", "--config.model.embedding_size=16", "--config.length=10"],
    "cove": ["--config.model.lstm_size=16", "--config.translations=4"],
}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    return {
        "bert": toy_corpus(folder / "bert", documents=300),
        "elmo": toy_corpus(folder / "elmo", documents=300, tokenizer="words"),
        "transformer": toy_pairs(folder / "transformer", topics=2, words=3, documents=1_000),
        "gpt": toy_corpus(folder / "gpt", documents=300),
        "awd_lstm": toy_corpus(folder / "awd_lstm", documents=300, tokenizer="words"),
        "cove": toy_pairs(folder / "cove", topics=2, words=3, documents=1_000, tokenizer="words"),
    }


def begin(model, workdir, corpora, devices, *more):
    command = [sys.executable, "-m", "experiments.pretrain", f"--workdir={workdir}"]
    command += [f"--config=experiments/configs/{model}.py:toy", f"--config.data={corpora[model]}", *MODELS[model]]
    command += ["--config.steps=20", "--config.batch_size=16", "--config.eval_every=10", "--config.eval_batches=2"]
    environment = program_environment(devices)
    return subprocess.Popen(command + list(more), cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment)


def finish(*processes):
    try:
        for process in processes:
            said = process.communicate(timeout=400)[1]
            assert process.returncode == 0, said
    finally:
        for process in processes:  # one that waits for another that has failed
            process.kill()
            process.communicate()


@pytest.fixture(scope="module", params=MODELS)
def alone(request, tmp_path_factory, corpora):
    workdir = tmp_path_factory.mktemp(request.param)
    finish(begin(request.param, workdir, corpora, 1))
    return request.param, workdir


def same(workdir, other):
    ours, theirs = read_metrics(workdir), read_metrics(other)
    assert [line["step"] for line in ours] == [line["step"] for line in theirs] == list(range(1, 21))
    losses = [[line["loss"] for line in lines] for lines in (ours, theirs)]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    figures = [
        {name: value for name, value in lines[-1].items() if name.startswith("held_out/")} for lines in (ours, theirs)
    ]
    assert figures[0].keys() == figures[1].keys()
    np.testing.assert_allclose(list(figures[0].values()), list(figures[1].values()), rtol=1e-3)
    assert load_params(workdir)[0] == 20


@pytest.mark.parametrize(
    "flags",
    [["--config.mesh.fsdp=2", "--config.mesh.tensor=2"], ["--config.accumulate=2"], ["--parallel=pmap"]],
    ids=["mesh", "accumulated", "pmap"],
)
def test_eight_devices_give_what_one_gives(alone, corpora, tmp_path, flags):
    model, workdir = alone
    finish(begin(model, tmp_path, corpora, 8, *flags))
    same(tmp_path, workdir)


def test_two_processes_of_four_devices_give_what_one_gives(alone, corpora, tmp_path):
    model, workdir = alone
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    flags = [f"--coordinator=localhost:{port}", "--processes=2"]
    finish(*(begin(model, tmp_path, corpora, 4, *flags, f"--process={number}") for number in (0, 1)))
    same(tmp_path, workdir)
