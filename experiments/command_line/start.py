"""The frame of every program: flags, `--help`, the config, and an exit status for every expected trouble."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn

from absl import app, flags, logging
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.runs.config_files import check_program, read_config, read_flags, set_field
from bert_elmo_jax.train.run_guard import INTERRUPTED, REFUSED
from experiments.command_line.help import config_help, program_help

FLAGS = flags.FLAGS
HELP = {"--help", "-help", "--helpshort", "-helpshort", "-h", "-?"}


def start(
    program: str,
    define: Callable[[], Any],
    main: Callable[..., int | None],
    headings: Mapping[str, str] | None = None,
    *,
    config: str | None = None,
    words: bool = False,
    hint: str = "--help lists the flags",
    stopped: str = "stopped; the same command resumes from here",
) -> None:
    """Define a program's flags, parse the command line and run `main`, whose result is the exit status.

    `main` takes the config if the program has a flag `config` (`config` is its default), and what follows the flags if
    `words`. `headings` structure `--help`: each precedes the flag that it is given for. `hint` ends the message
    about a surplus argument; `stopped` is the message after Ctrl-C.
    """
    known = set(FLAGS)
    define()
    own = [flag.name for some in FLAGS.flags_by_module_dict().values() for flag in some if flag.name not in known]
    given: list[Any] = []

    def parse(argv: Sequence[str]) -> list[str]:
        try:
            plain, fields = split_fields(argv) if "config" in own else ([*argv], {})
            file = read_flags(plain).get("config") if "config" in own else None
            if HELP & set(plain):
                print(config_help(file) if file else program_help(define.__globals__["__doc__"], own, headings or {}))
                sys.exit(0)
            if "config" in own:
                given.append(read_given(program, file or config, fields))
            rest = list(FLAGS(plain))
            if len(rest) > 1 and not words:
                raise ValueError(f"unexpected argument {rest[1]!r}; {hint}")
            return rest
        except flags.Error as error:
            refuse(program, f"{describe(error, own)}; --help lists the flags")
        except (OSError, ValueError, TypeError) as error:
            refuse(program, error)

    def run(argv: list[str]) -> int | None:
        if not FLAGS["verbosity"].present:
            logging.set_verbosity(logging.WARNING)  # or the checkpointing library names every file
        try:
            return main(*given, *([argv[1:]] if words else []))
        except train.Diverged as error:
            refuse(program, error, train.DIVERGED)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output has gone
            return 0
        except MemoryError as error:
            refuse(program, f"out of memory: {error}")
        except (ValueError, TypeError, OSError, ImportError) as error:
            refuse(program, error)
        except KeyboardInterrupt:
            refuse(program, stopped, INTERRUPTED)

    app.run(run, flags_parser=parse)


def split_fields(argv: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words that set no field of the config, and the text for each field."""
    rest, fields, pending = [], dict[str, str](), ""
    for word in argv:
        found = re.fullmatch(r"--?(no)?config\.([^=]+)(=(.*))?", word, re.S)
        if pending and not word.startswith("--"):
            fields[pending], pending = word, ""
        elif found is None:
            rest.append(word)
            pending = ""
        else:
            negated, name, assigned, text = found.groups()
            fields[name] = text if assigned else "false" if negated else "true"
            pending = "" if assigned or negated else name
    return rest, fields


def read_given(program: str, file: str | None, fields: Mapping[str, str]) -> ConfigDict:
    """Return the config of a file with some of its fields set."""
    if not file:
        raise ValueError("--config=experiments/configs/….py is needed")
    config, _ = read_config(file)
    check_program(file, config, program)
    for name, text in fields.items():
        try:
            set_field(config, name, text)
        except ValueError as error:
            problem = str(error).replace("did you mean ", "did you mean --config.").replace("=FILE", f"={file}")
            problem = problem if problem.startswith(f"{name}=") else f"{name}={text}: {problem}"
            raise ValueError(f"--config.{problem}") from None
    return config


def read_values(names: Iterable[str]) -> dict[str, Any]:
    """Return the values of flags."""
    return {name: FLAGS[name].value for name in names}


def read_layers(names: Sequence[str] | None) -> Literal["all"] | list[int] | None:
    """Return the layers that --layers names."""
    if names is None or list(names) == ["all"]:
        return "all" if names else None
    try:
        return [int(name) for name in names or [""]]
    except ValueError:
        raise ValueError(f"--layers={','.join(names)}: use numbers, such as 0,9,-1, or all alone") from None


def describe(error: flags.Error, known: Sequence[str]) -> str:
    """Return the message about a flag."""
    text = str(error)
    if isinstance(error, flags.UnrecognizedFlagError):
        return f"there is no flag --{error.flagname}{did_you_mean(error.flagname, known)}"
    if found := re.fullmatch(r"flag --(\w+)=None: Flag --\1 must have a value other than None\.", text):
        return f"--{found[1]}=… is needed"
    if found := re.fullmatch(r"flag --(\w+)=(.*): value should be one of <(.*)>", text, re.S):
        name, given, values = found[1], found[2], found[3].split("|")
        return f"--{name}={given} is not known; it is one of {', '.join(values)}{did_you_mean(given, values)}"
    return text.removeprefix("flag ")


def refuse(program: str, message: object, status: int = REFUSED) -> NoReturn:
    """Print a message to standard error and exit."""
    print(f"{program}: {message}", file=sys.stderr)
    sys.exit(status)
