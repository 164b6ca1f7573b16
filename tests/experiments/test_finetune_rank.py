"""A reranker from pairs with labels to a ranking, a folder of sentence-transformers, and refused labels."""

import json
import shutil

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.task import check_labels, read_examples, task_named
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_task_params
from bert_elmo_jax.heads.task_head import TaskHead, coefficients, task_loss
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.runs.with_head import find_prompt, prepare_head, start_head

from .test_finetune import config_of

WORDS = ["river", "bridge", "bread", "clock"]


def write_pairs(path, labels=(0, 1)):
    rows = [f"{query},the {text},{labels[query == text]}" for query in WORDS for text in WORDS]
    path.write_text("\n".join(["query,passage,label", *rows * 2]), encoding="utf-8")
    return str(path)


@pytest.mark.long
@pytest.mark.usefixtures("one_device")
def test_from_pairs_to_a_ranking(goldens, tmp_path):
    file = write_pairs(tmp_path / "pairs.csv")
    config = config_of({"task": "rank", "train": file, "dev": file}, epochs=40.0, eval_every=80, dropout=0.0)
    assert finetune(config, tmp_path / "run", init=str(goldens / "reranker")) == 0
    assert json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))["dev"]["spearman"] > 0.7
    model = load(tmp_path / "run")
    pairs = [(query, f"the {text}") for query in WORDS for text in WORDS]
    scores = model.score(pairs)
    assert [prediction.value for prediction in model.predict(pairs)] == pytest.approx(scores.tolist())
    assert ((scores > 0) & (scores < 1)).all()
    best = [model.rank(query, [f"the {text}" for text in WORDS], top_k=1)[0].index for query in WORDS]
    assert best == [0, 1, 2, 3]
    convert(str(tmp_path / "run"), tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["sentence_transformers"]["activation_fn"]
    np.testing.assert_allclose(load(tmp_path / "out").score(pairs), scores, atol=1e-6)


def test_a_released_reranker_keeps_its_head_and_its_prompt(goldens, tmp_path):
    folder = shutil.copytree(goldens / "reranker", tmp_path / "released")
    settings = {"model_type": "CrossEncoder", "prompts": {"query": "Who "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings), encoding="utf-8")
    file = write_pairs(tmp_path / "pairs.csv")
    config = config_of({"task": "rank", "train": file, "dev": file})
    start = start_head(config, str(folder), None)
    prepared = prepare_head(config, read_data(config), start, report=False)
    jax.tree.map(np.testing.assert_array_equal, prepared.params["classify"], start.stored.params["classify"])
    assert prepared.task.prompt == "Who "
    expected = start.tokenizer.encode("Who river", "the river").ids
    np.testing.assert_array_equal(prepared.rows[0].ids[0], expected)
    convert(str(folder), tmp_path / "run", to_format="run")
    assert find_prompt(read_model(tmp_path / "run")) == "Who "


def test_labels_outside_of_0_and_1_are_refused(tmp_path):
    task = task_named("rank")
    examples = read_examples(write_pairs(tmp_path / "pairs.csv", labels=(0, 5)), task)
    with pytest.raises(BadRow, match=r"the label 5.0, and labels of rank are 0, 1 or between them"):
        check_labels(task, examples)


def test_the_loss_is_the_cross_entropy_of_the_label():
    head = TaskHead("regression", logistic=True)
    config = FAMILY.config(vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=16)
    params = init_task_params(FAMILY, config, head, jax.random.key(0))
    params["classify"] = {"kernel": np.zeros((8, 1), np.float32), "bias": np.full(1, 2.0, np.float32)}
    ones = np.ones((3, 4), np.int32)
    labels, weights = np.array([0.0, 0.25, 1.0], np.float32), np.array([1.0, 1.0, 0.0], np.float32)
    batch = {"tokens": ones, "types": ones * 0, "segments": ones, "labels": labels, "weights": weights}
    terms, _, _ = task_loss(FAMILY.build(config, pooler=True), head)(params, batch, None, None)
    p = 1 / (1 + np.exp(-2.0))
    expected = -np.log(1 - p) - 0.25 * np.log(p) - 0.75 * np.log(1 - p)
    assert terms.keys() == coefficients("regression", logistic=True).keys()
    np.testing.assert_allclose(terms["cross_entropy"], (expected, 2.0), rtol=1e-5)
