"""Rerankers score and rank as sentence-transformers' cross-encoders do; frozen scores, and wrong requests."""

import functools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.layouts import Layout
from bert_elmo_jax.inference.convert import convert

GOLDENS = Path(__file__).parents[1] / "goldens" / "reranker"
SHARED = Path(__file__).parents[3] / "shared" / "goldens" / "reranker"
LIMIT = 1e-5


@functools.cache
def reranker(folder=GOLDENS):
    return load(folder), json.loads((folder / "predictions.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "folder", [GOLDENS, *(SHARED.glob("identity*") if SHARED.is_dir() else ())], ids=lambda f: f.name
)
def test_scores_and_ranking(folder):
    model, frozen = reranker(folder)
    scores = model.score([tuple(pair) for pair in frozen["pairs"]])
    np.testing.assert_allclose(scores, frozen["answers"]["predict"], atol=LIMIT)
    ranking = model.rank(frozen["query"], frozen["documents"])
    assert [text.index for text in ranking] == [text["corpus_id"] for text in frozen["answers"]["rank"]]
    assert [text.score for text in ranking] == pytest.approx(
        [text["score"] for text in frozen["answers"]["rank"]], abs=LIMIT
    )
    assert model.rank(frozen["query"], frozen["documents"], top_k=3) == ranking[:3]
    assert ranking[0].text == frozen["documents"][ranking[0].index]


def test_the_activation_of_the_config(tmp_path):
    frozen = reranker()[1]
    for number, (fields, activation) in enumerate(
        (
            ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, np.asarray),
            ({"sbert_ce_default_activation_function": "torch.nn.modules.activation.ReLU"}, lambda x: np.maximum(x, 0)),
            ({"sbert_ce_default_activation_function": "torch.nn.modules.activation.Tanh"}, np.tanh),
        )
    ):
        folder = shutil.copytree(GOLDENS, tmp_path / str(number))
        config = json.loads((folder / "config.json").read_text(encoding="utf-8")) | fields
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        scores = load(folder).score([tuple(pair) for pair in frozen["pairs"]])
        np.testing.assert_allclose(scores, activation(frozen["answers"]["predict with Identity"]), atol=LIMIT)
    config["sbert_ce_default_activation_function"] = "my_code.Squash"
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match=r"activation of the scores in config.json is 'my_code.Squash'; supported are"):
        load(folder)


def test_a_folder_of_sentence_transformers_6(tmp_path):
    folder = shutil.copytree(GOLDENS, tmp_path / "saved")
    described = {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.linear.Identity"}
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}
    ]
    for name, content in (("config_sentence_transformers.json", described), ("modules.json", modules)):
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    frozen = reranker()[1]
    scores = load(folder).score([tuple(pair) for pair in frozen["pairs"]])
    np.testing.assert_allclose(scores, frozen["answers"]["predict with Identity"], atol=LIMIT)
    settings = folder / "config_sentence_transformers.json"
    settings.write_text(json.dumps(described | {"activation_fn": "my_code.Squash"}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"the scores in config_sentence_transformers\.json is 'my_code.Squash'"):
        load(folder)
    (folder / "modules.json").write_text(json.dumps(modules * 2), encoding="utf-8")
    with pytest.raises(ValueError, match="only rerankers of one module"):
        load(folder)


def describe(folder, **fields):
    """Write the files that describe a reranker in sentence-transformers 6."""
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    described = json.dumps({"model_type": "CrossEncoder", **fields})
    (folder / "config_sentence_transformers.json").write_text(described, encoding="utf-8")


def test_the_default_prompt_is_put_before_the_query(as_users_run, tmp_path):
    pairs = [tuple(pair) for pair in reranker()[1]["pairs"]]
    folder = shutil.copytree(GOLDENS, tmp_path / "saved")
    describe(folder, prompts={"query": "Who "}, default_prompt_name="query")
    expected = reranker()[0].score([(f"Who {query}", text) for query, text in pairs])
    np.testing.assert_allclose(load(folder).score(pairs), expected, atol=1e-6)
    for form in ("run", "huggingface"):
        convert(str(folder), tmp_path / form, to_format=form)
        np.testing.assert_allclose(load(tmp_path / form).score(pairs), expected, atol=1e-6)
    describe(folder, prompts={"query": "Who "}, default_prompt_name="qeury")
    with pytest.raises(ValueError, match=r"default prompt 'qeury' is not among the prompts \(query\)"):
        load(folder)


@pytest.mark.parametrize("described", [True, False])
def test_a_reranker_cuts_its_pairs(goldens, tmp_path, described):
    """Several labels, and the same after a conversion."""
    folder = shutil.copytree(goldens / "released_heads" / "roberta_nli3", tmp_path / "saved")
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | {"model_max_length": 12}), "utf-8")
    name = "torch.nn.modules.linear.Identity"
    if described:
        describe(folder, activation_fn=name)
    else:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config["sentence_transformers"] = {"activation_fn": name}
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    model = load(folder)
    assert model.task.max_length == 12
    pair = ("the river rose in the night", "nobody crossed the river before noon")
    assert len(model.rows_of([TextExample(*pair, None, None, "", 0)])[0][0].ids[0]) == 12
    convert(str(folder), tmp_path / "converted", to_format="huggingface")
    np.testing.assert_allclose(load(tmp_path / "converted").score([pair]), model.score([pair]), atol=1e-6)


def test_several_labels_have_scores_and_no_ranking(goldens):
    model = load(goldens / "released_heads" / "roberta_nli3")
    assert model.score([("a river", "a bridge")] * 2).shape == (2, 3)
    with pytest.raises(ValueError, match=r"this model has 3 labels \(CONTRADICTION, NEUTRAL, ENTAILMENT\)"):
        model.rank("a river", ["a bridge"])


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("request_scores", "message"),
    [
        (lambda model: model.score(["a"]), r"pair 0 is 'a'; expected \(text, text\)"),
        (lambda model: model.score([("a", None)]), r"pair 0 is .*; expected \(text, text\)"),
        (lambda model: model.rank("a", ["b"], top_k=0), "top_k=0"),
    ],
)
def test_wrong_requests_are_refused(request_scores, message):
    with pytest.raises(ValueError, match=message):
        request_scores(reranker()[0])


def test_models_of_single_texts_have_no_scores(tmp_path):
    from bert_elmo_jax.serve.served_model import ServedModel

    from .test_task_model import write

    texts = {"text": "review", "label": "stars", "regression": True}
    model = load(write(tmp_path / "run", "regression", layout=Layout(**texts)))
    with pytest.raises(ValueError, match=r"read pairs of texts, and .*run was trained on single texts"):
        model.rank("the ship", ["ship", "the old ship"])
    assert not ServedModel(model).ranks
    pairs = load(write(tmp_path / "pairs", "regression", layout=Layout(**texts, pair="answer")))
    assert len(pairs.rank("the ship", ["ship", "the old ship"])) == 2 and ServedModel(pairs).ranks


def test_a_tagger_has_no_scores(goldens):
    with pytest.raises(ValueError, match="this one predicts tags"):
        load(goldens / "released_heads" / "bert_ner").score([("a", "b")])
