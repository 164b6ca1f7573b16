"""The frame of every program: flags, `--help`, the config, and an exit status for every expected trouble."""

import errno
import os
import re
import shlex
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from absl import app, flags, logging
from ml_collections import ConfigDict

from bert_elmo_jax.addresses import name_addresses
from bert_elmo_jax.compilation_cache import share_compiled
from bert_elmo_jax.did_you_mean import did_you_mean, nearest
from bert_elmo_jax.files import UNWRITABLE
from bert_elmo_jax.platform_support import check_machine_limits
from bert_elmo_jax.programs import CONFIGS, find_file, show_commands, show_program
from bert_elmo_jax.runs.config_files import (
    check_program,
    list_fields,
    list_recipes,
    read_config,
    read_flags,
    set_field,
    show_value,
)
from bert_elmo_jax.runs.field_ranges import check_fields
from bert_elmo_jax.train.run_guard import DIVERGED, INTERRUPTED, REFUSED, Diverged

from .field_comments import default_recipe, read_comments
from .outputs import local_outputs

WIDTH, COLUMN, VALUES = 118, 24, 46
UNUSABLE = {errno.EEXIST, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}  # paths through files, or round in a circle
LARGEST = 2**63  # of a number; not even a 64-bit integer holds a larger one
FLAGS = flags.FLAGS
SHORT = re.compile("start new thread|RESOURCE_EXHAUSTED")  # errors of Python and of JAX where memory is short
HELP = {"--help", "-help", "--helpshort", "-helpshort", "-h", "-?"}


def program_help(docstring: str, names: Sequence[str], headings: Mapping[str, str]) -> str:
    """Return the help of a program with these flags; each heading precedes the flag that it is given for."""
    lines = [docstring.strip()]
    for name in names:
        if name in headings or len(lines) == 1:
            lines += ["", f"{headings.get(name, 'Flags')}:"]
        lines += _describe_flag(flags.FLAGS[name])
    fields = ["A config's fields: --config=FILE --help lists them, --config.FIELD=VALUE sets one."]
    lines += ["", *fields * ("config" in names), "Flags of the libraries underneath: --helpfull."]
    return show_commands("\n".join(lines))


def _describe_flag(flag: flags.Flag) -> Iterator[str]:
    name = f"  --{'[no]' if flag.boolean else ''}{flag.name}"
    values: list[str] = list(getattr(flag.parser, "enum_values", ()))
    text = str(flag.help).removeprefix(f"<{'|'.join(values)}>: ").split(";\n")[0]  # absl adds these to the help
    default = [] if flag.default in (None, "", [], False) else [f"default {show_value(flag.default)}"]
    if values or default:
        text += f" [{'; '.join([', '.join(values), *default] if values else default)}]"
    is_short = len(name) + 2 <= COLUMN
    if not is_short:
        yield name
    first, indent = name.ljust(COLUMN) if is_short else " " * COLUMN, " " * COLUMN
    yield from textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)


def config_help(file: str) -> str:
    """Return the help of a config: its docstring and fields; for a file with recipes but no choice, the recipes."""
    path, _, recipe = file.partition(":")
    recipes, docstring = list_recipes(path)
    if recipes and not recipe:
        width = max(map(len, recipes)) + 2
        columns = WIDTH - len(file) - width - 3
        short = {name: textwrap.shorten(first, columns, placeholder=" …") for name, first in recipes.items()}
        listed = [f"  {file}:{name:{width}}{first}" for name, first in short.items()]
        return "\n".join([show_commands(docstring.strip()), "", "Recipes, each with its own --help:", *listed])
    config, docstring = read_config(file)
    installed = find_file(path, CONFIGS)
    comments = read_comments(installed, recipe or default_recipe(installed))
    lines = [show_commands(textwrap.dedent(f"    {docstring}").strip()), "", f"Fields of {file}:"]
    for name, value in list_fields(config):
        setting = f"  --config.{name}={show_value(value)}"
        first = setting.ljust(VALUES) if len(setting) + 2 <= VALUES else f"{setting}  "
        comment = comments.get(name, "")
        lines += textwrap.wrap(comment, WIDTH, initial_indent=first, subsequent_indent=" " * VALUES) or [setting]
    return "\n".join(lines)


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
    flags_before = set(FLAGS)
    define()
    names = [
        flag.name
        for module_flags in FLAGS.flags_by_module_dict().values()
        for flag in module_flags
        if flag.name not in flags_before
    ]
    configs: list[Any] = []

    def parse(argv: Sequence[str]) -> list[str]:
        try:
            show_warnings(program)
            argv = [argv[0], *FLAGS.read_flags_from_files(argv[1:])]  # of --flagfile, which may name the config
            plain, fields = split_fields(argv) if "config" in names else ([*argv], {})
            file = read_flags(plain).get("config") if "config" in names else None
            if file == "":
                raise ValueError("--config= is empty: give a recipe, such as bert:base, or leave it out")
            if HELP & set(plain):
                print(config_help(file) if file else program_help(define.__globals__["__doc__"], names, headings or {}))
                sys.exit(0)
            if "config" in names:
                if not (file or config):  # perhaps it is misspelt
                    refuse_unknown_flags(plain)
                configs.append(read_given(program, file or config, fields))
            words_left = list(FLAGS(plain))
            check_values(names)
            if len(words_left) > 1 and not words:
                raise ValueError(f"unexpected argument {words_left[1]!r}; {hint}")
            return words_left
        except flags.Error as error:
            field_names = [name for name, _ in list_fields(configs[0])] if configs else []
            refuse(program, f"{describe(error, names, field_names)}; --help lists the flags")
        except (OSError, ValueError, TypeError) as error:
            refuse(program, error)

    def run(argv: list[str]) -> int | None:
        if not FLAGS["verbosity"].present:
            logging.set_verbosity(logging.WARNING)  # or the checkpointing library names every file
        if "jax" in sys.modules:  # not in programs that never compute
            share_compiled()
        try:
            check_machine_limits()
            with local_outputs(program, names):
                return compute(program, main, *configs, *([argv[1:]] if words else []))
        except Diverged as error:
            refuse(program, error, DIVERGED)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output has gone
            return 0
        except MemoryError as error:
            refuse(program, f"out of memory: {error}")
        except RuntimeError as error:
            if str(error).startswith("Symlink loop"):  # of Path.resolve; an OSError since Python 3.13
                refuse(program, f"{error}, which is a link to itself: remove it, or name another path")
            if "home directory" in str(error):  # of Path.expanduser
                refuse(program, "there is no such user, or no home folder: write the path without ~")
            if not SHORT.search(str(error)):
                raise
            refuse(program, f"out of memory: {str(error).splitlines()[0]}")
        except OSError as error:
            refuse(program, explain(error, names))
        except UnicodeEncodeError as error:
            refuse(program, explain_bytes(error, names))
        except (ValueError, TypeError, ImportError) as error:
            refuse(program, error)
        except KeyboardInterrupt:
            refuse(program, stopped, INTERRUPTED)

    app.run(run, flags_parser=parse)


def show_warnings(program: str) -> None:
    """Show warnings for users as one line, without the line of code that they come from."""
    usual = warnings.showwarning

    def show(message: Any, category: Any, *place: Any) -> None:
        if issubclass(category, UserWarning):
            print(f"{program}: warning: {message}", file=sys.stderr)
        else:
            usual(message, category, *place)

    warnings.showwarning = show  # type: ignore[assignment]


def compute(program: str, main: Callable[..., int | None], *arguments: Any) -> int | None:
    """Call `main`; if another process of the run is lost, end this one at once, with one line."""
    try:
        return main(*arguments)
    except Exception as error:
        if "jax" in sys.modules:
            from bert_elmo_jax.runs.start_run import leave_if_alone

            leave_if_alone(program, error)
        raise


def check_values(names: Iterable[str]) -> None:
    """Raise ValueError for a flag that was given without a value, or a number that nothing can be computed with."""
    for flag in (FLAGS[name] for name in names):
        values = flag.value if isinstance(flag.value, list) else [flag.value]
        if flag.present and (not values or "" in values):
            raise ValueError(f"--{flag.name}={show_value(flag.value)} is empty: give a value, or leave it out")
        for value in values:
            if isinstance(value, int | float) and not abs(value) < LARGEST:
                raise ValueError(f"--{flag.name}={value}: expected a finite number, below 9.2e18")


def refuse_unknown_flags(argv: Sequence[str]) -> None:
    """Raise for a flag that does not exist; other errors of flags are left for later."""
    try:
        FLAGS(list(argv))
    except flags.UnrecognizedFlagError:
        raise
    except flags.Error:
        return
    finally:
        FLAGS.unparse_flags()


def split_fields(argv: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words that set no field of the config, and the text for each field."""
    plain, fields, pending = [], dict[str, str](), ""
    for word in argv:
        match = re.fullmatch(r"--?(no)?config\.([^=]+)(=(.*))?", word, re.S)
        if pending and not word.startswith("--"):
            fields[pending], pending = word, ""
        elif match is None:
            plain.append(word)
            pending = ""
        else:
            negated, name, assigned, text = match.groups()
            fields[name] = text if assigned else "false" if negated else "true"
            pending = "" if assigned or negated else name
    return plain, fields


def read_given(program: str, file: str | None, fields: Mapping[str, str]) -> ConfigDict:
    """Return the config of a file with some of its fields set."""
    if not file:
        raise ValueError("--config=… is needed: a recipe, such as bert:base, or your own file")
    config, _ = read_config(file)
    check_program(file, config, program)
    for name, text in fields.items():
        try:
            set_field(config, name, text)
        except ValueError as error:
            problem = str(error).replace("did you mean ", "did you mean --config.").replace("=FILE", f"={file}")
            problem = problem if problem.startswith(f"{name}=") else f"{name}={text}: {problem}"
            raise ValueError(f"--config.{problem}") from None
    check_fields(config, "--config.")
    return config


def read_values(names: Iterable[str]) -> dict[str, Any]:
    """Return the values of flags."""
    return {name: FLAGS[name].value for name in names}


def show_command(program: str) -> str:
    """Return the command of this process, a flag on each line, without the paths of the current and home folder."""
    return " \\\n    ".join([show_program(program), *map(shorten_word, sys.argv[1:])])


def shorten_word(word: str) -> str:
    """Return a word of a command as a shell reads it, without the current folder where its path begins.

    The home folder becomes `$HOME`, which shells replace outside of quotes only.
    """
    name, assigned, value = word.partition("=") if word.startswith("-") else ("", "", word)
    value = value.removeprefix(f"{Path.cwd()}{os.sep}")
    below_home = value.removeprefix(f"{Path.home()}{os.sep}")
    if below_home != value and shlex.quote(name + below_home) == name + below_home:
        return f"{name}{assigned}$HOME/{below_home}"
    return shlex.quote(f"{name}{assigned}{value}")


def read_layers(names: Sequence[str] | None) -> Literal["all"] | list[int] | None:
    """Return the layers that --layers names."""
    if names is None or list(names) == ["all"]:
        return "all" if names else None
    try:
        return [int(name) for name in names or [""]]
    except ValueError:
        raise ValueError(f"--layers={','.join(names)}: use numbers, such as 0,9,-1, or all alone") from None


def describe(error: flags.Error, names: Sequence[str], field_names: Sequence[str] = ()) -> str:
    """Return the message about a flag; `field_names` are the fields of the program's config."""
    text = str(error)
    if isinstance(error, flags.UnrecognizedFlagError):
        near = did_you_mean(error.flagname, names).replace("mean ", "mean --")
        group, dot, field = error.flagname.partition(".")
        if dot and nearest(group, names) == "config":
            near = f"; did you mean --config.{field}?"
        elif fields := [name for name in field_names if name.rpartition(".")[2] == error.flagname]:
            near = f"; did you mean --config.{fields[0]}?"
        return f"there is no flag --{error.flagname}{near}"
    if missing := re.findall(r"^flag --(\w+)=None: Flag --\1 must have a value other than None\.$", text, re.M):
        verb = "is" if len(missing) == 1 else "are"
        return f"{', '.join(f'--{name}=…' for name in missing)} {verb} needed"
    if match := re.fullmatch(r"flag --(\w+)=(.*): value should be one of <(.*)>", text, re.S):
        name, value, values = match[1], match[2], match[3].split("|")
        return f"--{name}={value} is not known; it is one of {', '.join(values)}{did_you_mean(value, values)}"
    if (match := re.match(r"flag --(\w+)=(.*?): ", text, re.S)) and match[1] in names:
        parser = FLAGS[match[1]].parser
        if isinstance(parser, flags.IntegerParser | flags.FloatParser):
            return f"--{match[1]}={match[2]}: expected {describe_numbers(parser)}"
    return text.removeprefix("flag ")


def describe_numbers(parser: flags.IntegerParser | flags.FloatParser) -> str:
    """Return the numbers that a flag takes.

    >>> describe_numbers(flags.IntegerParser(lower_bound=1))
    'a whole number of at least 1'
    """
    low, high = parser.lower_bound, parser.upper_bound
    kind = "a whole number" if isinstance(parser, flags.IntegerParser) else "a number"
    if high is not None:
        return f"{kind} from {low or 0:,} to {high:,}"
    return kind if low is None else f"{kind} of at least {low:,}"


def explain(error: OSError, names: Sequence[str]) -> str:
    """Return the message of an error of the system; one of a write says where to make room."""
    if error.errno in UNUSABLE:
        return f"{error}; name another path"
    if error.errno not in UNWRITABLE:
        return str(error)
    folders = [f"--{name}={FLAGS[name].value}" for name in ("workdir", "output", "to") if name in names]
    where = "" if error.filename is not None or not folders else f" ({folders[0]})"
    return f"{error}{where}; make room there, or name another place, and run the command again"


def explain_bytes(error: UnicodeEncodeError, names: Sequence[str]) -> str:
    """Return the message of a text that no file can hold; a flag with bytes that are no UTF-8 is named."""
    values = {name: show_value(FLAGS[name].value) for name in names if FLAGS[name].present}
    broken = [name for name, value in values.items() if re.search("[\ud800-\udfff]", value)]
    if not broken:
        return str(error)
    return (
        f"--{broken[0]}={values[broken[0]]!a:.80} has bytes that are not UTF-8, which nothing here can write: rename it"
    )


def refuse(program: str, message: object, status: int = REFUSED) -> NoReturn:
    """Print a message to standard error and exit."""
    print(name_addresses(f"{program}: {message}"), file=sys.stderr)
    sys.exit(status)
