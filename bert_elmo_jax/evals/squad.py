"""Exact match and F1 of extractive question answering, as in the official scripts of SQuAD and KorQuAD."""

import math
import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from bert_elmo_jax.files import read_json_value

Rules = Literal["squad2", "squad1", "korquad", "korean2"]
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
# KorQuAD replaces these marks by a space and deletes other punctuation.
_KOREAN_QUOTES = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))


def score(
    data: str | Path | Mapping[str, Any] | Sequence[Any],
    predictions: str | Path | Mapping[str, str],
    na_probabilities: str | Path | Mapping[str, float] | None = None,
    *,
    na_threshold: float = 1.0,
    rules: Rules | None = None,
) -> dict[str, float]:
    """Return the scores of the official script, in per cent and under its names.

    `data` is the content of an official JSON file, its list of articles, or its path. `predictions` (id -> answer, ""
    for none) and `na_probabilities` (id -> score for "no answer", on any scale) may be paths, too.

    - `squad2`, SQuAD's script 2.0 (default, except for KorQuAD): exact, f1, total, the same for HasAns and NoAns, and,
      given `na_probabilities`, the best exact and f1 over all thresholds. An answer whose probability exceeds
      `na_threshold` counts as "". A question without a prediction raises; in data of version 1.1 it counts as wrong,
      as in script 1.1, and exact_match and missing are added.
    - `squad1`, SQuAD's script 1.1: exact_match, f1, total and missing (the number of questions without a prediction).
      It differs for answers that consist of articles and punctuation.
    - `korquad`, the script of KorQuAD 1.0: the same four, with F1 over characters.
    - `korean2`: as `squad2`, with texts compared as KorQuAD's script does, for Korean questions some of which have no
      answer, such as KLUE's. (KLUE's own script has no F1 over characters, but ROUGE-W.)

    >>> qas = [{"id": "1", "answers": [{"text": "the sea", "answer_start": 0}]}, {"id": "2", "answers": []}]
    >>> data = {"version": "v2.0", "data": [{"paragraphs": [{"context": "the sea", "qas": qas}]}]}
    >>> figures = score(data, {"1": "A sea!", "2": "ship"}, {"1": 0.1, "2": 0.9})
    >>> figures["exact"], figures["HasAns_f1"], figures["NoAns_f1"], figures["best_f1"], figures["best_f1_thresh"]
    (50.0, 100.0, 0.0, 100.0, 0.1)
    """
    content = _load(data, "data")
    version = str(content.get("version", "")) if isinstance(content, Mapping) else ""
    rules = rules or ("korquad" if version.lower().startswith("korquad") else "squad2")
    if rules not in get_args(Rules):
        raise ValueError(f"rules={rules!r} is not known; use squad2, squad1, korquad or korean2")
    gold = _gold(content)
    predicted = _predictions(predictions)
    missing = [number for number in gold if number not in predicted]
    if rules in ("squad1", "korquad"):
        if na_probabilities is not None:
            raise ValueError(
                f"na_probabilities were given, but the rules of {rules} do not allow questions without an answer: "
                "leave them out, or score with rules='squad2'"
            )
        return _score_first(gold, predicted, korean=rules == "korquad") | {"missing": len(missing)}
    first = rules == "squad2" and version.startswith("1") and all(gold.values())
    if missing and not first:
        raise ValueError(
            f"{len(missing)} of {len(gold)} questions have no prediction, the first is {missing[0]!r}: predict an "
            'answer, or "" for none, for each question, and check that data and predictions belong together'
        )
    figures = _score_second(gold, predicted, na_probabilities, na_threshold, korean=rules == "korean2")
    if first:
        exact_match = _score_first(gold, predicted, korean=False)["exact_match"]
        figures |= {"exact_match": exact_match, "missing": len(missing)}
    return figures


def normalize(text: str, *, korean: bool = False) -> str:
    """Return the text in lower case, without ASCII punctuation and, for English, without articles."""
    if korean:
        return " ".join(text.translate(_KOREAN_QUOTES).lower().translate(_PUNCTUATION).split())
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _score_first(gold: dict[str, list[str]], predicted: Mapping[str, str], *, korean: bool) -> dict[str, float]:
    """Score by the script of version 1.1 or KorQuAD."""
    exact = overlap = 0.0
    for number, answers in gold.items():
        if number not in predicted:
            continue
        guess = normalize(predicted[number], korean=korean)
        truths = [normalize(answer, korean=korean) for answer in answers]
        if not truths:
            raise ValueError(
                f"question {number!r} has no answer in the data: score with rules='squad2', or leave such questions out"
            )
        exact += guess in truths
        # The scripts give two empty answers an F1 of 0.
        overlap += max(_f1(_units(truth, korean), _units(guess, korean), 0.0) for truth in truths)
    return {"exact_match": 100 * exact / len(gold), "f1": 100 * overlap / len(gold), "total": len(gold)}


def _score_second(
    gold: dict[str, list[str]],
    predicted: Mapping[str, str],
    na_probabilities: str | Path | Mapping[str, float] | None,
    na_threshold: float,
    *,
    korean: bool,
) -> dict[str, float]:
    """Score by the script of version 2.0."""
    plain = partial(normalize, korean=korean)
    # Answers that normalise to "" are ignored, but the question still counts as one with an answer.
    truths = {number: [t for t in map(plain, answers) if t] or [""] for number, answers in gold.items()}
    guesses = {number: plain(predicted[number]) for number in gold if number in predicted}
    exact, overlap = dict.fromkeys(gold, 0.0), dict.fromkeys(gold, 0.0)
    for number, guess in guesses.items():
        exact[number] = float(guess in truths[number])
        units = _units(guess, korean)
        overlap[number] = max(_f1(_units(truth, korean), units, 1.0) for truth in truths[number])
    has_answer = {number: bool(answers) for number, answers in gold.items()}
    figures: dict[str, float] = {}
    ruled_out = set()
    if na_probabilities is not None:
        doubts = _probabilities(na_probabilities, gold)
        ruled_out = {number for number in gold if doubts[number] > na_threshold}
    for prefix, chosen in (
        ("", list(gold)),
        ("HasAns_", [number for number in gold if has_answer[number]]),
        ("NoAns_", [number for number in gold if not has_answer[number]]),
    ):
        if not chosen:
            continue
        for name, scores in (("exact", exact), ("f1", overlap)):
            total = sum(float(not has_answer[n]) if n in ruled_out else scores[n] for n in chosen)
            figures[prefix + name] = 100 * total / len(chosen)
        figures[f"{prefix}total"] = len(chosen)
    if na_probabilities is not None:
        for name, scores in (("exact", exact), ("f1", overlap)):
            best, threshold = _best_threshold(scores, doubts, has_answer, predicted)
            figures |= {f"best_{name}": best, f"best_{name}_thresh": threshold}
    return figures


def _best_threshold(
    scores: dict[str, float], doubts: dict[str, float], has_answer: dict[str, bool], predicted: Mapping[str, str]
) -> tuple[float, float]:
    """Return the best score and its threshold, answering questions one by one in order of their probabilities."""
    current: float = sum(not answerable for answerable in has_answer.values())
    best, threshold = current, 0.0
    for number in sorted(doubts, key=doubts.__getitem__):
        if has_answer[number]:
            current += scores[number]
        elif predicted[number]:
            current -= 1
        if current > best:
            best, threshold = current, doubts[number]
    return 100 * best / len(scores), threshold


def _f1(truth: Sequence[str], guess: Sequence[str], both_empty: float) -> float:
    if not truth or not guess:
        return both_empty if len(truth) == len(guess) else 0.0
    same = sum((Counter(truth) & Counter(guess)).values())
    if not same:
        return 0.0
    precision, recall = same / len(guess), same / len(truth)
    return 2 * precision * recall / (precision + recall)


def _units(text: str, korean: bool) -> list[str]:
    return list(text.replace(" ", "")) if korean else text.split()


def _gold(content: Any) -> dict[str, list[str]]:
    """Return question id -> texts of its answers, in the order of the file."""
    articles = content["data"] if isinstance(content, Mapping) and "data" in content else content
    gold: dict[str, list[str]] = {}
    try:
        for article in articles:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    number = question["guid" if "guid" in question and "id" not in question else "id"]  # KLUE's is guid
                    if number in gold:
                        raise ValueError(f"the data repeat the id {number!r}: give each question its own")
                    gold[number] = [answer["text"] for answer in question["answers"]]
    except (TypeError, KeyError) as problem:
        raise ValueError(
            f"the data are not in SQuAD's layout ({type(problem).__name__}: {problem}); expected "
            '{"data": [{"paragraphs": [{"context": …, "qas": [{"id": …, "answers": [{"text": …}]}]}]}]}'
        ) from None
    if not gold:
        raise ValueError("the data hold no question: expected SQuAD's JSON with at least one")
    return gold


def _predictions(source: str | Path | Mapping[str, str]) -> Mapping[str, str]:
    predicted = _load(source, "predictions")
    if not isinstance(predicted, Mapping):
        raise ValueError(
            f"predictions should map each question's id to an answer; they are a {type(predicted).__name__}"
        )
    for number, answer in predicted.items():
        if not isinstance(answer, str):
            raise ValueError(f'the prediction for {number!r} is {answer!r}, not a text; use "" for no answer')
    return predicted


def _probabilities(source: str | Path | Mapping[str, float], gold: Mapping[str, Any]) -> dict[str, float]:
    """Return the probabilities of the data's questions in the given order, which decides ties."""
    probabilities = _load(source, "na_probabilities")
    if not isinstance(probabilities, Mapping):
        raise ValueError(f"na_probabilities should map ids to numbers; they are a {type(probabilities).__name__}")
    absent = [number for number in gold if number not in probabilities]
    if absent:
        raise ValueError(
            f"na_probabilities lack {len(absent)} of {len(gold)} questions, the first is {absent[0]!r}: give one for "
            "each question, or leave them all out"
        )
    for number, value in probabilities.items():
        if not isinstance(value, int | float) or math.isnan(value):
            raise ValueError(f"the no-answer probability of {number!r} is {value!r}: expected a number")
    return {number: value for number, value in probabilities.items() if number in gold}


def _load(source: Any, name: str) -> Any:
    if not isinstance(source, str | Path):
        return source
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"{name}: there is no file {path}; give the path of a JSON file, or its content")
    try:
        return read_json_value(path)
    except ValueError as problem:
        raise ValueError(f"{name}: {path} is not JSON in UTF-8 ({problem}); give the official file") from None
