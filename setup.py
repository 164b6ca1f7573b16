"""The packages of a wheel, and the README with whole addresses; setup.cfg has everything else.

The folder `experiments` becomes a part of `bert_elmo_jax`.
"""

import configparser
import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent


def read_readme() -> str:
    """Return README.md with whole addresses, because an index shows it without the repository's files."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    address = config["metadata"]["url"]

    def complete(link: re.Match[str]) -> str:
        picture, label, target = link.groups()
        if target.startswith("#"):
            return f"{picture}[{label}]({address}{target})"
        place = f"{address}/raw/main" if picture else f"{address}/blob/main"
        return f"{picture}[{label}]({place}/{target})"

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"(!?)\[([^\]]*)\]\((?!https?://)([^)\s]+)\)", complete, text)


programs = [f"bert_elmo_jax.{name}" for name in find_packages(include=["experiments", "experiments.*"])]
setup(
    packages=[*find_packages(include=["bert_elmo_jax", "bert_elmo_jax.*"]), *programs],
    package_dir={"bert_elmo_jax.experiments": "experiments"},
    long_description=read_readme(),
    long_description_content_type="text/markdown",
)
