"""Labelled examples as an endless iterator of batches, for a training loop of your own."""

import functools
from collections.abc import Sequence
from typing import Any

from bert_elmo_jax.data.tasks.batches import TaskBatches, collate
from bert_elmo_jax.data.tasks.packed_batches import choose_packing
from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.text import Tokenizer


def labelled_batches(
    task: Task,
    examples: Sequence[Any],
    tokenizer: Tokenizer,
    batch_size: int,
    *,
    seed: int = 0,
    packed: bool = False,
    positions: int | None = None,
    parts: int = 1,
) -> TaskBatches:
    """Return endless training batches of examples, in the order of `experiments.finetune` with this seed.

    A batch has `tokens, types, segments` [B, T], the targets of the task (`labels` [B] of a classification or a
    regression, `labels` [B, T] of tags, `starts` and `ends` [B] of questions) and `weights`, 0 for padding. Texts are
    cut at `task.max_length` pieces. If `packed`, rows hold several examples where that takes less time, in rows of at
    most `positions` (of the model; by default `task.max_length`), in numbers that `parts` divides: the batch then also
    has `positions` and `nsp_positions`, and the targets of examples are [B, S].

    >>> import dataclasses
    >>> from bert_elmo_jax.data.tasks import TextExample, task_named
    >>> from bert_elmo_jax.text import train_wordpiece
    >>> texts = [TextExample(text, None, label, None, "", 0) for text, label in (("good", "1"), ("so bad", "0"))]
    >>> task = dataclasses.replace(task_named("classification"), labels=("0", "1"))
    >>> batches = labelled_batches(task, texts, train_wordpiece(["good bad so"] * 9, vocab_size=40), batch_size=2)
    >>> sorted(next(batches)["labels"].tolist()), batches.epoch_size
    ([0, 1], 1)
    """
    rows = make_rows(task, examples, tokenizer)
    padded = functools.partial(collate, limit=task.max_length, pad_id=tokenizer.pad_id)
    if not packed:
        return TaskBatches(rows, batch_size, seed, padded)
    packing, _ = choose_packing(
        rows, batch_size, parts, limit=task.max_length, positions=positions or task.max_length, pad_id=tokenizer.pad_id
    )
    return TaskBatches(rows, batch_size, seed, packing or padded, even=packing is not None)
