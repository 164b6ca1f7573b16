"""`config.remat=auto`: activations are kept where a device's memory allows it."""

import json
import re

import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.runs import recomputation
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.runs.recomputation import GIB, choose_remat

from ..experiments.small_recipes import small_config

TOYWORLD = {"toyworld.documents": 60, "toyworld.topics": 2, "toyworld.words": 2}
SHORT = {"steps": 2, "eval_every": 2, "eval_batches": 1, "checkpoint_every": 2, "log_every": 1, "data": "toyworld"}


def config_of(recipe, **fields):
    return small_config(recipe, **SHORT, **TOYWORLD, **fields)


def small_model(**fields):
    return get_family("bert").config(vocab_size=50, **fields)


def read_model(run):
    return json.loads((run / "model.json").read_text(encoding="utf-8"))["config"]


def read_losses(run):
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [line["loss"] for line in map(json.loads, lines) if "loss" in line]


@pytest.mark.long
@pytest.mark.usefixtures("one_device", "as_users_run")
def test_a_run_keeps_activations_where_they_fit(tmp_path, monkeypatch, capsys):
    needs = {}
    for name, memory in (("large", 2**40), ("small", 2**10)):
        monkeypatch.setattr(recomputation, "device_memory", lambda memory=memory: memory)
        assert pretrain(config_of("bert:toy", remat="auto"), tmp_path / name) == 0
        output = capsys.readouterr().err
        line = re.search(r"remat=auto: needs ([\d.]+) GiB, and [\d.]+ GiB may be used: remat=(\w+), scan=\2", output)
        needs[name] = line.groups()
    assert needs["large"][0] == needs["small"][0]
    assert [again for _, again in needs.values()] == ["False", "True"]
    models = [read_model(tmp_path / name) for name in needs]
    assert [(model["remat"], model["scan"]) for model in models] == [(False, False), (True, True)]
    assert read_losses(tmp_path / "large") == pytest.approx(read_losses(tmp_path / "small"), rel=1e-5)
    settings = json.loads((tmp_path / "small" / "run.json").read_text(encoding="utf-8"))
    assert settings["remat"] == "auto"
    assert pretrain(config_of("bert:toy", remat="auto"), tmp_path / "small") == 0  # the run is complete already


@pytest.mark.usefixtures("as_users_run")
def test_unusable_remat_values_are_refused_before_the_data_are_made(tmp_path):
    refused = (
        ("elmo:toy", "auto", "jit", r"config.remat=auto is for models with the field model.remat: leave it empty"),
        ("bert:toy", "auto", "pmap", r"config.remat=auto is for one process and --parallel=jit"),
        ("bert:toy", "yes", "jit", r"config.remat='yes' is not known; it is one of auto"),
    )
    for recipe, value, parallel, message in refused:
        with pytest.raises(ValueError, match=message):
            pretrain(config_of(recipe, remat=value), tmp_path / "run", parallel=parallel)
    assert not (tmp_path / "run").exists()


def test_a_device_that_does_not_say_changes_nothing(monkeypatch, capsys):
    model = small_model(remat=True, scan=False)
    monkeypatch.setattr(recomputation, "device_memory", lambda: None)
    assert choose_remat(model, lambda _: 1 / 0) is model
    assert "does not say how much memory it has, so model.remat=True stays" in capsys.readouterr().err


@pytest.mark.parametrize(("needed", "again"), [(0.9 * GIB, False), (0.91 * GIB, True), (float("inf"), True)])
def test_a_tenth_of_the_memory_stays_free(needed, again, monkeypatch):
    compiled = []
    monkeypatch.setattr(recomputation, "device_memory", lambda: GIB)
    chosen = choose_remat(small_model(remat=True, scan=True), lambda model: compiled.append(model) or needed)
    assert [(model.remat, model.scan) for model in compiled] == [(False, False)]
    assert (chosen.remat, chosen.scan) == (again, again)
