import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.corpora.sentences import split_sentences

CASES = [
    ("Wait —. Then we go.", ["Wait —.", "Then we go."]),
    ("", []),
    ("One. Two.", ["One.", "Two."]),
    (
        "Dr. Watson, of St. Bart's, met Mrs. Hudson. She spoke.",
        ["Dr. Watson, of St. Bart's, met Mrs. Hudson.", "She spoke."],
    ),
    ("“Go!” she said. “Now?” He went.", ["“Go!” she said.", "“Now?”", "He went."]),
    ("See No. 5 at once. No. I will not.", ["See No. 5 at once.", "No.", "I will not."]),
    ("J. R. R. Jones came. It was I. Then he left.", ["J. R. R. Jones came.", "It was I.", "Then he left."]),
    ("1. First point. 2. Second point.", ["1. First point.", "2. Second point."]),
    ("It cost 3.50 in the U.S. dollar. Cheap!", ["It cost 3.50 in the U.S. dollar.", "Cheap!"]),
    ("He waited... and then . . . nothing.", ["He waited... and then . . . nothing."]),
    ("정말 재밌다. 또 보고 싶어요! 왜 이래?", ["정말 재밌다.", "또 보고 싶어요!", "왜 이래?"]),
    ("정말 재밌다.또 보고 싶어요!왜 이래?", ["정말 재밌다.", "또 보고 싶어요!", "왜 이래?"]),
    ("김.이.박 세 사람", ["김.이.박 세 사람"]),
    ("음... 글쎄요... 별로네요", ["음... 글쎄요...", "별로네요"]),
    ("これは本です。それはペンです。", ["これは本です。", "それはペンです。"]),
    ("끝났다.” 그가 말했다.", ["끝났다.”", "그가 말했다."]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_sentence_ends(text, expected):
    assert split_sentences(text) == expected


def test_long_line_of_dots_is_fast():
    import time

    start = time.perf_counter()
    assert len(split_sentences("a" + "." * 300_000 + "x" + "!?" * 100_000)) == 1
    assert time.perf_counter() - start < 2


@given(st.text(alphabet=st.sampled_from("aZ가다 .!?…。\"”)\n\t1I'"), max_size=60))
def test_only_white_space_is_dropped(text):
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(s == s.strip() and s for s in sentences)
