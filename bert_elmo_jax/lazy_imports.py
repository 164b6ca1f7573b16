"""Imports at first use: the public names of a package, and single functions."""

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGE = "bert_elmo_jax."


def lazy_names(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return `__all__` and `__getattr__` of a package whose `__init__` imports its names under `if TYPE_CHECKING:`.

    `import bert_elmo_jax.nn` imports few of its modules; `nn.gelu` imports the module of `gelu`. A function with the
    name of its module is imported eagerly, because the imported module would hide it.
    """
    body = ast.parse(Path(file).read_text(encoding="utf-8")).body
    lines = [line for node in body for line in (node.body if isinstance(node, ast.If) else [node])]
    imports = [line for line in lines if isinstance(line, ast.ImportFrom) and str(line.module).startswith(PACKAGE)]
    modules = {alias.name: str(line.module) for line in imports for alias in line.names if line.module != __name__}

    def import_name(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(sorted(modules))}")
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    # For `dir` and `help`, which would otherwise list only the names that have been used.
    setattr(sys.modules[package], "__dir__", lambda: sorted({*vars(sys.modules[package]), *modules}))  # noqa: B010
    return sorted(modules), import_name


def lazy_function(module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports the function `name` of a module when it is called.

    >>> lazy_function("bert_elmo_jax.did_you_mean", "did_you_mean")("brt", ["bert"])
    '; did you mean bert?'
    """
    return lambda *args, **kwargs: getattr(importlib.import_module(module), name)(*args, **kwargs)
