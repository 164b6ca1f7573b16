import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.evals.squad import normalize, score


def data(*answers, version="v2.0"):
    """Return data whose question i has the answers i."""
    qas = [
        {"id": str(i), "question": "?", "answers": [{"text": text, "answer_start": 0} for text in texts]}
        for i, texts in enumerate(answers)
    ]
    return {"version": version, "data": [{"title": "t", "paragraphs": [{"context": "c", "qas": qas}]}]}


@pytest.mark.parametrize("name", ["squad_v1.1", "squad_v2", "korquad_v1"])
def test_scores_match_the_official_scripts(goldens, name):
    folder = goldens / "metrics"
    official = json.loads((folder / f"{name}.official.json").read_text())
    doubts = folder / f"{name}.na_probabilities.json"
    paths = folder / f"{name}.data.json", folder / f"{name}.predictions.json", doubts if doubts.is_file() else None
    from_paths = score(*paths)
    from_content = score(*(None if path is None else json.loads(path.read_text("utf-8")) for path in paths))
    assert from_paths == from_content
    for key, value in official.items():
        assert from_paths[key] == pytest.approx(value, abs=1e-9), key
    assert ("best_f1" in from_paths) == doubts.is_file()


def test_normalize():
    assert normalize("The  U.S.-based “a” theatre an\tapple") == "usbased “ ” theatre apple"
    assert normalize("an", korean=True) == "an"
    assert normalize("〈강〉(물)‘의’ it's, 《A》-B", korean=True) == "강 물 의 it s a b"
    assert normalize("É İ") == "é i̇"


def test_answer_of_an_article():
    """In script 2.0, no answer is left, so "" is right; in script 1.1, "a" equals "the"."""
    both = data(["the"], ["sea"])
    assert score(both, {"0": "a", "1": "sea"})["f1"] == 100
    figures = score(both, {"0": "a", "1": "sea"}, rules="squad1")
    assert figures == {"exact_match": 100.0, "f1": 50.0, "total": 2, "missing": 0}
    dot = data([".", "1,864."])
    assert score(dot, {"0": ""})["exact"] == 0
    assert score(dot, {"0": ""}, rules="squad1")["exact_match"] == 100
    assert score(dot, {"0": "1864"})["exact"] == 100


def test_repeated_words_count_and_korean_f1_is_over_characters():
    assert score(data(["tea tea coffee"]), {"0": "tea tea tea"})["f1"] == pytest.approx(100 * 2 / 3)
    korean = data(["성 베드로 대성전"], version="KorQuAD_v1.0_dev")
    figures = score(korean, {"0": "성베드로 광장"})
    assert figures["exact_match"] == 0
    # 4 of 6 predicted and of 7 gold characters
    assert figures["f1"] == pytest.approx(100 * 2 * (4 / 6) * (4 / 7) / (4 / 6 + 4 / 7))
    figures = score(korean, {"0": "성베드로대성전"})
    assert (figures["f1"], figures["exact_match"]) == (100, 0)


def test_questions_without_an_answer():
    figures = score(data([], ["sea"]), {"0": "", "1": ""})
    expected = {"HasAns_exact": 0.0, "HasAns_f1": 0.0, "HasAns_total": 1}
    expected |= {"NoAns_exact": 100.0, "NoAns_f1": 100.0, "NoAns_total": 1}
    assert figures == {"exact": 50.0, "f1": 50.0, "total": 2} | expected
    assert not [key for key in score(data([]), {"0": "a"}) if key.startswith("HasAns")]


def test_threshold_removes_answers():
    both, predictions, doubts = data([], ["sea"]), {"0": "ship", "1": "sea"}, {"0": 0.9, "1": 0.2}
    assert score(both, predictions, doubts)["exact"] == 50
    # A probability equal to the threshold keeps the answer.
    for threshold, exact in ((0.5, 100), (0.1, 50), (0.9, 50)):
        assert score(both, predictions, doubts, na_threshold=threshold)["exact"] == exact


def test_best_threshold_of_log_odds():
    figures = score(data([], ["sea"], ["ship"]), {"0": "x", "1": "sea", "2": "ship"}, {"0": 3.5, "1": -7.0, "2": 2.0})
    assert (figures["best_exact"], figures["best_exact_thresh"]) == (100.0, 2.0)
    # If it is best to answer no question, the threshold stays 0, as in the script.
    none = score(data([], []), {"0": "x", "1": "y"}, {"0": 0.3, "1": 0.4})
    assert (none["best_f1"], none["best_f1_thresh"]) == (100.0, 0.0)


def test_missing_predictions():
    both = data(["sea"], ["ship"])
    with pytest.raises(ValueError, match="1 of 2 questions have no prediction, the first is '1'"):
        score(both, {"0": "sea"})
    figures = score(both, {"0": "sea", "other": "is not asked"}, rules="squad1")
    assert (figures["exact_match"], figures["f1"], figures["missing"]) == (50.0, 50.0, 1)
    figures = score(data(["sea"], ["ship"], version="1.1"), {"0": "sea"})
    assert (figures["exact"], figures["exact_match"], figures["HasAns_total"], figures["missing"]) == (50.0, 50.0, 2, 1)
    korean = data(["바다"], ["배"], version="KorQuAD_v1.0_dev")
    assert score(korean, {"0": "바다"})["exact_match"] == 50


def test_korean_questions_without_an_answer_are_scored_over_characters():
    qas = [{"guid": "1", "answers": [{"text": "《토지》"}]}, {"guid": "2", "answers": [{"text": "서울특별시"}]},
           {"guid": "3", "answers": []}]  # fmt: skip
    klue = {"version": "v1.1_0", "data": [{"paragraphs": [{"context": "c", "qas": qas}]}]}
    answers, doubts = {"1": "토지", "2": "서울특별시에서", "3": ""}, {"1": 0.1, "2": 0.2, "3": 0.9}
    figures = score(klue, answers, doubts, rules="korean2")
    assert figures["exact"] == pytest.approx(200 / 3)
    assert figures["f1"] == figures["best_f1"] == pytest.approx(100 * (1 + 10 / 12 + 1) / 3)
    assert figures["best_f1_thresh"] == 0.2


INVALID = [  # arguments, options and message
    ((data([]), {"0": None}), {}, "the prediction for '0' is None, not a text"),
    ((data([]), ["a"]), {}, "predictions should map .* they are a list"),
    ((data([]), {"0": ""}, {}), {}, "na_probabilities lack 1 of 1 questions"),
    ((data([]), {"0": ""}, {"0": float("nan")}), {}, "no-answer probability of '0' is nan"),
    (({"data": []}, {}), {}, "hold no question"),
    (({"data": [{"context": "c"}]}, {}), {}, "not in SQuAD's layout .*paragraphs"),
    (({"answers": 3}, {}), {}, "not in SQuAD's layout"),
    (([*data(["a"])["data"], *data(["a"])["data"]], {"0": "a"}), {}, "repeat the id '0'"),
    (("no/such.json", {}), {}, "there is no file no/such.json"),
    ((data([]), {"0": ""}), {"rules": "1.1"}, "is not known; use squad2, squad1, korquad or korean2"),
    ((data(["a"]), {"0": ""}, {"0": 0.5}), {"rules": "squad1"}, "na_probabilities were given, but the rules of squad1"),
    ((data([]), {"0": ""}), {"rules": "squad1"}, "question '0' has no answer in the data"),
]


def test_invalid_inputs_raise(tmp_path, as_users_run):
    for arguments, options, message in INVALID:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            score(*arguments, **options)
    (tmp_path / "a.json").write_bytes(b'{"data": [')
    with pytest.raises(ValueError, match=r"data: .*a\.json is not JSON in UTF-8"):
        score(tmp_path / "a.json", {})


TEXTS = ["the", "A ", "sea", "Sea.", "바다", "'", "—", "\u3000", "é", "the-the"]
texts = st.lists(st.sampled_from(TEXTS), max_size=4).map(" ".join)


@given(st.lists(st.tuples(st.lists(texts, max_size=3), texts, st.floats(0, 1)), min_size=1, max_size=6))
def test_properties_of_scores(questions):
    content = data(*(answers for answers, _, _ in questions))
    predictions = {str(i): text for i, (_, text, _) in enumerate(questions)}
    doubts = {str(i): value for i, (_, _, value) in enumerate(questions)}
    figures = score(content, predictions, doubts)
    assert 0 <= figures["exact"] <= figures["f1"] + 1e-9 <= 100 + 1e-9
    # The best threshold is at least as good as answering all questions, or none.
    assert figures["best_f1"] >= 100 * sum(not answers for answers, _, _ in questions) / len(questions) - 1e-9
    parts = [
        figures[f"{part}_f1"] * figures[f"{part}_total"] for part in ("HasAns", "NoAns") if f"{part}_f1" in figures
    ]
    assert sum(parts) / len(questions) == pytest.approx(figures["f1"])
