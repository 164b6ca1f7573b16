"""The files of the quickstart's tasks: sentences with senses, texts with topics, passages with questions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import write_text
from bert_elmo_jax.toyworld import ToyWorld, question_examples, sense_examples, topic_examples

SHORT = 30  # words of a passage that questions are asked of


def write_tasks(folder: Path, worlds: Sequence[ToyWorld], examples: int) -> None:
    """The tasks' files, so many examples of each language to train on (of passages half), and half as many in `dev`."""
    known: set[str] = set()
    for part, count in (("train", examples), ("dev", max(2, examples // 2))):
        found = [s for world in worlds for s in islice(sense_examples(world, part), count)]
        known |= {tag for s in found for tag in s.tags} if part == "train" else set()
        # A sense that so few sentences happen not to have cannot be learned from them.
        lines = ("".join(f"{w}\t{t}\n" for w, t in zip(s.words, s.tags)) for s in found if known.issuperset(s.tags))
        _write(folder / "senses" / f"{part}.conll", "\n".join(lines))
        topics = ("\t".join(row) for world in worlds for row in islice(topic_examples(world, part), count))
        _write(folder / "topics" / f"{part}.tsv", "\n".join(["text\tlabel", *topics]))
        data = [
            {"title": world.language, "paragraphs": list(islice(_short(question_examples(world, part)), count // 2))}
            for world in worlds
        ]
        text = json.dumps({"version": "1.1", "data": data}, ensure_ascii=False)
        _write(folder / "questions" / f"{part}.json", text)


def _short(paragraphs: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Those that are read quickly: their longest decides how long all take."""
    return (paragraph for paragraph in paragraphs if len(paragraph["context"].split()) <= SHORT)


def _write(file: Path, text: str) -> None:
    write_text(file, f"{text}\n")
