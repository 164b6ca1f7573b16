"""Imports at first use: the public names of a package, and single functions."""

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose `__init__` imports its names under `if TYPE_CHECKING:`.

    `import bert_elmo_jax.nn` imports few of its modules; `nn.gelu` imports the module of `gelu`. A function with the
    name of its module is imported eagerly, because the imported module would hide it.
    """
    blocks = [node for node in ast.parse(Path(file).read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    imports = [line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom)]
    modules = {alias.name: str(line.module) for line in imports for alias in line.names}

    def import_name(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(sorted(modules))}")
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return import_name


def lazy_function(module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports the function `name` of a module when it is called."""
    return lambda *args, **kwargs: getattr(importlib.import_module(module), name)(*args, **kwargs)
