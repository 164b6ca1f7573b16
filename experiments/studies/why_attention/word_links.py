"""Attention heads that link two words of a sentence, in any encoder with attention maps, and pictures of them.

Vaswani et al. 2017 draw heads that connect *making* with *more difficult*, and *its* with what it refers to. In the toy
world all such links are known, so heads can be scored exactly.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.analysis.heads_and_arcs import DIRECTIONS, heads_and_arcs
from bert_elmo_jax.data.tasks.annotated import ParsedSentence
from bert_elmo_jax.evals.attention_heads import word_maps
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.report.figures import Arcs, Grid
from bert_elmo_jax.report.results import Result
from bert_elmo_jax.toyworld import MASK, ToyWorld
from bert_elmo_jax.toyworld.network import LANGUAGES
from bert_elmo_jax.toyworld.shapes import Shape, Slot

# The sentences of the paper's figures 3 and 4, and the words that its figures link.
SENTENCES = (
    ("It is in this spirit that a majority of American governments have passed new laws since 2009 making the "
     "registration or voting process more difficult .", "making", ("more", "difficult")),
    ("The Law will never be perfect , but its application should be just - this is what we are missing , in my "
     "opinion .", "its", ("Law", "application")),
)  # fmt: skip
PRONOUNS = ("it", "its", "he", "she", "they", "him", "her", "them", "his", "their", "그는", "그녀는", "그것은")
AGREEMENT, PRONOUN = "agreement", "pronoun"
HIDDEN = ", hidden"  # of the word that looks, which is replaced by [MASK]
DOCUMENTS = 20_000  # the most documents to search


class Link(NamedTuple):
    """A head that links two words: the weight that the first gives to the second, of all other words."""

    word: str
    other: str
    place: int  # of the first among the words of the sentence
    layer: int  # counted from 1, as the head
    head: int
    weight: float
    even: float  # the weight if all other words got the same


def read_maps(encoder: Any, words: Sequence[str]) -> Float[np.ndarray, "L A W W"]:
    """Return the attention between the words of a sentence, of every layer and head.

    Attention to a word is the sum over its pieces, attention from it their mean. What goes to special pieces such as
    `[SEP]` is left out, so rows add up to less than 1.
    """
    if not isinstance(encoder, PieceEncoder) or encoder.config.attention != "reference":
        raise ValueError("this model gives no attention maps: load a Transformer without fused attention")
    text = encoder.tokenizer.encode_words(list(words))
    if len(text) > encoder.config.max_positions:
        raise ValueError(f"{len(text)} pieces, but the model takes {encoder.config.max_positions}: give fewer words")
    maps: Any = encoder.forward(np.asarray(text.ids)[None]).attentions
    return word_maps(np.asarray(maps, np.float64)[:, 0], np.asarray(text.word_ids), len(words))


def find_links(maps: Float[np.ndarray, "L A W W"], words: Sequence[str], of: int, to: int, top: int = 3) -> list[Link]:
    """Return the heads where the word at a place attends most to the word at another, best first.

    >>> find_links(np.array([[[[0.0, 0.9], [0.2, 0.0]]]]), ["its", "Law"], 0, 1)
    [Link(word='its', other='Law', place=0, layer=1, head=1, weight=0.9, even=1.0)]
    """
    weights = maps[:, :, of, to]
    order = np.argsort(-weights, axis=None, kind="stable")[:top]
    return [
        Link(words[of], words[to], of, int(n) // weights.shape[1] + 1, int(n) % weights.shape[1] + 1,
             float(weights.ravel()[n]), 1 / (len(words) - 1))
        for n in order
    ]  # fmt: skip


def find_pronoun(words: Sequence[str], word: str | None = None) -> int:
    """Return the place of a word of a sentence, by default of its last pronoun.

    >>> find_pronoun("The dog slept because it was tired .".split())
    4
    """
    places = [n for n, other in enumerate(words) if (other == word if word else other.lower() in PRONOUNS)]
    if not places:
        wanted = f"word {word!r}" if word else f"pronoun ({', '.join(PRONOUNS)})"
        raise ValueError(f"--sentence={' '.join(words)!r} has no {wanted}: name one of its words with --word=…")
    return places[-1]


def rank_words(
    maps: Float[np.ndarray, "L A W W"], words: Sequence[str], place: int, layer: int, head: int
) -> list[tuple[Link, float]]:
    """Return each word that a word attends to in a head, largest weight first, with its largest weight in any head.

    >>> maps = np.array([[[[0.0, 0.0, 0.0], [0.6, 0.0, 0.3], [0.0, 0.0, 0.0]]]])
    >>> [(link.other, link.weight, best) for link, best in rank_words(maps, ["Law", "its", "is"], 1, 1, 1)]
    [('Law', 0.6, 0.6), ('is', 0.3, 0.3)]
    """
    row, best, even = maps[layer - 1, head - 1, place], maps[:, :, place].max(axis=(0, 1)), 1 / (len(words) - 1)
    others = sorted((n for n in range(len(words)) if n != place), key=lambda n: -row[n])
    return [(Link(words[place], words[n], place, layer, head, float(row[n]), even), float(best[n])) for n in others]


def draw_head(maps: Float[np.ndarray, "L A W W"], words: Sequence[str], link: Link, name: str) -> Arcs:
    """Return the picture of the words that a word attends to in a head."""
    title = f"{link.word} → {link.other} ({link.weight:.2f}): {name}, layer {link.layer}, head {link.head}"
    values = np.zeros(maps.shape[2:])
    values[link.place] = maps[link.layer - 1, link.head - 1, link.place]
    note = "The wider a line, the more the word attends to the one on the right; special pieces are left out."
    return Arcs(title, words, words, values, note)


def toy_links(world: ToyWorld, kind: str, count: int, *, hidden: bool = False) -> list[ParsedSentence]:
    """Return texts of the toy world with one word that depends on another, as sentences with a single arc.

    `agreement`: a verb and its subject, with words between them; in English both have a number, in Korean the verb is
    honorific if the subject is. `pronoun`: a document's opening with the hero's name, and a later sentence whose
    pronoun means the hero. With `hidden`, the verb or pronoun is replaced by `[MASK]`, so that the model needs the
    other word to predict it.

    >>> [text] = toy_links(ToyWorld("en"), "agreement", 1)
    >>> head = text.heads.index(max(text.heads))
    >>> " ".join(text.words), text.words[head], text.words[text.heads[head] - 1]
    ('The star near the old stone prepares the mask in the cinema .', 'prepares', 'star')
    """
    if kind not in (AGREEMENT, PRONOUN):
        raise ValueError(f"kind={kind!r}: it is {AGREEMENT!r} or {PRONOUN!r}")
    parsed: list[ParsedSentence] = []
    for i in range(DOCUMENTS):
        opening, *later = world.document(i).sentences
        for sentence in later:
            ends = find_ends(world.language, sentence.shape, kind)
            if ends is None:
                continue
            words, (of, to) = list(sentence.words), ends
            if kind == PRONOUN:
                name = find_slot(world.language, opening.shape, "hero")
                assert name is not None, "an opening always has its hero"
                words, of, to = [*opening.words, *words], of + len(opening.words), name
            parsed.append(with_arc(words, of, to, kind, hidden))
            break  # one text of each document, so that they are independent
        if len(parsed) == count:
            return parsed
    raise ValueError(f"{DOCUMENTS:,} documents have {len(parsed)} texts with {kind}, not {count}: ask for fewer")


def find_ends(language: str, shape: Shape, kind: str) -> tuple[int, int] | None:
    """Return the places of the dependent word and of the word that it depends on, or None if a shape has no such pair.

    For a pronoun both are its own place.
    """
    subject = find_slot(language, shape, "hero")
    if kind == PRONOUN:
        return (subject, subject) if shape.subject == "pronoun" and subject is not None else None
    if language == "ko":  # the verb that agrees with the hero
        tokens = LANGUAGES[language].render(shape)
        verbs = [n for n, token in enumerate(tokens) if isinstance(token, Slot) and token.form.endswith("+hero")]
        apart = bool(verbs) and subject is not None and verbs[-1] - subject > 1
        return (verbs[-1], subject) if apart and shape.subject == "name" and subject is not None else None
    if shape.frame not in ("do", "act") or shape.tense != "present" or shape.near is None:
        return None  # past forms have no number; without a landmark the verb follows its subject directly
    agent, verb = (find_slot(language, shape, name) for name in ("agent", "verb" if shape.frame == "do" else "act"))
    return None if agent is None or verb is None else (verb, agent)


def find_slot(language: str, shape: Shape, name: str) -> int | None:
    """Return the place of a slot among the words of a shape, or None.

    >>> find_slot("en", Shape("opening", place=True), "hero")
    2
    """
    tokens = LANGUAGES[language].render(shape)
    return next((n for n, token in enumerate(tokens) if isinstance(token, Slot) and token.name == name), None)


def with_arc(words: Sequence[str], of: int, to: int, relation: str, hidden: bool) -> ParsedSentence:
    """Return a sentence with one arc, from the word `of` to the word `to` on which it depends."""
    shown, none = [*words], (None,) * len(words)
    relations: list[str | None] = [*none]
    if hidden:
        shown[of] = MASK
    heads = [0] * len(words)
    heads[of], relations[of] = to + 1, relation + (HIDDEN if hidden else "")
    return ParsedSentence(tuple(shown), none, ({},) * len(words), tuple(heads), tuple(relations), "", ())


def ends_of(text: ParsedSentence) -> tuple[int, int]:
    """Return the place of the dependent word of a text with one arc, and that of the word on which it depends."""
    return next((n, head - 1) for n, head in enumerate(text.heads) if head)


def best_offset(texts: Sequence[ParsedSentence]) -> tuple[int, float]:
    """Return the most frequent distance from the dependent word in every other text, and its share in the rest.

    >>> texts = toy_links(ToyWorld("en"), "agreement", 40)
    >>> best_offset(texts)
    (-5, 1.0)
    """
    ends = [next((head - 1 - n) for n, head in enumerate(text.heads) if head) for text in texts]
    offset = Counter(ends[::2]).most_common(1)[0][0]
    return offset, ends[1::2].count(offset) / len(ends[1::2])


def score_links(
    encoder: Any, world: ToyWorld, name: str, *, count: int = 400, report: Callable[[str], object] = lambda text: None
) -> tuple[list[Result], list[Grid]]:
    """Return for each kind of link the best head, the best fixed offset and chance, and pictures of all heads.

    A head is right where the dependent word attends most to the word on which it depends (or the other way round), of
    all other words. Chance is exact: one of the other words, drawn evenly. Head and offset are chosen on one half of
    the texts and scored on the other.
    """
    results: list[Result] = []
    figures: list[Grid] = []
    for kind in (AGREEMENT, PRONOUN):
        for hidden in (False, True):
            texts = toy_links(world, kind, count, hidden=hidden)
            scores, drawn = heads_and_arcs(encoder, texts, name, batch_size=32, report=report)
            task, half = scores[0].task, texts[1::2]
            chance = float(np.mean([1 / (len(text.words) - 1) for text in half]))
            offset, share = best_offset(texts)
            results.append(Result(task, "chance", "", chance, len(half)))
            results.append(Result(task, f"offset {offset:+}", "", share, len(half), DIRECTIONS[0]))
            results += [result for result in scores if result.encoder == name]
            figures += drawn
    return results, figures
