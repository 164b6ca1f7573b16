"""Growing texts: only final letters are shown, and the parts add up to the whole text."""

import itertools

import pytest

from bert_elmo_jax.text import train_byte_bpe, train_wordpiece
from bert_elmo_jax.text.growing_text import GrowingText, continuation, count_settled, find_stop

TEXTS = ["강가의 은행에 갔다", "naïve café 🎉🇰🇷 done", "\u1112\u1161\u11ab\u1100\u116e\u11a8 한국", "a\ufffdb", ""]


def decode_letters(ids):
    return "".join(map(chr, ids))


def decode_bytes(ids):
    return bytes(ids).decode(errors="replace")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_no_character_is_cut(text, size):
    growing, data, parts = GrowingText(decode_bytes), list(text.encode()), []
    for first in range(0, len(data), size):
        parts.append(growing.add(data[first : first + size]))
        assert text.startswith("".join(parts))
    parts.append(growing.finish())
    assert "".join(parts) == text
    if text != TEXTS[3]:
        assert not any("\ufffd" in part for part in parts)


def test_syllables_and_bytes_that_are_no_character():
    growing, shown = GrowingText(decode_letters), []
    for letter in "\u1112\u1161\u11ab\u1100\u116e.":  # 한구.
        shown.append(growing.add([ord(letter)]))
    assert shown == ["", "", "\u1112\u1161\u11ab", "", "", "\u1100\u116e."], "a syllable in letters is shown whole"
    growing = GrowingText(decode_bytes)
    assert [growing.add([byte]) for byte in (65, 0xEA, 0xB0)] == ["A", "", ""]
    assert growing.finish() == "\ufffd" and growing.finish() == ""


def test_a_stop_text_is_the_one_that_is_complete_first():
    text, stops = "one two thr three two!", ["three", "two!", "hree t"]
    for size in (1, 2, 3, 7):
        growing = GrowingText(decode_letters, stops)
        parts = [
            growing.add([ord(letter) for letter in text[first : first + size]]) for first in range(0, len(text), size)
        ]
        assert "".join(parts) + growing.finish() == "one two thr " and growing.stopped
        assert growing.add([65]) == growing.finish() == ""
    growing = GrowingText(decode_letters, ["END"])  # letters that could begin a stop text wait
    assert [growing.add([ord(letter)]) for letter in "aENxEN"] == ["a", "", "", "ENx", "", ""]
    assert growing.finish() == "EN" and not growing.stopped


def test_places_of_stop_texts():
    """Compare with a search that tries every beginning of a text."""
    for letters in itertools.product("ab", repeat=6):
        text, stops = "".join(letters), ["abb", "ba", "bbb"]
        ends = [n for n in range(7) if any(text[:n].endswith(stop) for stop in stops)]
        place = find_stop(text, stops)
        if not ends:
            assert place is None
        else:
            longest = max((stop for stop in stops if text[: ends[0]].endswith(stop)), key=len)
            assert place == ends[0] - len(longest)
            assert count_settled(text[: ends[0] - 1], stops) <= place


@pytest.mark.parametrize("train", [train_byte_bpe, train_wordpiece])
def test_a_continuation_joins_its_prompt(train):
    tokenizer = train(["배를 타고 강을 건넜다", "the river was muddy"] * 9, vocab_size=300)
    text = "the river 강을 건넜다"
    ids = tokenizer.encode(text, specials=False).ids.tolist()
    output = tokenizer.decode(ids)
    for cut in range(len(ids) + 1):
        before = tokenizer.decode(ids[:cut]).rstrip("\ufffd")
        assert before + continuation(tokenizer, ids[:cut])(ids[cut:]) == output
        # A long prompt is not decoded as a whole.
        assert continuation(tokenizer, [*ids, *ids[:cut]])(ids[cut:]) == output[len(before) :] if cut else f" {output}"
    assert continuation(tokenizer, [10**6, -1])([10**6, *ids, 10**6]) == output
