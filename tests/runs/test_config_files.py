"""Examples of `bert_elmo_jax.runs.config_files`."""

import re

import pytest
from ml_collections import ConfigDict

from bert_elmo_jax.runs.config_files import (
    check_program,
    choose_recipe,
    list_fields,
    list_recipes,
    override,
    parse_value,
    parse_values,
    read_config,
    read_flags,
    resolve_name,
    show_value,
)


def test_example_of_list_recipes():
    assert (
        list_recipes("experiments/configs/elmo.py")[0]["toy"]
        == "An ELMo for a laptop: a small toy world in English and Korean, generated when the run starts."
    )


def test_example_of_check_program():
    with pytest.raises(
        ValueError,
        match=re.escape(
            "--config=finetune.py is for finetune, not for pretrain: start finetune, or choose another config"
        ),
    ):
        check_program("finetune.py", ConfigDict({"task": "sst2"}), "pretrain")


def test_example_of_read_flags():
    assert read_flags(["--config=a.py", "--config.steps=3", "--config", "b.py", "--verify"]) == {
        "config": "b.py",
        "config.steps": "3",
        "verify": None,
    }


def test_example_of_list_fields():
    assert list(list_fields(ConfigDict({"optimizer": {"name": "adamw"}}))) == [("optimizer.name", "adamw")]


def test_example_of_override():
    config = ConfigDict({"steps": 1, "optimizer": {"clip": 1.0}})
    override(config, ["steps=3", "optimizer.clip=5"])
    assert (config.steps, config.optimizer.clip) == (3, 5.0)


def test_fields_of_an_encoder_by_its_name():
    config = ConfigDict({"encoder": "runs/elmo", "layers": "", "directions": "both", "places": "input"})
    override(config, ["encoder.layers=top", "encoder.directions=forward", "encoder=runs/other"])
    assert (config.layers, config.directions, config.encoder) == ("top", "forward", "runs/other")
    for name in ("encoder.places", "places.layers", "encoder", "layers"):
        assert resolve_name(config, name) == name
    with pytest.raises(ValueError, match=re.escape("no field 'encoder.places'; did you mean encoder?")):
        override(config, ["encoder.places=output"])
    group = ConfigDict({"encoder": {"layers": 3}, "layers": 4})
    override(group, ["encoder.layers=5"])
    assert (group.encoder.layers, group.layers) == (5, 4)


def test_example_of_parse_values():
    assert parse_values(ConfigDict({"split": (0.8, 0.1)}), "split", "(1, 0),(0.5, 0.5)") == [(1, 0), (0.5, 0.5)]
    assert parse_values(ConfigDict({"layers": ""}), "layers", "all,'0,1'") == ["all", "0,1"]


def test_example_of_show_value():
    assert (show_value(None), show_value(True), show_value(0.001), show_value(["1", "2"]), show_value((0.8, 0.1))) == (
        "",
        "true",
        "0.001",
        "1,2",
        "(0.8, 0.1)",
    )


def test_recipes_by_name():
    def tiny():
        return ConfigDict({"layers": 2})

    get_config = choose_recipe(tiny)
    assert get_config("tiny").layers == 2
    with pytest.raises(ValueError, match="there is no recipe 'tinny'; choose from tiny; did you mean tiny"):
        get_config("tinny")


def test_a_config_with_its_docstring():
    config, docstring = read_config("experiments/configs/bert.py:toy")
    assert (config.steps, docstring.partition(":")[0]) == (9000, "A BERT for a laptop")


def test_a_near_config_is_suggested():
    near = re.escape("--config=bert_toi.py: there is no such file; did you mean experiments/configs/bert.py:toy?")
    with pytest.raises(FileNotFoundError, match=near):
        read_config("bert_toi.py")


def test_the_present_value_decides_the_type():
    config = ConfigDict({"optimizer": {"clip": 1.0}, "split": (0.8, 0.1), "remat": False})
    assert (parse_value(config, "optimizer.clip", "5"), parse_value(config, "split", "(1, 2)")) == (5.0, (1, 2))
    with pytest.raises(ValueError, match="remat='yes': expected a value like false"):
        parse_value(config, "remat", "yes")
    with pytest.raises(ValueError, match=r"the config has no field 'optimiser.clip'; did you mean optimizer.clip?"):
        parse_value(config, "optimiser.clip", "5")
