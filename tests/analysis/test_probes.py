"""Examples of `bert_elmo_jax.analysis.probes`."""

import re

import numpy as np
import pytest

from bert_elmo_jax.analysis.probes import (
    PARTS,
    draw_efficiency,
    draw_layers,
    find_best_layer,
    sample_efficiency,
    select_parts,
)
from bert_elmo_jax.data.tasks.annotated import ParsedSentence
from bert_elmo_jax.inference.kept_vectors import VectorFolder
from bert_elmo_jax.report.results import Result


def test_example_of_select_parts():
    sentence = ParsedSentence(
        ("배를", "탔다"), ("NOUN", "VERB"), ({}, {"Tense": "Past"}), (2, 0), ("obj", "root"), "a", (1, 2)
    )
    words = select_parts({part: [sentence, sentence] for part in PARTS}, "Tense")["dev"]
    assert (words.rows.tolist(), words.sentence.tolist(), words.words.tolist()) == ([1, 3], [0, 1], ["탔다"] * 2)
    assert words.labels.tolist() == ["Past"] * 2
    with pytest.raises(
        ValueError,
        match=re.escape("no word of the train data has Tense: name tasks that this treebank annotates, such as pos"),
    ):
        select_parts({"train": [], "dev": [], "test": []}, "Tense")


def test_example_of_sample_efficiency():
    import tempfile

    from bert_elmo_jax.inference.word_layers import StaticVectors

    sentence = ParsedSentence(("배를",), ("NOUN",), ({},), (0,), ("root",), "a.conllu", (1,))
    parts = {part: [sentence] * 4 for part in PARTS}
    sources, folder = {"my vectors": StaticVectors({"배를": np.ones(2)})}, VectorFolder(tempfile.mkdtemp())
    assert [result.layer for result in sample_efficiency(sources, parts, folder, fractions=[0.5, 1.0])] == [
        "50%",
        "50%",
        "100%",
        "100%",
    ]


def test_example_of_find_best_layer():
    import tempfile

    from bert_elmo_jax.inference.word_layers import StaticVectors

    sentence = ParsedSentence(("배를",), ("NOUN",), ({},), (0,), ("root",), "a.conllu", (1,))
    parts = {part: [sentence] for part in PARTS}
    assert find_best_layer(StaticVectors({"배를": np.ones(2)}), parts, VectorFolder(tempfile.mkdtemp()), "pos") == 0


def test_example_of_draw_layers():
    assert draw_layers("pos", [Result("pos", "강", "0", 0.9), Result("pos", "강", "1", 0.95)]).series == {
        "강": [(0.0, 90.0), (1.0, 95.0)]
    }


def test_example_of_draw_efficiency():
    assert draw_efficiency([Result("pos", "강", "10%", 0.9), Result("pos", "강", "100%", 0.95)]).series == {
        "강": [(10.0, 90.0), (100.0, 95.0)]
    }
