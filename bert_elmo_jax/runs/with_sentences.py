"""Settings of a run on sentence vectors: the pooling of the model that it starts from, or of its config."""

import dataclasses
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.heads.sentence_head import SentenceHead
from bert_elmo_jax.inference.run_directory import StoredModel


def prepare_sentences(
    config: ConfigDict, task: Task, stored: StoredModel | None, positions: int
) -> tuple[Task, SentenceHead]:
    """Return the task with the model's prompt and length, and the head with the pooling of model or config."""
    c = config.sentences
    if config.features.layers:
        raise ValueError(f"config.features.layers={config.features.layers!r}: sentences read the last layer; leave it")
    head = stored.sentences if stored is not None else None
    if head is not None and (c.pooling or c.normalize):
        raise ValueError(
            "config.sentences.pooling and normalize are for encoders that have no pooling yet; the model given by "
            f"--init pools by {'+'.join(head.pooling)}: leave them out"
        )
    if head is None:
        if stored is not None and stored.pooling_unread and not c.pooling:
            raise ValueError(f"{stored.pooling_unread}: copy it there, or choose with config.sentences.pooling=mean")
        pooling = tuple(str(c.pooling or "mean").split("+"))
        head = SentenceHead(pooling, ("normalize",) if c.normalize else ())
    if config.transfer == "frozen" and not head.shapes():
        raise ValueError("config.transfer=frozen leaves nothing to train: the model has no dense layer")
    if head.prompt and not head.include_prompt:
        raise ValueError(
            f"the default prompt {head.prompt!r} is left out of the pooling, which training does not support"
        )
    length = config.max_length or min(head.max_length or task.max_length, positions)
    task = dataclasses.replace(task, max_length=length, prompt=head.prompt, lowercase=head.lowercase)
    return task, dataclasses.replace(head, max_length=length)


def loss_options(config: ConfigDict, task: Task, full: int) -> dict[str, Any]:
    """Return the options of `sentence_loss` for vectors of `full` numbers."""
    c = config.sentences
    if c.both_ways and task.loss != "in_batch":
        raise ValueError(f"config.sentences.both_ways is for the loss in_batch, and this is {task.loss}: leave it out")
    widths = read_widths(c.widths, full)
    return {"kind": task.loss, "scale": c.scale, "margin": c.margin, "both_ways": c.both_ways, "widths": widths}


def read_widths(widths: str, full: int) -> tuple[int, ...]:
    """Return the widths of vectors that are trained together; empty: only the full one.

    >>> read_widths("384, 128", 384), read_widths("", 384)
    ((384, 128), ())
    """
    try:
        numbers = tuple(int(width) for width in widths.split(",") if width.strip())
    except ValueError:
        numbers = (0,)
    if any(not 1 <= width <= full for width in numbers) or len(set(numbers)) < len(numbers):
        raise ValueError(f"config.sentences.widths={widths!r}: expected different numbers from 1 to {full}: 256,128,64")
    return numbers
