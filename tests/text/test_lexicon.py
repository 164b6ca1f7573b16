"""Tests of `Lexicon` and its six ways to treat unknown words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.text import Lexicon, WordVectors
from bert_elmo_jax.text.lexicon import CLASSES, NEW, OFTEN, places_of, random_vector, word_class

COUNTS = {"the": 9, "강": OFTEN, "배": OFTEN - 1, "Walking": 1}
PRETRAINED = WordVectors(("walking", "배"), np.array([[1, 2, 3], [4, 5, 6]], np.float32), 2, 0)
LATER = WordVectors(("walking", "배", "눈"), np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32), 3, 0)
WAYS = ("unk", "classes", "characters", "vectors", "random", "vectors_or_random")


def build(unknown, **options):
    return Lexicon.build(COUNTS, unknown, 3, later=LATER if unknown.startswith("vectors") else None, **options)


def test_words_seen_five_times_have_a_row():
    lexicon = build("unk")
    assert lexicon.words == ("the", "강")
    assert build("unk", min_count=1).words == ("the", "강", "배", "Walking")
    assert lexicon.ids(["the", "강", "배", "Walking", "눈"]).tolist() == [1, 2, 0, 0, 0]


def test_characters_of_all_words_beside_any_way(tmp_path):
    for way in WAYS:
        plain, reads = build(way), build(way, characters=True)
        assert (plain.characters, reads.characters) == (way == "characters", True)
        assert (plain.fingerprint == reads.fingerprint) == (way == "characters")
        assert plain.ids(["the", "배", "눈"]).tolist() == reads.ids(["the", "배", "눈"]).tolist()
        for lexicon in (plain, reads):
            lexicon.save(tmp_path / way)
            again = Lexicon.load(tmp_path / way)
            assert (again.characters, again.fingerprint) == (lexicon.characters, lexicon.fingerprint)


def test_words_with_a_pretrained_vector_have_a_row():
    lexicon = build("unk", pretrained=PRETRAINED)
    assert lexicon.words == ("the", "강", "배", "Walking")
    _, table = lexicon.table(PRETRAINED)
    assert table[2:].tolist() == [[4, 5, 6], [1, 2, 3]]  # the second in lower case
    assert build("unk", pretrained=PRETRAINED, tuned=False).words == ("배", "Walking")
    vectors = WordVectors(("배", "river"), np.ones((2, 2), np.float32), 2, 0)
    assert places_of(["River", "배", "눈"], vectors).tolist() == [1, 0, -1]


def test_unknown_words_map_to_classes():
    lexicon = build("classes")
    ids = lexicon.ids(["1,204", "3월", "강에서", "Zürich", "the"])
    assert [lexicon.specials[n] for n in ids[:4]] == ["<number>", "<number-and-letters>", "<~에서>", "<capitalised>"]
    assert ids[4] == len(lexicon.specials)
    assert len(lexicon) == 1 + len(CLASSES) + 2


@given(st.text(min_size=1))
def test_every_word_has_a_class(word):
    assert word_class(word) in CLASSES


WORD_CLASSES = {
    "number": ["-3.5%", "12:30", "1,204"],
    "number-and-letters": ["2nd", "COVID-19", "3월"],
    "capitals": ["IBM", "NATO"],
    "capitalised": ["I", "Merkel"],
    "capitalised-hyphen": ["Anglo-Saxon"],
    "hyphen": ["mother-in-law", "well-known"],
    "-ly": ["quickly"],
    "-tion": ["station"],
    "-ing": ["walking"],
    "other": ["sly", "привет"],
    "~을": ["여행을"],
    "~습니다": ["갔습니다", "갔습니다."],
    "~에서": ["서울(에서", "강가에서"],
    "~다": ["예뻤다"],
    "~를": ["커피를"],
    "Hangul": ["을", "ㅋㅋㅋ", "배"],
    "Hangul-and-others": ["KBS는", "iPhone은"],
    "ideographs": ["北京", "漢字"],
    "marks": ["—", "\u200b", "..."],
}


def test_word_class():
    for name, words in WORD_CLASSES.items():
        assert {word_class(word) for word in words} == {name}


def test_later_words_use_kept_vectors():
    lexicon = build("vectors", pretrained=PRETRAINED)
    words = ["눈", "배", "nowhere", "WALKING"]
    assert lexicon.ids(words).tolist() == [NEW, 3, 0, NEW]
    assert lexicon.vectors(words).tolist() == [[7, 8, 9], [0, 0, 0], [0, 0, 0], [1, 2, 3]]
    chained, drawn = build("vectors_or_random", pretrained=PRETRAINED), build("random", pretrained=PRETRAINED)
    assert chained.ids(words).tolist() == [NEW, 3, NEW, NEW]
    expected = [[7, 8, 9], [0, 0, 0], drawn.vectors(["nowhere"])[0].tolist(), [1, 2, 3]]
    assert chained.vectors(words).tolist() == expected


def test_random_vectors_depend_on_word_and_seed():
    """The same word has the same vector in every text and process."""
    lexicon = build("random", pretrained=PRETRAINED)
    question, context = lexicon.vectors(["누리호", "the"]), lexicon.vectors(["눈", "누리호"])
    assert (question[0] == context[1]).all()
    assert not (context[0] == context[1]).any()
    assert not question[1].any()
    assert (lexicon.vectors(["누리호"]) == build("random", pretrained=PRETRAINED).vectors(["누리호"])).all()
    assert not (lexicon.vectors(["누리호"]) == build("random", pretrained=PRETRAINED, seed=1).vectors(["누리호"])).any()
    many = lexicon.vectors([f"새말{n}" for n in range(3000)])
    assert many.std() == pytest.approx(PRETRAINED.vectors.std(), rel=0.05)  # the deviation of the pretrained vectors
    assert abs(many.mean()) < 0.1
    assert (random_vector("강", 0, 3) == random_vector("강", 0, 3)).all()


@pytest.mark.parametrize("unknown", WAYS)
def test_save_and_load(unknown, tmp_path):
    lexicon = build(unknown, pretrained=PRETRAINED, seed=3)
    lexicon.save(tmp_path)
    again = Lexicon.load(tmp_path)
    words = ["the", "강", "눈", "처음", "a\nb", "Walking", "1999"]
    assert again.ids(words).tolist() == lexicon.ids(words).tolist()
    np.testing.assert_array_equal(again.vectors(words), lexicon.vectors(words))
    assert again.fingerprint == lexicon.fingerprint
    for mine, theirs in zip(again.table(), lexicon.table()):
        np.testing.assert_array_equal(mine, theirs)


def test_fingerprints_differ():
    fingerprints = {build(unknown, seed=seed).fingerprint for unknown in WAYS for seed in (0, 1)}
    assert len(fingerprints) == 2 * len(WAYS)


def test_broken_lexicons_raise(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no lexicon"):
        Lexicon.load(tmp_path)
    build("vectors").save(tmp_path)
    np.save(tmp_path / "vectors.npy", LATER.vectors[:2])
    with pytest.raises(ValueError, match="an incomplete lexicon"):
        Lexicon.load(tmp_path)
    (tmp_path / "vectors.npy").unlink()
    with pytest.raises(ValueError, match="an incomplete lexicon"):
        Lexicon.load(tmp_path)


@pytest.mark.usefixtures("as_users_run")
def test_invalid_arguments_raise_and_no_words_are_fine():
    with pytest.raises(ValueError, match=r"unknown='none' is not known; expected one of unk, classes"):
        Lexicon([], "none", 3)
    lexicon = Lexicon.build({}, "unk", 3)
    assert (len(lexicon), lexicon.ids(["강"]).tolist()) == (1, [0])
    assert [part.shape for part in lexicon.table()] == [(1, 3), (0, 3)]
