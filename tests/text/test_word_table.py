"""Tables of word vectors: found in a model's folder, saved with a run, read lazily."""

import unicodedata

import numpy as np
import pytest

from bert_elmo_jax.text import WordTable


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("배 0.5 1\nNew York 2 3\nriver 4 5\n", encoding="utf-8")
    return path


def test_words_are_looked_up_as_they_are_and_saved(file, tmp_path):
    table = WordTable(file)
    assert table.width == 2
    assert table.of(["river", "River", "New York", "배"]).tolist() == [[4, 5], [0, 0], [2, 3], [0.5, 1]]
    assert table.of([]).shape == (0, 2)
    table.save(tmp_path / "saved")
    again = WordTable.find(tmp_path / "saved", 2)
    assert again.fingerprint == table.fingerprint and again.width == 2
    assert (again.of(["배", "x"]) == table.of(["배", "x"])).all()
    assert isinstance(again.table.vectors, np.memmap)


def test_the_fingerprint_names_words_and_numbers_and_nothing_is_parsed_before_the_first_use(file, tmp_path):
    names = {WordTable(file).fingerprint}
    for text in ("배 0.5 1\nNew York 2 3\nriver 4 6\n", "배 0.5 1\nNew York 2 3\nrivers 4 5\n"):
        (tmp_path / "other.vec").write_text(text, encoding="utf-8")
        names.add(WordTable(tmp_path / "other.vec").fingerprint)
    assert len(names) == 3
    file.write_text("a 1 2\nb 3 x\nc 5 6\n")
    table = WordTable(file)
    with pytest.raises(ValueError, match=r"glove.txt:2: 'x' behind 'b', expected a number"):
        table.of(["a"])


def test_which_files_are_found(file, tmp_path):
    assert WordTable.find(tmp_path, 2).source == WordTable.find(tmp_path, 3).source == file
    (tmp_path / "vectors.txt").write_text("a 1 2 3\n")
    assert WordTable.find(tmp_path, 3).source.name == "vectors.txt"  # the one whose width fits
    for width, which in ((4, "none"), (3, "2")):
        with pytest.raises(
            ValueError, match=rf"files of word vectors, {which} of them with vectors of {width} numbers"
        ):
            WordTable.find(tmp_path, width)
        (tmp_path / "other.vec").write_text("a 1 2 3\n")
    (tmp_path / "empty").mkdir()
    assert WordTable.find(tmp_path / "empty", 2) is None


def test_a_damaged_folder(file, tmp_path):
    WordTable(file).save(tmp_path / "saved")
    (tmp_path / "saved" / "word_vectors.json").write_text('{"words": ["a"]}')
    with pytest.raises(ValueError, match="has 3 vectors for 1 words; copy it again"):
        WordTable(tmp_path / "saved").of(["a"])
    (tmp_path / "saved" / "word_vectors.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"it lacks word_vectors.json or word_vectors.npy"):
        WordTable(tmp_path / "saved")


def test_decomposed_words_are_found(tmp_path):
    decomposed = unicodedata.normalize("NFD", "강가")
    for n, stored in enumerate(("강가", decomposed)):
        (tmp_path / f"{n}.txt").write_text(f"{stored} 0.5 1\nriver 2 3\n", encoding="utf-8")
        vectors = WordTable(tmp_path / f"{n}.txt").of(["강가", decomposed, "바다"])
        assert vectors.tolist() == [[0.5, 1.0], [0.5, 1.0], [0.0, 0.0]]
