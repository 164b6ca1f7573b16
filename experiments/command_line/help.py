"""The text of `--help`: for a program its docstring and flags, for a config its docstring and fields."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from absl import flags

from bert_elmo_jax.runs.config_files import CONFIGS, list_fields, list_recipes, read_config, show_value

WIDTH, COLUMN, VALUES = 118, 24, 46


def program_help(docstring: str, names: Sequence[str], headings: Mapping[str, str]) -> str:
    """Return the help of a program with these flags; each heading precedes the flag that it is given for."""
    lines = [docstring.strip()]
    for name in names:
        if name in headings or len(lines) == 1:
            lines += ["", f"{headings.get(name, 'Flags')}:"]
        lines += _describe_flag(flags.FLAGS[name])
    fields = ["A config's fields: --config=FILE --help lists them, --config.FIELD=VALUE sets one."]
    return "\n".join([*lines, "", *fields * ("config" in names), "Flags of the libraries underneath: --helpfull."])


def _describe_flag(flag: flags.Flag) -> Iterator[str]:
    name = f"  --{'[no]' if flag.boolean else ''}{flag.name}"
    values: list[str] = list(getattr(flag.parser, "enum_values", ()))
    text = str(flag.help).removeprefix(f"<{'|'.join(values)}>: ").split(";\n")[0]  # absl adds these to the help
    default = [] if flag.default in (None, "", [], False) else [f"default {show_value(flag.default)}"]
    if values or default:
        text += f" [{'; '.join([', '.join(values), *default] if values else default)}]"
    fits = len(name) + 2 <= COLUMN
    if not fits:
        yield name
    first, rest = name.ljust(COLUMN) if fits else " " * COLUMN, " " * COLUMN
    yield from textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def config_help(file: str) -> str:
    """Return the help of a config: its docstring and fields; for a file with recipes but no choice, the recipes."""
    path, _, recipe = file.partition(":")
    recipes, docstring = list_recipes(path)
    if recipes and not recipe:
        width = max(map(len, recipes)) + 2
        room = WIDTH - len(file) - width - 3
        short = {name: textwrap.shorten(first, room, placeholder=" …") for name, first in recipes.items()}
        listed = [f"  {file}:{name:{width}}{first}" for name, first in short.items()]
        return "\n".join([docstring.strip(), "", "Recipes, each with its own --help:", *listed])
    config, docstring = read_config(file)
    comments, lines = read_comments(path), [textwrap.dedent(f"    {docstring}").strip(), "", f"Fields of {file}:"]
    for name, value in list_fields(config):
        setting = f"  --config.{name}={show_value(value)}"
        first = setting.ljust(VALUES) if len(setting) + 2 <= VALUES else f"{setting}  "
        comment = comments.get(name, "")
        lines += textwrap.wrap(comment, WIDTH, initial_indent=first, subsequent_indent=" " * VALUES) or [setting]
    return "\n".join(lines)


def read_comments(file: str | Path) -> dict[str, str]:
    """Return the comment of each field that has one: at the end of its line, or on the lines before it.

    The comments of a file replace the comments of the files of experiments/configs that it imports.
    """
    found, before = dict[str, str](), list[str]()
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        if alone := re.fullmatch(r"    # (.*)", line):
            before.append(alone[1])
            continue
        if imported := re.fullmatch(r"from experiments\.configs import (.*)", line):
            for name in imported[1].split(", "):
                found |= read_comments(CONFIGS / f"{name}.py")
        # `c.mesh = ConfigDict({"data": -1, …})  # comment` is the comment of mesh.data.
        elif field := re.fullmatch(r'    \w+\.([\w.]+) = (?:ConfigDict\(\{"(\w+)")?.*?(?:  # (.*))?', line):
            group, first, comment = field.groups()
            if comment or before:
                found[f"{group}.{first}" if first else group] = comment or " ".join(before)
        before = []
    return found
