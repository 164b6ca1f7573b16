"""Examples as rows: truncation as in the papers, places of words, positions of answers."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks import Answer, ChoiceExample, Question, TaggedSentence, TextExample
from bert_elmo_jax.data.tasks.rows import make_rows, make_windows, pair_ids, tag_places
from bert_elmo_jax.data.tasks.task import Task, task_named
from bert_elmo_jax.text import WordPiece, load_tokenizer, train_wordpiece
from bert_elmo_jax.text.piece_batch import keep_of_pair

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", "##x", "##y", "서울", "##역", "배"]
TOKENIZER = WordPiece(PIECES)


def decoded(row, part=0):
    return [PIECES[i] for i in row.ids[part]]


def popped(first, second, limit):
    """Truncate with the loop of the original."""
    a, b = first, second
    while a + b > limit:
        if a > b:
            a -= 1
        else:
            b -= 1
    return a, b


@given(st.integers(0, 30), st.integers(0, 30), st.integers(2, 40))
def test_pairs_lose_pieces_of_the_longer_text(first, second, limit):
    assert keep_of_pair(first, second, limit) == popped(first, second, limit)


def test_texts_and_labels():
    task = dataclasses.replace(task_named("sst2", max_length=8), labels=("0", "1"))
    long, empty = (TextExample(text, None, "1", None, "a.tsv", 2) for text in ("a b c d e f g h", ""))
    rows = make_rows(task, [long, empty], TOKENIZER)
    assert decoded(rows[0]) == ["[CLS]", *"abcdef", "[SEP]"]
    assert decoded(rows[1]) == ["[CLS]", "[SEP]"]
    assert [row.targets for row in rows] == [{"labels": 1, "weights": 1.0}] * 2
    assert make_rows(task, [long], TOKENIZER, labelled=False)[0].targets == {}


def test_choices():
    example = ChoiceExample("a b", ("c", "d e", "f", "서울역"), 3, None, "a.csv", 2)
    [row] = make_rows(task_named("swag", max_length=8), [example], TOKENIZER)
    assert decoded(row, 0) == ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"]
    assert decoded(row, 3) == ["[CLS]", "a", "b", "[SEP]", "서울", "##역", "[SEP]"]
    assert row.types[3].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert row.targets["labels"] == 3


def tagged(*sentences, document=0):
    split = [tuple(words.split(" ")) for words in sentences]
    return [TaggedSentence(words, ("O",) * len(words), "a", (1,) * len(words), document) for words in split]


def test_the_first_piece_of_a_word_is_scored():
    task = Task("ud_upos", "tags", labels=("N", "O", "V"), max_length=16)
    sentence = TaggedSentence(("axy", "서울역", "배"), ("V", "N", "O"), "a", (1, 2, 3), 0)
    [row] = make_rows(task, [sentence], TOKENIZER)
    assert decoded(row) == ["[CLS]", "a", "##x", "##y", "서울", "##역", "배", "[SEP]"]
    assert row.targets["weights"].tolist() == [0, 1, 0, 0, 1, 0, 1, 0]
    assert row.targets["labels"][[1, 4, 6]].tolist() == [2, 0, 1]


def test_words_without_pieces_are_tagged():
    [(_, ids, words)] = tag_places(tagged("a \x01 b"), TOKENIZER, 16)
    assert [PIECES[i] for i in ids] == ["[CLS]", "a", "[UNK]", "b", "[SEP]"]
    assert words.tolist() == [[0, 1], [1, 2], [2, 3]]


@given(
    st.lists(st.lists(st.sampled_from(["a", "bxy", "서울역", "cx"]), min_size=1, max_size=12), min_size=1, max_size=4),
    st.integers(8, 20),
    st.booleans(),
)
def test_every_word_has_one_place_in_rows_that_fit(sentences, length, context):
    examples = tagged(*(" ".join(words) for words in sentences))
    pieces_of_words = {}
    for number, ids, words in tag_places(examples, TOKENIZER, length, context=context):
        assert len(ids) <= length
        assert (ids[0], ids[-1]) == (TOKENIZER.cls_id, TOKENIZER.sep_id)
        for word, place in words.tolist():
            assert (number, word) not in pieces_of_words
            pieces_of_words[number, word] = PIECES[ids[place]]
    assert pieces_of_words == {
        (n, w): word[:2] if word == "서울역" else word[0]
        for n, words in enumerate(sentences)
        for w, word in enumerate(words)
    }


def test_context_stays_in_its_document():
    sentences = tagged("a b", "c d") + tagged("e f", document=1)
    rows = [[PIECES[i] for i in ids] for _, ids, _ in tag_places(sentences, TOKENIZER, 16, context=True)]
    assert rows == [["[CLS]", *"abcd", "[SEP]"]] * 2 + [["[CLS]", *"ef", "[SEP]"]]


def test_characters_as_words_and_rows_with_the_context_of_others():
    text = "서울역 배"
    sentence = TaggedSentence(tuple(text), ("B-LC", "I-LC", "I-LC", "O", "O"), "a.tsv", (1, 2, 3, 4, 5), 0)
    task = dataclasses.replace(task_named("klue_ner"), labels=("B-LC", "I-LC", "O"), max_length=16)
    [row] = make_rows(task, [sentence], TOKENIZER)
    assert decoded(row) == ["[CLS]", "서울", "##역", "배", "[SEP]"]
    assert row.words.tolist() == [[0, 1], [2, 2], [4, 3]]
    assert row.targets["labels"][:4].tolist() == [0, 0, 1, 2]
    tokenizer = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "서울", "##역", "배"])
    sentences = tagged("서울역 배", "배 배")
    rows = [(ids.tolist(), words.tolist()) for _, ids, words in tag_places(sentences, tokenizer, 8)]
    assert rows == [([2, 5, 6, 7, 3], [[0, 1], [1, 3]]), ([2, 7, 7, 3], [[0, 1], [1, 2]])]
    rows = [ids.tolist() for _, ids, _ in tag_places(sentences, tokenizer, 6, context=True)]
    assert rows == [[2, 5, 6, 7, 7, 3], [2, 6, 7, 7, 7, 3]]


def test_a_last_space_that_is_a_piece_has_no_place(goldens):
    sentence = TaggedSentence(tuple("배 "), None, "a.tsv", (1, 2), 0)
    tokenizer = load_tokenizer(goldens / "roberta_tiny")
    [(_, ids, words)] = tag_places([sentence], tokenizer, 16, characters=True)
    assert tokenizer.tokens[ids[-2]] == "Ġ" and words[:, 0].tolist() == [0]


def test_a_piece_that_includes_a_space_is_the_first_of_the_word_behind_it(goldens):
    sentence = TaggedSentence(tuple("a bank"), None, "a.tsv", (1,) * 6, 0)
    for name in ("gpt2_tiny", "roberta_tiny", "bert_tiny"):
        [(_, _, words)] = tag_places([sentence], load_tokenizer(goldens / name), 16, characters=True)
        assert 2 in words[:, 0], name


def test_answers_point_at_their_pieces():
    context = "a b c 서울역 d e f g h a b c"
    question = Question("q", "where", context, (Answer("서울", 6),), "a.json", 1)
    tokenizer = train_wordpiece([f"where {context}"] * 9, vocab_size=60)
    rows = make_rows(task_named("squad", max_length=12, stride=4), [question], tokenizer)
    starts = [row.targets["starts"] for row in rows]
    assert len(rows) > 1 and any(starts) and not all(starts)
    for row, start in zip(rows, starts):
        if start:
            assert "".join(tokenizer.decode(row.ids[0][start : row.targets["ends"] + 1])).startswith("서울")


def test_rows_follow_the_frame_of_the_tokenizer(goldens):
    tokenizer = load_tokenizer(goldens / "tokenizers" / "roberta_tiny")
    full = tokenizer.encode("the ship", "강을").ids.tolist()
    for length in (9, 40):
        ids, types, _ = pair_ids("the ship", "강을", tokenizer, length)
        assert len(ids) == min(length, len(full)) and not types.any()
        assert (ids == 2).sum() == 3 and ids[0] == 0 and ids[-1] == 2
    assert ids.tolist() == full
    assert pair_ids("the ship", None, tokenizer, 40)[0].tolist() == tokenizer.encode("the ship").ids.tolist()
    question = Question("q", "where ?", "the river, 강을", (), "dev.json", 1)
    [window] = make_windows([question], tokenizer)
    assert window.ids.tolist() == tokenizer.encode("where ?", "the river, 강을").ids.tolist()
    inside = window.spans[:, 0] >= 0
    assert window.spans[inside].tolist() == tokenizer.encode("the river, 강을", specials=False).offsets.tolist()
    assert not window.types.any()
