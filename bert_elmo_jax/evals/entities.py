"""Scores of named entities and other chunks by the rules of conlleval, the scorer of the CoNLL shared tasks."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypedDict

OUTSIDE = "O"
_PREFIXES = ("B", "I", "E", "S")


class Scores(TypedDict):
    """Precision, recall and F1 (0 to 1), and the numbers of entities."""

    precision: float
    recall: float
    f1: float
    gold: int
    predicted: int
    correct: int


class EntityScores(Scores):
    """Scores of all entities and of each type, the mean F1 of the types, and the accuracy of the tags."""

    types: dict[str, Scores]
    macro_f1: float
    accuracy: float


def score(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> EntityScores:
    """Score the tags of sentences in IOB1, IOB2, IOE or BIOES; the two sides may use different schemes.

    An entity is correct if its type, first word and last word agree. As in conlleval, an I- tag begins an entity if
    the previous word is outside or of another type.

    >>> scores = score([["B-PER", "I-PER", "O"], ["B-LOC", "O"]], [["I-PER", "I-PER", "O"], ["B-LOC", "I-LOC"]])
    >>> scores["precision"], scores["recall"], scores["f1"], scores["types"]["PER"]["f1"], scores["accuracy"]
    (0.5, 0.5, 0.5, 1.0, 0.6)
    """
    if len(gold) != len(predicted):
        raise ValueError(
            f"{len(gold)} sentences of gold tags but {len(predicted)} of predicted tags: give the same sentences"
        )
    counts = {side: Counter[str]() for side in ("gold", "predicted", "correct")}
    words = right = 0
    for number, (truth, guess) in enumerate(zip(gold, predicted)):
        if len(truth) != len(guess):
            raise ValueError(
                f"sentence {number} has {len(truth)} gold tags but {len(guess)} predicted: give a tag for each word"
            )
        words += len(truth)
        right += sum(a == b for a, b in zip(truth, guess))
        sides = [set(_entities(tags, f"{side} tag", number)) for side, tags in (("gold", truth), ("predicted", guess))]
        for side, side_entities in zip(counts, (*sides, sides[0] & sides[1])):
            counts[side].update(entity[0] for entity in side_entities)
    types = {
        name: _scores(counts["gold"][name], counts["predicted"][name], counts["correct"][name])
        for name in sorted(counts["gold"] | counts["predicted"])
    }
    return {
        **_scores(counts["gold"].total(), counts["predicted"].total(), counts["correct"].total()),
        "types": types,
        "macro_f1": sum(scores["f1"] for scores in types.values()) / max(len(types), 1),
        "accuracy": right / max(words, 1),
    }


def strict_macro_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Return the mean F1 of the types in strict IOB2, KLUE's entity F1: a word begins an entity only with B-.

    >>> strict_macro_f1([["B-PS", "I-PS", "O"]], [["I-PS", "I-PS", "O"]])
    0.0
    """
    return score(*([_drop_stray(tags) for tags in side] for side in (gold, predicted)))["macro_f1"]


def _drop_stray(tags: Sequence[str]) -> list[str]:
    kept = list(tags)
    for _, start, end in entities(tags):
        if not tags[start].startswith("B"):
            kept[start:end] = [OUTSIDE] * (end - start)
    return kept


def entities(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return (type, start, end) of each entity of a sentence; `end` is exclusive."""
    return list(_entities(tags, "tag", 0))


def _scores(gold: int, predicted: int, correct: int) -> Scores:
    """Return the scores; as in conlleval, they are 0 without gold or predicted entities."""
    precision = correct / predicted if predicted else 0.0
    recall = correct / gold if gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return Scores(precision=precision, recall=recall, f1=f1, gold=gold, predicted=predicted, correct=correct)


def _entities(tags: Sequence[str], side: str, sentence: int) -> Iterable[tuple[str, int, int]]:
    before, kind, start = OUTSIDE, "", 0
    for place, tag in enumerate([*tags, OUTSIDE]):
        prefix, _, name = tag.partition("-")
        if (prefix not in _PREFIXES or not (name or tag == prefix)) and tag != OUTSIDE:
            raise ValueError(
                f"{side} {tag!r} (sentence {sentence}, word {place}) is not an entity tag: expected O, or B-, I-, E- "
                "or S- and a type; score other tags, such as parts of speech, by accuracy"
            )
        # Adjacent tags of one type belong to one entity unless E- or S- ends it, or B- or S- begins another.
        joined = before in ("B", "I") and prefix in ("I", "E") and name == kind
        if before != OUTSIDE and not joined:
            yield kind, start, place
        if not joined:
            start = place
        before, kind = prefix, name
