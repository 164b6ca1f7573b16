"""What --help says: of a program its docstring and its flags in groups, of a config its docstring and its fields."""

import sys
import textwrap
from collections.abc import Iterator, Mapping

from absl import flags
from ml_collections import ConfigDict

from bert_elmo_jax.runs.config_files import fields_of, shown
from experiments.command_line.comments import comments_of

FLAGS = flags.FLAGS
WIDTH, COLUMN, VALUES = 118, 24, 46
FIELDS = "A config's fields: --config=FILE --help lists them, --config.FIELD=VALUE sets one."
LIBRARIES = "Flags of the libraries underneath: --helpfull."


def own_flags() -> list[str]:
    """The names of the program's own flags, in the order in which it defines them; those of libraries are left out."""
    modules = FLAGS.flags_by_module_dict().items()
    return [
        flag.name for module, some in modules if module == sys.argv[0] or module.startswith("experiments.")
        for flag in some
    ]  # fmt: skip


def program_help(program: str, headings: Mapping[str, str]) -> str:
    """The help of a program; each of the headings stands before the flag that it is given for."""
    module = sys.modules.get(f"experiments.{program}", sys.modules["__main__"])
    lines = [(module.__doc__ or "").strip()]
    for name in own_flags():
        if name in headings or len(lines) == 1:
            lines += ["", f"{headings.get(name, 'Flags')}:"]
        lines += _lines_of(FLAGS[name])
    return "\n".join([*lines, "", *([FIELDS] if "config" in FLAGS else []), LIBRARIES])


def config_help(file: str, config: ConfigDict, said: str) -> str:
    """The help of a config: what its file says of it, and its fields: values as flags set them, and comments."""
    comments, lines = comments_of(file.partition(":")[0]), [said.strip(), "", f"Fields of {file}:"]
    for name, value in fields_of(config):
        given = f"  --config.{name}={shown(value)}"
        indent = " " * VALUES
        first = given.ljust(VALUES) if len(given) + 2 <= VALUES else f"{given}  "
        lines += textwrap.wrap(comments.get(name, ""), WIDTH, initial_indent=first, subsequent_indent=indent) or [given]
    return "\n".join(lines)


def _lines_of(flag: flags.Flag) -> Iterator[str]:
    """A flag's name, what it is for, what it may be, and what it is unless it is given."""
    name = f"  --{'[no]' if flag.boolean else ''}{flag.name}"
    kinds: list[str] = list(getattr(flag.parser, "enum_values", ()))
    said = str(flag.help).removeprefix(f"<{'|'.join(kinds)}>: ").split(";\n")[0]  # absl adds these to a flag's own
    usual = [] if flag.default in (None, "", [], False) else [f"default {shown(flag.default)}"]
    more = "; ".join([", ".join(kinds), *usual] if kinds else usual)
    text = f"{said} [{more}]" if more else said
    beside = len(name) + 2 <= COLUMN
    if not beside:
        yield name
    first = name.ljust(COLUMN) if beside else " " * COLUMN
    yield from textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * COLUMN, break_on_hyphens=False)
