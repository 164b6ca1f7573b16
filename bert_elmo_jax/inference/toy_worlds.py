"""The toy world that a run was trained on."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import read_json
from bert_elmo_jax.toyworld import ToyWorld


def load_worlds(config: Mapping[str, Any]) -> dict[str, ToyWorld]:
    """Return the toy world of a run's config, in each of its languages.

    >>> load_worlds({"toyworld": {"language": "en,ko", "topics": 4, "words": 2}})["ko"].topics
    4
    """
    size = {name: config["toyworld"][name] for name in ("topics", "words") if name in config["toyworld"]}
    return {language: ToyWorld(language, **size) for language in config["toyworld"]["language"].split(",")}


def find_common_world(runs: Sequence[str], language: str) -> ToyWorld:
    """Return the smallest world that one of these models was trained on; larger ones contain its words."""
    worlds = [ToyWorld(language)]
    for run in runs:
        config = read_json(Path(run) / "run.json", default={})
        if config.get("data") == "toyworld":
            worlds += load_worlds(config).values()
    return ToyWorld(language, topics=min(w.topics for w in worlds), words=min(w.words for w in worlds))
