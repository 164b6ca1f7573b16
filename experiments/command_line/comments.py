"""What the comments of a config's file say of its fields, and those of the configs that it begins with."""

import ast
import io
import tokenize
from pathlib import Path

from bert_elmo_jax.runs.config_files import CONFIGS


def comments_of(file: str | Path) -> dict[str, str]:
    """The comment of each field that has one: at the end of its line, or in the lines before it.

    A file's own comments stand before those of the files of experiments/configs that it imports.

    >>> said = comments_of("experiments/configs/bcn.py")
    >>> said["batch_size"], said["feed_size"]
    ('rows, of all devices together', 'of the layer between words and BiLSTM')
    """
    text = Path(file).read_text(encoding="utf-8")
    lines, said, alone = text.splitlines(), dict[int, str](), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            said[token.start[0]] = token.string.lstrip("# ")
            if not lines[token.start[0] - 1][: token.start[1]].strip():
                alone.add(token.start[0])
    found: dict[str, str] = {}
    for part in ast.walk(ast.parse(text)):
        if isinstance(part, ast.ImportFrom) and part.module == "experiments.configs":
            for name in part.names:
                found = comments_of(CONFIGS / f"{name.name}.py") | found
        elif isinstance(part, ast.Assign) and (field := _field(part)):
            end, before = part.end_lineno or part.lineno, part.lineno - 1
            first = before
            while first in alone:
                first -= 1
            comment = [said[end]] if end in said else [said[n] for n in range(first + 1, before + 1)]
            if comment:
                found[field] = " ".join(comment)
    return found


def _field(part: ast.Assign) -> str:
    """The path of the field that is set, optimizer.name in `c.optimizer.name = …`; of a group the first; or nothing."""
    names, target = [], part.targets[0]
    if isinstance(part.value, ast.Call) and part.value.args and isinstance(group := part.value.args[0], ast.Dict):
        names = [key.value for key in group.keys[:1] if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    while isinstance(target, ast.Attribute):
        names.append(target.attr)
        target = target.value
    return ".".join(reversed(names))
