"""Questions with spans of a context as answers: SQuAD 1.1 and 2.0, KorQuAD 1.0, KLUE's reading comprehension, QAMR."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bert_elmo_jax.data.arrow_files import is_arrow, open_arrow
from bert_elmo_jax.data.tasks.examples import Answer, Question
from bert_elmo_jax.data.tasks.files import BadRow, check_characters, lines_of, parse_json, read_lines, read_text
from bert_elmo_jax.data.tasks.tables import find_format, read_arrow_records

_SHAPE = '{"data": [{"paragraphs": [{"context": …, "qas": [{"id": …, "question": …, "answers": […]}]}]}]}'
_QAMR_COLUMNS = 9
Bad = Callable[[str, str], BadRow]  # makes the error of a line from the problem and its remedy


def read_squad(path: str | Path, *, answered: bool = True, encoding: str = "utf-8") -> list[Question]:
    r"""Read a file in SQuAD's layout, and check that every answer is the given span of its context.

    Only questions with `is_impossible` (version 2.0) may have no answer. `answered=False` ignores answers.

    >>> import json, tempfile
    >>> qas = [{"id": "1", "question": "어디 있나 ?", "answers": [{"text": "강가", "answer_start": 3}]}]
    >>> file = Path(tempfile.mkdtemp()) / "train.json"
    >>> _ = file.write_text(json.dumps({"data": [{"paragraphs": [{"context": "배는 강가에 있다", "qas": qas}]}]}))
    >>> read_squad(file)[0].answers
    (Answer(text='강가', start=3),)
    """
    rows = is_arrow(path)
    text = "" if rows else read_text(path, encoding)
    if (not rows and not text.lstrip().startswith(("{", "["))) or find_format(path) == "jsonl":
        problem = "questions are read from JSON in the layout of SQuAD, or from Parquet, not from lines or a table"
        raise BadRow(path, 1, problem, f"write {_SHAPE}")
    parsed = list(_question_rows(path, answered) if rows else _questions(parse_json(text, path), path, text))
    if not parsed:
        raise BadRow(path, 1, "no question in the file, expected at least one", "check that it is complete")
    questions: list[Question] = []
    lines: dict[str, int] = {}
    key = "guid" if all("guid" in qa and "id" not in qa for _, _, qa in parsed) else "id"  # KLUE uses guid
    places = range(1, len(parsed) + 1) if rows else lines_of(text, key, [qa.get(key) for _, _, qa in parsed])
    for (where, context, qa), line in zip(parsed, places):
        bad = partial(BadRow, path, line)
        for name in (key, "question"):
            _check_text(qa, name, bad, where)
        number = qa[key]
        for value in (number, qa["question"], context):
            check_characters(value, path, line)
        if number in lines:
            first = "" if lines[number] == line else f", first on line {lines[number]}"
            raise bad(f"duplicate id {number!r} ({where}){first}", "give each question its own id")
        lines[number] = line
        answers = _answers(qa, context, bad, f"question {number!r}") if answered else ()
        questions.append(Question(number, qa["question"], context, answers, str(path), line))
    return questions


def _question_rows(path: str | Path, answered: bool) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (name, context, question) of each row of a table of questions, as the hub has SQuAD and KLUE's.

    The hub puts KLUE's plausible answers of questions without an answer among the others.
    """
    names = open_arrow(path).names
    columns = ("guid" if "guid" in names and "id" not in names else "id", "question", "context", "answers")
    for record in read_arrow_records(path, columns if answered else columns[:3], ("is_impossible",)):
        where, bad = f"row {record.line}", partial(BadRow, path, record.line)
        _check_text(record.cells, "context", bad, where)
        qa, answers = dict(record.cells), record.cells.get("answers")
        if isinstance(answers, dict):  # of lists
            texts, starts = answers.get("text"), answers.get("answer_start")
            if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
                problem = f"answers are {answers!r:.60}, expected equal numbers of text and answer_start"
                raise bad(problem, "correct the row")
            qa["answers"] = [{"text": text, "answer_start": start} for text, start in zip(texts, starts)]
        if answered and qa.get("is_impossible") is True:
            qa["answers"] = []
        yield where, record.cells["context"], {**qa, "is_impossible": qa.get("answers") == []}


def _questions(content: Any, path: str | Path, text: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (path in the JSON, context, question) of each question, and check the layout."""
    paragraphs = 0

    def bad(name: str, problem: str, remedy: str = f"write {_SHAPE}") -> BadRow:
        """Return the error of a key of the current paragraph."""
        matches = list(re.finditer(rf'"{name}"\s*:', text))
        line = text.count("\n", 0, matches[min(paragraphs, len(matches) - 1)].start()) + 1 if matches else 1
        return BadRow(path, line, problem, remedy)

    def in_list(holder: Any, name: str, where: str) -> list[Any]:
        if isinstance(holder, dict) and isinstance(holder.get(name), list):
            return holder[name]
        shown = f"{name}={holder.get(name)!r:.40}" if isinstance(holder, dict) else f"a {type(holder).__name__}"
        raise bad("context", f"{where} has no list {name!r} ({shown}), expected SQuAD's layout")

    for a, article in enumerate(in_list(content, "data", "the file")):
        for p, paragraph in enumerate(in_list(article, "paragraphs", f"data[{a}]")):
            where = f"data[{a}].paragraphs[{p}]"
            qas = in_list(paragraph, "qas", where)
            _check_text(paragraph, "context", partial(bad, "qas"), where)
            for q, qa in enumerate(qas):
                if not isinstance(qa, dict):
                    raise bad("qas", f"{where}.qas[{q}] is {str(qa)[:40]!r}, expected an object")
                yield f"{where}.qas[{q}]", paragraph["context"], qa
            paragraphs += 1


def _check_text(holder: dict[str, Any], name: str, bad: Bad, where: str) -> None:
    value = holder.get(name)
    if not isinstance(value, str) or not value.strip():
        shown = "missing" if name not in holder else f"{value!r:.40}"
        raise bad(f"{where}: {name} is {shown}, expected a text that is not empty", "fill it in")


def _answers(qa: dict[str, Any], context: str, bad: Bad, where: str) -> tuple[Answer, ...]:
    answers, impossible = qa.get("answers"), qa.get("is_impossible", False)
    if not isinstance(answers, list):
        shown = "missing" if "answers" not in qa else f"{answers!r:.40}"
        raise bad(f"{where}: answers are {shown}, expected a list", "add it, or read with answered=False")
    if not isinstance(impossible, bool):
        raise bad(f"{where}: is_impossible is {impossible!r}, expected true or false", "correct it")
    if impossible and answers:
        problem = f"{where} is impossible, but has {len(answers)} answers, expected none"
        raise bad(problem, "correct is_impossible, or remove the answers")
    if not impossible and not answers:
        problem = f"{where} has no answer, expected one, or is_impossible (version 2.0)"
        raise bad(problem, "add the answer or is_impossible: true, or read with answered=False")
    return tuple(_answer(answer, context, bad, where) for answer in answers)


def _answer(answer: Any, context: str, bad: Bad, where: str) -> Answer:
    text, start = (answer.get("text"), answer.get("answer_start")) if isinstance(answer, dict) else (None, None)
    if not isinstance(text, str) or not text or not isinstance(start, int) or isinstance(start, bool):
        problem = f'{where}: the answer {answer!r:.60}, expected {{"text": …, "answer_start": a number}}'
        raise bad(problem, "correct it")
    if not 0 <= start <= len(context) - len(text):
        problem = f"{where}: answer_start {start} and {len(text)} characters, but the context has {len(context)}"
        raise bad(problem, "count characters (not bytes) of the context from 0")
    at_start = context[start : start + len(text)]
    if at_start != text:
        elsewhere = f"but at {context.find(text)}" if text in context else "nor anywhere else in it"
        problem = f"{where}: the answer {text!r} is not at character {start} of the context ({at_start!r}), {elsewhere}"
        raise bad(problem, "correct answer_start (characters from 0), or copy the text from the context")
    return Answer(text, start)


def read_qamr(path: str | Path, sentences: str | Path | None = None) -> list[Question]:
    r"""Read the questions of `filtered_*.tsv` about the sentences of `wiki-sentences.tsv` next to it (or `sentences`).

    The context is the sentence, its words joined by spaces. The asker and the validators each give an answer: the span
    from its first to its last word (one in fifty skips a word in between). Other judgements in the `full` files are
    ignored.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "wiki-sentences.tsv").write_text("s1\tThe old ship sank .\n")
    >>> _ = (folder / "dev.tsv").write_text("s1\t2 3\t76\t0\t2\tWhat sank?\t1 2\t261:2\t60:1 2\n")
    >>> [answer.text for answer in read_qamr(folder / "dev.tsv")[0].answers]
    ['old ship', 'ship', 'old ship']
    """
    source = Path(path).with_name("wiki-sentences.tsv") if sentences is None else Path(sentences)
    texts = {}
    for number, line in enumerate(read_lines(source), start=1):
        name, tab, text = line.partition("\t")
        if not tab or not text.strip():
            raise BadRow(source, number, f"{line[:40]!r}, expected an id, a tab and a sentence", "correct or remove it")
        texts[name] = text
    questions = []
    lines: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        bad = partial(BadRow, path, number)
        cells = line.split("\t")
        if len(cells) != _QAMR_COLUMNS:
            problem = f"{len(cells)} columns, expected {_QAMR_COLUMNS}"
            raise bad(problem, "give a full or filtered file of QAMR, unchanged")
        if cells[0] not in texts:
            raise bad(f"the sentence {cells[0]!r} is not in {source}", "give the file that has it")
        key = ":".join(cells[:4])
        if lines.setdefault(key, number) != number:
            raise bad(f"the question {key!r} of line {lines[key]} again", "remove one of the two")
        if not cells[5].strip():
            raise bad("an empty question", "fill it in, or remove the row")
        judgements = [cells[6], *(judgement.partition(":")[2] for judgement in cells[7:])]
        words = texts[cells[0]].split(" ")
        answers = tuple(_answer_of_words(indices, words, bad) for indices in judgements if indices[:1].isdigit())
        if not answers:
            raise bad(f"the answer {cells[6]!r}, expected numbers of words", "correct or remove the row")
        questions.append(Question(key, cells[5], texts[cells[0]], answers, str(path), number))
    return questions


def _answer_of_words(indices: str, words: list[str], bad: Bad) -> Answer:
    chosen = [int(index) if index.isdecimal() else -1 for index in indices.split()]
    first, last = min(chosen), max(chosen)
    if first < 0 or last >= len(words):
        problem = f"the answer {indices!r}, expected numbers of words from 0 to {len(words) - 1}"
        raise bad(problem, "give the file of sentences that belongs to these questions")
    return Answer(" ".join(words[first : last + 1]), len(" ".join(words[:first])) + (first > 0))
