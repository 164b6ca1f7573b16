"""`config.compute` selects how a device computes, in every program."""

import json

import pytest
from ml_collections import ConfigDict

from bert_elmo_jax import load
from bert_elmo_jax.nn.matrix_product import fast_bfloat16
from bert_elmo_jax.runs import initial_state
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.runs.initial_state import apply_compute
from bert_elmo_jax.runs.pretraining import pretrain

from ..experiments.task_files import write_model, write_task

SMALL = {"steps": 1, "batch_size": 8, "eval_batches": 1, "eval_every": 1, "checkpoint_every": 1, "data": "toyworld",
         "toyworld.documents": 60, "toyworld.topics": 2, "toyworld.words": 2}  # fmt: skip
BERT = {"length": 32, "long_share": 0.0, "model.num_layers": 1, "model.hidden_size": 16, "model.num_heads": 2,
        "model.feed_forward_size": 16, "model.max_positions": 32}  # fmt: skip
ELMO = {"length": 8, "negatives": 0, "model.cell_size": 8, "model.projection_size": 8, "model.filters": ((1, 8),),
        "model.max_characters": 12}  # fmt: skip


RECIPES = {"bert.py:base": BERT, "elmo.py:original": ELMO}
CASES = [(recipe, device) for recipe in RECIPES for device in ("cpu", "gpu", "tpu", "auto")]


@pytest.mark.long
@pytest.mark.parametrize(("recipe", "device"), CASES)
@pytest.mark.usefixtures("one_device", "as_users_run")
def test_the_papers_recipes_take_a_step_on_every_device(recipe, device, tmp_path, capsys):
    config, _ = read_config(f"experiments/configs/{recipe}")
    config.update_from_flattened_dict({**SMALL, **RECIPES[recipe], "compute": device})
    assert pretrain(config, tmp_path / "run") == 0
    on_accelerator = device in ("gpu", "tpu")
    dtype = "bfloat16" if on_accelerator or (device == "auto" and fast_bfloat16()) else "float32"
    assert f"compute={device}: dtype={dtype}" in capsys.readouterr().err
    settings = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert settings["model"]["dtype"] == dtype and "compute" not in settings
    if recipe.startswith("bert"):
        assert settings["model"]["attention"] == ("fused" if on_accelerator else "reference")
        dropouts = (settings["model"]["attention_dropout"], settings["model"]["dropout"])
        assert dropouts == (0.0 if on_accelerator else 0.1, 0.1)
    assert load(tmp_path / "run").encode(["the ship"]).last.shape[0] == 1


@pytest.mark.usefixtures("one_device", "as_users_run")
def test_fine_tuning_takes_a_step(tmp_path, capsys):
    files, model = write_task(tmp_path / "files", "sst2"), write_model(tmp_path / "model")
    config, _ = read_config("experiments/configs/finetune.py")
    config.update({**files, "compute": "gpu", "dropout": 0.1, "epochs": 1.0, "batch_size": 16, "max_length": 32})
    assert finetune(config, tmp_path / "run", init=str(model)) == 0
    assert "compute=gpu: dtype=bfloat16, attention=fused, attention_dropout=0.0" in capsys.readouterr().err
    assert load(tmp_path / "run").predict(["the ship"])


def test_the_device_decides_the_dtype_and_the_attention(capsys):
    config = ConfigDict({"compute": "auto", "model": {"dtype": "float32"}})
    assert apply_compute(config, "tpu").model.dtype == "bfloat16"
    assert apply_compute(config, "something else").model.dtype == "float32"
    assert config.compute == "auto" and config.model.dtype == "float32", "the given config stays as it is"
    splash = ConfigDict({"compute": "auto", "model": {"attention": "splash", "attention_dropout": 0.1}})
    assert apply_compute(splash, "tpu").model.to_dict() == {"attention": "splash", "attention_dropout": 0.0}
    assert apply_compute(splash, "gpu").model.attention == "fused"
    network = ConfigDict({"compute": "gpu", "network": "tagger"})
    assert apply_compute(network).to_dict() == {"network": "tagger"}
    assert "a task network computes in float32 on every device" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"config.compute='gpuu' is not known; .* did you mean gpu\?"):
        apply_compute(ConfigDict({"compute": "gpuu"}))


@pytest.mark.parametrize("fast", [True, False])
def test_auto_on_a_cpu_is_the_faster_number_format(fast, monkeypatch, capsys):
    monkeypatch.setattr(initial_state, "fast_bfloat16", lambda: fast)
    dtype = "bfloat16" if fast else "float32"
    config = ConfigDict({"compute": "auto", "model": {"dtype": "float32", "attention": "fused"}})
    assert apply_compute(config, "cpu").model.to_dict() == {"dtype": dtype, "attention": "reference"}
    assert f"compute=auto: dtype={dtype}, attention=reference" in capsys.readouterr().err
    assert apply_compute(ConfigDict({"compute": "cpu", "model": {"dtype": "float32"}}), "cpu").model.dtype == "float32"
