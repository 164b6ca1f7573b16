"""The encoder of CoVe: sentences of words, or their vectors, in; layers out."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.encoders.arguments import check_lengths, check_list
from bert_elmo_jax.encoders.encoded import show_shapes
from bert_elmo_jax.encoders.rows import Words
from bert_elmo_jax.encoders.sentences import to_words
from bert_elmo_jax.encoders.word_encoder import EncodedWords, WordEncoder
from bert_elmo_jax.families import find_decoder
from bert_elmo_jax.families.cove.config import CoveConfig
from bert_elmo_jax.families.cove.model import Cove, stack_layers
from bert_elmo_jax.generation.generate import generate, stream_text
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.dropout import dropout_options
from bert_elmo_jax.text import WordTable


@dataclass(frozen=True, eq=False, repr=False)
class CoveEncoded(EncodedWords):
    """Vectors of B sentences of up to T words: `layers` are the word vectors and the output of each LSTM layer."""

    layers: tuple[Float32[np.ndarray, "B T _"], ...]

    @property
    def vectors(self) -> Float32[np.ndarray, "B T D"]:
        """The word vectors, such as GloVe's."""
        return self.layers[0]

    @property
    def beside(self) -> Float32[np.ndarray, "B T W"]:
        """The word vectors and the last layer side by side, as the paper's task networks read them."""
        return np.concatenate([self.vectors, self.last], axis=-1)

    def __repr__(self) -> str:
        return show_shapes("CoveEncoded", len(self), vectors=self.vectors, last=self.last)


class CoveEncoder(WordEncoder):
    """Weights, word vectors and compiled model; made by `load`.

    The word vectors are the model's own, or come from a file in the folder of the weights; without them, only `forward`
    is possible. Unknown words are zero. Sentences are lists of words, or strings, which are split at whitespace.

    >>> from bert_elmo_jax import load
    >>> cove = load("tests/goldens/cove_tiny/wmtlstm.pth")
    >>> [layer.shape for layer in cove.forward(vectors=np.zeros((2, 5, 24)), lengths=[5, 3]).layers]
    [(2, 5, 24), (2, 5, 48), (2, 5, 48)]
    """

    RESULT: ClassVar[type[CoveEncoded]] = CoveEncoded
    find_decoder = find_decoder
    stream = stream_text  # parts of a translation

    def _build_module(self) -> Any:
        return Cove(self.config)

    def __repr__(self) -> str:
        return f"CoveEncoder({self.source}: {self.num_layers} × {self.config.layer_size})"

    def check_words(self) -> None:
        """Raise if there are no word vectors."""
        if self._reads is not None:
            return
        if self.config.vocab_size is not None:
            raise ValueError(f"{self.source} has no vocabulary (words.txt) for its word vectors: copy it there")
        raise ValueError(
            f"{self.source} has no word vectors, which its LSTM reads: put a file of vectors of "
            f"{self.config.vector_size} numbers into the same folder (glove*.txt, vectors.txt or *.vec; the released "
            "weights were trained with glove.840B.300d.txt); forward(vectors=…) works without"
        )

    def vectors_of(self, words: Sequence[str]) -> Float32[np.ndarray, "N D"]:
        """Return the vectors of words without context; zeros for unknown ones."""
        self.check_words()
        if isinstance(self._reads, WordTable):
            return self._reads.of(words)
        ids = self._reads.ids(words)
        return self._table[ids] * (ids != self._reads.unk_id)[:, None]

    def forward(self, *, vectors: Any, lengths: Any = None) -> CoveEncoded:
        """Return the layers of rows of word vectors [B, T, D]; `lengths` [B] are needed if rows are padded.

        Layer 0 is the vectors themselves. The other layers are the LSTM's, zero behind the end of a row.
        """
        rows, sizes = check_rows(vectors, lengths, self.config.vector_size)
        layers = compute(self.config, self.params, rows, sizes)
        mask = np.arange(rows.shape[1]) < sizes[:, None]
        return CoveEncoded(tuple(np.asarray(layer, np.float32) for layer in layers), mask.astype(np.int32))

    def word_batch(self, sentences: Sequence[Sequence[str]], height: int, width: int) -> dict[str, np.ndarray]:
        """Return the arrays that `word_function` reads, for a network that fine-tunes this encoder."""
        rows, lengths = self._rows(sentences, height, width)
        return {"cove_vectors": rows, "cove_lengths": lengths}

    def word_function(self) -> Callable[[Any, Mapping[str, Any], PRNGKeyArray | None], Array]:
        """Return the function of `Encoder.word_function`; the word vectors are inputs, and so not fine-tuned."""
        module, width = Cove(self.config), self.width

        def layers_of_words(params: Any, batch: Mapping[str, Any], key: PRNGKeyArray | None) -> Array:
            rows = batch["cove_vectors"], batch["cove_lengths"]
            output: Any = module.apply({"params": params}, *rows, **dropout_options(key))
            return stack_layers(output.layers, width).astype(jnp.float32)

        return layers_of_words

    @property
    def has_decoder(self) -> bool:
        """True if the weights have the decoder of the pretraining, without which nothing can be translated."""
        return "decoder" in self.params

    def generate(self, prompts: Any = None, **options: Any) -> list[list[Any]]:
        """Return translations with their scores; for the options see `generation.generate`."""
        if not self.has_decoder:
            raise ValueError(
                f"{self.source} has only the encoder of a CoVe, as all released weights: nothing can be translated"
            )
        return generate(self, prompts, **options)

    def translate(self, texts: Sequence[str], *, max_new: int | None = None, **options: Any) -> list[str]:
        """Return the best translation of each text; for the options see `generation.generate`.

        By default each word is the likeliest one, and a translation has at most twice as many words as the longest
        source, and ten more.
        """
        check_list(texts)
        if not len(texts):
            return []
        if max_new is None:
            max_new = 10 + 2 * max(len(to_words(text, number)) for number, text in enumerate(texts))
        return [best.text for best, *_ in self.generate(list(texts), max_new=max_new, **options)]

    @property
    def widths(self) -> list[int]:
        """The size of a vector in each layer."""
        return [self.config.vector_size] + [self.config.layer_size] * self.config.num_layers

    @functools.cached_property
    def _table(self) -> Float32[np.ndarray, "V D"]:
        return np.asarray(self.params["encoder"]["embeddings"]["word"], np.float32)

    def _rows(
        self, sentences: Sequence[Sequence[str]], height: int, width: int
    ) -> tuple[Float32[np.ndarray, "B T D"], Int[np.ndarray, " B"]]:
        """Return the word vectors of sentences, padded, and their lengths."""
        rows = np.zeros((height, width, self.config.vector_size), np.float32)
        lengths = np.zeros(height, np.int32)
        for n, words in enumerate(sentences):
            rows[n, : len(words)] = self.vectors_of(words)
            lengths[n] = len(words)
        return rows, lengths

    def count_unknown(self, words: Sequence[str]) -> int:
        """Return how many of the words have no vector."""
        return int((~self.vectors_of(words).any(axis=1)).sum())

    def read_rows(self, sentences: Sequence[Words]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the sentences themselves; their vectors are looked up batch by batch."""
        return sentences, [slice(len(words)) for words in sentences]

    def compute_rows(self, rows: Sequence[Any], height: int, width: int) -> Any:
        """Return the layers of sentences."""
        return compute(self.config, self.params, *self._rows(rows, height, width))


# Compiled for each configuration and shape of batch.
@functools.partial(jax.jit, static_argnames="config")
def compute(
    config: CoveConfig, params: Mapping[str, Any], vectors: Float[AnyArray, "B T D"], lengths: Int[AnyArray, " B"]
) -> tuple[Float[Array, "B T _"], ...]:
    """Return the layers of rows of word vectors."""
    output: Any = Cove(config).apply({"params": params["encoder"]}, vectors, lengths)
    return (jnp.asarray(vectors), *output.layers[1:])


def check_rows(vectors: Any, lengths: Any, width: int) -> tuple[Float32[np.ndarray, "B T D"], Int[np.ndarray, " B"]]:
    """Return word vectors and lengths as arrays, with zeros behind the end of each row; raise on a wrong shape.

    >>> check_rows(np.ones((1, 3, 2)), [2], 2)[0][0].tolist()
    [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    """
    try:
        rows = np.asarray(vectors, np.float32)
    except (TypeError, ValueError):
        raise ValueError(
            "vectors has rows of different lengths, or no numbers: expected an array [rows, words, width]"
        ) from None
    if rows.ndim != 3 or 0 in rows.shape:
        raise ValueError(
            f"vectors has the shape {rows.shape}; expected [rows, words, {width}], and at least one of each"
        )
    if rows.shape[2] != width:
        raise ValueError(f"vectors has {rows.shape[2]} numbers per word; this model reads vectors of {width}")
    sizes = check_lengths(lengths, *rows.shape[:2])
    real = (np.arange(rows.shape[1]) < sizes[:, None])[:, :, None]
    rows = np.where(real, rows, np.float32(0))
    if not np.isfinite(rows).all():
        row, word, _ = np.argwhere(~np.isfinite(rows))[0]
        raise ValueError(f"vectors holds NaN or infinity at row {row}, word {word}")
    return rows, sizes
