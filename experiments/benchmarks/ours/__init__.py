"""Our sides of the paired benchmarks: each runs what the programs of this project run."""

import platform
from importlib.metadata import version
from typing import Any


def about() -> dict[str, Any]:
    """Return what our side says about itself."""
    return {"versions": {"jax": version("jax"), "jaxlib": version("jaxlib"), "python": platform.python_version()}}
