"""What is wrong with the `--config.….=` flags of a command, in words."""

import runpy
from collections.abc import Sequence

from absl import app

from experiments.endings import refuse


def parse_flags(argv: Sequence[str], program: str) -> list[str]:
    """The arguments left over, once the flags are set; what is wrong with them is said in words, and ends it."""
    try:
        return list(app.parse_flags_with_usage(list(argv)))
    except (AttributeError, KeyError) as error:
        near = unknown_field(argv) or error
        refuse(program, f"{near}: the config has no such field; its file and configs/pretraining.py list them")
    except (OSError, ValueError, TypeError) as error:
        refuse(program, error)


def unknown_field(argv: Sequence[str]) -> str | None:
    """The first flag that names a field which the config of the command does not have."""
    files = [word.partition("=")[2] for word in argv if word.startswith("--config=")]
    config = runpy.run_path(files[-1])["get_config"]() if files else {}
    for word in argv:
        if word.startswith("--config."):
            part = config
            for name in word.partition("=")[0].split(".")[1:]:
                if not hasattr(part, "keys") or name not in part:
                    return word
                part = part[name]
    return None
