"""The files of the quickstart's tasks: sentences with senses, texts with topics, passages with questions."""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from bert_elmo_jax.files import write_text
from bert_elmo_jax.toyworld import ToyWorld, question_examples, sense_examples, topic_examples

SHORT = 30  # words of the longest passage: the longest one decides how long all take


def write_tasks(folder: Path, worlds: Sequence[ToyWorld], examples: int) -> None:
    """Write `examples` training examples per task and language (half as many passages), and half as many for dev."""
    known: set[str] = set()
    for part, count in (("train", examples), ("dev", max(2, examples // 2))):
        found = [s for world in worlds for s in islice(sense_examples(world, part), count)]
        known |= {tag for s in found for tag in s.tags} if part == "train" else set()
        # A sense that does not occur in so few training sentences cannot be learned.
        lines = ("".join(f"{w}\t{t}\n" for w, t in zip(s.words, s.tags)) for s in found if known.issuperset(s.tags))
        write_text(folder / "senses" / f"{part}.conll", "\n".join(lines) + "\n")
        topics = ("\t".join(row) for world in worlds for row in islice(topic_examples(world, part), count))
        write_text(folder / "topics" / f"{part}.tsv", "\n".join(["text\tlabel", *topics]) + "\n")
        data = []
        for world in worlds:
            short = (one for one in question_examples(world, part) if len(one["context"].split()) <= SHORT)
            data.append({"title": world.language, "paragraphs": list(islice(short, count // 2))})
        text = json.dumps({"version": "1.1", "data": data}, ensure_ascii=False)
        write_text(folder / "questions" / f"{part}.json", f"{text}\n")
