"""Training of sentence vectors: one loss on any devices and in any rows, and runs that end as sentence models."""

import dataclasses
import importlib
import json
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

from bert_elmo_jax import load, train
from bert_elmo_jax.data.tasks.batches import collate
from bert_elmo_jax.data.tasks.packed_batches import PackedBatches, Shape
from bert_elmo_jax.data.tasks.rows import Row
from bert_elmo_jax.data.tasks.task import read_examples
from bert_elmo_jax.evals.glue import spearman
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_task_params
from bert_elmo_jax.heads.sentence_head import Dense, SentenceHead
from bert_elmo_jax.heads.sentence_task import sentence_loss
from bert_elmo_jax.heads.task_head import TaskHead, coefficients
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.train.metrics import read_metrics

from ..experiments.task_files import write_model, write_task
from ..heads.test_packed_rows import CONFIG

PLAIN = dataclasses.replace(CONFIG, dropout=0.0, attention_dropout=0.0)
HEAD = TaskHead("sentences", sentences=SentenceHead(("mean",), (Dense(CONFIG.hidden_size, 6), "normalize")))


def make_rows(count):
    """Return triplets; two of them share their anchor."""
    draw = np.random.default_rng(0)
    rows = []
    for n in range(count):
        ids = tuple(draw.integers(5, CONFIG.vocab_size, draw.integers(3, 9)).astype(np.int32) for _ in range(3))
        if n == 1:
            ids = rows[0].ids[:1] + ids[1:]
        targets = {"anchors": max(n, 1), "positives": 100 + n, "negatives": 200 + n, "weights": 1.0}
        rows.append(Row(n, ids, tuple(one * 0 for one in ids), targets))
    return rows


def update(params, batch, placement, **options):
    axis = placement.axis
    loss = sentence_loss(FAMILY.build(PLAIN, pooler=False), HEAD, "in_batch", axis=axis, **options)
    step = train.make_step(loss, optax.sgd(1.0), coefficients("sentences"), axis=axis)
    state = train.new_state(params, optax.sgd(1.0), jax.random.key(0))
    parallel = placement.compile(step, state)
    state, metrics = parallel.step(parallel.place(state), parallel.put(batch))
    return jax.device_get((parallel.gather(state).params, metrics["loss"]))


WAYS = [(1, "jit"), *(pytest.param(8, way, marks=pytest.mark.devices) for way in ("jit", "pmap"))]


@pytest.mark.parametrize(("devices", "way"), WAYS)
def test_in_batch_negatives_are_those_of_all_devices_and_rows(devices, way):
    params = jax.tree.map(np.asarray, init_task_params(FAMILY, CONFIG, HEAD, jax.random.key(1)))
    rows = make_rows(14)
    (changed, loss) = update(
        params, collate(rows, 16, 16, 0), train.Placement(train.make_mesh(devices=jax.devices()[:1]))
    )
    assert loss > 1.0 and not np.array_equal(changed["sentence"]["dense_0"]["bias"], np.zeros(6))
    batch = PackedBatches((Shape(8, 56),), 0, devices, choices=3)(rows, 16)
    mesh = train.make_mesh(devices=jax.devices()[:devices])
    outcome = update(params, batch, train.Placement(mesh) if way == "jit" else train.Placement(axis=train.DEVICES))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5), outcome, (changed, loss))


@pytest.mark.long
def test_a_batch_in_parts_has_the_loss_and_the_gradient_of_the_whole_batch():
    """Also with positives that look for their anchors, and at several widths."""
    params = jax.tree.map(np.asarray, init_task_params(FAMILY, CONFIG, HEAD, jax.random.key(1)))
    placement, batch = train.Placement(train.make_mesh(devices=jax.devices()[:1])), collate(make_rows(14), 16, 16, 0)
    options = {"both_ways": True, "widths": (6, 2)}
    full_update, parts = (update(params, batch, placement, parts=parts, **options) for parts in (1, 4))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), full_update, parts)
    narrow = [update(params, batch, placement, both_ways=True, widths=(width,))[1] for width in (6, 2)]
    np.testing.assert_allclose(full_update[1], sum(narrow), rtol=1e-6)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model") / "bert")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_task(tmp_path_factory.mktemp("files"), "sentences")


def config_of(files, **changes):
    config = importlib.import_module("experiments.configs.finetune").get_config("sentences")
    config.update({**files, "epochs": 3.0, "max_length": 32, "dropout": 0.0})
    config.optimizer.learning_rate = 5e-3
    config.update_from_flattened_dict(changes)
    return config


def test_from_scores_to_a_folder(files, model, tmp_path):
    fields = {"sentences.pooling": "cls+mean", "sentences.normalize": True, "log_every": 1}
    assert finetune(config_of(files, **fields), tmp_path / "run", init=str(model)) == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["score"] == "spearman" and set(result["dev"]) == {"spearman", "pearson"}
    losses = [line["loss"] for line in read_metrics(tmp_path / "run") if "loss" in line]
    assert losses[-1] < losses[0] / 2
    trained_model = load(tmp_path / "run")
    assert "pooler" not in trained_model.params["encoder"]  # which no vector reads
    assert trained_model.sentence_head == SentenceHead(("cls", "mean"), ("normalize",), 32)
    a, b = trained_model.sentences(["the good film", "좋다 영화"])
    assert trained_model.predict([("the good film", "좋다 영화")])[0].value == pytest.approx(float(a @ b), abs=1e-5)
    convert(str(tmp_path / "run"), tmp_path / "out")
    assert np.array_equal(load(tmp_path / "out").sentences(["the good film"])[0], a)


@pytest.mark.long
@pytest.mark.parametrize("loss", ["in_batch", pytest.param("triplets", marks=pytest.mark.long)])
def test_pairs_and_triplets_are_learned(files, model, tmp_path, loss):
    """Texts about good and about bad films: a pair has the same opinion."""
    rows = [line.split("\t") for line in Path(files["train"]).read_text(encoding="utf-8").splitlines()[1:]]
    same, other = ([row for row in rows if (float(row[2]) == 5.0) == equal] for equal in (True, False))
    lines = [
        f"{a}\t{b}" + (f"\t{other[n % len(other)][0]}" if loss == "triplets" else "")
        for n, (a, b, _) in enumerate(same)
    ]
    head = "anchor\tpositive" + "\tnegative" * (loss == "triplets")
    (tmp_path / "train.tsv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    config = config_of({**files, "train": str(tmp_path / "train.tsv")}, epochs=1.0)
    assert finetune(config, tmp_path / "run", init=str(model)) == 0
    trained_model = load(tmp_path / "run")
    assert trained_model.task.loss == loss and trained_model.task.top_score == 5.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sentences.both_ways": True}, "both_ways is for the loss in_batch, and this is scores: leave it out"),
        ({"sentences.widths": "64,65"}, "widths='64,65': expected different numbers from 1 to"),
        ({"sentences.widths": "8;4"}, "widths='8;4': expected different numbers from 1 to"),
        ({"sentences.pooling": "meen"}, "pooling 'meen' is not known"),
        ({"transfer": "frozen"}, "leaves nothing to train"),
        ({"features.layers": "-1"}, "sentences read the last layer"),
        ({"dev": "0.001"}, "would be 0 of them"),
    ],
)
def test_refused(files, model, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        finetune(config_of(files, **changes), tmp_path / "run", init=str(model))


@pytest.mark.long
def test_order_of_scores_in_parts_and_widths(files, model, tmp_path):
    fields = {"sentences.loss": "cosent", "sentences.widths": "16,4", "accumulate": 2, "log_every": 1}
    assert finetune(config_of(files, **fields), tmp_path / "run", init=str(model)) == 0
    losses = [line["loss"] for line in read_metrics(tmp_path / "run") if "loss" in line]
    assert np.mean(losses[-4:]) < 0.8 * losses[0]


@pytest.mark.long
def test_a_model_with_a_pooling_keeps_it(files, model, tmp_path):
    encoder = load(model)
    prompts = {"prompts": (("a", "film: "),), "default_prompt": "a"}
    encoder.sentence_head = SentenceHead(("max",), max_length=20, vector_width=4, **prompts)
    encoder.save_sentences(tmp_path / "max")
    with pytest.raises(ValueError, match="the model given by --init pools by max: leave them out"):
        finetune(config_of(files, **{"sentences.pooling": "mean"}), tmp_path / "run", init=str(tmp_path / "max"))
    assert finetune(config_of(files, epochs=0.5, max_length=0), tmp_path / "run", init=str(tmp_path / "max")) == 0
    trained_model = load(tmp_path / "run")
    assert trained_model.sentence_head == encoder.sentence_head and trained_model.task.prompt == "film: "
    a, b = trained_model.sentences(["the good film", "좋다 영화"])
    cosine = float(a @ b) / np.linalg.norm(a) / np.linalg.norm(b)
    assert trained_model.predict([("the good film", "좋다 영화")])[0].value == pytest.approx(float(cosine), abs=1e-5)
    dev = read_examples(files["dev"], trained_model.task)
    first, second = (trained_model.sentences([pair.texts[n] for pair in dev]) for n in (0, 1))
    cosines = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in zip(first, second)]
    score = json.loads((tmp_path / "run" / "result.json").read_text())["dev"]["spearman"]
    assert score == pytest.approx(spearman([pair.label for pair in dev], cosines), abs=1e-4)
