"""What is wrong with the `--config.….=` flags of a command, in words."""

import difflib
import runpy
from collections.abc import Iterator, Sequence

from absl import app
from ml_collections import ConfigDict

from experiments.endings import refuse


def parse_flags(argv: Sequence[str], program: str) -> list[str]:
    """The arguments left over, once the flags are set; what is wrong with them is said in words, and ends it."""
    try:
        return list(app.parse_flags_with_usage(list(argv)))
    except (AttributeError, KeyError) as error:
        refuse(program, unknown_field(argv) or f"{error}: the config has no such field; its file lists them")
    except (OSError, ValueError, TypeError) as error:
        refuse(program, error)


def unknown_field(argv: Sequence[str]) -> str | None:
    """What to say of the first flag that names a field which the config of the command does not have.

    >>> unknown_field(["", "--config=experiments/configs/bert_toy.py", "--config.optimiser.learning_rat=1"])
    '--config.optimiser.learning_rat=1: the config has no such field; did you mean --config.optimizer.learning_rate?'
    """
    files = [word.partition("=")[2] for word in argv if word.startswith("--config=")]
    fields = list(_fields(runpy.run_path(files[-1])["get_config"]())) if files else []
    for word in argv:
        name = word.partition("=")[0].removeprefix("--config.")
        if word.startswith("--config.") and name not in fields:
            near = difflib.get_close_matches(name, fields, 1)
            # The right name in the wrong place, or no place at all.
            near = near or [field for field in fields if field.endswith("." + name.rpartition(".")[2])]
            known = f"did you mean --config.{near[0]}?" if near else f"its file, {files[-1]}, lists them"
            return f"{word}: the config has no such field; {known}"
    return None


def _fields(config: ConfigDict, above: str = "") -> Iterator[str]:
    for name in config:
        part = config[name]
        if isinstance(part, ConfigDict):
            yield from _fields(part, f"{above}{name}.")
        else:
            yield above + name
