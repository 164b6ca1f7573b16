"""Dependency trees: read from and written to CoNLL-U, as transitions, refused."""

import itertools

import numpy as np
import pytest

from bert_elmo_jax.data.tasks.tree_rows import find_actions, find_root_relation, make_training_rows
from bert_elmo_jax.data.tasks.trees import read_trees, word_lines, write_tree
from bert_elmo_jax.text import Lexicon

SENTENCE = """\
# sent_id = 1
# text = Don't stop
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tDo\tdo\tAUX\tVB\tMood=Imp\t3\taux\t3:aux\tA=1
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t3:advmod\t_
2.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t3:nsubj\t_
3\tstop\tstop\tVERB\tVB\t_\t0\troot\t0:root\t_
"""


def conllu(heads, relations=None, tags=None):
    relations = relations or ["root" if head == 0 else "dep" for head in heads]
    cells = zip(heads, relations, tags or ["X"] * len(heads))
    rows = [f"{n}\tw{n}\t_\t{tag}\t_\t_\t{head}\t{name}\t_\t_" for n, (head, name, tag) in enumerate(cells, start=1)]
    return "\n".join(rows) + "\n"


def write(path, *sentences):
    path.write_text("\n".join(sentences), encoding="utf-8")
    return path


def test_all_but_heads_and_relations_is_kept(tmp_path):
    [sentence] = read_trees(write(tmp_path / "a.conllu", SENTENCE), tag_column="xpos")
    assert sentence.words == ("Do", "n't", "stop")
    assert (sentence.heads, sentence.relations, sentence.tags) == (
        (3, 3, 0),
        ("aux", "advmod", "root"),
        ("VB", "RB", "VB"),
    )
    assert sentence.lines == (4, 5, 7)
    assert write_tree(sentence.source, sentence.heads, sentence.relations) == SENTENCE
    changed = write_tree(sentence.source, (2, 0, 2), ("aux", "root", "obj")).splitlines()
    assert changed[:3] == SENTENCE.splitlines()[:3]
    assert changed[3] == "1\tDo\tdo\tAUX\tVB\tMood=Imp\t2\taux\t3:aux\tA=1"
    assert changed[5] == SENTENCE.splitlines()[5]
    [unparsed] = read_trees(write(tmp_path / "b.conllu", SENTENCE.replace("\t3\t", "\t_\t")), parsed=False)
    assert (unparsed.words, unparsed.heads) == (sentence.words, None)


def test_words_without_a_file_keep_their_tags(tmp_path):
    tree = write_tree(word_lines(["it", "rains"], ["PRON", "VERB"], "upos"), [2, 0], ["nsubj", "root"])
    [sentence] = read_trees(write(tmp_path / "a.conllu", tree), tag_column="upos")
    assert (sentence.words, sentence.tags, sentence.heads) == (("it", "rains"), ("PRON", "VERB"), (2, 0))


def test_comments_apart_from_sentences_stay(tmp_path):
    text = f"# newdoc id = a\n# meta\n\n{SENTENCE}\n# between\n\n{SENTENCE}\n# end of file\n\n"
    sentences = read_trees(write(tmp_path / "a.conllu", text))
    assert [sentence.lines for sentence in sentences] == [(7, 8, 10), (17, 18, 20)]
    trees = [write_tree(one.source, one.heads, one.relations) for one in sentences]
    assert "".join(f"{tree}\n" for tree in trees) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (conllu((2, 3, 1, 0)), ":1: the heads of the words 1, 2, 3 form a cycle; correct one of them"),
        (conllu((0, 2)), ":2: word 2 is its own head; correct it"),
        (conllu((0, 1, 0)), r":3: two roots: the words 1 \(line 1\) and 3 have the head 0, and a tree has one root"),
        (conllu((2, 3)), r":2: the head '3', expected a number from 0 \(the root\) to 2"),
        (conllu(("_", 0)), ":1: the head '_', expected a number"),
        (conllu((2, 0), ("_", "root")), r":1: no relation \(the eighth column\)"),
        (conllu((2, 0), tags=("X", "_")), ":2: no tag in the column upos; tag the words first, or train"),
        ("# nothing\n", ":1: no words, expected sentences in CoNLL-U"),
        ("1\tw\n", ":1: 2 columns between tabs, expected the 10 of CoNLL-U"),
        ("1 w _\n", ":1: 1 column between tabs, expected the 10 of CoNLL-U"),
    ],
)
def test_files_that_hold_no_trees(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_trees(write(tmp_path / "a.conllu", text), tag_column="upos")


def build(actions):
    """Return the heads and relations that transitions build, and the words that are left."""
    stack, word, heads = [0], 1, {}
    for action in actions:
        if action == 0:
            stack.append(word)
            word += 1
        else:
            dependent = stack.pop(-2 if action % 2 else -1)
            heads[dependent] = stack[-1], (action - 1) // 2
    return [heads[n] for n in sorted(heads)], stack


def crosses(heads):
    arcs = [tuple(sorted(arc)) for arc in enumerate(heads, start=1)]
    return any(a < c < b < d for (a, b), (c, d) in itertools.permutations(arcs, 2))


def leads_to_root(heads):
    def depth(word, steps=0):
        return steps if word == 0 or steps > len(heads) else depth(heads[word - 1], steps + 1)

    return heads.count(0) == 1 and all(depth(word) <= len(heads) for word in range(1, len(heads) + 1))


def test_transitions_build_every_tree_without_crossing_arcs():
    trees = [heads for heads in itertools.product(range(6), repeat=5) if leads_to_root(heads)]
    assert len(trees) == 5**4
    for heads in trees:
        relations = [n % 3 for n in range(5)]
        actions = find_actions(heads, relations)
        assert (actions is None) == crosses(heads)
        if actions is not None:
            assert (build(actions), len(actions)) == (([*zip(heads, relations)], [0]), 10)


def test_training_leaves_out_crossing_arcs_and_counts_them(tmp_path):
    crossing, other = conllu((3, 4, 0, 3)), conllu((0,), ("top",))
    sentences = read_trees(write(tmp_path / "a.conllu", crossing, conllu((2, 0)), other))
    rows, notes = make_training_rows(sentences, Lexicon(["w1"], "unk", 4), ["dep", "root", "top"])
    assert [row.actions.tolist() for row in rows] == [[0, 0, 1, 4], [0, 6]]
    assert notes == [
        "1 of 3 sentences is not projective (arcs cross), which this parser cannot build: left out of the training"
    ]
    with pytest.raises(ValueError, match=r"a.conllu:1: none of the 1 sentences has a projective tree"):
        make_training_rows(sentences[:1], Lexicon(["w1"], "unk", 4), ["dep", "root"])
    assert find_root_relation(sentences, ["dep", "root", "top"]) == -1  # two relations of roots
    assert find_root_relation(sentences[:2], ["dep", "root"]) == 1
    assert find_root_relation(sentences[2:], ["top"]) == -1  # and no other
    assert np.array_equal(rows[0].ids, [1, 0])
