"""The study of `probe` that looks for the neighbours of words in the lines of a text."""

from html import escape
from itertools import islice
from typing import Any

from bert_elmo_jax import load
from bert_elmo_jax.analysis.study_inputs import Asked, Study, names_of
from bert_elmo_jax.analysis.word_neighbours import (
    COLUMNS,
    neighbours_rows,
    neighbours_section,
    neighbours_text,
    static_neighbours,
    what_is_compared,
    word_neighbours,
)
from bert_elmo_jax.data.corpora.text_files import each_text
from bert_elmo_jax.inference.word_layers import StaticVectors
from bert_elmo_jax.report.page import draw_table
from bert_elmo_jax.text.running_text import choose_word_rule, split_line
from bert_elmo_jax.text.vectors import read_vectors

COMMON = 50_000  # of the words of a static file: the neighbours of a word are looked for among these


def find_neighbours(asked: Asked) -> Study:
    """Neighbours of words in context, and of static vectors those of the word alone."""
    lines = each_text(str(asked.train), encoding=asked.encoding, skip_blank=True)
    texts = [text for _, text in islice(lines, asked.limit)]
    encoders: dict[str, Any] = {name: load(path) for name, path in names_of(asked.model).items()}
    rule = choose_word_rule(encoders)
    sentences = [split_line(text, rule) for text in texts]
    own = None if asked.sentence is None else split_line(asked.sentence, rule)
    options: dict[str, Any] = {"layers": asked.layers, "batch_size": asked.batch_size, "sentence": own}
    sections, said, rows = [], [], []
    for word in asked.words:
        if encoders:
            found = word_neighbours(encoders, sentences, word, asked.vectors, **options)
            compared = what_is_compared(sentences, word, found)
            sections.append((f"Neighbours of {word}", f"<p>{escape(compared)}</p>{neighbours_section(found)}"))
            said += [compared, neighbours_text(found)]
            rows += neighbours_rows(found)
        for name, path in names_of(asked.static).items():
            known = read_vectors(path, None, most=COMMON)
            near = static_neighbours(StaticVectors(dict(zip(known.words, known.vectors)), path), word)
            cells = [[other, f"{cosine:.3f}"] for other, cosine in near]
            sections.append((f"{name}: words near {word}", draw_table(["word", "cosine"], cells)))
            said.append(f"{name}, words near {word}: {', '.join(other for other, _ in near) or 'it has no vector'}")
            rows += [[word, "", name, "", cosine, other, ""] for other, cosine in near]
    return Study([], sections=sections, text="\n".join(said), rows=[COLUMNS, *rows])
