"""Examples of `bert_elmo_jax.runs.task_scores`."""

from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.inference.predictions import Label
from bert_elmo_jax.runs.task_scores import Mistake, count_confusions, figures_of, score_name


def test_example_of_mistake():
    assert Mistake("dev.tsv:2", "정말 재미있다", "1", "0", 0.99).sure == 0.99


def test_example_of_figures_of():
    from bert_elmo_jax.data.tasks import TextExample

    task = Task("sst2", "classification", labels=("0", "1"))
    examples = [TextExample("…", None, label, None, "dev.tsv", 2) for label in ("0", "1")]
    assert figures_of(task, examples, [Label("1", 0.5, {}), Label("1", 0.5, {})]) == {"accuracy": 0.5}


def test_example_of_count_confusions():
    assert count_confusions(["0", "1"], ["0", "1", "1"], ["1", "1", "1"])[("0", "1")] == 1


def test_example_of_score_name():
    from bert_elmo_jax.data.tasks.task import task_named

    assert [score_name(task_named(name)) for name in ("cola", "stsb", "uner", "ud_upos", "squad")] == [
        "mcc",
        "pearson",
        "f1",
        "accuracy",
        "f1",
    ]
