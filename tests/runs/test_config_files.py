"""Examples of `bert_elmo_jax.runs.config_files`."""

import re

import pytest
from ml_collections import ConfigDict

from bert_elmo_jax.programs import CONFIGS
from bert_elmo_jax.runs.config_files import choose_recipe, override, parse_value, read_config, resolve_name

OWN = """from bert_elmo_jax.experiments.configs import bert


def get_config():
    c = bert.get_config("toy")
    {}
    return c
"""


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


@pytest.mark.parametrize("spelling", ["bert:toy", "bert.py:toy", "experiments/configs/bert.py:toy"])
def test_a_recipe_has_the_same_fields_in_each_spelling_and_folder(spelling, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config, _ = read_config(spelling)
    assert config == read_config(str(CONFIGS / "bert.py:toy"))[0]


def test_a_file_of_the_current_folder_comes_before_the_recipes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "from bert_elmo_jax.experiments.configs import bert\n\n\ndef get_config():\n    c = bert.get_config('toy')\n"
    (tmp_path / "bert.py").write_text(f"{code}    c.steps = 7\n    return c\n")
    assert read_config("bert.py")[0].steps == 7 and read_config("bert:toy")[0].steps == 9000


def test_a_copied_recipe_finds_the_files_that_it_imports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("raise RuntimeError('another package of this name')\n")
    (tmp_path / "mine.py").write_text((CONFIGS / "tagger.py").read_text(encoding="utf-8"))
    assert read_config("mine.py")[0].network == "tagger"


@pytest.mark.parametrize("code", ["sys.exit(0)", "def get_config():\n    sys.exit(0)"])
def test_a_config_cannot_end_a_program_as_if_its_work_were_done(code, tmp_path):
    (tmp_path / "own.py").write_text(f"import sys\n\n{code}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"own\.py: .*(SystemExit: 0|sys\.exit\(0\))"):
        read_config(str(tmp_path / "own.py"))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("c.modle.update(layers=2)", "it cannot be run: AttributeError: .*modle"),
        ("return None", "expected a ConfigDict from its function; it returned None"),
    ],
)
def test_a_mistake_in_a_recipe_of_your_own_is_one_line(code, message, tmp_path):
    (tmp_path / "own.py").write_text(OWN.format(code), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"--config=.*own\.py: {message}"):
        read_config(str(tmp_path / "own.py"))


def test_a_field_that_no_recipe_has_is_a_warning(tmp_path):
    (tmp_path / "own.py").write_text(OWN.format("c.optimizer.learning_rte = 1e-3"), encoding="utf-8")
    with pytest.warns(UserWarning, match=r"learning_rte; did you mean optimizer\.learning_rate\?"):
        assert read_config(str(tmp_path / "own.py"))[0].optimizer.learning_rte == 1e-3


def test_a_near_config_is_suggested():
    near = re.escape("--config=bert_toi.py: there is no such file; did you mean bert:toy?")
    with pytest.raises(FileNotFoundError, match=near):
        read_config("bert_toi.py")


def test_the_present_value_decides_the_type():
    config = ConfigDict({"optimizer": {"clip": 1.0}, "split": (0.8, 0.1), "remat": False})
    assert (parse_value(config, "optimizer.clip", "5"), parse_value(config, "split", "(1, 2)")) == (5.0, (1, 2))
    with pytest.raises(ValueError, match="remat='yes': expected a value like false"):
        parse_value(config, "remat", "yes")
    with pytest.raises(ValueError, match=r"the config has no field 'optimiser.clip'; did you mean optimizer.clip?"):
        parse_value(config, "optimiser.clip", "5")
