"""Task models: loading a run directory, predictions that depend on the example alone, refused inputs by number."""

import dataclasses
import json
import shutil
from itertools import pairwise

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks import Question
from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.evals.character_tags import spread_tags
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_task_params
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.inference import TaskModel, write_run_directory
from bert_elmo_jax.inference.predict_file import predict_file
from bert_elmo_jax.inference.predictions import (
    AnswerOptions,
    AnswerSpan,
    CharacterTags,
    Number,
    Tags,
    make_predictions,
    spread_shares,
    to_json,
)
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import best_step
from bert_elmo_jax.inference.task_model import make_head, to_example
from bert_elmo_jax.text import train_wordpiece
from bert_elmo_jax.train.checkpoint import save_params, write_file_list

TEXTS = ["강가에 배가 있다", "the old ship sank", "ship", "배", "the ship the ship the ship " * 3, "A strange word 강"]
TOKENIZER = train_wordpiece(["강가에 배가 있다 the old ship sank where ? A"] * 9, vocab_size=90)
CONFIG = BertConfig(
    vocab_size=TOKENIZER.vocab_size, hidden_size=16, num_layers=1, num_heads=2, feed_forward_size=32, max_positions=64
)


def draw_params(head):
    """Return the parameters of a task's model, large enough for the predictions of different texts to differ."""
    shapes = jax.eval_shape(lambda key: init_task_params(FAMILY, CONFIG, head, key), jax.random.key(0))
    draw = np.random.default_rng(0)

    def fill(path, leaf):
        if leaf.ndim >= 2:
            return draw.normal(0, 0.16, leaf.shape).astype(np.float32)
        return np.full(leaf.shape, path[-1].key in ("scale", "gamma"), np.float32)

    return jax.tree_util.tree_map_with_path(fill, shapes)


def write(folder, name, features=None, **options):
    task = dataclasses.replace(task_named(name, max_length=32), **options)
    params = draw_params(make_head(task, features, CONFIG))
    write_run_directory(folder, CONFIG, params, TOKENIZER, run={}, task=task, features=features)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        "sst2": write(folder / "sst2", "sst2", labels=("노잼", "재미")),
        "rte": write(folder / "rte", "rte", labels=("0", "1")),
        "stsb": write(folder / "stsb", "stsb"),
        "uner": write(folder / "uner", "uner", labels=("B-LOC", "I-LOC", "O")),
        "swag": write(folder / "swag", "swag"),
        "squad": write(folder / "squad", "squad", stride=8, unanswerable=True),
    }


INPUTS = {
    "sst2": TEXTS,
    "rte": list(pairwise(TEXTS)),
    "stsb": list(pairwise(TEXTS)),
    "uner": [text.split() for text in TEXTS],
    "swag": [(TEXTS[0], TEXTS[1:3]), (TEXTS[1], TEXTS[2:6])],
    "squad": [("where ?", text) for text in TEXTS],
}


def close(ours, theirs):
    ours, theirs = json.loads(json.dumps(to_json(ours))), json.loads(json.dumps(to_json(theirs)))
    for name in ours.keys() - {"n_best"}:
        for one, other in zip(jax.tree.leaves(ours[name]), jax.tree.leaves(theirs[name]), strict=True):
            assert one == (other if isinstance(other, str) else pytest.approx(other, abs=1e-6, rel=1e-7))


@pytest.mark.parametrize("name", INPUTS)
def test_company_and_order_change_nothing(runs, name):
    model = load(runs[name])
    assert isinstance(model, TaskModel)
    together = model.predict(INPUTS[name])
    assert len(together) == len(INPUTS[name])
    for prediction, single_prediction in zip(together, [model.predict([one])[0] for one in INPUTS[name][:2]]):
        close(prediction, single_prediction)
    for prediction, turned in zip(together, model.predict(INPUTS[name][::-1], batch_size=4)[::-1]):
        close(prediction, turned)
    for prediction in together:
        assert len(str(prediction)) < 200


def test_shapes_are_compiled_once(runs):
    model = load(runs["sst2"])
    model.predict(TEXTS * 3, batch_size=8)
    compiled = model._scores._cache_size()
    model.predict(TEXTS[::-1] * 3, batch_size=8)
    assert model._scores._cache_size() == compiled <= 3


def test_answers_are_where_they_say(runs):
    model = load(runs["squad"])
    context = "강가에  배가 있다, the OLD ship\tsank où é est " * 4
    [answer] = model.predict([("where ?", context)], n_best=5)
    assert 1 <= len(answer.n_best) <= 6  # "no answer" is one of them in any case
    for span in (answer, *answer.n_best):
        assert context[span.start : span.end] == span.answer
    [all_listed] = model.predict([("where ?", context)])
    assert sum(span.probability for span in all_listed.n_best) == pytest.approx(1.0, abs=1e-5)
    assert answer.n_best[:5] == all_listed.n_best[:5]


def test_the_answer_does_not_depend_on_how_many_are_listed():
    question = Question("q", "where ?", "The sea, far away", (), "dev.json", 1)
    task = task_named("squad", max_length=32)
    tokenizer = train_wordpiece(["where ? The sea , far away"] * 9, vocab_size=60)
    rows = make_rows(task, [question], tokenizer, labelled=False)
    at = np.arange(len(rows[0].ids[0]))
    scores = [((at == 4) * 5.0 + (at == 8) * 6.0, (at == 5) * 5.0)]  # the best start is behind the best end
    for options in (AnswerOptions(1), AnswerOptions(2), AnswerOptions(20), AnswerOptions(top_k=1)):
        [answer] = make_predictions(task, [question], rows, scores, options)
        assert answer.answer == "The sea"
        assert len(answer.n_best) <= (options.top_k or options.n_best)


def test_the_run_directory_holds_labels_and_task(runs, tmp_path):
    model_json = json.loads((runs["sst2"] / "model.json").read_text(encoding="utf-8"))
    assert model_json["labels"] == ["노잼", "재미"]
    assert model_json["problem_type"] == "single_label_classification"
    assert model_json["task"]["max_length"] == 32
    assert model_json["task"]["layout"]["text"] == "sentence"
    model = load(runs["sst2"])
    assert model.labels == ("노잼", "재미")
    assert model.encode(TEXTS[:2]).last.shape[0] == 2  # it is an encoder still
    assert "task" not in json.loads((write_plain(tmp_path) / "model.json").read_text(encoding="utf-8"))
    assert load(tmp_path).predict(["ship"])[0].label == "LABEL_0"  # the weights have a head


def write_plain(folder):
    params = draw_params(make_head(task_named("stsb"), None, CONFIG))
    write_run_directory(folder, CONFIG, params, TOKENIZER, run={})
    return folder


@pytest.mark.parametrize("features", [Features((0, -1)), Features((0, 1), "mix", lstm_layers=1, lstm_size=3)])
def test_features_come_back(tmp_path, features):
    folder = write(tmp_path / "run", "uner", features, labels=("B-LOC", "I-LOC", "O"))
    model = load(folder)
    assert model.head.features == features
    assert len(model.predict([TEXTS[0]])[0].tags) == 3
    file = folder / "model.json"
    model_json = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(
        json.dumps({**model_json, "features": {**model_json["features"], "lstm_layers": 5}}), encoding="utf-8"
    )
    with pytest.raises(ValueError, match="reader/layer_4"):
        load(folder)
    file.write_text(json.dumps({**model_json, "features": {"layer": 1}}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"model\.json: features: "):
        load(folder)


def test_invalid_tasks_are_named(runs, tmp_path):
    folder = shutil.copytree(runs["sst2"], tmp_path / "run")
    file = folder / "model.json"
    model_json = json.loads(file.read_text(encoding="utf-8"))
    for task, message in [
        ([1], r"task is \[1\]; expected an object"),
        ({**model_json["task"], "kind": "poetry"}, "task.kind is 'poetry'"),
        ({**model_json["task"], "labels": "01"}, "task.labels is '01'; expected a list"),
        ({**model_json["task"], "colour": 1}, "task is invalid in this version"),
        ({**model_json["task"], "max_length": 999}, "max_length=999: use 8 to 64"),
    ]:
        file.write_text(json.dumps({**model_json, "task": task}), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            load(folder)


def test_the_checkpoint_with_the_best_score_is_taken(runs, tmp_path):
    folder = shutil.copytree(runs["sst2"], tmp_path / "run")
    params = read_model(folder).params
    for step, score in ((5, 0.9), (9, 0.4)):
        where = save_params(folder, step, jax.tree.map(lambda x, step=step: np.full_like(x, step), params))
        (where / "facts.json").write_text(json.dumps({"score": score, "figures": {"dev/accuracy": score}}))
        write_file_list(where)
    assert best_step(folder) == 5
    assert float(load(folder).params["classify"]["bias"][0]) == 5.0


INVALID = [  # task, input and message
    ("sst2", 3, "input 1 is 3; expected a text that is not empty"),
    ("sst2", " ", "expected a text that is not empty"),
    ("sst2", ("a", "b"), "expected a text that is not empty"),
    ("rte", "a", r"expected \(text, pair\), two texts"),
    ("rte", ("a", ""), r"expected \(text, pair\), two texts"),
    ("uner", [], "a list of words, not empty"),
    ("uner", ["a", 3], "a list of words, not empty"),
    ("swag", ("a", ["b"]), "two choices at least"),
    ("swag", ("a", ["b", ""]), "texts that are not empty"),
    ("squad", "where ?", r"expected \(question, context\)"),
    ("sst2", "a\ud83d", "input 1 holds a lone surrogate"),
]


@pytest.mark.usefixtures("as_users_run")
def test_invalid_inputs(runs):
    for name, value, message in INVALID:
        with pytest.raises(ValueError, match=message):
            to_example(task_named(name), value, 1)
    with pytest.raises(TypeError, match="a list of texts is expected, a single string was given"):
        load(runs["sst2"]).predict("one text")
    with pytest.raises(ValueError, match=r'input 1 is .*not empty; on_bad="none" predicts the others'):
        load(runs["sst2"]).predict(["one text", ""])
    with pytest.raises(ValueError, match="on_bad='skip' is not known; use 'raise' or 'none'"):
        load(runs["sst2"]).predict(["one text"], on_bad="skip")


@pytest.mark.parametrize("name", INPUTS)
def test_no_inputs_and_bad_ones(runs, name):
    model = load(runs[name])
    assert model.predict([]) == model.predict([], on_bad="none") == []
    good = INPUTS[name][:2]
    first, bad, second, other = model.predict([good[0], "", good[1], None], on_bad="none")
    assert bad is None and other is None
    for prediction, expected in zip((first, second), model.predict(good)):
        close(prediction, expected)
    assert model.predict([""], on_bad="none") == [None]


def test_no_texts_have_no_vectors(runs):
    model = load(runs["sst2"])
    assert model.encode([], layers=[0, 1]).layers.shape == (2, 0, 0, 16) and list(model.encode([])) == []
    assert model.sentences([]).shape == (0, 16)
    assert load(runs["rte"]).score([]).shape == (0, 2) and load(runs["stsb"]).score([]).shape == (0,)
    assert load(runs["stsb"]).rank("ship", []) == []


def test_requests_after_a_warm_up_compile_nothing(runs):
    draw = np.random.default_rng(0)
    for name in ("sst2", "squad"):
        model = load(runs[name])
        model.warm_up(lengths=16, rows=[1, 4])
        compiled = model._scores._cache_size()
        assert model.work.pieces == 0
        for _ in range(20):
            texts = [" ".join(["ship"] * draw.integers(1, 10)) for _ in range(draw.integers(1, 5))]
            model.predict([("ship", text) for text in texts] if name == "squad" else texts)
        assert model._scores._cache_size() == compiled <= 4
    for options, message in (
        ({"lengths": 0}, "lengths=0: use a whole number"),
        ({"rows": []}, "use a whole number, or a list of some"),
        ({"call": "generate"}, "call='generate' cannot be warmed up; use one of predict, encode, sentences, score"),
    ):
        with pytest.raises(ValueError, match=message):
            model.warm_up(**options)


def test_small_and_printable():
    assert str(Number(4.21)) == "4.210"
    assert repr(AnswerSpan("강가", 3, 5, 0.9, (), -2.0)) == "'강가' [3:5] (0.900)"
    answer = AnswerSpan("강가", 3, 5, 0.9, (AnswerSpan("강가", 3, 5, 0.9, (), -2.0),), -2.0)
    assert to_json(answer)["n_best"] == [{"answer": "강가", "start": 3, "end": 5, "probability": 0.9}]
    assert to_json(Tags(("a",), ("O",), (0.5,))) == {"words": ("a",), "tags": ("O",), "probabilities": (0.5,)}


def test_tags_of_characters():
    for text, tags, spread in (
        ("서울역 앞", ["B-LC", "", "I-LC", "", "O"], ["B-LC", "I-LC", "I-LC", "O", "O"]),
        ("한국 은행", ["B-OG", "", "", "I-OG", ""], ["B-OG", "I-OG", "I-OG", "I-OG", "I-OG"]),
        ("한국 은행", ["B-OG", "", "", "B-LC", ""], ["B-OG", "I-OG", "O", "B-LC", "I-LC"]),
        (" 배", ["", "O"], ["O", "O"]),
        ("김치", ["S-FD", ""], ["B-FD", "E-FD"]),
        ("서울역은", ["B-LC", "E-LC", "", "O"], ["B-LC", "I-LC", "E-LC", "O"]),
        ("서울역에", ["B-LC", "E-LC", "", ""], ["B-LC", "I-LC", "I-LC", "E-LC"]),
        ("한국 은행", ["B-OG", "", "", "E-OG", ""], ["B-OG", "I-OG", "I-OG", "I-OG", "E-OG"]),
        ("김치 전", ["S-FD", "", "", "I-FD"], ["B-FD", "E-FD", "O", "I-FD"]),  # no space inside an entity
    ):
        assert spread_tags(text, tags) == spread
    shares = spread_shares("한국 은행", ["B-OG", "", "", "I-OG", ""], np.array([0.9, 0, 0, 0.8, 0]))
    assert shares.tolist() == [0.9, 0.9, 0.9, 0.8, 0.8]


def test_many_spaces_take_linear_time():
    counts = []

    class Character(str):
        __slots__ = ()

        def isspace(self):
            counts.append(self)
            return super().isspace()

    text = [Character(letter) for letter in "a" + " " * 300 + "b"]
    assert spread_tags(text, ["B-LC", *[""] * 300, "I-LC"]) == ["B-LC", *["I-LC"] * 301]
    assert len(counts) < 10 * len(text)


def test_a_tagger_of_characters_answers_with_entities(tmp_path):
    tagger = load(write(tmp_path / "klue_ner", "klue_ner", labels=("B-LC", "I-LC", "O")))
    [tags] = tagger.predict(["서울역 앞"])
    assert tags.words == tuple("서울역 앞")
    assert all(text in "서울역 앞" for _, text in tags.entities)
    [listed] = tagger.predict([list("서울역 앞")])
    assert listed.tags == tags.tags
    with pytest.raises(ValueError, match=r"input 0 is \['서울역', '앞'\]; expected a text, or a list of its char"):
        tagger.predict([["서울역", "앞"]])
    assert str(CharacterTags(tuple("한 배"), ("O", "O", "O"), (1.0,) * 3)) == "no entity"


def test_long_texts_are_read_in_parts_whose_scores_are_averaged(runs, tmp_path, capsys):
    long, short = "the old ship sank where " * 40, "the old ship sank"
    model = load(runs["sst2"])
    together = model.predict([long, short], stride=4)
    assert model.work.cut == 0
    assert together[1].label == model.predict([short])[0].label
    np.testing.assert_allclose(together[1].probability, model.predict([short])[0].probability, rtol=1e-5)
    ids = model.tokenizer.encode(long, specials=False).ids
    ends = range(0, len(ids) - 4, 26)  # of 30 pieces each, two of the row's 32 are special
    assert len(model.text_rows([to_example(model.task, long, 0)], 4)[0]) == len(ends)
    assert together[0] != model.predict([long])[0] and model.work.cut == 1
    with pytest.raises(ValueError, match="stride alone for classes and numbers of single texts"):
        load(runs["rte"]).predict([("a", "b")], stride=4)
    prompted = load(write(tmp_path / "prompted", "sst2", labels=("a", "b"), prompt="where ? "))
    with pytest.raises(ValueError, match="single texts without a default prompt"):
        prompted.predict([long], stride=4)
    (tmp_path / "in.txt").write_text(f"{long}\n{short}\n")
    predict_file(str(runs["sst2"]), str(tmp_path / "in.txt"), str(tmp_path / "out.jsonl"), stride=4)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["label"] for line in lines] == [one.label for one in together]
    assert "longer than" not in capsys.readouterr().err
    predict_file(str(runs["sst2"]), str(tmp_path / "in.txt"), str(tmp_path / "cut.jsonl"))
    assert "the rest was not read: --stride=16 reads them in parts" in capsys.readouterr().err


def test_sentence_vectors_are_compared_by_their_first_numbers():
    outputs = [np.array([[1, 0, 5], [1, 0, -5]], np.float32)]
    task = task_named("sentences")
    assert make_predictions(task, [], [], outputs, width=2) == [Number(1.0)]
    assert make_predictions(task, [], [], outputs)[0].value == pytest.approx(-24 / 26)
