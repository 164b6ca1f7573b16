"""The part that encoders of words share: sentences in, the layers of their words out, and the result as an object."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import jax
import numpy as np
from jaxtyping import Float32, Int32

from bert_elmo_jax.data.rows.widths import height_for
from bert_elmo_jax.encoders.arguments import check_list, check_stream, check_whole
from bert_elmo_jax.encoders.encoded import show_shapes, to_slice
from bert_elmo_jax.encoders.encoder import BAR_FROM, Encoder, stream
from bert_elmo_jax.encoders.rows import Words
from bert_elmo_jax.encoders.sentences import batches, max_rows, to_words, width_for
from bert_elmo_jax.encoders.unfamiliar_texts import SAMPLE, warn_of_unknown_words
from bert_elmo_jax.progress_bars import progress_bar

Sentence = str | Words
E = TypeVar("E", bound="EncodedWords")


@dataclass(frozen=True, eq=False, repr=False)
class EncodedWords:
    """Vectors of B sentences of up to T words, for each layer.

    `layers` are a tuple of arrays, because their widths may differ. All arrays are zero where `mask` is 0. `words` is
    None if ids or vectors were given.

    `encoding[2:5]` and `encoding[3]` are of this class too, padded to their longest sentence; iteration yields single
    sentences.
    """

    layers: Any
    mask: Int32[np.ndarray, "B T"]
    words: list[list[str]] | None = None

    @property
    def last(self) -> Float32[np.ndarray, "B T D"]:
        """The last layer."""
        return self.layers[-1]

    def __len__(self) -> int:
        return len(self.mask)

    def __repr__(self) -> str:
        return show_shapes(type(self).__name__, len(self), last=self.last)

    def __getitem__(self: E, part: slice | int) -> E:
        """Return some of the sentences, or one, padded to their longest; the arrays are views."""
        part = to_slice(part, len(self))
        mask = self.mask[part]
        width = int(mask.sum(axis=1).max(initial=0))
        return dataclasses.replace(
            self,
            layers=self.cut_layers(part, width),
            mask=mask[:, :width],
            words=None if self.words is None else self.words[part],
            **self.cut_outputs(part, width),
        )

    def __iter__(self: E) -> Iterator[E]:
        return (self[number] for number in range(len(self)))

    @classmethod
    def blank(cls: type[E], sentences: Sequence[list[str]], widths: Sequence[int]) -> E:
        """Return zeros for the layers of sentences; `widths` has one for each layer."""
        lengths = np.array([len(words) for words in sentences], np.int64)
        mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
        return cls(cls.zeros(mask.shape, widths), mask.astype(np.int32), list(sentences))

    @classmethod
    def join(cls: type[E], parts: Sequence[E]) -> E:
        """Return sentences that were encoded one by one as one object."""
        widths = [layer.shape[-1] for layer in parts[0].layers]
        joined = cls.blank([words for part in parts for words in part.words or ()], widths)
        for n, part in enumerate(parts):
            for target, source in zip(joined.layers, part.layers):
                target[n, : source.shape[1]] = source[0]
        return joined

    @staticmethod
    def zeros(shape: tuple[int, ...], widths: Sequence[int]) -> Any:
        """Return zeros for each layer."""
        return tuple(np.zeros((*shape, width), np.float32) for width in widths)

    def cut_layers(self, part: slice, width: int) -> Any:
        """Return the layers of some sentences, up to a width."""
        return tuple(layer[part, :width] for layer in self.layers)

    def cut_outputs(self, part: slice, width: int) -> dict[str, Any]:
        """Return the further outputs of some sentences, by their names."""
        return {}


class WordEncoder(Encoder):
    """An encoder of sentences: lists of words, or strings, which are split at whitespace.

    A family's encoder makes the rows of sentences (`read_rows`) and computes their layers (`compute_rows`).
    """

    USUAL_LAYERS: ClassVar[Any] = "all"  # of `extract`
    FIXED_INPUT: ClassVar[bool] = True  # layer 0 of a word is the same in every context
    EXTRACT_OPTIONS: ClassVar[tuple[str, ...]] = ()
    warns_of_texts = True  # whose words the model does not know
    RESULT: ClassVar[type[EncodedWords]] = EncodedWords

    @property
    def widths(self) -> list[int]:
        """The size of a vector in each layer."""
        return [self.width] * (self.num_layers + 1)

    @property
    def word_rule(self) -> str | None:
        """The rule of `split_words` for the text that this model was trained on; None if unknown."""
        return getattr(self._reads, "rule", None)

    def to_words(self, text: Sentence, number: int) -> Words:
        """Return the words of one sentence of a list; those of strings composed (NFC) if the training text was."""
        return to_words(text, number, composed=self.word_rule is not None)

    def count_unknown(self, words: Sequence[str]) -> int:
        """Return how many of the words are unknown to the model; 0 where it reads their letters."""
        return 0

    def read_rows(self, sentences: Sequence[Words]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return a row for each sentence, and the places of the sentence's words in it."""
        raise NotImplementedError

    def compute_rows(self, rows: Sequence[Any], height: int, width: int) -> Any:
        """Return the layers of a batch of rows, padded to a height and a width."""
        raise NotImplementedError

    def encode(self, sentences: Sequence[Sentence], *, batch_size: int = 32, progress: bool | None = None) -> Any:
        """Return the vectors of sentences. By default, a progress bar shows for a few hundred sentences and more."""
        check_list(sentences)
        batch_size = self._check_batch_size(batch_size)
        words = [self.to_words(text, number) for number, text in enumerate(sentences)]
        warn_of_unknown_words(self, words[:SAMPLE])
        encoded = self._blank(words)
        self._fill(list(encoded), words, batch_size, len(words) >= BAR_FROM if progress is None else progress)
        return encoded

    def encode_batches(self, sentences: Iterable[Sentence], *, batch_size: int = 32) -> Iterator[Any]:
        """Yield the results of `encode` in batches; options are checked at once, sentences one after the other."""
        return self._stream(sentences, batch_size, self._fill)

    def extract(
        self, texts: Iterable[Sentence], layers: Sequence[int], *, batch_size: int = 32
    ) -> Iterator[Float32[np.ndarray, "L words D"]]:
        """Yield the layers of each sentence's words, the narrower ones padded with zeros to one width."""
        return self._take_layers(self.encode_batches(texts, batch_size=batch_size), layers)

    def word_layers(
        self, sentences: Iterable[Sequence[str]], layers: Sequence[int], *, pieces: str = "mean", batch_size: int = 32
    ) -> Iterator[Float32[np.ndarray, "L words D"]]:
        """Yield the layers of each sentence's words; `pieces` matters to encoders fed with pieces only."""
        return self.extract(map(list, sentences), layers, batch_size=batch_size)

    def check(self, sentences: Iterable[Sentence]) -> None:
        """Raise the error that `encode` would raise on these sentences."""
        check_stream(sentences)
        self._check_batch_size(1)
        for number, text in enumerate(sentences):
            self.to_words(text, number)

    def _check_batch_size(self, batch_size: int) -> int:
        self.check_process()
        self.check_words()
        return check_whole("batch_size", batch_size, 1)

    def _blank(self, sentences: Sequence[Words]) -> Any:
        return self.RESULT.blank(sentences, self.widths)

    def _stream(
        self, sentences: Iterable[Sentence], batch_size: int, fill: Callable[[Any, Any, int, bool], object]
    ) -> Iterator[Any]:
        check_stream(sentences)
        batch_size = self._check_batch_size(batch_size)

        def fill_quietly(targets: list[Any], words: list[Words]) -> None:
            fill(targets, words, batch_size, False)

        def blank(words: Words) -> Any:
            return self._blank([words])

        return stream(iter(sentences), batch_size, self.to_words, blank, fill_quietly, self.RESULT.join)

    def _take_layers(
        self, encoded: Iterable[EncodedWords], layers: Sequence[int]
    ) -> Iterator[Float32[np.ndarray, "L words D"]]:
        for batch in encoded:
            for n, size in enumerate(batch.mask.sum(axis=1)):
                vectors = np.zeros((len(layers), size, self.width), np.float32)
                for place, number in enumerate(layers):
                    layer = batch.layers[number][n, :size]
                    vectors[place, :, : layer.shape[1]] = layer
                yield vectors

    def _fill(self, targets: Sequence[Any], sentences: Sequence[Words], batch_size: int, progress: bool) -> Any:
        """Compute sentences, and write the layers of each into its target."""
        if not sentences:
            return
        rows, places = self.read_rows(sentences)
        with progress_bar(len(rows), "encoding", "sentences", shown=progress) as bar:
            for batch in batches([len(row) for row in rows], batch_size):
                longest = len(rows[batch[0]])
                # Two rows at least: the product of one adds its terms in another order.
                height = max(2, height_for(len(batch), max_rows(longest, batch_size)))
                layers = self.compute_rows([rows[n] for n in batch], height, width_for(longest))
                write_layers(layers, batch, places, targets)
                bar.update(len(batch))


def write_layers(layers: Any, batch: Sequence[int], places: Sequence[Any], targets: Sequence[EncodedWords]) -> None:
    """Write the layers of a batch of rows into the targets of its sentences, which are numbers of `places`."""
    host = jax.device_get(layers)
    for row, n in enumerate(batch):
        for target, layer in zip(targets[n].layers, host):
            vectors = layer[row, places[n]]
            target[0, : len(vectors)] = vectors
