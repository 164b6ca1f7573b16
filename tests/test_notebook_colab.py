"""The cells of the Colab notebook on simulated machines: hardware, Drive, sizes, text."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from .notebook_files import PRETRAIN, cell_with, read, settings_of


@pytest.mark.parametrize("device", ["cpu", "gpu", "tpu"])
@pytest.mark.parametrize("text", ["", "novels/*.txt"])
def test_there_is_a_size_for_each_device(device, text):
    """The model can be built, the batch can be divided by usual device counts, and the rate reaches its peak."""
    from bert_elmo_jax.families import get_family
    from bert_elmo_jax.families.bert.config import BertConfig
    from bert_elmo_jax.runs.initial_state import apply_compute, build_schedule

    names = {"settings": settings_of(read(PRETRAIN)) | {"device": device, "text": text}, "data": "toyworld"}
    exec(compile(cell_with(PRETRAIN, "bert.toy()"), PRETRAIN, "exec"), names)
    config = apply_compute(names["config"])
    model = BertConfig(vocab_size=8192, **config.model)
    objective = get_family("bert").objective(config, model)
    assert objective.long_steps == 0
    assert config.batch_size % 8 == 0
    assert model.hidden_size // model.num_heads >= 16
    assert model.max_positions == config.length
    assert config.steps == {"cpu": 1_500, "gpu": 20_000, "tpu": 50_000}[device] if text else config.steps == 1_500
    assert model.dtype == ("float32" if device == "cpu" else "bfloat16")
    assert (
        float(build_schedule(config.optimizer, config.steps)(config.steps // 10)) > config.optimizer.learning_rate / 2
    )


def install(monkeypatch, chips=(), programs=(), installed=False):
    """Run the installing cell on a machine with these chips and programs; return hardware and commands."""
    import importlib.util
    import shutil

    ran = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: ran.append((command, check)))
    monkeypatch.setattr(shutil, "which", lambda name: name if name in programs else None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if installed else None)
    monkeypatch.setattr(
        Path, "glob", lambda self, pattern: [Path(c) for c in chips if Path(c).match(f"{self}/{pattern}")]
    )
    names = {"settings": {"package": "git+https://example.org/project"}}
    exec(compile(cell_with(PRETRAIN, "nvidia-smi"), PRETRAIN, "exec"), names)
    return names["hardware"], ran


@pytest.mark.parametrize(
    ("chips", "programs", "hardware", "edition"),
    [
        (["/dev/vfio/0", "/dev/vfio/vfio"], [], "tpu", "jax[tpu]"),
        (["/dev/accel0", "/dev/accel1"], ["nvidia-smi"], "tpu", "jax[tpu]"),
        (["/dev/vfio/vfio"], ["nvidia-smi"], "gpu", "jax[cuda13]"),
        (["/dev/vfio/vfio"], [], "cpu", "jax"),  # the control node is no chip
    ],
)
def test_it_installs_the_edition_of_the_hardware(monkeypatch, chips, programs, hardware, edition):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", edition, "git+https://example.org/project"]
    assert install(monkeypatch, chips, programs) == (hardware, [(pip, True)])


def test_an_installed_package_is_not_installed_again(monkeypatch):
    assert install(monkeypatch, installed=True) == ("cpu", [])


def test_a_session_with_an_older_edition_is_told_to_restart(monkeypatch):
    import numpy as np

    monkeypatch.setattr(np, "__version__", "1.0")
    with pytest.raises(RuntimeError, match="installed; now Runtime → Restart session, and run all cells again"):
        install(monkeypatch)


@pytest.mark.parametrize(
    ("colab", "folder", "expected_folder", "mounted"),
    [
        (True, "", "/content/drive/MyDrive/bert_elmo_jax", ["/content/drive"]),
        (True, "/content/drive/MyDrive/other", "/content/drive/MyDrive/other", ["/content/drive"]),
        (False, "", "runs/pretrain", []),
        (False, "elsewhere", "elsewhere", []),
    ],
)
def test_in_colab_it_is_kept_on_drive(monkeypatch, colab, folder, expected_folder, mounted):
    mounts = []
    google, module = ModuleType("google"), ModuleType("google.colab")
    google.colab, module.drive = module, SimpleNamespace(mount=mounts.append)
    if colab:
        monkeypatch.setitem(sys.modules, "google", google)
        monkeypatch.setitem(sys.modules, "google.colab", module)
    names = {"settings": {"folder": folder}, "sys": sys, "Path": Path}
    exec(compile(cell_with(PRETRAIN, "google.colab"), PRETRAIN, "exec"), names)
    assert names["folder"] == Path(expected_folder)
    assert names["run"].parent == Path(expected_folder)
    assert mounts == mounted


def test_text_of_ones_own_is_prepared(monkeypatch, tmp_path):
    """The notebook uses the program's flags, and finds the work done when it is run again."""
    from bert_elmo_jax.data.corpora.store import open_store

    monkeypatch.chdir(tmp_path)
    for n in range(3):
        Path(f"novel_{n}.txt").write_text("강가에 배가 있다. The bank is old.\n\n" * 20, encoding="utf-8")
    source = cell_with(PRETRAIN, "prepare_data")
    names = {"settings": {"text": "novel_*.txt"}, "folder": tmp_path, "subprocess": subprocess, "sys": sys}
    for _ in range(2):
        exec(compile(source, PRETRAIN, "exec"), names)
        assert len(open_store(names["data"])) > 0
    empty = {**names, "settings": {"text": ""}, "folder": tmp_path / "other"}
    exec(compile(source, PRETRAIN, "exec"), empty)
    assert empty["data"] == "toyworld"
