"""Questions with spans of their context as answers: SQuAD 1.1 and 2.0, KorQuAD 1.0, KLUE's reading comprehension."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_elmo_jax.data.tasks.examples import Answer, Question
from bert_elmo_jax.data.tasks.files import BadRow, check_characters, lines_of, parse_json, read_text

_SHAPE = '{"data": [{"paragraphs": [{"context": …, "qas": [{"id": …, "question": …, "answers": […]}]}]}]}'


def read_squad(path: str | Path, *, answered: bool = True, encoding: str = "utf-8") -> list[Question]:
    r"""Read a file in SQuAD's layout, and check that every answer is the given span of its context.

    Only questions with `is_impossible` (version 2.0) may have no answer. `answered=False` ignores answers.

    >>> import json, tempfile
    >>> answers = [{"text": "강가", "answer_start": 3}]
    >>> qas = [{"id": "1", "question": "어디 있나 ?", "answers": answers}]
    >>> data = {"version": "1.1", "data": [{"paragraphs": [{"context": "배는 강가에 있다", "qas": qas}]}]}
    >>> file = Path(tempfile.mkdtemp()) / "train.json"
    >>> _ = file.write_text(json.dumps(data), encoding="utf-8")
    >>> read_squad(file)[0].answers
    (Answer(text='강가', start=3),)
    >>> answers[0]["answer_start"] = 2
    >>> _ = file.write_text(json.dumps(data), encoding="utf-8")
    >>> read_squad(file)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bert_elmo_jax.data.tasks.files.BadRow: ...train.json:1: question '1': the answer '강가' is not at character 2 ...
    """
    text = read_text(path, encoding)
    content = parse_json(text, path)
    found = list(_questions(content, path, text))
    if not found:
        raise BadRow(path, 1, "no question in the file, expected at least one", "check that it is complete")
    questions: list[Question] = []
    seen: dict[str, int] = {}
    key = "guid" if all("guid" in qa and "id" not in qa for _, _, qa in found) else "id"  # KLUE uses guid
    for (where, context, qa), line in zip(found, lines_of(text, key, [qa.get(key) for _, _, qa in found])):
        for name in (key, "question"):
            if not _is_text(qa.get(name)):
                raise _no_text(qa, name, path, line, where)
        number = qa[key]
        for value in (number, qa["question"], context):
            check_characters(value, path, line)
        if number in seen:
            first = "" if seen[number] == line else f", first on line {seen[number]}"
            raise BadRow(path, line, f"duplicate id {number!r} ({where}){first}", "give each question its own id")
        seen[number] = line
        answers = _answers(qa, context, path, line, f"question {number!r}") if answered else ()
        questions.append(Question(number, qa["question"], context, answers, str(path), line))
    return questions


def _questions(content: Any, path: str | Path, text: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (path in the JSON, context, question) of each question, and check the layout."""
    paragraphs = 0

    def line(name: str) -> int:
        """Return the line of a key of the current paragraph."""
        found = list(re.finditer(rf'"{name}"\s*:', text))
        return text.count("\n", 0, found[min(paragraphs, len(found) - 1)].start()) + 1 if found else 1

    def in_list(holder: Any, name: str, where: str) -> list[Any]:
        if isinstance(holder, dict) and isinstance(holder.get(name), list):
            return holder[name]
        given = f"{name}={holder.get(name)!r:.40}" if isinstance(holder, dict) else f"a {type(holder).__name__}"
        what = f"{where} has no list {name!r} ({given}), expected SQuAD's layout"
        raise BadRow(path, line("context"), what, f"write {_SHAPE}")

    for a, article in enumerate(in_list(content, "data", "the file")):
        for p, paragraph in enumerate(in_list(article, "paragraphs", f"data[{a}]")):
            where = f"data[{a}].paragraphs[{p}]"
            qas = in_list(paragraph, "qas", where)
            if not _is_text(paragraph.get("context")):
                raise _no_text(paragraph, "context", path, line("qas"), where)
            for q, qa in enumerate(qas):
                if not isinstance(qa, dict):
                    what = f"{where}.qas[{q}] is {str(qa)[:40]!r}, expected an object"
                    raise BadRow(path, line("qas"), what, f"write {_SHAPE}")
                yield f"{where}.qas[{q}]", paragraph["context"], qa
            paragraphs += 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _no_text(holder: dict[str, Any], name: str, path: str | Path, line: int, where: str) -> BadRow:
    given = "missing" if name not in holder else f"{holder[name]!r:.40}"
    return BadRow(path, line, f"{where}: {name} is {given}, expected a text that is not empty", "fill it in")


def _answers(qa: dict[str, Any], context: str, path: str | Path, line: int, where: str) -> tuple[Answer, ...]:
    answers, impossible = qa.get("answers"), qa.get("is_impossible", False)
    if not isinstance(answers, list):
        given = "missing" if "answers" not in qa else f"{answers!r:.40}"
        what = f"{where}: answers are {given}, expected a list"
        raise BadRow(path, line, what, "add it, or read with answered=False")
    if not isinstance(impossible, bool):
        raise BadRow(path, line, f"{where}: is_impossible is {impossible!r}, expected true or false", "correct it")
    if impossible and answers:
        what = f"{where} is impossible, but has {len(answers)} answers, expected none"
        raise BadRow(path, line, what, "correct is_impossible, or remove the answers")
    if not impossible and not answers:
        what = f"{where} has no answer, expected one, or is_impossible (version 2.0)"
        raise BadRow(path, line, what, "add the answer or is_impossible: true, or read with answered=False")
    return tuple(_answer(answer, context, path, line, where) for answer in answers)


def _answer(answer: Any, context: str, path: str | Path, line: int, where: str) -> Answer:
    text, start = (answer.get("text"), answer.get("answer_start")) if isinstance(answer, dict) else (None, None)
    if not isinstance(text, str) or not text or not isinstance(start, int) or isinstance(start, bool):
        what = f'{where}: the answer {answer!r:.60}, expected {{"text": …, "answer_start": a number}}'
        raise BadRow(path, line, what, "correct it")
    if not 0 <= start <= len(context) - len(text):
        what = f"{where}: answer_start {start} and {len(text)} characters, but the context has {len(context)}"
        raise BadRow(path, line, what, "count characters (not bytes) of the context from 0")
    there = context[start : start + len(text)]
    if there != text:
        found = f"but at {context.find(text)}" if text in context else "nor anywhere else in it"
        what = f"{where}: the answer {text!r} is not at character {start} of the context ({there!r}), {found}"
        raise BadRow(path, line, what, "correct answer_start (characters from 0), or copy the text from the context")
    return Answer(text, start)
