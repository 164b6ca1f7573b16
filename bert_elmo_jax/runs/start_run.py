"""Start a run by calling a function instead of a program, with the program's messages and exit statuses."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax

from bert_elmo_jax import train
from bert_elmo_jax.runs.config_files import override, read_config
from bert_elmo_jax.train.run_guard import INTERRUPTED, REFUSED

Call = Callable[..., int | None]  # of a config and a run directory, with options as keywords: pretrain, finetune
REFUSALS = (ValueError, TypeError, OSError, ImportError, MemoryError)


def run_point(call: Call, config: str, fields: Mapping[str, str], workdir: str, options: Mapping[str, Any]) -> int:
    """Call `pretrain` or `finetune` with a config file and overrides; return the exit status of its program.

    An expected error is one line on standard error. Other errors are raised.

    >>> def greet(config, workdir, name):
    ...     print(f"{name} trains {config.steps} steps")
    >>> run_point(greet, "experiments/configs/bert.py:toy", {"steps": "100"}, "runs/bert", {"name": "Kim"})
    Kim trains 100 steps
    0
    """
    try:
        read, _ = read_config(config)
        override(read, [f"{name}={text}" for name, text in fields.items()])
        return call(read, Path(workdir), **options) or 0
    except (train.Diverged, *REFUSALS) as error:
        print(f"{call.__name__}: {error}", file=sys.stderr)
        return train.DIVERGED if isinstance(error, train.Diverged) else REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED


def cache_compiled(folder: Path) -> None:
    """Let JAX keep all that it compiles in a folder, unless the environment says otherwise."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(folder.absolute()))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
