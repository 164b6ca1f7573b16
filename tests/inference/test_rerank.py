"""Rerankers score and rank as sentence-transformers' cross-encoders do; frozen scores, and wrong requests."""

import functools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bert_elmo_jax import load

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
    (folder / "modules.json").write_text(json.dumps(modules * 2), encoding="utf-8")
    with pytest.raises(ValueError, match="only rerankers of one module"):
        load(folder)


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


def test_a_tagger_has_no_scores(goldens):
    with pytest.raises(ValueError, match="this one predicts tags"):
        load(goldens / "released_heads" / "bert_ner").score([("a", "b")])
