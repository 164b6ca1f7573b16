"""Examples of `bert_elmo_jax.runs.task_report`."""

from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.inference.predictions import Label
from bert_elmo_jax.runs.task_report import draw_confusions, find_mistakes


def test_confusions_are_counted():
    assert draw_confusions(["0", "1"], ["0", "1"], ["1", "1"]).count("<tr>") == 3


def test_mistakes_name_their_line():
    from bert_elmo_jax.data.tasks import TextExample

    task = Task("sst2", "classification", labels=("0", "1"))
    example = TextExample("so good", None, "1", None, "dev.tsv", 2)
    assert [mistake.where for mistake in find_mistakes(task, [example], [Label("0", 0.9, {})])] == ["dev.tsv:2"]
