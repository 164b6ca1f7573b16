"""The end of a run that learned to translate: held-out texts are translated and scored, and shown in the report."""

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.evals import translation
from bert_elmo_jax.families import find_family
from bert_elmo_jax.files import write_json
from bert_elmo_jax.inference.load_model import load
from bert_elmo_jax.report.language import Translate, english
from bert_elmo_jax.report.page import draw_table
from bert_elmo_jax.runs.run_report import show_figures
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.text import Tokenizer, WordVocabulary
from bert_elmo_jax.toyworld import ToyWorld, right_translations

FILE = "final.json"  # in a run directory: figures of the parameters that `load` reads
SHOWN = 12  # translations in the report


class Translated(NamedTuple):
    """Sources, their references and a model's translations."""

    sources: list[str]
    references: list[str]
    translations: list[str]


def translate_held_out(run: str | Path, config: ConfigDict, corpus: str) -> Translated | None:
    """Translate the first `config.translations` held-out texts of a corpus that fit into a row.

    Return None if there is none, and for a model that does not write.

    The search has `config.beams` beams and the length penalty `config.length_penalty`.
    """
    model: Any = load(run)
    if find_family(model.config).decoder is None or not isinstance(model.reads, Tokenizer | WordVocabulary):
        return None
    # A corpus of words numbers those outside of the vocabulary, too.
    size, unknown = model.reads.vocab_size, model.reads.unk_id
    store = open_store(corpus, "heldout")
    frame = model.reads.frame
    read: list[list[int]] = []
    sides_read: list[tuple[list[int], list[int]]] = []
    for number in range(len(store)):
        if len(read) == config.translations:
            break
        sides = [np.where(side < size, side, unknown).tolist() for side in store[number]]
        if len(sides) == 2:
            source, target = sides[::-1] if config.reverse else sides
            row = [*frame.before, *source, *frame.after]
            if len(row) <= config.length and len(target) < config.target_length:
                read.append(row)
                sides_read.append((source, target))
    if not read:
        return None
    written = model.generate(
        source=read, max_new=config.target_length, beams=config.beams, length_penalty=config.length_penalty
    )
    decode = model.reads.decode
    return Translated(
        [decode(source) for source, _ in sides_read], [decode(target) for _, target in sides_read],
        [best.text for best, *_ in written],
    )  # fmt: skip


def score_held_out(run: str | Path, config: ConfigDict, texts: Translated) -> dict[str, float]:
    """Return BLEU, chrF and the share of translations that are the reference; write them to `final.json`.

    In the toy world, `held_out/right` is the share of translations that are right: a sentence may have several.
    """
    scores = translation.score(texts.translations, texts.references)
    same = sum(text == reference for text, reference in zip(texts.translations, texts.references))
    figures = {f"held_out/{name}": value for name, value in scores.items()}
    figures["held_out/same"] = same / len(texts.translations)
    if config.data == "toyworld":
        sides = config.toyworld.language.split(",")
        source = sides[-1] if config.reverse else sides[0]
        world = ToyWorld(source, topics=config.toyworld.topics, words=config.toyworld.words)
        try:
            figures["held_out/right"] = right_translations(world, texts.sources, texts.translations)
        except ValueError as error:  # with a vocabulary too small for all characters
            say(f"held_out/right is left out: {error}")
    write_json(Path(run) / FILE, figures)
    return figures


def describe_translations(
    texts: Translated, figures: Mapping[str, float], translate: Translate = english
) -> tuple[str, str]:
    """Return a section of the report, title and HTML: the scores, and some of the translations."""
    rows = list(zip(texts.sources, texts.translations, texts.references))[:SHOWN]
    table = draw_table([translate(name) for name in ("source", "translation", "reference")], rows, stacked=True)
    about = translate("{count} texts: {figures}.", count=f"{len(texts.translations):,}", figures=show_figures(figures))
    return translate("Translations of held-out texts"), f"<p>{html.escape(about)}</p>{table}"
