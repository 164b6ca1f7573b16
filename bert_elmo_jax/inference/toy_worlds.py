"""The toy world that a run was trained on."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.toyworld import ToyWorld


def worlds_of(asked: Mapping[str, Any]) -> dict[str, ToyWorld]:
    """The world of a run's config, in each of its languages.

    >>> worlds_of({"toyworld": {"language": "en,ko", "topics": 4, "words": 2}})["ko"].topics
    4
    """
    size = {name: asked["toyworld"][name] for name in ("topics", "words") if name in asked["toyworld"]}
    return {language: ToyWorld(language, **size) for language in asked["toyworld"]["language"].split(",")}


def known_to_all(runs: Sequence[str], language: str) -> ToyWorld:
    """The world whose words all of these models know: the smallest that one of them was trained on.

    A smaller world has the first topics of a larger one, and the first words of each of its lists. What is no run on
    the toy world has no say.

    >>> known_to_all(["tests/goldens/bert_tiny"], "ko").topics
    24
    """
    worlds = [ToyWorld(language)]
    for run in runs:
        file = Path(run) / "run.json"
        asked = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        if asked.get("data") == "toyworld":
            worlds += worlds_of(asked).values()
    return ToyWorld(language, topics=min(w.topics for w in worlds), words=min(w.words for w in worlds))
