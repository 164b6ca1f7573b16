"""Config files, their recipes, and the one parser of values for flags, grids, searches and sweeps."""

import ast
import functools
import re
import runpy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import getitem
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.did_you_mean import did_you_mean, nearest
from bert_elmo_jax.earlier_names import rename_assignment
from bert_elmo_jax.programs import CONFIGS, find_file, module_name

# Fields that have a flag of their own in `finetune`.
NAMED = ("task", "train", "dev", "test", "encoding", "text", "pair", "label", "on_bad")
# The programs that train, and a field that all of their configs have.
PROGRAMS = {"pretrain": "family", "finetune": "task"}
# One value of a list: everything up to the next comma outside of parentheses and quotes.
VALUE = re.compile(r"""(?:^|,)(\((?:[^()]|\([^()]*\))*\)|"[^"]*"|'[^']*'|[^,]*)""")
# Fields that belong to the model of another field, a path.
OF_PATHS = {"encoder": ("directions", "layers")}
BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def choose_recipe(*recipes: Callable[[], ConfigDict], default: str = "") -> Callable[..., ConfigDict]:
    """Return a `get_config(name)` that calls the recipe of that name."""
    recipe_of = {recipe.__name__: recipe for recipe in recipes}

    def get_config(name: str = default) -> ConfigDict:
        """Return the config of a recipe."""
        if name not in recipe_of:
            problem = f"there is no recipe {name!r}" if name else "it needs a recipe"
            raise ValueError(f"{problem}; choose from {', '.join(recipe_of)}{did_you_mean(name, recipe_of)}")
        return recipe_of[name]()

    get_config.recipes = recipe_of  # type: ignore[attr-defined]
    get_config.default = default  # type: ignore[attr-defined]
    return get_config


def read_config(config: str) -> tuple[ConfigDict, str]:
    """Return the config of a recipe, and its docstring.

    `config` is the name of a file of this installation and of its recipe, or the path of your own file.

    >>> read_config("bert:toy")[0] == read_config("experiments/configs/bert.py:toy")[0]
    True
    """
    file, _, recipe = config.partition(":")
    get_config, docstring = _run(file, config)
    recipes: Mapping[str, Any] = getattr(get_config, "recipes", {})
    recipe = recipe or getattr(get_config, "default", "")
    try:
        fields = get_config(*([recipe] if recipe or recipes else []))
    except ValueError as error:
        raise ValueError(f"--config={config}: {error}") from None
    except SystemExit as error:  # the program would end as if it had done its work
        raise ValueError(f"--config={config}: its get_config ends the program: sys.exit({error.code})") from None
    except Exception as error:  # from the config's own code
        raise ValueError(f"--config={config}: it cannot be run: {type(error).__name__}: {error}") from error
    if not isinstance(fields, ConfigDict):
        raise ValueError(f"--config={config}: expected a ConfigDict from its function; it returned {fields!r:.40}")
    warn_of_new_fields(config, fields, find_file(file, CONFIGS))
    return fields, recipes[recipe].__doc__ or "" if recipes else docstring


def warn_of_new_fields(config: str, fields: ConfigDict, path: Path) -> None:
    """Warn of fields of one's own recipe that no recipe here has: they may be misspelt, and are then ignored."""
    if path.resolve().is_relative_to(CONFIGS):
        return
    names = {name for name, _ in list_fields(fields)}
    if new := names - known_fields():
        named = ", ".join(f"{name}{did_you_mean(name, known_fields())}" for name in sorted(new))
        message = f"--config={config} has fields that no other recipe has, which may be ignored: {named}"
        warnings.warn(message, stacklevel=3)


@functools.cache
def known_fields() -> set[str]:
    """Return the fields of all recipes of this installation."""
    names = set[str]()
    for _, get_config in _installed_configs():
        for recipe in getattr(get_config, "recipes", [""]):
            names.update(name for name, _ in list_fields(get_config(*([recipe] if recipe else []))))
    return names


def _installed_configs() -> Iterator[tuple[str, Callable[..., ConfigDict]]]:
    for path in sorted(CONFIGS.glob("[!_]*.py")):
        if get_config := runpy.run_path(str(path), run_name=module_name(path, CONFIGS)).get("get_config"):
            yield path.stem, get_config


def list_recipes(file: str) -> tuple[dict[str, str], str]:
    """Return the recipes of a file, each with the first line of its docstring, and the file's docstring.

    >>> list_recipes("elmo")[0]["toy"]
    'An ELMo for a laptop: a small toy world in English and Korean, generated when the run starts.'
    """
    get_config, docstring = _run(file, file)
    recipes = getattr(get_config, "recipes", {})
    return {name: (recipe.__doc__ or "").partition("\n")[0] for name, recipe in recipes.items()}, docstring


def _run(file: str, config: str) -> tuple[Any, str]:
    path = find_file(file, CONFIGS)
    if not path.is_file():
        raise FileNotFoundError(f"--config={config}: there is no such {_suggest_config(file, config)}")
    try:
        module = runpy.run_path(str(path), run_name=module_name(path, CONFIGS))
    except (Exception, SystemExit) as error:  # from the config's own code
        raise ValueError(f"--config={config}: it cannot be run: {type(error).__name__}: {error}") from error
    if "get_config" not in module:
        raise ValueError(f"--config={config}: it has no function get_config; `--config=bert --help` shows recipes")
    return module["get_config"], module["__doc__"] or ""


def _suggest_config(file: str, config: str) -> str:
    config_of: dict[str, str] = {}
    for name, get_config in _installed_configs():
        config_of |= {f"{name}_{recipe}": f"{name}:{recipe}" for recipe in getattr(get_config, "recipes", ())}
        config_of[name] = name
    stem, recipe = Path(file).stem, config.partition(":")[2]
    near = nearest(f"{stem}_{recipe}" if recipe else stem, config_of) or nearest(stem, config_of)
    files = ", ".join(name for name in config_of.values() if ":" not in name)
    kind = "file" if file.endswith(".py") else "recipe"
    return f"{kind}; did you mean {config_of[near]}?" if near else f"{kind}; give your own file, or one of {files}"


def check_program(file: str, config: ConfigDict, program: str) -> None:
    """Raise ValueError for a config that belongs to another program; `plan` reads the configs of `pretrain`.

    >>> check_program("finetune.py", ConfigDict({"task": "sst2"}), "pretrain")
    Traceback (most recent call last):
    ValueError: --config=finetune.py is for finetune, not for pretrain: start finetune, or choose another config
    """
    program = "pretrain" if program == "plan" else program
    if PROGRAMS[program] in config:
        return
    for other, field in PROGRAMS.items():
        if field in config:
            raise ValueError(
                f"--config={file} is for {other}, not for {program}: start {other}, or choose another config"
            )
    raise ValueError(f"--config={file} has no field {PROGRAMS[program]!r}: begin with a recipe of `{program}`")


def read_flags(words: Sequence[str]) -> dict[str, str | None]:
    """Return the flags among the words of a command by name; of repeated ones the last.

    >>> read_flags(["--config=a.py", "--config.steps=3", "--config", "b.py", "--verify"])
    {'config': 'b.py', 'config.steps': '3', 'verify': None}
    """
    values: dict[str, str | None] = {}
    for word, after in zip(words, [*words[1:], None]):
        name, assigned, value = word.lstrip("-").partition("=")
        if word.startswith("-"):
            values[name] = value if assigned else None if after is None or after.startswith("--") else after
    return values


def list_fields(config: ConfigDict, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of all fields.

    >>> list(list_fields(ConfigDict({"optimizer": {"name": "adamw"}})))
    [('optimizer.name', 'adamw')]
    """
    for name in config:
        part = config[name]
        if isinstance(part, ConfigDict):
            yield from list_fields(part, f"{above}{name}.")
        else:
            yield above + name, part


def override(config: ConfigDict, assignments: Iterable[str]) -> None:
    """Set fields of a config, each by a text such as `optimizer.clip=5`.

    >>> config = ConfigDict({"steps": 1, "optimizer": {"clip": 1.0}})
    >>> override(config, ["steps=3", "optimizer.clip=5"])
    >>> (config.steps, config.optimizer.clip)
    (3, 5.0)
    """
    fields = dict(list_fields(config))
    for assignment in assignments:
        name, _, text = assignment.partition("=")
        set_field(config, name, text, fields)


def set_field(config: ConfigDict, name: str, text: str, fields: Mapping[str, Any] | None = None) -> None:
    """Set one field of a config from a text; see `parse_value`. `fields` are those of `list_fields`, if at hand."""
    fields = dict(list_fields(config)) if fields is None else fields
    name, text = rename_assignment(_resolve(config, name, fields), text, fields)
    config.update_from_flattened_dict({name: _parse_field(config, name, text, fields)})


def resolve_name(config: ConfigDict, name: str) -> str:
    """Return the name of a field; `encoder.layers` is `layers` where `encoder` is a path and so no group of fields.

    >>> resolve_name(ConfigDict({"encoder": "runs/elmo", "layers": ""}), "encoder.layers")
    'layers'
    """
    return _resolve(config, name, dict(list_fields(config)))


def _resolve(config: ConfigDict, name: str, fields: Mapping[str, Any]) -> str:
    name, _ = rename_assignment(name, "", fields)
    group, _, last = name.partition(".")
    return last if last in config and last in OF_PATHS.get(group, ()) and isinstance(config.get(group), str) else name


def parse_value(config: ConfigDict, name: str, text: str) -> Any:
    """Return the value that a text gives to a field; the field's present value decides the type."""
    fields = dict(list_fields(config))
    return _parse_field(config, _resolve(config, name, fields), text, fields)


def _parse_field(config: ConfigDict, name: str, text: str, fields: Mapping[str, Any]) -> Any:
    if name not in fields:
        last = name.rpartition(".")[2]
        moved = [field for field in fields if field.rpartition(".")[2] == last]  # the right name in the wrong group
        near = nearest(name, fields) or next(iter(moved), None)
        hint = f"did you mean {near}?" if near else "--config=FILE --help lists them"
        raise ValueError(f"the config has no field {name!r}; {hint}")
    *groups, last = name.split(".")
    present, kind = fields[name], functools.reduce(getitem, groups, config).get_type(last)
    try:
        return _parse(text, present, kind)
    except (ValueError, KeyError, SyntaxError):
        example = show_value(present) or f"{kind.__name__} or nothing"
        raise ValueError(f"{name}={text!r}: expected a value like {example}") from None


def parse_values(config: ConfigDict, name: str, text: str) -> list[Any]:
    """Return the values of a list with commas; quotes and parentheses protect the commas inside a value.

    >>> parse_values(ConfigDict({"split": (0.8, 0.1)}), "split", "(1, 0),(0.5, 0.5)")
    [(1, 0), (0.5, 0.5)]
    >>> parse_values(ConfigDict({"layers": ""}), "layers", "all,'0,1'")
    ['all', '0,1']
    """
    return [parse_value(config, name, re.sub(r"^([\"'])(.*)\1$", r"\2", part)) for part in VALUE.findall(text)]


def _parse(text: str, present: Any, kind: type) -> Any:
    if kind is str:
        return text
    if present is None and not text:
        return None
    if kind is bool:
        return BOOLEANS[text.lower()]
    if kind in (int, float):
        return kind(text)
    if kind is list and not text.startswith("["):
        each = type(present[0]) if present else str
        return [_parse(part, None, each) for part in text.split(",")] if text else []
    value = ast.literal_eval(text)
    return (value,) if kind is tuple and not isinstance(value, tuple) else value


def show_value(value: Any) -> str:
    """Return a value as a flag sets it.

    >>> (show_value(None), show_value(True), show_value(0.001), show_value(["1", "2"]), show_value((0.8, 0.1)))
    ('', 'true', '0.001', '1,2', '(0.8, 0.1)')
    """
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
