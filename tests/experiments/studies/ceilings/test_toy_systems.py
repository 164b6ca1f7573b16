"""Small systems of the toy world compared with the ceilings of readers who see as much."""

import numpy as np
import pytest
from absl import flags

from bert_elmo_jax.inference.word_layers import StaticVectors
from bert_elmo_jax.toyworld import ToyWorld
from experiments.studies.ceilings import toy_systems

WORLD = ToyWorld("en", topics=4, words=4)


def test_a_window_has_the_vectors_of_the_neighbours_and_zeros_beyond_the_sentence():
    places = toy_systems.draw_places(WORLD, "topics", 30)["train"]
    words = WORLD.network.words
    encoder = StaticVectors({word: [n + 1.0, -1.0] for n, word in enumerate(words)})
    vectors = toy_systems.read_vectors(encoder, places, window=1)
    assert vectors.shape == (30, 6)
    for place, vector in zip(places, vectors):
        padded = [0, *(words.index(word) + 1 for word in place.sentence.words), 0]
        np.testing.assert_array_equal(vector[::2], padded[place.number : place.number + 3])


def test_parts_have_documents_of_their_own():
    parts = toy_systems.draw_places(WORLD, "senses", 80)
    assert {part: len(places) for part, places in parts.items()} == {"train": 80, "dev": 20, "test": 40}
    assert all("." in place.label for places in parts.values() for place in places)


@pytest.mark.long
def test_ceilings_alone_need_no_training(program, capsys, tmp_path):
    benchmark = program("benchmarks.ceilings")
    for name, value in {"only_ceilings": True, "topics": 2, "words": 2}.items():
        setattr(flags.FLAGS, name, value)
    benchmark.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("senses")] == [["senses", "0.512"]]
    flags.FLAGS.output = str(tmp_path)
    with pytest.raises(ValueError, match="leave out --output"):
        benchmark.main()
    flags.FLAGS.only_ceilings = False
    with pytest.raises(ValueError, match="--workdir"):
        benchmark.main()
    flags.FLAGS.workdir = str(tmp_path)
    with pytest.raises(ValueError, match="need --only_ceilings"):
        benchmark.main()


@pytest.mark.long
def test_no_system_is_better_than_its_ceiling(tmp_path):
    findings = toy_systems.study_systems(tmp_path, WORLD, share=0.02, places=800)
    assert list(findings.figures) == ["ceilings_senses", "ceilings_topics"]
    for head, *rows in findings.tables.values():
        assert [row[0] for row in rows] == list(toy_systems.SYSTEMS)
        for row in rows:
            score, ceiling = float(row[head.index("score")].split()[0]), float(row[head.index("on all sentences")])
            assert 0.1 < score <= ceiling + 0.1
