"""Programs, recipes and sweeps: where their files are, and the command that starts a program."""

import importlib
import importlib.util
import re
from pathlib import Path

PACKAGE = "bert_elmo_jax.experiments"
COMMAND = "bert-elmo-jax"  # of the installed package; in a checkout `python -m experiments.PROGRAM` works, too
EXPERIMENTS = Path(importlib.import_module(PACKAGE).__path__[0])
CONFIGS, SWEEPS = EXPERIMENTS / "configs", EXPERIMENTS / "sweeps"


def find_file(name: str, folder: Path) -> Path:
    """Return the path of a config or sweep that is given by its name or by its path.

    `bert.py` and `experiments/configs/bert.py` mean this installation's file, too, unless the current folder has one.

    >>> find_file("bert", CONFIGS) == find_file("bert.py", CONFIGS) == CONFIGS / "bert.py"
    True
    >>> find_file("my_recipes.py", CONFIGS)
    PosixPath('my_recipes.py')
    """
    path = Path(name)
    if path.suffix != ".py":
        file = folder / f"{name}.py"
    elif path.is_file() or path.parts[-3:-1] not in ((), ("experiments", folder.name)):
        return path
    else:
        file = folder / path.name
    return file if file.is_file() else path


def module_name(path: Path, folder: Path) -> str:
    """Return the name under which a config or sweep runs, so that it may import its neighbours in `folder`.

    A file of another folder has a name of its own: it may import the neighbour whose name it has.

    >>> module_name(Path("bert.py"), CONFIGS), module_name(CONFIGS / "bert.py", CONFIGS)
    ('bert_elmo_jax.experiments.configs._own_bert', 'bert_elmo_jax.experiments.configs.bert')
    """
    own = "" if path.resolve().parent == folder.resolve() else "_own_"
    return f"{PACKAGE}.{folder.name}.{own}{path.stem}"


def show_program(program: str) -> str:
    """Return the words that start a program from the current folder.

    >>> show_program("pretrain")
    'python -m experiments.pretrain'
    """
    return f"python -m experiments.{program}" if _imports_experiments() else f"{COMMAND} {program}"


def show_commands(text: str) -> str:
    """Return a text with the commands of a checkout replaced by those that work in the current folder."""
    return text if _imports_experiments() else re.sub(r"python -m experiments\.", f"{COMMAND} ", text)


def _imports_experiments() -> bool:
    """Return True if `experiments` is this installation's folder, and not missing or another package."""
    try:
        spec = importlib.util.find_spec("experiments")
    except ValueError:  # a module without a specification
        return False
    places = () if spec is None else spec.submodule_search_locations or ()
    return any(Path(place).resolve() == EXPERIMENTS.resolve() for place in places)
