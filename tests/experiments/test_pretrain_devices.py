"""Pretraining has the same result on one device, on eight, under pmap, and as two processes."""

import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics

from ..simulated_devices import program_environment
from .small_recipes import corpus_kind, small_fields, toy_corpora

ROOT = Path(__file__).parents[2]
STEPS = 16
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    return toy_corpora(tmp_path_factory.mktemp("corpora"))


@pytest.fixture(scope="module")
def begin(corpora):
    """Return a function that starts the pretraining of a family in a folder, without dropout, on some devices."""

    def start(family, workdir, devices, *more):
        file = f"{family}:toy"
        fields = [*small_fields(file), f"data={corpora(corpus_kind(file))}", f"steps={STEPS}", "batch_size=16"]
        fields = [field for field in fields if not field.startswith(("model.dropout", "average", "keep"))]
        command = [sys.executable, "-m", "experiments.pretrain", f"--config={file}", f"--workdir={workdir}"]
        command += [*(f"--config.{field}" for field in fields), *more]
        environment = program_environment(devices)
        return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment)

    return start


def finish(*processes):
    try:
        for process in processes:
            messages = process.communicate(timeout=400)[1]
            assert process.returncode == 0, messages
    finally:
        for process in processes:  # one that waits for another that has failed
            process.kill()
            process.communicate()


@pytest.fixture(scope="module", params=["bert", "elmo", "transformer", "gpt", "awd_lstm", "cove"])
def single_device(request, tmp_path_factory, begin):
    workdir = tmp_path_factory.mktemp(request.param)
    finish(begin(request.param, workdir, 1))
    return request.param, workdir


def same(workdir, other):
    ours, theirs = read_metrics(workdir), read_metrics(other)
    assert [line["step"] for line in ours] == [line["step"] for line in theirs] == list(range(1, STEPS + 1))
    np.testing.assert_allclose(*([line["loss"] for line in lines] for lines in (ours, theirs)), rtol=1e-5)
    ours, theirs = ({n: v for n, v in lines[-1].items() if n.startswith("held_out/")} for lines in (ours, theirs))
    assert ours.keys() == theirs.keys()
    np.testing.assert_allclose(list(ours.values()), list(theirs.values()), rtol=1e-3)
    assert load_params(workdir)[0] == STEPS


@pytest.mark.parametrize(
    "flags",
    [["--config.mesh.fsdp=2", "--config.mesh.tensor=2"], ["--config.accumulate=2"], ["--parallel=pmap"]],
    ids=["mesh", "accumulated", "pmap"],
)
def test_eight_devices_give_what_one_gives(single_device, begin, tmp_path, flags):
    family, workdir = single_device
    finish(begin(family, tmp_path, 8, *flags))
    same(tmp_path, workdir)


def test_two_processes_of_four_devices_give_what_one_gives(single_device, begin, tmp_path):
    family, workdir = single_device
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    flags = [f"--coordinator=localhost:{port}", "--processes=2"]
    finish(*(begin(family, tmp_path, 4, *flags, f"--process={number}") for number in (0, 1)))
    same(tmp_path, workdir)
