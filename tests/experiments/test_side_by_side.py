"""Seeds that are trained together give the same results as seeds that are trained one by one."""

import itertools

import jax
import numpy as np
import pytest

from bert_elmo_jax import load, train
from bert_elmo_jax.data.tasks.batches import TaskBatches
from bert_elmo_jax.quickstart.compare_seeds import join_batches, train_seeds
from bert_elmo_jax.runs.finetuning import finetune as run_alone
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.runs.with_head import start_head
from bert_elmo_jax.runs.with_network import start_network
from experiments.configs import bcn, finetune

from .task_files import write_model

pytestmark = pytest.mark.usefixtures("one_device")

SEEDS = (3, 1)
# Eleven rows in batches of four: the short batch of an epoch comes at another step with another seed.
TEXTS = [
    "배를 타고",
    "a ship",
    "배를 먹고",
    "a pear and a pear",
    "배",
    "ship",
    "타고 ship",
    "먹고 pear",
    "a",
    "고",
    "ship 배",
]


class Row:
    def __init__(self, number, width):
        self.number, self.width = number, width

    def content(self):
        return bytes([self.number, self.width])


def numbers(rows, height):
    width = max(row.width for row in rows)
    batch = {"numbers": np.zeros((height, width), np.int32), "weights": np.zeros(height, np.float32)}
    for n, row in enumerate(rows):
        batch["numbers"][n, : row.width] = row.number + 1
        batch["weights"][n] = 1
    return batch


@pytest.mark.parametrize("count", [1, 4, 11])
def test_each_seed_has_the_batches_it_would_have_alone(count):
    rows = [Row(n, 1 + n * 5 % 7) for n in range(count)]
    together = itertools.islice(join_batches(rows, 4, SEEDS, numbers), 9)
    separate_batches = [TaskBatches(rows, 4, seed, numbers) for seed in SEEDS]
    for batch in together:
        for at, seed_batches in enumerate(separate_batches):
            expected = next(seed_batches)
            width = expected["numbers"].shape[1]
            np.testing.assert_array_equal(batch["weights"][at], expected["weights"])
            np.testing.assert_array_equal(batch["numbers"][at, :, :width], expected["numbers"])
            assert not batch["numbers"][at, :, width:].any()


@pytest.fixture
def files(tmp_path):
    for name, count in (("train", 11), ("dev", 6)):
        lines = [f"{text}\t{int('배' in text)}\n" for text in TEXTS[:count]]
        (tmp_path / f"{name}.tsv").write_text("text\tlabel\n" + "".join(lines), encoding="utf-8")
    return tmp_path


def fill_config(config, files):
    config.task, config.text, config.label = "classification", "text", "label"
    config.train, config.dev = str(files / "train.tsv"), str(files / "dev.tsv")
    config.batch_size, config.epochs, config.patience = 4, 2.0, 0
    config.eval_every = 100
    return config


def compare(config, files, start):
    data = read_data(config)
    together = train_seeds(config, files / "together", data, start, SEEDS)
    assert [(run.seed, run.step) for run in together] == [(seed, 6) for seed in SEEDS]
    config.seed, run = SEEDS[-1], together[-1]
    assert run_alone(config, files / "alone", tokenizer=None if "network" in config else config.preset) == 0
    single_model = load(files / "alone")
    for path, (a, b) in zip_trees(run.params, single_model.params):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5, err_msg=path)
    assert [p.label for p in run.predictions] == [p.label for p in single_model.predict_examples(data.dev)]


def zip_trees(a, b):
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(a), jax.tree.leaves(b), strict=True):
        yield jax.tree_util.keystr(path), (np.asarray(x), np.asarray(y))


@pytest.mark.long
def test_a_bert(files):
    config = fill_config(finetune.get_config(), files)
    config.dropout = 0.0
    config.optimizer.learning_rate = 1e-3
    config.preset = str(write_model(files / "model"))
    compare(config, files, start_head(config, None, config.preset))


@pytest.mark.long
def test_a_network(files):
    config = fill_config(bcn.get_config(), files)
    config.update({"dropout": 0.0, "word_dropout": 0.0, "mix_dropout": 0.0, "feed_size": 6, "lstm_size": 3})
    config.word_size = 8
    compare(config, files, start_network(config, None, None))


@pytest.mark.long  # tests/train/test_loop.py has runs that diverge
def test_a_rate_that_is_too_high_is_told(files):
    config = fill_config(finetune.get_config(), files)
    config.update({"dropout": 0.0, "preset": "tests/goldens/bert_tiny", "epochs": 3.0})
    config.optimizer.update({"name": "adamw", "learning_rate": 1e38, "clip": float("inf")})
    with pytest.raises(train.Diverged, match=r"no finite loss with seed 3, 1"):
        train_seeds(
            config, files / "together", read_data(config), start_head(config, None, "tests/goldens/bert_tiny"), SEEDS
        )
