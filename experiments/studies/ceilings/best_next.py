"""The true perplexity of a decoder's held-out documents of the toy world, compared with the model's.

A decoder predicts the pieces of a document one after the other, and its end. The ideal reader knows the language's
grammar and the document so far; its words determine their pieces, so both predict the same thing. Documents that were
split, because they did not fit into a row, are left out of both.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.inference.toy_worlds import load_worlds
from bert_elmo_jax.toyworld import ToyWorld
from bert_elmo_jax.toyworld.automaton import infer
from bert_elmo_jax.toyworld.oracle import automaton, encode

from .held_out import Batch, build_means, read_held_out

Documents = Mapping[tuple[int, ...], tuple[str, float]]  # ids of pieces -> language, log-probability


class NextScore(NamedTuple):
    """A model's perplexity per piece, the true one, and the number of pieces with the ends of documents."""

    name: str
    model: float
    true: float
    of: int


class NextScores(NamedTuple):
    """Scores of each language, and of all; `left_out` are the pieces of documents that were split."""

    lines: list[NextScore]
    batches: int
    source: str
    left_out: int


def join_pieces(pieces: Sequence[str]) -> list[str]:
    """Return the words of WordPiece's pieces.

    >>> join_pieces(["the", "boat", "##s", "."])
    ['the', 'boats', '.']
    """
    words: list[str] = []
    for piece in pieces:
        if piece.startswith("##") and words:
            words[-1] += piece[2:]
        else:
            words.append(piece)
    return words


def read_documents(corpus: Path, pieces: Sequence[str], worlds: Mapping[str, ToyWorld]) -> Documents:
    """Return the true log-probability of each held-out document and its end; each language is equally likely."""
    vocabularies = {language: {*world.network.words} for language, world in worlds.items()}
    ids: dict[str, list[tuple[int, ...]]] = {language: [] for language in worlds}
    texts: dict[str, list[str]] = {language: [] for language in worlds}
    for document in open_store(corpus, "heldout"):
        numbers = tuple(int(n) for sentence in document for n in sentence)
        words = join_pieces([pieces[n] for n in numbers])
        language = next((name for name, vocabulary in vocabularies.items() if vocabulary.issuperset(words)), None)
        if language is not None:  # a word with letters that the tokenizer does not know
            ids[language].append(numbers)
            texts[language].append(" ".join(words))
    documents: dict[tuple[int, ...], tuple[str, float]] = {}
    for language, rows in texts.items():
        world = worlds[language]
        chain = automaton(world, "document")
        for first in range(0, len(rows), 256):
            lattice = infer(chain, [encode(world, text) for text in rows[first : first + 256]])
            for numbers, value in zip(ids[language][first:], lattice.log_likelihood.tolist()):
                documents[numbers] = language, value - float(np.log(len(worlds)))
    return documents


def select_documents(
    batches: Sequence[Batch], documents: Documents, languages: Sequence[str]
) -> tuple[dict[str, tuple[float, int]], dict[str, list[Batch]]]:
    """Return by language the true log-probability and number of pieces, and batches with the weights of these."""
    sums = dict.fromkeys(languages, (0.0, 0))
    scored: dict[str, list[Batch]] = {name: [] for name in languages}
    for batch in batches:
        weights = {name: np.zeros_like(batch["mlm_weights"]) for name in languages}
        for row, segments in enumerate(batch["segments"]):
            places, counted = batch["mlm_positions"][row], batch["mlm_weights"][row] > 0
            for slot in range(1, int(segments.max()) + 1):
                columns = np.flatnonzero(segments == slot)
                # Between the first piece, which is given, and the one that ends the document.
                language, value = documents.get(tuple(batch["tokens"][row][columns[1:-1]].tolist()), ("", 0.0))
                if language:
                    predicted = counted & np.isin(places, columns)
                    weights[language][row][predicted] = 1
                    total, count = sums[language]
                    sums[language] = total + value, count + int(predicted.sum())
        for name in languages:
            scored[name].append({**batch, "mlm_weights": weights[name]})
    return sums, scored


def next_scores(run: Path, config: ConfigDict, corpus: Path) -> NextScores:
    """Return the held-out perplexity of a decoder's run, and the true one."""
    if config.objective != "documents":
        raise ValueError(f"objective={config.objective!r}: the ideal reader of next pieces knows documents")
    model, objective, batches = read_held_out(run, config, corpus, config.eval_batches)
    worlds = load_worlds(config.to_dict())
    sums, parts = select_documents(batches, read_documents(corpus, model.tokenizer.tokens, worlds), list(worlds))
    scored_parts = {name: part for name, part in parts.items() if sums[name][1]}
    if not scored_parts:
        raise ValueError(f"{run}: no held-out document fits into a row of {config.length} pieces; use longer rows")
    if len(scored_parts) > 1:
        sums["all"] = tuple(np.sum([sums[name] for name in scored_parts], axis=0))
        together = zip(*scored_parts.values())
        scored_parts["all"] = [
            {**one[0], "mlm_weights": np.sum([b["mlm_weights"] for b in one], axis=0)} for one in together
        ]
    means = build_means(objective.held_out_loss, model.params)
    lines = []
    for name, part in scored_parts.items():
        total, count = sums[name]
        lines.append(NextScore(name, float(np.exp(means(part)["lm"])), float(np.exp(-total / count)), int(count)))
    pieces = int(sum((batch["mlm_weights"] > 0).sum() for batch in batches))
    return NextScores(lines, len(batches), model.report.source, pieces - lines[-1].of)
