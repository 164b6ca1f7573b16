"""Tests of reading word vectors: three formats, words with spaces, broken files."""

import re
import subprocess
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.text import read_vectors, width_of

GLOVE = "the 0.1 -0.2 3e-2\n강 1 2 3\n. . . 4 5 6\nat name@domain.com 7 8 9\n"
FORMATS = {
    "glove": GLOVE,
    "word2vec": "4 3\n" + GLOVE.replace("\n", " \n"),
    "windows": GLOVE.replace("\n", "\r\n"),
    "no last line end": GLOVE.rstrip("\n"),
    "blank lines": GLOVE.replace("\n", "\n\n"),
}


def write(folder, text):
    file = folder / "vectors.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name, tmp_path):
    file = write(tmp_path, FORMATS[name])
    loaded = read_vectors(file, ["강", ". . .", "the", "at name@domain.com", "배"])
    assert loaded.words == ("the", "강", ". . .", "at name@domain.com")
    np.testing.assert_allclose(loaded.vectors, [[0.1, -0.2, 0.03], [1, 2, 3], [4, 5, 6], [7, 8, 9]], rtol=1e-6)
    assert (loaded.in_file, loaded.repeated, width_of(file)) == (4, 0, 3)
    assert read_vectors(file, None).words == loaded.words
    assert read_vectors(file, None, most=2).words == ("the", "강")


def test_only_requested_words_are_parsed_and_the_first_vector_of_a_word_is_kept(tmp_path):
    """Other lines are counted and must be complete, but their numbers are not parsed."""
    file = write(tmp_path, "a 1 2\nb x y\nc 3 nan\nd 5 6\n")
    loaded = read_vectors(file, ["d", "a"])
    assert (loaded.words, loaded.in_file) == (("a", "d"), 4)
    assert read_vectors(file, []).vectors.shape == (0, 2)
    loaded = read_vectors(write(tmp_path, "강 1 2\n배 3 4\n강 5 6\n강 7 8\n"), ["강"])
    assert (loaded.vectors.tolist(), loaded.repeated) == ([[1.0, 2.0]], 2)


def test_a_decomposed_word_of_a_file_is_found_composed(tmp_path):
    lines = f"{normalize('NFD', '한_강')} 1 2\n배 3 4\n".encode() + b"\xea\xb0 5 6\n"
    loaded = read_vectors(write(tmp_path, lines), ["한_강", "배", "\ufffd"])
    assert (loaded.words, loaded.vectors.tolist()) == (("한_강", "배"), [[1.0, 2.0], [3.0, 4.0]])


def test_numbers_odd_characters_and_first_lines_that_look_like_counts(tmp_path):
    for text, words in (
        ("12 1 2\n3.5 1 2\n1 3/4 5 6\n\u00a0 7 8\n배\u3000를 9 10\n", ("12", "3.5", "1 3/4", "\u00a0", "배\u3000를")),
        ("2 1\nthe 5\n강 6\n", ("the", "강")),
        ("1999 7\n강 6\n배 6\n", ("1999", "강", "배")),
    ):
        assert read_vectors(write(tmp_path, text), None).words == words


WRONG = [  # a file and the message
    ("", "is empty"),
    ("\n\n", "is empty"),
    ("강\n배\n", ":1: '강', expected a word and its numbers"),
    ("강 1 2\n배 3 4\n눈 5\n", ":3: 1 number behind '눈', expected 2 as in the other lines; the file may be cut"),
    ("강 1 2\n배 3 4\n눈\n", ":3: 0 numbers behind '눈', expected 2"),
    ("2 3\n강\t1 2 3\n배\t4 5 6\n", ":2: a tab between a word and its numbers; replace the tabs with spaces"),
    ("강\t1.0 2.0\n배\t3.0 4.0\n", ":1: a tab between a word and its numbers"),
    ("강 1.0 2.0\n배 3.0 4.0\n눈 5.0 6.0 7.0\n", ":3: more than 2 numbers behind '눈', expected 2"),
    ("강 1 2\n배 3 vier\n", ":2: 'vier' behind '배', expected a number"),
    ("강 1 2\n배 3 nan\n", ":2: NaN or infinity in the vector of '배'"),
    ("강 1 2\n배 3 -inf\n", ":2: NaN or infinity in the vector of '배'"),
    ("강 1 2\n배 3 1e39\n", ":2: NaN or infinity in the vector of '배'"),
    ("3 2\n강 1 2\n배 3 4\n", ":1: its first line counts 3 vectors, 2 follow; the file may be cut"),
    (b"PK\x03\x04rest", "is packed; unpack it with unzip"),
    (b"\x1f\x8brest", "is packed; unpack it with gunzip"),
    (b"\x00\x01" * (1 << 20), ":1: a line of more than"),
    (b"\xff\xfe 1 2\n", ":1: .* is not UTF-8"),
]


def test_errors_name_the_line(tmp_path):
    for text, message in WRONG:
        file = write(tmp_path, text)
        with pytest.raises(ValueError, match=message) as caught:
            read_vectors(file, None)
        assert str(caught.value).startswith(str(file))
    with pytest.raises(FileNotFoundError, match="there is no such file of vectors"):
        read_vectors(tmp_path / "none.txt", [])
    with pytest.raises(ValueError, match="is a folder"):
        read_vectors(tmp_path, [])


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6).filter(
    lambda word: (
        word.strip() and word == word.strip(" ") and "\u0085" not in word and not re.search(r" \d*\.\d+$", word)
    )
)


@given(st.dictionaries(words, st.lists(st.floats(-99, 99, width=32), min_size=3, max_size=3), min_size=3, max_size=8))
def test_write_and_read(tmp_path_factory, table):
    lines = [f"{word} {' '.join(map(repr, numbers))}\n" for word, numbers in table.items()]
    text = f"{len(table)} 3\n" + "".join(lines)
    loaded = read_vectors(write(tmp_path_factory.mktemp("v"), text), table)
    assert dict(zip(loaded.words, loaded.vectors.tolist())) == {w: list(map(float, row)) for w, row in table.items()}


def test_released_vectors(shared, tmp_path):
    """A file of GloVe."""
    script = shared / "data" / "unpack"
    if not script.is_file():
        pytest.skip("needs the GloVe vectors of shared/data")
    subprocess.run([str(script), "-o", str(tmp_path), "glove_50d_5k"], check=True, capture_output=True)
    [file] = [path for path in tmp_path.rglob("*.txt") if "glove" in path.name.lower() and path.stat().st_size > 10**6]
    loaded = read_vectors(file, ["the", "river", "no-such-word"])
    assert (loaded.words, loaded.vectors.shape) == (("the", "river"), (2, 50)) and loaded.in_file > 4000
