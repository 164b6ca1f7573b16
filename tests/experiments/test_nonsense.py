"""Nonsense in every numeric field of every recipe: one line with the field, the given value and the expected ones.

No run is started: a config is checked when its flags are read.
"""

import functools
import math
from pathlib import Path

import pytest

from bert_elmo_jax.runs.config_files import list_fields, list_recipes, read_config
from bert_elmo_jax.runs.field_ranges import RANGES, Range, check_fields, find_pattern, find_range
from experiments.command_line import start

CONFIGS = Path(__file__).parents[2] / "experiments" / "configs"


@functools.cache
def recipes():
    """Return the files with a `get_config`, each with its recipe: (program, file)."""
    recipe_files = []
    for path in sorted(CONFIGS.glob("[!_]*.py")):
        text = path.read_text(encoding="utf-8")
        if "get_config" not in text:
            continue
        names = list_recipes(str(path))[0]
        for file in [f"{path}:{name}" for name in names] or [str(path)]:
            config, _ = read_config(file)
            recipe_files.append(("pretrain" if "family" in config else "finetune", file))
    return recipe_files


def is_number(kind, value):
    while isinstance(value, tuple | list) and value:
        kind, value = type(value[0]), value[0]
    return kind in (int, float)


def numeric_fields(config):
    """Return the numeric fields as (path, type, present value); empty ones by the type of their placeholder."""
    for name, value in list_fields(config):
        *groups, last = name.split(".")
        kind = functools.reduce(lambda part, group: part[group], groups, config).get_type(last)
        if kind is not bool and is_number(kind, value):
            yield name, kind, value


def nonsense(name, kind, present):
    """Return texts that no field of a type may have, and numbers just outside a field's range."""
    allowed = find_range(name)
    assert allowed is not None, f"{name} has no range in runs/field_ranges.py"
    texts = ["nan", "inf", "-inf", "1e400", "-1e300", str(10**20), str(-(10**20)), "zebra", "1_", "0x", "--"]
    texts += [] if present is None else [""]
    low = f"{allowed.low:g}" if allowed.above_low else f"{allowed.low - 1:g}"
    high = f"{allowed.high:g}" if allowed.below_high else str(int(allowed.high) + 1) if allowed.integers else "1e30"
    texts += [low, high]
    if kind is int:
        texts += ["0.5", "1e3"]
    if isinstance(present, tuple):
        written = "(({}, {}),)" if isinstance(present[0], tuple) else "({},)"
        texts = [written.replace("{}", text) for text in texts if text not in ("", "0.5")] + ["("]
    return texts


@pytest.fixture
def read_once(monkeypatch):
    """Read each config only once, because reading takes much longer than checking; fields get their values back."""
    monkeypatch.setattr(start, "read_config", functools.cache(read_config))
    return start.read_config


tried = set()  # (field, type, present value is empty): recipes share most of their fields


@pytest.mark.parametrize(("program", "file"), recipes(), ids=[Path(file).name for _, file in recipes()])
def test_every_numeric_field_of_every_recipe(program, file, read_once):
    config, _ = read_once(file)
    check_fields(config)  # the recipe itself is sound
    fields = list(numeric_fields(config))
    assert len(fields) > 25
    for name, kind, present in fields:
        if (case := (name, kind, present is None)) in tried:
            continue
        tried.add(case)
        for text in nonsense(name, kind, present):
            with pytest.raises(ValueError) as caught:
                start.read_given(program, file, {name: text})
            config.update_from_flattened_dict({name: present})
            message = str(caught.value)
            assert message.startswith(f"--config.{name}="), (text, message)
            assert "expected " in message and "\n" not in message, (text, message)


def test_the_table_has_no_range_that_no_recipe_uses():
    fields = {name for _, file in recipes() for name, *_ in numeric_fields(read_config(file)[0])}
    assert len(fields) > 120
    for pattern in RANGES:
        assert any(pattern == name or find_pattern(name) == pattern for name in fields), pattern


def test_ranges_in_words():
    assert str(Range(1, 8)) == "a whole number from 1 to 8"
    assert str(Range(0, 1, integers=False, below_high=True)) == "a number from 0 to below 1"
    assert str(Range(0, 1, integers=False, above_low=True, below_high=True)) == "a number above 0 and below 1"
    assert not Range(1, 8).holds(2.0) and not Range(1, 8).holds(True) and not Range(0, 8, False).holds(math.nan)
