"""QAMR: questions about a sentence, answered by some of its words."""

from pathlib import Path

from bert_elmo_jax.data.tasks.examples import Answer, Question
from bert_elmo_jax.data.tasks.files import BadRow, read_lines

_COLUMNS = 9


def read_qamr(path: str | Path, sentences: str | Path | None = None) -> list[Question]:
    r"""Read the questions of `filtered_*.tsv` about the sentences of `wiki-sentences.tsv` next to it (or `sentences`).

    The context is the sentence, its words joined by spaces. The asker and the validators each give an answer: the span
    from its first to its last word (one in fifty skips a word in between). Other judgements in the `full` files are
    ignored.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "wiki-sentences.tsv").write_text("s1\tThe old ship sank .\n")
    >>> _ = (folder / "dev.tsv").write_text("s1\t2 3\t76\t0\t2\tWhat sank?\t1 2\t261:2\t60:1 2\n")
    >>> [question] = read_qamr(folder / "dev.tsv")
    >>> [answer.text for answer in question.answers]
    ['old ship', 'ship', 'old ship']
    """
    source = Path(path).with_name("wiki-sentences.tsv") if sentences is None else Path(sentences)
    texts = _sentences(source)
    questions = []
    seen: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if len(cells) != _COLUMNS:
            what = f"{len(cells)} columns, expected {_COLUMNS}"
            raise BadRow(path, number, what, "give a full or filtered file of QAMR, unchanged")
        if cells[0] not in texts:
            raise BadRow(path, number, f"the sentence {cells[0]!r} is not in {source}", "give the file that has it")
        key = ":".join(cells[:4])
        if seen.setdefault(key, number) != number:
            raise BadRow(path, number, f"the question {key!r} of line {seen[key]} again", "remove one of the two")
        if not cells[5].strip():
            raise BadRow(path, number, "an empty question", "fill it in, or remove the row")
        words = texts[cells[0]].split(" ")
        given = [cells[6], *(judgement.partition(":")[2] for judgement in cells[7:])]
        answers = tuple(_answer(indices, words, path, number) for indices in given if indices[:1].isdigit())
        if not answers:
            what = f"the answer {cells[6]!r}, expected numbers of words"
            raise BadRow(path, number, what, "correct or remove the row")
        questions.append(Question(key, cells[5], texts[cells[0]], answers, str(path), number))
    return questions


def _sentences(path: Path) -> dict[str, str]:
    texts = {}
    for number, line in enumerate(read_lines(path), start=1):
        name, tab, text = line.partition("\t")
        if not tab or not text.strip():
            raise BadRow(path, number, f"{line[:40]!r}, expected an id, a tab and a sentence", "correct or remove it")
        texts[name] = text
    return texts


def _answer(indices: str, words: list[str], path: str | Path, line: int) -> Answer:
    chosen = [int(index) if index.isdecimal() else -1 for index in indices.split()]
    if min(chosen) < 0 or max(chosen) >= len(words):
        what = f"the answer {indices!r}, expected numbers of words from 0 to {len(words) - 1}"
        raise BadRow(path, line, what, "give the file of sentences that belongs to these questions")
    start = len(" ".join(words[: min(chosen)])) + (min(chosen) > 0)
    return Answer(" ".join(words[min(chosen) : max(chosen) + 1]), start)
