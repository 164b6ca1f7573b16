"""The comments of recipes, which explain the fields of a config in `--help`."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from bert_elmo_jax.programs import CONFIGS

IMPORTED = re.compile(r"(?:\.|(?:bert_elmo_jax\.)?experiments\.configs(?:\.|$))(\w*)")  # module of an import


def read_comments(file: str | Path, function: str = "") -> dict[str, str]:
    """Return the comment of each field that has one: at the end of its line, or on the lines before it.

    They are those of a function and of the functions of recipes that it calls, which its own override; without a
    function, or without it in the file, those of the whole file and of all files that it imports.
    """
    source = Path(file).read_bytes()
    tree = ast.parse(source)
    imported = dict(_find_imports(tree))
    functions = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef)}
    comments, lines = dict[str, str](), source.decode().splitlines()
    if function not in functions:
        for path, _ in imported.values():
            comments |= read_comments(path)
        return comments | _read_lines(lines)
    recipe = functions[function]
    for part in ast.walk(recipe):
        if not isinstance(part, ast.Call):
            continue
        called = part.func
        if isinstance(called, ast.Name) and called.id in functions and called.id != function:
            comments |= read_comments(file, called.id)
        elif isinstance(called, ast.Name) and called.id in imported:
            path, name = imported[called.id]
            comments |= read_comments(path, name)
        elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in imported:
            comments |= read_comments(imported[called.value.id][0], called.attr)
    return comments | _read_lines(lines[recipe.lineno - 1 : recipe.end_lineno])


def _find_imports(tree: ast.Module) -> Iterator[tuple[str, tuple[Path, str]]]:
    """Yield each imported name with the installed file of recipes that it is from, and the function there, or ""."""
    for part in tree.body:
        if isinstance(part, ast.ImportFrom) and (module := IMPORTED.fullmatch("." * part.level + (part.module or ""))):
            for alias in part.names:
                path = CONFIGS / f"{module[1] or alias.name}.py"
                if path.is_file():  # or it is a function of the package
                    yield alias.asname or alias.name, (path, alias.name if module[1] else "")


def _read_lines(lines: Iterable[str]) -> dict[str, str]:
    """Return the comments of the fields that are set in some lines."""
    comments, before = dict[str, str](), list[str]()
    for line in lines:
        if whole_line := re.fullmatch(r"    # (.*)", line):
            before.append(whole_line[1])
            continue
        # `c.mesh = ConfigDict({"data": -1, …})  # comment` is the comment of mesh.data.
        if field := re.fullmatch(r'    \w+\.([\w.]+) = (?:ConfigDict\(\{"(\w+)")?.*?(?:  # (.*))?', line):
            group, first, comment = field.groups()
            if comment or before:
                comments[f"{group}.{first}" if first else group] = comment or " ".join(before)
        elif before and (first_field := re.match(r"    \w+\.((?:\w+\.)*)update\((\w+)=", line)):
            comments["".join(first_field.groups())] = " ".join(before)
        before = []
    return comments


def default_recipe(file: Path) -> str:
    """Return the function that makes the config of a file without a recipe's name: its default recipe, or its own."""
    for part in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(part, ast.keyword) and part.arg == "default" and isinstance(part.value, ast.Constant):
            return str(part.value.value)
    return "get_config"
