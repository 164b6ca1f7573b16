"""The model behind the server: which requests it can answer, their inputs from JSON, and its results as JSON."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.data.rows.packed_rows import LONG, most_rows
from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.encoders.rows import shorten
from bert_elmo_jax.encoders.sentences import batches
from bert_elmo_jax.families.sentences import add_prompt, find_head, find_prompt, read_row
from bert_elmo_jax.inference.entities import AGGREGATIONS
from bert_elmo_jax.inference.predictions import to_json
from bert_elmo_jax.inference.rerank import takes_pairs
from bert_elmo_jax.inference.task_model import TaskModel, to_example, to_text
from bert_elmo_jax.serve.limits import Limits, RequestError

# The names of an input's parts in JSON objects; an input is also the list of its parts, or a single text.
PARTS = {
    "classification": ("text", "pair"),
    "regression": ("text", "pair"),
    "sentences": ("text", "pair"),
    "tags": ("text",),
    "trees": ("text",),  # and "tags" for a parser that reads them
    "choice": ("text", "choices"),
    "questions": ("question", "context"),
}
MOST_ANSWERS, MOST_CHOICES = 100, 64
ROWS = 32  # inputs that are computed together, if none is long


class Predict(NamedTuple):
    """The work of `/predict`: the options of `model.predict`, as pairs."""

    options: tuple[tuple[str, Any], ...] = ()


class Embed(NamedTuple):
    """The work of `/v1/embeddings`."""

    prompt_name: str | None = None
    width: int | None = None


class Rank(NamedTuple):
    """The work of `/rank`, whose inputs are pairs."""


def find_options(kind: str, model: Any) -> dict[str, tuple[Any, ...]]:
    """Return the options of `/predict` for a kind of task: all values of each, or its least and its largest number."""
    if kind == "questions":
        options = {"top_k": (1, MOST_ANSWERS), "no_answer": (False, True)}
        return options if model.task.pipeline else {"n_best": (1, MOST_ANSWERS), **options}
    if kind == "tags" and model.text_rows is not None:
        # A text has about twice as many pieces in its rows with the largest stride.
        length = model.task.max_length
        return {"aggregation": AGGREGATIONS, "stride": (0, max(0, min(length // 2, length - 8)))}
    return {}


class ServedModel:
    """A model that `load` returned, with the name that clients see; only the batcher's thread calls `compute`.

    >>> from bert_elmo_jax import load
    >>> served = ServedModel(load("tests/goldens/released_heads/roberta_nli3"), "nli")
    >>> inputs = served.read_inputs([{"text": "The river rose.", "pair": "It was high."}], Limits())
    >>> sorted(served.compute(Predict(), inputs)[0])
    ['label', 'probabilities', 'probability']
    """

    def __init__(self, model: Any, name: str | None = None):
        self.model = model
        self.name = name or PurePath(str(model.source)).name or "model"
        self.task: Any = getattr(model, "task", None)
        self.predicts = self.task is not None and hasattr(model, "predict")
        self.pools = hasattr(model, "sentences")  # else vectors are means of words
        self.embeds = self.pools or hasattr(model, "encode")
        self.ranks = self.predicts and takes_pairs(self.task) and hasattr(model, "rank") and len(model.labels) < 2
        self.options = find_options(self.kind, model)
        if not self.predicts and not self.embeds:
            raise ValueError(f"{model.source} neither predicts nor encodes texts, so there is nothing to serve")
        if "/" in self.name:
            raise ValueError(f"the name {self.name!r} has a slash, and clients write it in a path: use another")
        parts: tuple[Any, ...] = (model, getattr(model, "encoder", None))
        for part in parts:
            if hasattr(part, "warns_of_texts"):
                part.warns_of_texts = "once"  # the log would grow with the texts of clients
        if self.embeds:
            model.check_words()  # raises without a tokenizer
        if self.pools and not self.predicts:
            find_head(model)  # raises if its pooling could not be read

    @property
    def kind(self) -> str:
        """The kind of its task, or "encoder"."""
        return str(self.task.kind) if self.predicts else "encoder"

    def describe(self) -> dict[str, Any]:
        """Return facts for clients; no path is among them."""
        pairs = self.predicts and (self.task.pairs or takes_pairs(self.task))
        encoder = getattr(self.model, "encoder", None) or self.model
        config = getattr(encoder, "config", None)
        return {
            "name": self.name,
            "kind": self.kind,
            "labels": list(self.model.labels) if self.predicts else [],
            "pairs": bool(pairs),
            "tags": "tags" in self.parts,
            "characters": bool(self.predicts and self.task.characters),
            "optional_pair": bool(pairs and self.task.layout is None),
            "options": {name: list(values) for name, values in self.options.items()},
            "predicts": self.predicts,
            "embeds": self.embeds,
            "ranks": self.ranks,
            "family": str(getattr(getattr(encoder, "family", None), "name", type(config).__name__)),
        }

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of an input of `/predict`."""
        if not self.predicts:
            return ("text",)
        return (*PARTS[self.task.kind], "tags") if self.task.tag_column else PARTS[self.task.kind]

    def read_options(self, values: dict[str, Any]) -> Predict:
        """Return the work of `/predict` with these options; raise on one that is unknown or wrong."""
        options = {name: value for name, value in values.items() if value is not None}
        for name, value in options.items():
            if name not in self.options:
                listed = ", ".join(["inputs", *self.options])
                raise RequestError(422, f"there is no field {shorten(name)} for this model; it has {listed}")
            allowed = self.options[name]
            if isinstance(allowed[0], str):
                if value not in allowed:
                    raise RequestError(422, f"{name} is {shorten(value)}; it is one of {', '.join(allowed)}")
            elif isinstance(allowed[0], bool):
                if not isinstance(value, bool):
                    raise RequestError(422, f"{name} is {shorten(value)}; expected true or false")
            elif type(value) is not int or not allowed[0] <= value <= allowed[1]:
                raise RequestError(
                    422, f"{name} is {shorten(value)}; expected a whole number from {allowed[0]} to {allowed[1]}"
                )
        if "stride" in options and "aggregation" not in options:
            raise RequestError(422, "stride needs an aggregation")
        return Predict(tuple(sorted(options.items())))

    def read_inputs(self, values: Any, limits: Limits, work: Predict | None = None) -> list[Any]:
        """Return the inputs of `/predict` as `model.predict` takes them; raise on one that is wrong or too large."""
        check_count(values, limits)
        raw_text = work is not None and "aggregation" in dict(work.options)
        inputs = []
        for number, value in enumerate(values):
            check_characters(value, number, limits)
            converted = self._convert(value)
            try:
                (to_text if raw_text else to_example)(self.task, converted, number)
            except (ValueError, TypeError) as error:
                raise RequestError(422, str(error)) from None
            if self.task.kind == "choice" and len(converted[1]) > MOST_CHOICES:
                raise RequestError(
                    422, f"input {number} has {len(converted[1])} choices; at most {MOST_CHOICES} are read"
                )
            inputs.append(converted)
        return inputs

    def _convert(self, value: Any) -> Any:
        parts = self.parts
        if isinstance(value, dict) and value.keys() <= {*parts} and value.get(parts[0]) is not None:
            values = [value[part] for part in parts if value.get(part) is not None]
            return values[0] if len(values) == 1 else tuple(values)
        if isinstance(value, list) and len(parts) == 2:
            return tuple(value)
        return value

    def compute(self, work: Any, inputs: list[Any], most_pieces: int = Limits.pieces) -> Sequence[Any]:
        """Return one result, as plain values or a vector, for each input; raise if one needs too much memory."""
        if isinstance(work, Embed):
            counts = self._count_pieces(work, inputs)
            rows = limit_rows(counts, most_pieces) if self.pools else ROWS
            return list(zip(self._encode(work, inputs, rows), counts))
        rows = limit_rows(self._measure_rows(work, inputs), most_pieces)
        if isinstance(work, Rank):
            return [float(score) for score in self.model.score(inputs, batch_size=rows, progress=False)]
        options = dict(work.options)
        return [to_json(one) for one in self.model.predict(inputs, batch_size=rows, progress=False, **options)]

    def read_embedding(self, prompt_name: Any, width: Any) -> Embed:
        """Return the work of `/v1/embeddings` with these options; raise on one that is wrong."""
        if prompt_name is not None:
            names = [name for name, _ in find_head(self.model).prompts] if self.pools else []
            if prompt_name not in names:
                has = f"it is one of {', '.join(names)}" if names else "this model has no prompts"
                raise RequestError(422, f"prompt_name is {shorten(prompt_name)}; {has}")
        if width is not None:
            full = self.width
            if type(width) is not int or not 1 <= width <= full:
                raise RequestError(422, f"dimensions is {shorten(width)}; expected a whole number from 1 to {full}")
        return Embed(prompt_name, width)

    @property
    def width(self) -> int:
        """The largest size of a vector of `/v1/embeddings`."""
        if self.pools:
            return int(find_head(self.model).width(self.model.config.hidden_size))
        return int(self.model.widths[-1])

    @property
    def default_width(self) -> int:
        """The size of a vector if the request names none."""
        return int(find_head(self.model).default_width(self.model.config.hidden_size)) if self.pools else self.width

    def _encode(self, work: Embed, texts: list[str], rows: int) -> Float32[np.ndarray, "N E"]:
        if self.pools:
            vectors: Any = self.model.sentences(
                texts, prompt_name=work.prompt_name, width=work.width, batch_size=rows, overflow="truncate",
                progress=False,
            )  # fmt: skip
            return vectors
        # An encoder of words: the mean of the last layer. Its arrays are as long as the longest text of a batch.
        means = np.empty((len(texts), self.width), np.float32)
        for batch in batches([len(text.split()) for text in texts], ROWS):
            encoded = self.model.encode([texts[number] for number in batch], batch_size=ROWS, progress=False)
            means[batch] = [one.last[0].mean(axis=0) for one in encoded]
        return means[:, : work.width]

    def _count_pieces(self, work: Embed, texts: list[str]) -> list[int]:
        if not self.pools:
            return [len(text.split()) for text in texts]
        head = find_head(self.model)
        before = find_prompt(head, work.prompt_name)
        return [
            len(read_row(self.model, head, add_prompt(text, before, number), number, "truncate"))
            for number, text in enumerate(texts)
        ]

    def _measure_rows(self, work: Predict | Rank, inputs: list[Any]) -> list[int]:
        """Return the pieces of each input's longest row, with all choices; none if the model has only short rows."""
        if not isinstance(self.model, TaskModel) or (self.task.max_length <= LONG and self.kind != "choice"):
            return []
        if isinstance(work, Rank):
            examples: list[Any] = [TextExample(query, text, None, None, "", 0) for query, text in inputs]
        else:
            examples = [to_example(self.task, value, n) for n, value in enumerate(inputs)]
        sizes = [0] * len(inputs)
        for row in make_rows(self.task, examples, self.model.tokenizer, labelled=False):
            sizes[row.example] = max(sizes[row.example], row.size)
        return sizes

    def warm_up(self, length: int, rows: int) -> None:
        """Compile the shapes of up to `rows` inputs of up to `length` pieces that arrive together."""
        self.model.warm_up(length, rows, call="predict" if self.predicts else "sentences" if self.pools else "encode")


def limit_rows(sizes: Sequence[int], most_pieces: int) -> int:
    """Return how many rows are computed together, a power of two; raise if an input has too many pieces.

    >>> limit_rows([20, 512], 4096), limit_rows([20, 600], 4096), limit_rows([20, 2048], 4096)
    (32, 16, 2)
    """
    for number, size in enumerate(sizes):
        if size > most_pieces:
            raise ValueError(f"input {number} has {size:,} pieces; at most {most_pieces:,} are read: shorten it")
    return most_rows(ROWS, max(sizes, default=0))


def check_count(values: Any, limits: Limits, name: str = "inputs") -> None:
    """Raise unless the value is a list of an allowed number of inputs.

    >>> check_count([], Limits())
    Traceback (most recent call last):
    bert_elmo_jax.serve.limits.RequestError: inputs is an empty list; give 1 to 128 inputs
    """
    if not isinstance(values, list):
        raise RequestError(422, f"{name} is {shorten(values)}; expected a list of inputs")
    if not values:
        raise RequestError(422, f"{name} is an empty list; give 1 to {limits.inputs} inputs")
    if len(values) > limits.inputs:
        raise RequestError(422, f"{name} has {len(values)} inputs; a request has at most {limits.inputs}")


def check_characters(value: Any, number: int, limits: Limits) -> None:
    """Raise if the texts of an input, all together, are longer than a model should read."""
    size, parts = 0, [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            size += len(part)
        elif isinstance(part, list | dict):
            size += len(part)
            parts += part.values() if isinstance(part, dict) else part
    if size > limits.characters:
        raise RequestError(422, f"input {number} has {size:,} characters; at most {limits.characters:,} are read")


def check_texts(values: Any, limits: Limits, name: str) -> list[str]:
    """Return a list of texts that are not empty; raise on anything else."""
    check_count(values, limits, name)
    for number, text in enumerate(values):
        if not isinstance(text, str) or not text.strip():
            raise RequestError(422, f"{name} {number} is {shorten(text)}; expected a text that is not empty")
        check_characters(text, number, limits)
    texts: list[str] = values
    return texts
