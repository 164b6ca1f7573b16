"""RoBERTa on texts: its tokenizer, pairs with two separators, windows, every kind of task, and the exported folder."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.families.init_params import init_task_params
from bert_elmo_jax.families.roberta.family import RobertaConfig
from bert_elmo_jax.families.roberta.formats import WEIGHTS
from bert_elmo_jax.inference import TaskModel
from bert_elmo_jax.inference.task_model import make_head, to_example
from bert_elmo_jax.runs.task_report import attention_maps

from ..huggingface_models import Model, random_params

write = WEIGHTS.write

CLS, PAD, SEP = 0, 1, 2
PAIR = ("the ship sank", "at night the harbour was still, and nobody saw the ship")


@pytest.fixture(scope="module")
def model(goldens):
    return load(goldens / "roberta_tiny")


def test_texts_are_encoded_as_in_transformers(model, goldens):
    cases = json.loads((goldens / "roberta_tiny" / "encodings.json").read_text(encoding="utf-8"))
    for case in cases["single"]:
        assert model.tokenizer.encode(case["text"]).ids.tolist() == case["ids"], case["text"]
    for case in cases["pairs"]:
        assert model.tokenizer.encode(case["a"], case["b"]).ids.tolist() == case["ids"], case


@pytest.mark.parametrize("overflow", ["truncate", "windows"])
def test_a_long_pair_keeps_both_separators_between_its_texts(model, overflow):
    full_encoding = model.tokenizer.encode(*PAIR)
    encoding = model.encode([PAIR], overflow=overflow, max_length=24, stride=4)
    [pair] = encoding.texts
    assert pair.ids[[0, -1]].tolist() == [CLS, SEP] and (pair.ids == SEP).sum() == 3 and not pair.types.any()
    at = int(np.flatnonzero(pair.ids == SEP)[0])
    assert pair.ids[at + 1] == SEP and pair.second == at + 2
    if overflow == "truncate":
        assert len(pair) == 24
        np.testing.assert_allclose(encoding.last[0], model.forward(pair.ids[None]).last[0], atol=2e-5)
    else:
        assert pair.ids.tolist() == full_encoding.ids.tolist()
        first = np.append(full_encoding.ids[:23], SEP)  # of the windows
        vectors = model.forward(first[None]).last[0]
        np.testing.assert_allclose(encoding.last[0, : pair.second], vectors[: pair.second], atol=2e-5)


TASKS = {
    "qnli": (("labels",), [PAIR, ("the sea", "a ship"), ("x", "y " * 40)]),
    "squad": ((), [(PAIR[0], f"{PAIR[1]} " * 3), ("who ?", "the captain")]),
    "ner": (("labels",), ["the captain sank", "harbour", "still water " * 12]),
    "swag": ((), [("the ship", ["sank", "was still, at night", "saw"]), ("x", ["y", "z"])]),
}


@pytest.mark.parametrize("name", ["qnli", *(pytest.param(n, marks=pytest.mark.long) for n in TASKS if n != "qnli")])
def test_a_prediction_depends_on_its_example_alone(model, name):
    labelled, inputs = TASKS[name]
    task = dataclasses.replace(task_named("entities" if name == "ner" else name), max_length=32)
    task = dataclasses.replace(task, **({"labels": ("B-LOC", "O")} if labelled else {}))
    head = make_head(task, None, model.config)
    params = jax.device_get(jax.jit(lambda: init_task_params(model.family, model.config, head, jax.random.key(0)))())
    encoder = {**params["encoder"], **model.params["encoder"]}
    params = jax.tree.map(lambda x: x * np.float32(8), params) | {"encoder": encoder}
    tuned = TaskModel(model.family, model.config, params, model.tokenizer, "a test", task)
    examples = [to_example(task, value, n) for n, value in enumerate(inputs)]
    rows = make_rows(task, examples, model.tokenizer, labelled=False)
    for row in rows:
        for ids, types in zip(row.ids, row.types):
            assert len(ids) <= 32 and ids[0] == CLS and ids[-1] == SEP and not types.any()
            assert (ids == SEP).sum() == (1 if name == "ner" else 3)
    together = tuned.predict(inputs)
    assert [str(one) for one in together] == [str(tuned.predict([value])[0]) for value in inputs]
    names, maps = attention_maps(tuned, inputs[0])
    assert names[0] == "<s>" and maps.shape[0] == 3


def test_klues_wordpiece_with_pad_1_and_no_types(tmp_path):
    pieces = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", "배", "##를", "강", "Ship"]
    config = RobertaConfig(len(pieces), 16, 1, 2, 32, 24)
    write(tmp_path, random_params(Model(config, "", ("mlm",)), scale=0.3), config)
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    about = {"tokenizer_class": "BertTokenizer", "do_lower_case": False}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    model = load(tmp_path)
    encoding = model.tokenizer.encode("배를 [MASK]", "강 Ship")
    assert encoding.ids.tolist() == [0, 5, 6, 4, 2, 7, 8, 2] and not encoding.types.any()
    assert encoding.texts.tolist() == [0] * 5 + [1] * 3
    vectors = model.forward(encoding.ids[None], encoding.types[None]).last[0]
    np.testing.assert_allclose(model.encode([("배를 [MASK]", "강 Ship"), "강"]).last[0], vectors, atol=2e-6)
    assert len(model.fill_mask("배를 [MASK]", top=3)) == 3
