"""Examples of `bert_elmo_jax.runs.task_report`."""

from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.inference.predictions import Label
from bert_elmo_jax.runs.task_report import Mistake, draw_confusions, figures_of, find_mistakes, score_name


def test_example_of_mistake():
    assert Mistake("dev.tsv:2", "정말 재미있다", "1", "0", 0.99).sure == 0.99


def test_example_of_figures_of():
    from bert_elmo_jax.data.tasks import TextExample

    task = Task("sst2", "classification", labels=("0", "1"))
    examples = [TextExample("…", None, label, None, "dev.tsv", 2) for label in ("0", "1")]
    assert figures_of(task, examples, [Label("1", 0.5, {}), Label("1", 0.5, {})]) == {"accuracy": 0.5}


def test_confusions_are_counted():
    assert draw_confusions(["0", "1"], ["0", "1"], ["1", "1"]).count("<tr>") == 3


def test_mistakes_name_their_line():
    from bert_elmo_jax.data.tasks import TextExample

    task = Task("sst2", "classification", labels=("0", "1"))
    example = TextExample("so good", None, "1", None, "dev.tsv", 2)
    assert [mistake.where for mistake in find_mistakes(task, [example], [Label("0", 0.9, {})])] == ["dev.tsv:2"]


def test_example_of_score_name():
    from bert_elmo_jax.data.tasks.task import task_named

    assert [score_name(task_named(name)) for name in ("cola", "stsb", "uner", "ud_upos", "squad")] == [
        "mcc",
        "pearson",
        "f1",
        "accuracy",
        "f1",
    ]
