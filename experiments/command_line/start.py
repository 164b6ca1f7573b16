"""How a program begins: its flags are read, listed for --help, or refused in words and with an exit status."""

import contextlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from absl import app, flags
from ml_collections import ConfigDict

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.runs.config_files import check_program, config_file, config_of, unknown_field
from bert_elmo_jax.train.run_guard import REFUSED
from experiments.command_line.help import config_help, own_flags, program_help

FLAGS = flags.FLAGS
HELP = {"--help", "-help", "--helpshort", "-helpshort", "-h", "-?"}


def start(
    main: Callable[[list[str]], Any],
    program: str,
    headings: Mapping[str, str] | None = None,
    usual_config: Path | None = None,
) -> None:
    """Run a program. In its --help each of the headings stands before the flag that it is given for."""

    def run(argv: list[str]) -> Any:
        try:
            return main(argv)
        except app.UsageError as error:
            refuse(program, error)

    app.run(run, flags_parser=lambda argv: parse_flags(argv, program, headings or {}, usual_config))


def parse_flags(
    argv: Sequence[str], program: str, headings: Mapping[str, str], usual_config: Path | None = None
) -> list[str]:
    """The arguments left over, once the flags are set."""
    words, config, said = list(argv), ConfigDict(), ""
    named = config_file(argv) if "config" in FLAGS else None
    file = named or (None if usual_config is None else str(usual_config))
    try:
        if file is not None:
            config, said = config_of(file)
            check_program(file, config, program)
        if HELP & set(words):
            print(program_help(program, headings) if named is None else config_help(named, config, said))
            sys.exit(0)
        if file != named:
            words.insert(1, f"--config={file}")
        return list(FLAGS(words))
    except flags.Error as error:
        refuse(program, f"{in_words(error)}; --help lists the flags")
    except (AttributeError, KeyError):
        if told := unknown_field(words, config):
            refuse(program, told)
        raise  # something in the config's file, which the traceback names
    except (OSError, ValueError, TypeError) as error:
        refuse(program, error)


def in_words(error: flags.Error) -> str:
    """What is wrong with a flag.

    >>> in_words(flags.IllegalFlagValueError("flag --what=sense: value should be one of <senses|weights>"))
    '--what=sense is not known; it is one of senses, weights; did you mean senses?'
    """
    text = str(error)
    if isinstance(error, flags.UnrecognizedFlagError):
        return f"there is no flag --{error.flagname}{did_you_mean(error.flagname, own_flags())}"
    if found := re.fullmatch(r"flag --(\w+)=None: Flag --\1 must have a value other than None\.", text):
        return f"--{found[1]}=… is needed"
    if found := re.fullmatch(r"flag --(\w+)=(.*): value should be one of <(.*)>", text, re.S):
        name, given, known = found[1], found[2], found[3].split("|")
        return f"--{name}={given} is not known; it is one of {', '.join(known)}{did_you_mean(given, known)}"
    return text.removeprefix("flag ")


def layers_asked(names: list[str]) -> Literal["all"] | list[int]:
    """What --layers asks for.

    >>> layers_asked(["0", "-1"]), layers_asked(["all"])
    ([0, -1], 'all')
    """
    if names == ["all"]:
        return "all"
    with contextlib.suppress(ValueError):
        return [int(name) for name in names or [""]]
    raise ValueError(f"--layers={','.join(names)}: use numbers, such as 0,9,-1, or all alone")


def refuse(program: str, message: object, status: int = REFUSED) -> NoReturn:
    """Say why it ends, and end."""
    print(f"{program}: {message}", file=sys.stderr)
    sys.exit(status)
