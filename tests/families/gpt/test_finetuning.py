"""Fine-tuning a GPT: heads on the last piece, new pieces around texts, both orders, and the term of next pieces."""

import dataclasses
import functools
import importlib
import json

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.batches import collate
from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.packed_batches import PackedBatches, Shape
from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.heads.task_head import TaskHead, task_loss, task_outputs
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.inference.task_model import make_head
from bert_elmo_jax.runs.framed import add_rows
from bert_elmo_jax.text import load_tokenizer
from bert_elmo_jax.text.framing import NEW_PIECES, add_frame, has_frame
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics

from ...experiments.task_files import write_task


@pytest.fixture(scope="module")
def gpt2(goldens):
    return load(goldens / "gpt2_tiny")


def rows_of(model, texts, **task):
    """Return the rows of pairs of texts, without special pieces."""
    examples = [TextExample(a, b, None, None, "x", n) for n, (a, b) in enumerate(texts)]
    pair_task = Task("mrpc", "classification", labels=("0", "1", "2"), max_length=64, **task)
    return pair_task, make_rows(pair_task, examples, model.tokenizer, labelled=False)


TEXTS = [("the sea", "a ship"), ("배를 타고", "river"), ("a", "to the river and the sea")]


def packed(rows, pad_id=0, choices=1):
    return PackedBatches((Shape(2, 64),), pad_id, choices=choices)(rows, len(rows))


def states_of(model, rows):
    """Return the last states and the scores of next pieces of each text of some rows."""
    texts = [ids for row in rows for ids in row.ids]
    tokens = np.array([[*ids, *[0] * (64 - len(ids))] for ids in texts], np.int32)
    output = model.forward(tokens)
    return [(np.asarray(output.last)[n, : len(ids)], output.logits[n, : len(ids)]) for n, ids in enumerate(texts)]


@pytest.mark.parametrize("both_orders", [pytest.param(False, marks=pytest.mark.long), True])
def test_the_head_reads_the_last_piece(gpt2, both_orders):
    task, rows = rows_of(gpt2, TEXTS, both_orders=both_orders)
    head = make_head(task, None, gpt2.config)
    assert head.at_end and head.pooled and not head.use_bias
    kernel = np.random.default_rng(0).normal(size=(48, 3)).astype(np.float32)
    params = {**gpt2.params, "classify": {"kernel": kernel}}
    outputs = jax.jit(functools.partial(task_outputs, gpt2.family.build(gpt2.config, pooler=True), head, params))
    ends = np.array([states[-1] for states, _ in states_of(gpt2, rows)]).reshape(3, 1 + both_orders, 48)
    expected_scores = ends.sum(axis=1) @ kernel
    for batch in (collate(rows, 3, 64, 0), packed(rows, choices=1 + both_orders)):
        scores = np.asarray(outputs(batch)).reshape(-1, 3)
        scores = scores[: len(expected_scores)] if "nsp_positions" not in batch else scores
        for row in expected_scores:
            assert np.abs(scores - row).max(axis=1).min() < 1e-4
    if both_orders:
        turned = rows_of(gpt2, [(b, a) for a, b in TEXTS], both_orders=True)[1]
        np.testing.assert_allclose(*(outputs(collate(pair_rows, 3, 64, 0)) for pair_rows in (rows, turned)), atol=1e-4)


def test_the_term_of_next_pieces_is_a_mean_of_texts(gpt2):
    _, rows = rows_of(gpt2, TEXTS)
    head = TaskHead("classification", 3, at_end=True, use_bias=False)
    params = {**gpt2.params, "classify": {"kernel": np.zeros((48, 3), np.float32)}}
    module, lm = gpt2.family.build(gpt2.config, pooler=True), gpt2.family.head("lm", gpt2.config)

    def score_next(params, states):
        return lm.apply({}, states, params["encoder"]["embeddings"]["word"])

    loss, means = jax.jit(task_loss(module, head, score_next=score_next)), []
    for row, (_, logits) in zip(rows, states_of(gpt2, rows)):
        log = np.asarray(jax.nn.log_softmax(logits))[:-1]
        means.append(-np.mean(log[np.arange(len(log)), row.ids[0][1:]]))
    for batch in (collate(rows, 3, 64, 0), packed(rows)):
        shape = batch["nsp_positions"].shape if "nsp_positions" in batch else (3,)
        batch |= {"labels": np.zeros(shape, np.int32), "weights": np.ones(shape, np.float32)}
        total, weight = loss(params, batch, None, None)[0]["lm"]
        assert float(weight) == pytest.approx(len(rows))
        assert float(total) == pytest.approx(float(sum(means)), rel=1e-5)
    assert set(jax.eval_shape(task_loss(module, head), params, batch, None, None)[0]) == {"cross_entropy"}


@pytest.mark.parametrize("name", ["gpt2_tiny", "gpt_tiny"])
def test_new_pieces_around_texts(goldens, name, tmp_path):
    plain = load_tokenizer(goldens / "tokenizers" / name)
    framed = add_frame(plain)
    assert not has_frame(plain) and has_frame(framed)
    for tokenizer in (framed, save_and_load(framed, tmp_path)):
        size = plain.vocab_size
        assert tokenizer.tokens[size:] == NEW_PIECES and tokenizer.fingerprint == framed.fingerprint
        one, two = (plain.encode(text).ids.tolist() for text in ("The ship", "sails."))
        assert tokenizer.encode("The ship").ids.tolist() == [size, *one, size + 2]
        assert tokenizer.encode("The ship", "sails.").ids.tolist() == [size, *one, size + 1, *two, size + 2]
        assert tokenizer.pad_id == plain.pad_id and tokenizer.unk_id == plain.unk_id
        assert tokenizer.encode_lines(["<|start|>"])[0].tolist() == plain.encode_lines(["<|start|>"])[0].tolist()
    with pytest.raises(ValueError, match=r"already has <\|start\|>"):
        add_frame(framed)


def save_and_load(tokenizer, folder):
    tokenizer.save(folder)
    return load_tokenizer(folder)


def test_fresh_rows_leave_the_others_alone():
    table = np.arange(10.0, dtype=np.float32).reshape(5, 2)
    params = {"encoder": {"embeddings": {"word": table, "position": 0}}}
    new_table = np.asarray(add_rows(params, 4, 9, 0.1, seed=1)["encoder"]["embeddings"]["word"])
    assert new_table.shape == (9, 2) and (new_table[:4] == table[:4]).all() and (new_table[7:] == 0).all()
    assert 0 < np.abs(new_table[4:7]).max() < 0.5


@pytest.fixture(scope="module")
def tuned(program, gpt2, tmp_path_factory):
    """The first layer of a GPT-2 fine-tuned on pairs, with the term of next pieces and both orders."""
    folder = tmp_path_factory.mktemp("tuned")
    encoder = {name: part for name, part in gpt2.params["encoder"].items() if name not in ("layer_1", "layer_2")}
    config = dataclasses.replace(gpt2.config, num_layers=1)
    write_run_directory(folder / "start", config, {"encoder": encoder}, gpt2.tokenizer, run={})
    fields = {"lm_weight": 0.5, "both_orders": True, "epochs": 1.0, "batch_size": 8, "max_length": 60}
    run(program, config_of(write_task(folder, "qnli"), **fields), folder / "run", folder / "start")
    return folder / "run"


def config_of(files, **changes):
    config = importlib.import_module("experiments.configs.finetune").get_config()
    config.update({**files, **changes})
    config.optimizer.update({"name": "adamw", "learning_rate": 1e-3})
    return config


def run(program, config, workdir, init):
    return program("bert_elmo_jax.runs.finetuning").finetune(config, workdir, init=str(init))


@pytest.mark.long
def test_fine_tuned_on_pairs(tuned, goldens):
    lines = read_metrics(tuned)
    assert all("lm" in str(sorted(line)) for line in lines if "loss" in line)
    assert json.loads((tuned / "result.json").read_text("utf-8"))["dev"]
    model = load(tuned)
    assert model.task.both_orders and model.config.vocab_size == 403
    assert model.tokenizer.encode("a", "b").tokens == ("<|start|>", "a", "<|delimiter|>", "b", "<|extract|>")
    one, other = (model.predict([pair])[0] for pair in (("a good film", "the boat"), ("the boat", "a good film")))
    assert one.label == other.label
    np.testing.assert_allclose(list(one.probabilities.values()), list(other.probabilities.values()), atol=1e-4)
    before = load(goldens / "gpt2_tiny").params["encoder"]["embeddings"]["word"]
    after = load_params(tuned)[1]["encoder"]["embeddings"]["word"]
    assert after.shape == (403, 48) and np.abs(after[:400] - before).max() < 0.1


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("qnli", {"lm_weight": -1.0}, "config.lm_weight=-1.0: expected a number from 0"),
        ("qnli", {"lm_weight": 0.5, "transfer": "frozen"}, "lm_weight=0.5 with transfer=frozen would change nothing"),
        ("sst2", {"both_orders": True}, "both_orders is for pairs of texts .* the task sst2 has none"),
        ("sst2", {"lm_weight": 0.5, "max_length": 40}, r"is for models that predict the next piece .* a BERT does not"),
    ],
)
def test_wrong_configs_are_refused(program, goldens, tmp_path, task, changes, message):
    files, model = write_task(tmp_path / "files", task), "bert_tiny" if "BERT" in message else "gpt2_tiny"
    with pytest.raises(ValueError, match=message):
        run(program, config_of(files, **{"max_length": 60, **changes}), tmp_path / "run", goldens / model)


@pytest.mark.parametrize(
    ("preset", "norm_first"), [pytest.param("gpt2", True, marks=pytest.mark.long), ("gpt-gpt", False)]
)
def test_a_size_from_scratch_has_the_vocabulary_of_the_tokenizer(program, goldens, preset, norm_first):
    config = config_of({"preset": preset})
    start = program("bert_elmo_jax.runs.with_head").start_head(config, None, str(goldens / "bert_tiny"))
    fields = (start.model.vocab_size, start.model.pad_id, start.model.end_id, start.model.norm_first)
    assert fields == (start.tokenizer.vocab_size, start.tokenizer.pad_id, start.tokenizer.sep_id, norm_first)
