"""A fine-tuned encoder with its task head: examples in, predictions out."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np

from bert_elmo_jax.data.tasks.examples import (
    ChoiceExample,
    ParsedSentence,
    Question,
    SentenceExample,
    TaggedSentence,
    TextExample,
    text_of,
)
from bert_elmo_jax.data.tasks.rows import Row, check_length, make_rows
from bert_elmo_jax.data.tasks.task import Example, Task
from bert_elmo_jax.encoders.arguments import check_list, check_whole
from bert_elmo_jax.encoders.encoder import BAR_FROM
from bert_elmo_jax.encoders.rows import lone_surrogate, shorten
from bert_elmo_jax.encoders.unfamiliar_texts import SAMPLE, warn_of_unfamiliar
from bert_elmo_jax.encoders.warm_up import warm_up
from bert_elmo_jax.families import Family, find_family
from bert_elmo_jax.families.forward import choose_head
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.sentence_head import SentenceHead
from bert_elmo_jax.heads.task_head import OF_PIECES, TaskHead, task_outputs
from bert_elmo_jax.inference.entities import AGGREGATIONS, Aggregation, find_entities, make_text_rows
from bert_elmo_jax.inference.packed_outputs import compute_packed, plan_inputs
from bert_elmo_jax.inference.predictions import AnswerOptions, Prediction, make_predictions
from bert_elmo_jax.inference.rerank import rank_texts, score_pairs
from bert_elmo_jax.inference.row_outputs import collate_inputs, compute_outputs
from bert_elmo_jax.progress_bars import BarPart
from bert_elmo_jax.text import Tokenizer

# The inputs of `predict`, by kind of task.
EXPECTED = {
    "classification": "a text, or (text, pair) where the task has pairs",
    "regression": "a text, or (text, pair) where the task has pairs",
    "tags": "a text (split at white space) or a list of words",
    "trees": "a text (split at white space) or a list of words",
    "choice": "(text, [choice, …])",
    "questions": "(question, context)",
    "sentences": "(text, text)",
}


class Predictor:
    """`predict` for the models of a task."""

    task: Task
    params: Any
    tokenizer: Any
    # (texts, stride) -> as `rows_of`, to tag the pieces of raw texts; None if a model does not read pieces.
    text_rows: Callable[..., Any] | None = None
    rows_of: Callable[..., Any]  # examples -> rows, and the function (batch size, progress) -> outputs of each row
    predictions: Callable[..., Any]  # (examples, rows, outputs of each row, answer options) -> predictions
    warm_up = warm_up
    warns_of_texts = True  # that the tokenizer knows little of

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels or tags of the task."""
        return self.task.labels

    @property
    def reads_in_parts(self) -> bool:
        """True if `predict` can average the scores of the parts of a long text, which have no prompt."""
        task = self.task
        single = task.kind in ("classification", "regression") and not task.pairs and not task.prompt
        return self.text_rows is not None and single

    def predict(
        self,
        inputs: Sequence[Any],
        *,
        batch_size: int = 32,
        n_best: int = 20,
        progress: bool | None = None,
        top_k: int | None = None,
        no_answer: bool | None = None,
        aggregation: Aggregation | None = None,
        stride: int | None = None,
        on_bad: Literal["raise", "none"] = "raise",
    ) -> list[Prediction | None]:
        """Return a prediction for each input: a text, a pair (tuple), a list of words, or a (question, context).

        Long inputs are cut, or read in windows, as in training. A question has `n_best` candidates, or `top_k` of them;
        `no_answer` says whether "" is one (by default: if the training data had such questions). The inputs of a tagger
        with an `aggregation` (none, simple, first, average, max) are texts, whose `entities` have characters and
        probabilities, as in transformers' pipeline. Long texts are cut, or with `stride` read in parts that overlap by
        so many pieces; a text's scores are then the mean over its parts.

        An input that cannot be read, such as an empty text, raises an error with its number; with `on_bad="none"` its
        prediction is None, and the others are predicted.
        """
        check_list(inputs)
        if on_bad not in ("raise", "none"):
            raise ValueError(f"on_bad={shorten(on_bad)} is not known; use 'raise' or 'none'")
        to_input = to_example if aggregation is None else to_text
        examples: dict[int, Example] = {}  # by the number of the input
        for number, value in enumerate(inputs):
            try:
                examples[number] = to_input(self.task, value, number)
            except ValueError as error:
                if on_bad == "raise":
                    hint = '; on_bad="none" predicts the others' if len(inputs) > 1 else ""
                    raise ValueError(f"{error}{hint}") from None
        predictions = self.predict_examples(
            list(examples.values()), batch_size=batch_size, n_best=n_best, progress=progress, top_k=top_k,
            no_answer=no_answer, aggregation=aggregation, stride=stride,
        )  # fmt: skip
        by_number = dict(zip(examples, predictions, strict=True))
        return [by_number.get(number) for number in range(len(inputs))]

    def predict_examples(
        self,
        examples: Sequence[Example],
        *,
        batch_size: int = 32,
        n_best: int = 20,
        progress: bool | BarPart | None = None,
        top_k: int | None = None,
        no_answer: bool | None = None,
        aggregation: Aggregation | None = None,
        stride: int | None = None,
    ) -> list[Prediction]:
        """Return a prediction for each example of `read_examples`; with an `aggregation`, examples are texts."""
        batch_size = check_whole("batch_size", batch_size, 1)
        n_best = check_whole("n_best", n_best, 1)
        top_k = None if top_k is None else check_whole("top_k", top_k, 1)
        if self.task.kind != "questions" and (top_k is not None or no_answer is not None):
            raise ValueError(f"top_k and no_answer are for questions, and this model predicts {self.task.kind}")
        if not examples:
            return []
        if aggregation is not None or stride is not None:
            rows, compute = self._text_rows(aggregation, stride)(examples, stride)
        else:
            rows, compute = self.rows_of(examples)
        bar = len(rows) >= BAR_FROM if progress is None else progress
        outputs = compute(batch_size=batch_size, progress=bar)
        if aggregation is None and stride is not None:
            parts: list[list[Any]] = [[] for _ in examples]
            for row, output in zip(rows, outputs, strict=True):
                parts[row.example].append(output)
            outputs = [np.mean(scores, axis=0) for scores in parts]
        if aggregation is not None:
            texts: Any = examples
            return list(find_entities(texts, rows, outputs, self.labels, self.tokenizer, aggregation))
        return self.predictions(examples, rows, outputs, AnswerOptions(n_best, top_k, no_answer))

    def _text_rows(self, aggregation: str | None, stride: int | None) -> Callable[..., Any]:
        """Return `text_rows`; raise unless this model reads pieces, and the arguments are valid."""
        if self.text_rows is None or not (self.reads_in_parts if aggregation is None else self.task.kind == "tags"):
            raise ValueError(
                f"aggregation={aggregation!r} and stride={stride!r} are for taggers with an encoder of pieces, and "
                "stride alone for classes and numbers of single texts without a default prompt: leave them out"
            )
        if aggregation not in (None, *AGGREGATIONS):
            raise ValueError(f"aggregation is {aggregation!r}; it is one of {', '.join(AGGREGATIONS)}")
        if stride is not None:
            check_whole("stride", stride, 0, self.task.max_length - 8, "8 less than the pieces of a row")
        return self.text_rows


class TaskModel(Predictor, PieceEncoder):
    """An encoder with the head of its task; made by `load` from a fine-tuning run or a released model with a head."""

    def __init__(
        self,
        family: Family,
        config: Any,
        params: Mapping[str, Any],
        tokenizer: Tokenizer | None,
        source: str,
        task: Task,
        features: Features | None = None,
        sentences: SentenceHead | None = None,
    ):
        super().__init__(family, config, params, tokenizer, source)
        check_length(task, config.max_positions)
        self.task = task
        self.head = make_head(task, features, config, sentences)
        if sentences is not None:
            self.sentence_head = sentences
        self.row_shapes = RowShapes.of(task, self.head, family, config)

    score, rank = score_pairs, rank_texts

    @property
    def _logits_head(self) -> str | None:
        # A head on several layers is not on the last one, which `forward` reads.
        plain = self.head.features is None
        return super()._logits_head if plain else choose_head(self.family, {"encoder": self.params["encoder"]})

    @functools.cached_property
    def _scores(self) -> Callable[..., Any]:
        return compile_scores(self.family, self.config, self.head)

    def rows_of(self, examples: Sequence[Example]) -> tuple[Sequence[Any], Callable[..., list[Any]]]:
        """Return the rows of examples, and the function that computes their scores."""
        rows = make_rows(self.task, examples, self.tokenizer, labelled=False)
        warn_of_unfamiliar(self, (ids for row in rows for ids in row.ids), list(map(text_of, examples[:SAMPLE])), 4)
        return self._compute_rows(rows)

    def text_rows(self, texts: Sequence[TextExample], stride: int | None) -> Any:
        """Return `rows_of` for raw texts, which may have several rows each."""
        if any(text.pair is not None for text in texts):
            raise ValueError("stride is for single texts, and there are pairs: leave it out")
        rows = make_text_rows(texts, self.tokenizer, self.task.max_length, stride)
        warn_of_unfamiliar(self, (ids for row in rows for ids in row.ids), [text.text for text in texts[:SAMPLE]], 4)
        return self._compute_rows(rows)

    def _compute_rows(self, rows: Sequence[Row]) -> tuple[Sequence[Row], Callable[..., list[Any]]]:
        self.work.cut += sum(row.lost > 0 for row in rows)

        def scores(batch: Mapping[str, np.ndarray]) -> Any:
            self.work.add(int((batch["segments"] > 0).sum()), batch["segments"].size)
            return self._scores(self.working_params, batch)

        return rows, functools.partial(self.row_shapes.compute, scores, rows)

    def predictions(
        self, examples: Sequence[Example], rows: Sequence[Any], scores: Sequence[Any], options: AnswerOptions
    ) -> list[Prediction]:
        """Return the predictions from the scores of rows."""
        width = None if self.head.sentences is None else self.head.sentences.vector_width
        return make_predictions(self.task, examples, rows, scores, options, width)

    def plan_shapes(self, call: str, lengths: Sequence[int], batch_size: int) -> set[tuple[int, int]]:
        """Return the shapes of the batches that a call needs for texts of these lengths; none for padded ones."""
        if call not in ("predict", "score"):
            return super().plan_shapes(call, lengths, batch_size)
        if not self.row_shapes.packs:
            return set()
        return set(plan_inputs(np.array(lengths), batch_size, self.config.max_positions).shapes)


@functools.lru_cache(maxsize=16)
def compile_scores(family: Family, config: Any, head: TaskHead) -> Callable[..., Any]:
    """Return `task_outputs`, compiled once for each shape of batch, for all models of a configuration and a head."""
    return jax.jit(functools.partial(task_outputs, family.build(config, pooler=head.pooled), head))


@dataclass(frozen=True)
class RowShapes:
    """The shapes of a task's rows: packed, of at most `positions`, or padded to at most `limit`."""

    packs: bool
    of_pieces: bool  # every piece has scores
    limit: int
    positions: int
    pad_id: int

    @classmethod
    def of(cls, task: Task, head: TaskHead, family: Family, config: Any) -> "RowShapes":
        """Return the shapes for a task and a model."""
        packs = family.inputs.packs and head.packs
        return cls(packs, head.kind in OF_PIECES, task.max_length, config.max_positions, config.pad_id)

    def compute(
        self,
        run: Callable[[Mapping[str, np.ndarray]], Any],
        rows: Sequence[Row],
        batch_size: int,
        *,
        parts: int = 1,
        progress: bool | BarPart = False,
    ) -> list[Any]:
        """Return the scores of each row; the packed rows of a batch are a multiple of `parts`."""
        if self.packs:
            return compute_packed(
                run, rows, batch_size, positions=self.positions, pad_id=self.pad_id, of_pieces=self.of_pieces,
                parts=parts, progress=progress,
            )  # fmt: skip
        make = functools.partial(collate_inputs, limit=self.limit, pad_id=self.pad_id)
        return compute_outputs(run, rows, batch_size, make, progress=progress)


def make_head(task: Task, features: Features | None, config: Any, sentences: SentenceHead | None = None) -> TaskHead:
    """Return the head that a task needs on an encoder of this configuration."""
    if task.kind == "trees":
        raise ValueError(f"--task={task.name} has trees, which no head predicts: use --config=parser")
    family = find_family(config)
    sentences = sentences if task.kind == "sentences" else None
    return TaskHead(
        task.kind, len(task.labels) or 1, features, config.head_dropout, config.initializer_range,
        at_end=family.causal(config), pools_pieces=family.task_head("tag").pooled, sentences=sentences,
        use_bias=family.task_head("classify").bias, both_orders=task.both_orders, logistic=task.name == "rank",
    )  # fmt: skip


def to_text(task: Task, value: Any, number: int) -> TextExample:
    """Return a raw text whose pieces are tagged as an example; raise if it is no text."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"input {number} is {shorten(value)}; expected a text that is not empty")
    _check_characters([value], number)
    return TextExample(value, None, None, None, f"input {number}", number)


def to_example(task: Task, value: Any, number: int) -> Example:
    """Return an input of `predict` as an example; raise if it is not an input of the task."""
    pair = isinstance(value, tuple) and len(value) == 2
    where = (f"input {number}", number)
    wrong = f"input {number} is {shorten(value)}; expected "
    if task.kind in ("classification", "regression"):
        texts: tuple[Any, ...] = value if pair else (value,)
        either = task.layout is None  # a released model does not say whether it reads pairs
        fits = either or task.pairs == pair
        if not fits or not all(isinstance(text, str) and text.strip() for text in texts):
            if either:
                raise ValueError(f"{wrong}a text or (text, pair), not empty")
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
        if task.characters and any(len(word) > 1 for word in words):
            raise ValueError(f"{wrong}a text, or a list of its characters (spaces, too): this model tags characters")
        _check_characters(words, number)
        return TaggedSentence(tuple(words), None, where[0], (number,) * len(words), number)
    if task.kind == "trees":
        return _to_sentence(task, value, number)
    if task.kind == "choice":
        if not pair or not isinstance(value[0], str) or not isinstance(value[1], list) or len(value[1]) < 2:
            raise ValueError(f"{wrong}{EXPECTED['choice']}, two choices at least")
        if not all(isinstance(choice, str) and choice.strip() for choice in value[1]):
            raise ValueError(f"{wrong}{EXPECTED['choice']}, texts that are not empty")
        _check_characters([value[0], *value[1]], number)
        return ChoiceExample(value[0], tuple(value[1]), None, None, *where)
    if task.kind == "sentences" and pair and all(isinstance(text, str) and text.strip() for text in value):
        _check_characters(value, number)
        return SentenceExample(value, None, *where)
    if not pair or task.kind == "sentences" or not all(isinstance(text, str) and text.strip() for text in value):
        raise ValueError(f"{wrong}{EXPECTED['questions']}, two texts that are not empty")
    _check_characters(value, number)
    return Question(str(number), value[0], value[1], (), *where)


def _to_sentence(task: Task, value: Any, number: int) -> ParsedSentence:
    """Return the words that a parser reads; with tags, (words, tags)."""
    wrong = f"input {number} is {shorten(value)}; expected "
    expected, tags = EXPECTED["trees"], None
    if task.tag_column:
        expected = f"({expected}, a {task.tag_column} tag for each word): this parser reads tags"
        if not isinstance(value, tuple) or len(value) != 2:
            raise ValueError(f"{wrong}{expected}")
        value, tags = (part.split() if isinstance(part, str) else part for part in value)
    words = value.split() if isinstance(value, str) else value
    for items in (words, *([] if tags is None else [tags])):
        if not isinstance(items, list) or not items or not all(isinstance(item, str) and item for item in items):
            raise ValueError(f"{wrong}{expected}, not empty")
        _check_characters(items, number)
    if tags is not None and len(tags) != len(words):
        raise ValueError(f"input {number} has {len(words)} words and {len(tags)} tags; expected a tag for each word")
    given_tags = None if tags is None else tuple(tags)
    return ParsedSentence(tuple(words), given_tags, None, None, f"input {number}", (number,) * len(words), None)


def _check_characters(texts: Sequence[str], number: int) -> None:
    for text in texts:
        if problem := lone_surrogate(text):
            raise ValueError(f"input {number} {problem}")
