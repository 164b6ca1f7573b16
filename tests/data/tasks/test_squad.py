"""Questions: reading them, splitting contexts into windows, and finding answers in the original text."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks import Answer, Question, find_answers, make_windows, read_qamr, read_squad
from bert_elmo_jax.data.tasks.rows import best_windows
from bert_elmo_jax.text import WordPiece, train_sentencepiece, train_wordpiece
from bert_elmo_jax.text.wordpiece_files import WordPieceOptions

TEXT = "배는 강가에 있다. The Café is near the sea; 눈이 왔다! Besançon's river, 1,864 boats"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def uncased():
    """Return a tokenizer like the released uncased ones: lower case, no accents, decomposed Hangul."""
    letters = sorted({c for word in TEXT.lower().split() for c in word} | set("abcdefghijklmnopqrstuvwxyz"))
    pieces = [*SPECIAL, *letters, *(f"##{c}" for c in letters), "the", "cafe", "##e", "river"]
    return WordPiece(list(dict.fromkeys(pieces)), WordPieceOptions(lowercase=True, strip_accents=True))


TOKENIZERS = {
    "wordpiece": train_wordpiece([TEXT] * 9, vocab_size=120),
    "uncased": uncased(),
    "sentencepiece": train_sentencepiece([TEXT] * 9, vocab_size=90),
}


def ask(context, *answers, text="어디 where ?", number="q"):
    return Question(number, text, context, tuple(Answer(context[s:e], s) for s, e in answers), "dev.json", 1)


ODD = ["cafe\u0301", "가\u1100\u1161", "\u200b", "漢字", "😀", "\n", "\u00a0", "İ", "ß", "[SEP]"]
contexts = st.lists(st.sampled_from([*TEXT.split(), *ODD]), min_size=1, max_size=40).map(" ".join)


def test_golden_files(goldens):
    """In real files of SQuAD and KorQuAD, all answers are at their given positions."""
    for name, impossible in (("squad_v1.1", 0), ("squad_v2", 134), ("korquad_v1", 0)):
        questions = read_squad(goldens / "metrics" / f"{name}.data.json")
        raw = json.loads((goldens / "metrics" / f"{name}.data.json").read_text("utf-8"))
        assert len(questions) == sum(len(p["qas"]) for a in raw["data"] for p in a["paragraphs"])
        assert sum(not question.answers for question in questions) == impossible
        for question in questions:
            assert all(question.context[a.start : a.end] == a.text for a in question.answers)


def test_questions_know_their_lines_for_any_json_format(tmp_path, goldens):
    raw = json.loads((goldens / "metrics" / "korquad_v1.data.json").read_text("utf-8"))
    for ascii_only in (True, False):
        text = json.dumps(raw, ensure_ascii=ascii_only, indent=2)
        (tmp_path / "a.json").write_text(text, encoding="utf-8")
        lines = text.split("\n")
        for question in read_squad(tmp_path / "a.json"):
            assert lines[question.line - 1].strip() == f'"id": "{question.id}",'


def test_questions_without_answers_and_those_of_klue(tmp_path):
    def write(*qas):
        content = {"data": [{"paragraphs": [{"context": "강가", "qas": qas}]}]}
        (tmp_path / "a.json").write_text(json.dumps(content))

    write({"id": "1", "question": "어디?"})
    assert read_squad(tmp_path / "a.json", answered=False)[0].answers == ()
    answers = [{"text": "강가", "answer_start": 0}]
    write(
        {"guid": "klue-1", "question": "어디?", "is_impossible": False, "answers": answers},
        {"guid": "klue-2", "question": "왜?", "is_impossible": True, "answers": [], "plausible_answers": answers},
    )
    assert [(q.id, len(q.answers)) for q in read_squad(tmp_path / "a.json")] == [("klue-1", 1), ("klue-2", 0)]


def test_qamr_words_become_characters(tmp_path):
    (tmp_path / "sentences.tsv").write_text("s1\tDer  alte Kahn\u00a0sank .\n", encoding="utf-8")
    (tmp_path / "dev.tsv").write_text("s1\t1\t7\t0\t1\tWhat sank?\t2 3\t8:3\t9:Invalid\n")
    [question] = read_qamr(tmp_path / "dev.tsv", tmp_path / "sentences.tsv")
    # Words are separated by single spaces: the second one is empty here.
    assert question.answers == (Answer("alte Kahn\u00a0sank", 5), Answer("Kahn\u00a0sank", 10))
    assert all(question.context[a.start : a.end] == a.text for a in question.answers)


def test_a_window_by_hand():
    tokenizer = TOKENIZERS["wordpiece"]
    question = ask("The sea", (4, 7), text="where the river ?")
    [window] = make_windows([question], tokenizer, question_length=2)
    question_pieces, context = (tokenizer.encode(text, specials=False) for text in ("where the river ?", "The sea"))
    ids = [tokenizer.cls_id, *question_pieces.ids[:2], tokenizer.sep_id, *context.ids, tokenizer.sep_id]
    assert window.ids.tolist() == ids
    assert window.types.tolist() == [0] * 4 + [1] * (len(context) + 1)
    assert window.spans.tolist() == [[-1, -1]] * 4 + context.offsets.tolist() + [[-1, -1]]
    assert window.best_context.tolist() == [False] * 4 + [True] * len(context) + [False]
    assert question.context[window.spans[window.start][0] : window.spans[window.end][1]] == "sea"


def naive_windows(pieces, size, stride):
    """Split as the original does: [begin, begin + size), then `stride` further until the end is reached."""
    begins = itertools.count(0, min(size, stride))
    before_last = list(itertools.takewhile(lambda begin: begin + size < pieces, begins))
    last = before_last[-1] + min(size, stride) if before_last else 0
    return [(begin, min(begin + size, pieces)) for begin in (*before_last, last)]


def naive_owner(parts, piece):
    def context(part):
        begin, end = part
        return min(piece - begin, end - 1 - piece) + 0.01 * (end - begin)

    return max((i for i, (b, e) in enumerate(parts) if b <= piece < e), key=lambda i: (context(parts[i]), -i))


@given(st.integers(1, 200), st.integers(1, 50), st.integers(1, 60))
def test_the_window_with_the_most_context_owns_a_piece(pieces, size, stride):
    parts = naive_windows(pieces, size, stride)
    owners = best_windows(parts, pieces)
    assert owners.tolist() == [naive_owner(parts, piece) for piece in range(pieces)]


@given(contexts, st.sampled_from(sorted(TOKENIZERS)), st.integers(8, 40), st.integers(1, 40))
def test_every_piece_is_owned_by_one_window(context, kind, length, stride):
    tokenizer = TOKENIZERS[kind]
    question = ask(context)
    windows = make_windows([question], tokenizer, length=length, stride=stride, question_length=3)
    pieces = tokenizer.encode(context, specials=False)
    owned_spans = []
    for window in windows:
        assert len(window.ids) == len(window.types) == len(window.spans) <= length
        assert (window.start, window.end) == (0, 0)
        inside = window.spans[:, 0] >= 0
        assert not (window.best_context & ~inside).any()
        owned_spans += window.spans[window.best_context].tolist()
    assert sorted(owned_spans) == sorted(pieces.offsets.tolist())
    expected = naive_windows(len(pieces), length - 3 - 3, stride)
    assert len(windows) == len(expected)


@given(contexts, st.sampled_from(sorted(TOKENIZERS)), st.data())
def test_answers_survive_tokenization(context, kind, data):
    """The predicted answer is the answer itself, extended to whole pieces where necessary."""
    start = data.draw(st.integers(0, len(context) - 1))
    end = data.draw(st.integers(start + 1, len(context)))
    assume(context[start:end].strip())  # answers are given without the spaces around them
    question = ask(context, (start, end))
    windows = make_windows([question], TOKENIZERS[kind], length=400)
    [window] = windows
    if window.start == 0:  # the answer has no pieces
        return
    at = np.arange(len(window.ids))
    starts, ends = [np.where(at == window.start, 9.0, 0.0)], [np.where(at == window.end, 9.0, 0.0)]
    [prediction] = find_answers([question], windows, starts, ends, longest=400)
    assert prediction.answer.text == context[prediction.answer.start : prediction.answer.end]
    spans = window.spans[window.start : window.end + 1]
    visible = spans[spans[:, 0] < spans[:, 1]]
    # It contains every character of the answer that has a piece.
    answer = context[start:end]
    assert prediction.answer.start <= max(start, visible[:, 0].min()) + len(answer) - len(answer.lstrip())
    assert prediction.answer.end >= min(end, visible[:, 1].max()) - len(answer) + len(answer.rstrip())


@pytest.mark.parametrize("kind", sorted(TOKENIZERS))
@pytest.mark.parametrize("word", ["강가에", "Café", "눈이", "Besançon", "1,864", "near the sea"])
def test_answers_keep_case_accents_and_spaces(kind, word):
    begin = TEXT.index(word)
    question = ask(TEXT, (begin, begin + len(word)))
    windows = make_windows([question], TOKENIZERS[kind], length=60, stride=10)
    rows = [np.arange(len(window.ids)) for window in windows]
    starts = [np.where((at == window.start) & (at > 0), 9.0, 0.0) for at, window in zip(rows, windows)]
    ends = [np.where((at == window.end) & (at > 0), 9.0, 0.0) for at, window in zip(rows, windows)]
    [prediction] = find_answers([question], windows, starts, ends)
    assert (prediction.answer.text, prediction.answer.start) == (word, begin)


def naive_answers(question, windows, starts, ends, n_best, longest, threshold):
    """Return (text of the answer, null minus best) as the original does, span by span."""
    spans, null = [], math.inf
    for window, start, end in zip(windows, starts, ends):
        count = len(window.ids)
        null = min(null, start[0] + end[0])
        top = [sorted(range(count), key=lambda i, side=side: -side[i])[:n_best] for side in (start, end)]
        for i in top[0]:
            for j in top[1]:
                if j < i or j - i + 1 > longest or window.spans[i, 0] < 0 or window.spans[j, 0] < 0:
                    continue
                if not window.best_context[i]:
                    continue
                text = question.context[window.spans[i, 0] : window.spans[j, 1]]
                spans.append((start[i] + end[j], text))
    spans.sort(key=lambda span: -span[0])
    if threshold is not None and (not spans or null - spans[0][0] > threshold):
        return "", null - spans[0][0] if spans else math.inf
    return spans[0][1] if spans else "", null - spans[0][0] if spans else math.inf


@given(
    *(st.integers(0, 2**32), st.integers(8, 30), st.integers(1, 20), st.integers(1, 6)),
    st.sampled_from([None, -1.0, 0.0, 2.5]),
)
def test_answers_equal_those_of_the_original(seed, length, stride, n_best, threshold):
    random = np.random.default_rng(seed)
    questions = [ask(TEXT, number="a"), ask(" ".join(reversed(TEXT.split())), number="b")]
    windows = make_windows(questions, TOKENIZERS["wordpiece"], length=length, stride=stride, question_length=2)
    starts, ends = (random.normal(size=(len(windows), length)) for _ in range(2))
    predictions = find_answers(questions, windows, starts, ends, n_best=n_best, longest=5, null_threshold=threshold)
    for number, (question, prediction) in enumerate(zip(questions, predictions)):
        rows = [i for i, window in enumerate(windows) if window.question == number]
        text, null = naive_answers(question, [windows[i] for i in rows], starts[rows], ends[rows], n_best, 5, threshold)
        assert (prediction.id, prediction.answer.text) == (question.id, text)
        assert prediction.null_score == pytest.approx(null)
        assert len(prediction.candidates) <= n_best + 1
        assert sum(candidate.probability for candidate in prediction.candidates) == pytest.approx(1)
        texts = [candidate.text for candidate in prediction.candidates]
        assert len(set(texts)) == len(texts)
        assert ("" in texts) == (threshold is not None or texts == [""])
        for candidate in prediction.candidates:
            assert candidate.text == question.context[candidate.start : candidate.end]


def test_the_null_score_is_the_smallest_of_the_windows():
    question = ask(TEXT)
    windows = make_windows([question], TOKENIZERS["wordpiece"], length=24, stride=8, question_length=2)
    assert len(windows) > 1
    starts, ends = ([np.zeros(len(window.ids)) for window in windows] for _ in range(2))
    starts[0][0] = 9.0
    starts[1][np.flatnonzero(windows[1].best_context)[0]] = 2.0
    [prediction] = find_answers([question], windows, starts, ends, null_threshold=0.0)
    # The first window votes for no answer, but the second one finds an answer.
    assert prediction.null_score == pytest.approx(-2.0)
    assert prediction.answer.text
    [prediction] = find_answers([question], windows, starts, ends, null_threshold=-2.5)
    assert prediction.answer.text == ""


def test_a_context_without_a_piece_and_refusals():
    [window] = windows = make_windows([ask("\x01\x02")], TOKENIZERS["wordpiece"])
    scores = [np.zeros(len(window.ids))]
    for threshold in (None, 0.0):
        [prediction] = find_answers([ask("\x01\x02")], windows, scores, scores, null_threshold=threshold)
        assert (prediction.answer.text, prediction.null_score) == ("", math.inf)
    with pytest.raises(ValueError, match=r"length=7 leaves no room for the context after a question of .* pieces"):
        make_windows([ask(TEXT, text="the river is near the sea")], TOKENIZERS["wordpiece"], length=7)
    [window] = windows = make_windows([ask(TEXT)], TOKENIZERS["wordpiece"])
    scores = [np.zeros(len(window.ids))]
    with pytest.raises(ValueError, match="the end scores of question 'q' contain NaN"):
        find_answers([ask(TEXT)], windows, scores, [scores[0] * np.nan])


def test_rows_of_the_hub_say_which_questions_have_no_answer(tmp_path):
    """The hub's KLUE has plausible answers among the others, and `guid`."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    answers = [{"text": ["강가"], "answer_start": [3]}] * 2
    columns = {"guid": ["a", "b"], "question": ["어디?"] * 2, "context": ["그는 강가에 있다."] * 2, "answers": answers,
               "is_impossible": [False, True]}  # fmt: skip
    parquet.write_table(pyarrow.table(columns), tmp_path / "klue.parquet")
    questions = read_squad(tmp_path / "klue.parquet")
    assert [(q.id, [answer.text for answer in q.answers]) for q in questions] == [("a", ["강가"]), ("b", [])]
    assert [q.id for q in read_squad(tmp_path / "klue.parquet", answered=False)] == ["a", "b"]
