"""A fine-tuned encoder with its task head: examples in, predictions out."""

import functools
import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from bert_elmo_jax.data.rows.widths import height_for
from bert_elmo_jax.data.tasks.batches import Batch, Collate, collate
from bert_elmo_jax.data.tasks.examples import ChoiceExample, Question, TaggedSentence, TextExample
from bert_elmo_jax.data.tasks.rows import Row, check_length, make_rows
from bert_elmo_jax.data.tasks.task import Example, Task
from bert_elmo_jax.encoders.arguments import check_list, check_whole
from bert_elmo_jax.encoders.encoder import BAR_FROM
from bert_elmo_jax.encoders.rows import lone_surrogate, shorten
from bert_elmo_jax.families import Family, find_family
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.task_head import TaskHead, task_outputs
from bert_elmo_jax.inference.predictions import Prediction, make_predictions
from bert_elmo_jax.text import Tokenizer

INPUTS = ("tokens", "types", "segments")
# The inputs of `predict`, by kind of task.
EXPECTED = {
    "classification": "a text, or (text, pair) where the task has pairs",
    "regression": "a text, or (text, pair) where the task has pairs",
    "tags": "a text (split at white space) or a list of words",
    "choice": "(text, [choice, …])",
    "questions": "(question, context)",
}


class Predictor:
    """`predict` for the models of a task."""

    task: Task
    params: dict[str, Any]
    rows_of: Callable[..., Any]  # examples -> rows, the function (parameters, batch) -> outputs, and the collate
    predictions: Callable[..., Any]  # (examples, rows, outputs of each row, n_best) -> predictions

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels or tags of the task."""
        return self.task.labels

    def predict(
        self, inputs: Sequence[Any], *, batch_size: int = 32, n_best: int = 20, progress: bool | None = None
    ) -> list[Prediction]:
        """Return a prediction for each input: a text, a pair (tuple), a list of words, or a (question, context).

        A question has `n_best` candidates. Long inputs are cut, or read in windows, as in training.
        """
        check_list(inputs)
        examples = [to_example(self.task, value, number) for number, value in enumerate(inputs)]
        return self.predict_examples(examples, batch_size=batch_size, n_best=n_best, progress=progress)

    def predict_examples(
        self, examples: Sequence[Example], *, batch_size: int = 32, n_best: int = 20, progress: bool | None = None
    ) -> list[Prediction]:
        """Return a prediction for each example of `read_examples`."""
        batch_size = check_whole("batch_size", batch_size, 1)
        n_best = check_whole("n_best", n_best, 1)
        rows, run, make = self.rows_of(examples)
        bar = len(rows) >= BAR_FROM if progress is None else progress
        found = compute_outputs(functools.partial(run, self.params), rows, batch_size, make, progress=bar)
        return self.predictions(examples, rows, found, n_best)


class TaskModel(Predictor, PieceEncoder):
    """An encoder with the head of its task; made by `load` from the run directory of a fine-tuning run."""

    def __init__(
        self,
        family: Family,
        config: Any,
        params: Mapping[str, Any],
        tokenizer: Tokenizer | None,
        source: str,
        task: Task,
        features: Features | None = None,
    ):
        super().__init__(family, config, params, tokenizer, source)
        check_length(task, config.max_positions)
        self.task = task
        self.head = make_head(task, features, config)
        module = family.build(config, pooler=self.head.pooled)
        # Compiled once for each shape of batch.
        self._scores = jax.jit(functools.partial(task_outputs, module, self.head))

    def rows_of(self, examples: Sequence[Example]) -> tuple[Sequence[Any], Callable[..., Any], Collate]:
        """Return the rows of examples with their functions."""
        rows = make_rows(self.task, examples, self.tokenizer, labelled=False)
        make = functools.partial(collate_inputs, limit=self.task.max_length, pad_id=self.config.pad_id)
        return rows, self._scores, make

    def predictions(
        self, examples: Sequence[Example], rows: Sequence[Any], found: Sequence[Any], n_best: int
    ) -> list[Prediction]:
        """Return the predictions from the scores of rows."""
        return make_predictions(self.task, examples, rows, found, n_best)


def make_head(task: Task, features: Features | None, config: Any) -> TaskHead:
    """Return the head that a task needs on an encoder of this configuration."""
    return TaskHead(
        task.kind, len(task.labels) or 1, features, config.head_dropout, config.initializer_range,
        at_end=find_family(config).causal(config),
    )  # fmt: skip


def to_example(task: Task, value: Any, number: int) -> Example:
    """Return an input of `predict` as an example; raise if it is not an input of the task."""
    pair = isinstance(value, tuple) and len(value) == 2
    where = (f"input {number}", number)
    wrong = f"input {number} is {shorten(value)}; expected "
    if task.kind in ("classification", "regression"):
        texts: tuple[Any, ...] = value if pair else (value,)
        if task.pairs != pair or not all(isinstance(text, str) and text.strip() for text in texts):
            raise ValueError(
                wrong + ("(text, pair), two texts that are not empty" if task.pairs else "a text that is not empty")
            )
        _check_characters(texts, number)
        return TextExample(texts[0], texts[1] if pair else None, None, None, *where)
    if task.kind == "tags":
        words = value.split() if isinstance(value, str) and not task.characters else value
        if isinstance(words, str):
            words = list(words)
        if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
            raise ValueError(f"{wrong}{EXPECTED['tags']}, not empty")
        _check_characters(words, number)
        return TaggedSentence(tuple(words), None, where[0], (number,) * len(words), number)
    if task.kind == "choice":
        if not pair or not isinstance(value[0], str) or not isinstance(value[1], list) or len(value[1]) < 2:
            raise ValueError(f"{wrong}{EXPECTED['choice']}, two choices at least")
        if not all(isinstance(choice, str) and choice.strip() for choice in value[1]):
            raise ValueError(f"{wrong}{EXPECTED['choice']}, texts that are not empty")
        _check_characters([value[0], *value[1]], number)
        return ChoiceExample(value[0], tuple(value[1]), None, None, *where)
    if not pair or not all(isinstance(text, str) and text.strip() for text in value):
        raise ValueError(f"{wrong}{EXPECTED['questions']}, two texts that are not empty")
    _check_characters(value, number)
    return Question(str(number), value[0], value[1], (), *where)


def _check_characters(texts: Sequence[str], number: int) -> None:
    for text in texts:
        if found := lone_surrogate(text):
            raise ValueError(f"input {number} {found}")


def collate_inputs(rows: Sequence[Row], height: int, limit: int, pad_id: int) -> Batch:
    """Return a batch of rows without their targets."""
    batch = collate(rows, height, limit, pad_id)
    return {name: batch[name] for name in INPUTS}


def compute_outputs(
    run: Callable[[Mapping[str, np.ndarray]], Any],
    rows: Sequence[Any],
    batch_size: int,
    collate: Collate,
    *,
    progress: bool = False,
) -> list[Any]:
    """Return the outputs of `run` for each row; `collate` makes a batch from rows with a `width`, and a height."""
    order = sorted(range(len(rows)), key=lambda n: -rows[n].width)  # longest first, so memory only falls
    parts = [order[at : at + batch_size] for at in range(0, len(order), batch_size)]
    batches = (collate([rows[n] for n in chosen], height_for(len(chosen), batch_size)) for chosen in parts)
    found: list[Any] = [None] * len(rows)
    with tqdm(total=len(rows), desc="predicting", unit="rows", disable=not progress) as bar:
        for chosen, arrays in zip(parts, two_at_a_time(run, batches), strict=True):
            for k, n in enumerate(chosen):
                found[n] = jax.tree.map(operator.itemgetter(k), arrays)
            bar.update(len(chosen))
    return found


def two_at_a_time(run: Callable[[Any], Any], batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the outputs of `run` for each batch as numpy arrays, computing two batches in parallel.

    An accelerator computes one batch while the other's output is fetched. A CPU uses more cores if a batch has many
    small steps, as in a recurrent network, and compiles two shapes at a time.
    """
    # Several devices need their common work in one order, from one thread.
    alone = jax.device_count() == 1
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(2) as pool:
        try:
            for batch in batches:
                if alone:
                    waiting.append(pool.submit(lambda batch: jax.device_get(run(batch)), batch))
                else:
                    waiting.append(pool.submit(jax.device_get, run(batch)))
                if len(waiting) > 2:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # a caller that stops early does not wait for batches that have not started
            for future in waiting:
                future.cancel()
