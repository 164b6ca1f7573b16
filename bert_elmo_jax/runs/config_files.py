"""The config that a command names: its file, its fields, and what is wrong with either in words."""

import re
import runpy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.did_you_mean import nearest

CONFIGS = Path(__file__).parent / "configs"
# Fields that have a flag of their own in `finetune`.
NAMED = ("task", "train", "dev", "test", "encoding", "text", "pair", "label")
# The programs that read a config, and a field that only those of this program have.
PROGRAMS = {"pretrain": "family", "finetune": "task"}


def config_file(argv: Sequence[str]) -> str | None:
    """The file that the last --config names, if any does.

    >>> config_file(["", "--config=a.py", "--config.steps=3", "--config", "b.py"])
    'b.py'
    """
    found = None
    for word, after in zip(argv, [*argv[1:], None]):
        name, given, value = word.lstrip("-").partition("=")
        if name == "config" and word.startswith("-"):
            found = value if given else after
    return found


def config_of(file: str) -> tuple[ConfigDict, str]:
    """The config of a file, and the file's docstring; what stands behind a colon goes to its `get_config`.

    >>> config_of("experiments/configs/bert_toy.py")[0].steps
    9000
    >>> config_of("bert_toi.py")
    Traceback (most recent call last):
    FileNotFoundError: --config=bert_toi.py: there is no such file; did you mean experiments/configs/bert_toy.py?
    """
    path, given, text = file.partition(":")
    if not Path(path).is_file():
        near = nearest(Path(path).stem, sorted(config.stem for config in CONFIGS.glob("[!_]*.py")))
        told = (
            f"did you mean experiments/configs/{near}.py?" if near else "experiments/configs has those that come along"
        )
        raise FileNotFoundError(f"--config={file}: there is no such file; {told}")
    found = runpy.run_path(path)
    if "get_config" not in found:
        raise ValueError(f"--config={file}: it has no function get_config; see those of experiments/configs")
    return found["get_config"](*([text] if given else [])), found["__doc__"] or ""


def check_program(file: str, config: ConfigDict, program: str) -> None:
    """Refuse a config that another program reads; `plan` reads those of `pretrain`.

    >>> check_program("elmo_toy.py", ConfigDict({"family": "elmo"}), "finetune")
    Traceback (most recent call last):
    ValueError: --config=elmo_toy.py is for pretrain, and this is finetune: start that, or give another config
    """
    takes = ("pretrain",) if program == "plan" else (program,)
    found = [name for name, field in PROGRAMS.items() if field in config]
    if found and not set(takes) & set(found):
        raise ValueError(
            f"--config={file} is for {found[0]}, and this is {program}: start that, or give another config"
        )
    if not found:
        needed = " or ".join(f"config.{PROGRAMS[name]}" for name in takes)
        raise ValueError(
            f"--config={file} has no {needed}, which {program} needs: begin with one of experiments/configs"
        )


def fields_of(config: ConfigDict, above: str = "") -> Iterator[tuple[str, Any]]:
    """All fields by their path, with their values.

    >>> list(fields_of(ConfigDict({"optimizer": {"name": "adamw"}})))
    [('optimizer.name', 'adamw')]
    """
    for name in config:
        part = config[name]
        if isinstance(part, ConfigDict):
            yield from fields_of(part, f"{above}{name}.")
        else:
            yield above + name, part


def unknown_field(argv: Sequence[str], config: ConfigDict) -> str | None:
    """What to say of the first flag that names a field which the config does not have.

    >>> unknown_field(["--config.optimiser.name=adamw"], ConfigDict({"steps": 1, "optimizer": {"name": "lamb"}}))
    '--config.optimiser.name=adamw: the config has no such field; did you mean --config.optimizer.name?'
    """
    fields = [name for name, _ in fields_of(config)]
    for word in argv:
        name = word.lstrip("-").partition("=")[0].removeprefix("config.")
        if re.match(r"--?config\.", word) and name not in fields:
            # Or the right name in the wrong place, or no place at all.
            others = [field for field in fields if field.endswith("." + name.rpartition(".")[2])]
            near = nearest(name, fields) or next(iter(others), None)
            told = f"did you mean --config.{near}?" if near else f"--config={config_file(argv)} --help lists them"
            return f"{word}: the config has no such field; {told}"
    return None


def shown(value: Any) -> str:
    """A value as it is written behind a flag.

    >>> shown(None), shown(True), shown(0.001), shown(["1", "2"]), shown((0.8, 0.1))
    ('', 'true', '0.001', '1,2', '(0.8, 0.1)')
    """
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    return ",".join(value) if isinstance(value, list) else str(value)
