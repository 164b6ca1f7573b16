import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.evals.entities import entities, score, strict_macro_f1


def test_scores_match_seqeval(goldens):
    blocks = (goldens / "metrics" / "entities.txt").read_text("utf-8").strip().split("\n\n")
    columns = [list(zip(*(line.split() for line in block.split("\n")))) for block in blocks]
    figures = score([list(gold) for _, gold, _ in columns], [list(predicted) for _, _, predicted in columns])
    [official] = json.loads((goldens / "metrics" / "entities.official.json").read_text()).values()
    for name, value in official.items():
        assert figures[name] == pytest.approx(value, abs=1e-12)


ENTITIES = {
    "O I-PER I-PER O": [("PER", 1, 3)],  # a stray I- begins an entity
    "I-PER B-PER I-PER": [("PER", 0, 1), ("PER", 1, 3)],  # IOB1
    "B-PER I-LOC": [("PER", 0, 1), ("LOC", 1, 2)],  # another type begins another entity
    "B-PER B-PER": [("PER", 0, 1), ("PER", 1, 2)],
    "B-PER I-PER E-PER S-PER": [("PER", 0, 3), ("PER", 3, 4)],
    "E-PER I-PER": [("PER", 0, 1), ("PER", 1, 2)],  # E- ends an entity
    "S-PER I-PER E-PER": [("PER", 0, 1), ("PER", 1, 3)],
    "I-PER I-PER E-PER E-PER": [("PER", 0, 3), ("PER", 3, 4)],  # IOE
    "B-creative-work I-creative-work": [("creative-work", 0, 2)],
    "B I O B": [("", 0, 2), ("", 3, 4)],  # chunks without a type
    "B-인물 I-인물": [("인물", 0, 2)],
    "O O": [],
    "": [],
}


def test_entities_of_tags():
    for tags, expected in ENTITIES.items():
        assert entities(tags.split()) == expected
    # They do not cross sentences, and both sides may use different schemes.
    assert score([["B-PER"], ["I-PER"]], [["B-PER"], ["I-PER"]])["gold"] == 2
    assert score([["I-PER", "I-PER", "B-PER"]], [["B-PER", "E-PER", "S-PER"]])["f1"] == 1.0


def test_scores_by_type_and_in_total():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG"]]
    predicted = [["B-PER", "O", "O", "B-LOC"], ["B-LOC"]]
    figures = score(gold, predicted)
    assert (figures["gold"], figures["predicted"], figures["correct"]) == (3, 3, 1)
    assert figures["precision"] == figures["recall"] == figures["f1"] == pytest.approx(1 / 3)
    by_type = {name: scores["f1"] for name, scores in figures["types"].items()}
    assert by_type == {"LOC": pytest.approx(2 / 3), "ORG": 0.0, "PER": 0.0}
    assert figures["macro_f1"] == pytest.approx(2 / 9)
    assert figures["accuracy"] == 3 / 5
    assert json.loads(json.dumps(figures)) == figures
    for tags in ([], [["O", "O"]], [[]]):
        figures = score(tags, tags)
        assert figures["f1"] == figures["precision"] == figures["recall"] == 0.0
        assert figures["types"] == {}


def test_only_b_begins_an_entity_in_strict_iob2():
    gold = ["B-PS", "I-PS", "O", "B-LC", "I-LC", "O", "B-OG"]
    for predicted, expected in (
        (gold, 1.0),
        (["I-PS", "I-PS", "O", "B-LC", "I-LC", "O", "B-OG"], 2 / 3),
        (["B-PS", "I-PS", "O", "B-LC", "I-OG", "O", "B-OG"], 2 / 3),  # I-OG after B-LC is no entity
        (["B-PS", "I-PS", "I-DT", "B-LC", "I-LC", "O", "B-OG"], 1.0),
        (["B-PS", "I-PS", "B-DT", "B-LC", "I-LC", "O", "B-OG"], 3 / 4),  # a type of the predictions counts, too
        (["O"] * 7, 0.0),
    ):
        assert strict_macro_f1([gold], [predicted]) == pytest.approx(expected)
    assert strict_macro_f1([], []) == 0.0


def test_invalid_tags_raise():
    for gold, predicted, message in (
        ([["O"]], [], "1 sentences of gold tags but 0"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "sentence 1 has 2 gold tags but 1 predicted"),
        ([["O"]], [["NOUN"]], r"predicted tag 'NOUN' \(sentence 0, word 0\)"),
        ([["O", "U-PER"]], [["O", "O"]], r"gold tag 'U-PER' \(sentence 0, word 1\)"),
        ([["B-"]], [["O"]], "'B-'"),
        ([["O-PER"]], [["O"]], "'O-PER'"),
        ([["o"]], [["O"]], "'o'"),
        ([[""]], [["O"]], "gold tag ''"),
    ):
        with pytest.raises(ValueError, match=message):
            score(gold, predicted)


spans = st.lists(st.tuples(st.sampled_from(["PER", "LOC"]), st.integers(1, 3), st.integers(0, 2)), max_size=5)


def written(entity_spans, scheme):
    """Return the tags of entities (type, words, words outside after it) in a scheme."""
    tags, before = [], None
    for kind, words, gap in entity_spans:
        if scheme == "BIOES":
            tags += [f"S-{kind}"] if words == 1 else [f"B-{kind}", *[f"I-{kind}"] * (words - 2), f"E-{kind}"]
        else:
            first = "B" if scheme == "IOB2" or before == kind else "I"
            tags += [f"{first}-{kind}", *[f"I-{kind}"] * (words - 1)]
        tags += ["O"] * gap
        before = None if gap else kind
    return tags


@given(spans)
def test_all_schemes_give_the_same_entities(entity_spans):
    expected, at = [], 0
    for kind, words, gap in entity_spans:
        expected.append((kind, at, at + words))
        at += words + gap
    for scheme in ("IOB1", "IOB2", "BIOES"):
        assert entities(written(entity_spans, scheme)) == expected
    for one, other in itertools.permutations(("IOB1", "IOB2", "BIOES"), 2):
        assert score([written(entity_spans, one)], [written(entity_spans, other)])["correct"] == len(entity_spans)
