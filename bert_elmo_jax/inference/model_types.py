"""Types of the results of `load` and `encode`, for editors and type checkers.

`Model` has the methods of all families and kinds; an object has some of them, as docs/families.md lists. `layers` and
`words` have no type, because a BERT and an ELMo return different ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol, SupportsFloat, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bert_elmo_jax.encoders.arguments import Layers
from bert_elmo_jax.encoders.encoder import Work
from bert_elmo_jax.encoders.rows import Overflow, Text
from bert_elmo_jax.families.fill_mask import Guess
from bert_elmo_jax.generation.generate import Prompts
from bert_elmo_jax.generation.written import Written
from bert_elmo_jax.inference.predictions import Prediction
from bert_elmo_jax.inference.rerank import RankedText
from bert_elmo_jax.text import Tokenizer

Vectors = NDArray[np.float32]


@runtime_checkable  # so that a type checker of running code can look at its methods
class Encoding(Protocol):
    """Vectors of texts: `Encoded` of pieces, or one of the classes of words."""

    @property
    def last(self) -> Vectors:
        """The last layer: [texts, pieces or words, width], zero at padding."""

    @property
    def mask(self) -> NDArray[np.integer]:
        """1 for pieces or words, 0 for padding: [texts, pieces or words]."""

    @property
    def pooled(self) -> Vectors | None:
        """One vector per text of a model with a pooler."""

    @property
    def layers(self) -> Any:
        """The layers: an array [layers, texts, pieces or words, width]; a list where their widths differ."""

    @property
    def tokens(self) -> list[list[str]]:
        """The pieces of each text."""

    @property
    def words(self) -> Any:
        """A method that returns one vector per word; for an encoder of words, the words of each text."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice | int) -> "Encoding": ...

    def __iter__(self) -> Iterator["Encoding"]: ...


@runtime_checkable
class Model(Protocol):
    """An encoder, a fine-tuned model or a task network, as `load` returns it."""

    sentence_head: Any
    work: Work

    @property
    def config(self) -> Any:
        """The configuration of its family."""

    @property
    def params(self) -> dict[str, Any]:
        """Nested dicts of arrays: the encoder, and a dict per head."""

    @property
    def module(self) -> Any:
        """The Linen module of the encoder; `module.apply(variables, …)` returns its output."""

    @property
    def variables(self) -> dict[str, Any]:
        """The parameters of `module`, as it takes them."""

    @property
    def family(self) -> Any:
        """The record of its family; see docs/architecture.md."""

    @property
    def source(self) -> str:
        """The path or name that it was loaded from."""

    @property
    def heads(self) -> tuple[str, ...]:
        """The names of its heads."""

    @property
    def num_layers(self) -> int:
        """The number of layers, without token vectors."""

    @property
    def width(self) -> int:
        """The width of a vector of the last layer."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of a model on pieces."""

    @property
    def vocabulary(self) -> Any:
        """The vocabulary of a model on words."""

    @property
    def reads(self) -> Any:
        """The tokenizer or vocabulary, or None."""

    @property
    def task(self) -> Any:
        """The task of a fine-tuned model."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels or tags of a fine-tuned model."""

    def encode(
        self,
        texts: Sequence[Text],
        *,
        batch_size: int = 32,
        layers: Layers = None,
        pooled: bool = True,
        overflow: Overflow = "raise",
        stride: int | None = None,
        max_length: int | None = None,
        state: Any = None,
        warmup: int = 0,
        progress: bool | None = None,
    ) -> Encoding:
        """Return the vectors of texts; `state` and `warmup` are for ELMo, `layers` to `max_length` for pieces."""

    def encode_batches(
        self,
        texts: Iterable[Text],
        *,
        batch_size: int = 32,
        layers: Layers = None,
        pooled: bool = True,
        overflow: Overflow = "raise",
        stride: int | None = None,
        max_length: int | None = None,
        warmup: int = 0,
    ) -> Iterator[Encoding]:
        """Yield the results of `encode` in batches."""

    def sentences(
        self,
        texts: Sequence[Text],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        width: int | None = None,
        batch_size: int = 32,
        overflow: Literal["raise", "truncate"] | None = None,
        progress: bool | None = None,
    ) -> Vectors:
        """Return one vector per text: [texts, width]."""

    def fill_mask(self, text: Text, top: int = 5) -> list[Guess]:
        """Return the likeliest pieces for each [MASK] of a text."""

    def generate(
        self,
        prompts: Prompts | None = None,
        *,
        tokens: Any = None,
        source: Any = None,
        max_new: int | None = None,
        min_new: int | None = None,
        beams: int | None = None,
        n_best: int = 1,
        length_penalty: SupportsFloat | None = None,
        length_rule: Literal["power", "gnmt"] = "power",
        early_stopping: Literal["never"] | bool | None = None,
        temperature: SupportsFloat | None = None,
        top_k: int | None = None,
        top_p: SupportsFloat | None = None,
        repetition_penalty: SupportsFloat = 1.0,
        no_repeat_ngram_size: int | None = None,
        ends: Any = None,
        stop: str | Sequence[str] = (),
        seed: int = 0,
        batch_size: int = 32,
    ) -> list[list[Written]]:
        """Return texts for each prompt, best first."""

    def stream(self, prompt: str | Sequence[int], **options: Any) -> Iterator[str]:
        """Yield the text of `generate` for one prompt while it is written."""

    def translate(self, texts: Sequence[str], **options: Any) -> list[str]:
        """Return the best translation of each text."""

    def forward(self, *ids: Any, **named_ids: Any) -> Any:
        """Return all outputs for raw ids: layers, attention maps, logits."""

    def mix(self, encoding: Any, weights: Any = None, gamma: SupportsFloat = 1.0) -> Vectors:
        """Return an ELMo's weighted sum of layers."""

    def score(self, pairs: Sequence[tuple[str, str]], *, batch_size: int = 32, progress: bool | None = None) -> Vectors:
        """Return a reranker's score of each pair of texts: [pairs]."""

    def rank(
        self,
        query: str,
        texts: Sequence[str],
        *,
        top_k: int | None = None,
        batch_size: int = 32,
        progress: bool | None = None,
    ) -> list[RankedText]:
        """Return a reranker's texts for a query, best first."""

    def save_sentences(self, folder: Any) -> None:
        """Write a folder that sentence-transformers reads."""

    def predict(
        self,
        inputs: Sequence[Any],
        *,
        batch_size: int = 32,
        n_best: int = 20,
        progress: bool | None = None,
        top_k: int | None = None,
        no_answer: bool | None = None,
        aggregation: Literal["none", "simple", "first", "average", "max"] | None = None,
        stride: int | None = None,
        on_bad: Literal["raise", "none"] = "raise",
    ) -> list[Prediction]:
        """Return a prediction for each input of a model with a head; None for a bad one with `on_bad="none"`."""

    def warm_up(
        self, lengths: int | Sequence[int] = 64, rows: int | Sequence[int] = 1, *, call: str = "", **options: Any
    ) -> None:
        """Compile the shapes of requests before the first one arrives."""
