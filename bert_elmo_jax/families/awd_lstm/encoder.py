"""The encoder of an AWD-LSTM: sentences of words, or ids, in; layers, logits and the state out."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int, Int32, PRNGKeyArray

from bert_elmo_jax.encoders.arguments import check_state, check_whole, check_word_ids
from bert_elmo_jax.encoders.encoder import fingerprint
from bert_elmo_jax.encoders.rows import Words
from bert_elmo_jax.encoders.sentences import width_for
from bert_elmo_jax.encoders.word_encoder import EncodedWords, WordEncoder
from bert_elmo_jax.families import find_decoder
from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.documents import classify_documents
from bert_elmo_jax.families.awd_lstm.model import AwdLstm, State, score_words, zero_state
from bert_elmo_jax.families.awd_lstm.vocabulary import Vocabulary, begin_of, read_words
from bert_elmo_jax.generation.generate import generate, stream_text
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.dropout import dropout_options


@dataclass(frozen=True, eq=False, repr=False)
class AwdLstmEncoded(EncodedWords):
    """Vectors of B sentences of up to T words: `layers` are the embeddings and the output of each LSTM layer.

    `logits` of the word after each (before each, in a backward model), and `state` after the last, are the results of
    `forward`; `logits` is None if the weights have no head that predicts words.
    """

    layers: tuple[Float32[np.ndarray, "B T _"], ...]
    logits: Float32[np.ndarray, "B T V"] | None = None
    state: State | None = None

    def cut_outputs(self, part: slice, width: int) -> dict[str, Any]:
        """Return the logits and the states of some sentences."""
        return {
            "logits": None if self.logits is None else self.logits[part, :width],
            "state": None if self.state is None else jax.tree.map(lambda rows: rows[part], self.state),
        }


class AwdLstmEncoder(WordEncoder):
    """Weights, vocabulary and compiled model; made by `load`.

    Sentences are lists of words, or strings, which are split at whitespace. Each is read after a mark of its begin
    (`<S>`, or fastai's `xxbos`), which the result leaves out; a backward model reads them from their end.

    >>> from bert_elmo_jax import load
    >>> lm = load("tests/goldens/awd_lstm_tiny/lm.pth")
    >>> output = lm.forward(words=[[7, 8, 9], [10, 11, 12]])
    >>> [layer.shape for layer in output.layers], output.logits.shape
    ([(2, 3, 24), (2, 3, 36), (2, 3, 36), (2, 3, 24)], (2, 3, 120))
    >>> lm.forward(words=[[10], [13]], state=output.state).last.shape
    (2, 1, 24)
    """

    RESULT: ClassVar[type[AwdLstmEncoded]] = AwdLstmEncoded
    find_decoder, generate, stream = find_decoder, generate, stream_text  # they raise: an AWD-LSTM does not write

    def _build_module(self) -> Any:
        return AwdLstm(self.config)

    def __repr__(self) -> str:
        return (
            f"AwdLstmEncoder({self.source}: {' × '.join(map(str, self.config.layer_sizes))}, {self.config.direction})"
        )

    def check_words(self) -> None:
        """Raise if the vocabulary is missing."""
        self.vocabulary  # noqa: B018 -- raises

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary."""
        if self._reads is None:
            raise ValueError(
                f"{self.source} has no vocabulary: put fastai's list of words (itos.pkl) or a words.txt into its "
                "folder; forward(words=…) takes ids"
            )
        return self._reads

    @property
    def fingerprint(self) -> str:
        """The fingerprint of configuration (without dropout, which changes no vector), weights and vocabulary."""
        words = self._reads.fingerprint if self._reads else ""
        return fingerprint(self.config.without_dropout(), self.params, words)

    def zero_state(self, batch_size: int) -> State:
        """Return the state before the first word."""
        state = zero_state(self.config, check_whole("batch_size", batch_size, 1))
        return jax.tree.map(np.array, state)

    def forward(self, *, words: Any, lengths: Any = None, state: State | None = None) -> AwdLstmEncoded:
        """Return layers, logits and the state after rows of ids [B, T]; `lengths` [B] are needed if rows are padded.

        Ids are read in the given order; give a backward model texts from their end. Without `state`, every row starts
        from zeros. `layers` are the embeddings and each LSTM layer. `logits` are None if the weights have no head that
        predicts words, as in files of fastai's `save_encoder` and of classifiers.
        """
        ids, sizes = check_word_ids(words, lengths, self.config.vocab_size)
        like = self.zero_state(len(ids))
        state = like if state is None else check_state(state, like, axis=0)
        output = compute(self.config, self.params, ids, sizes, state, scores=self.predicts)
        layers, logits, state = jax.device_get(output)
        mask = np.arange(ids.shape[1]) < sizes[:, None]
        layers = tuple(np.asarray(layer, np.float32) for layer in layers)
        return AwdLstmEncoded(layers, mask.astype(np.int32), None, logits, state)

    @property
    def predicts(self) -> bool:
        """True if the weights have a head that predicts words."""
        return "lm" in self.params or not (self.config.has_lm_params or "classifier" in self.params)

    def classify(self, *, words: Any, lengths: Any = None, part: int = 72) -> Float32[np.ndarray, "B C"]:
        """Return the classifier's logits of documents [B, T], read `part` words at a time: memory does not grow with T.

        A document is read from its first word to its last, however it is padded in `words`. The result of a row does
        not depend on the others, nor, up to rounding, on `part`.
        """
        if "classifier" not in self.params:
            raise ValueError(f"{self.source} has no classifier: load the file of a fastai text classifier")
        ids, sizes = check_word_ids(words, lengths, self.config.vocab_size)
        return classify_documents(self.config, self.params, ids, sizes, check_whole("part", part, 1))

    def word_batch(self, sentences: Sequence[Sequence[str]], height: int, width: int) -> dict[str, np.ndarray]:
        """Return the arrays that `word_function` reads, for a network that fine-tunes this encoder."""
        read = [self._read(words) for words in sentences]
        longest = max(len(ids) for ids, _ in read)
        usual = width + self._marks  # enough, unless words have several pieces
        rows, lengths = pad([ids for ids, _ in read], height, usual if longest <= usual else width_for(longest))
        places = np.full((height, width), rows.shape[1], np.int32)  # behind the end of a row: no place in it
        for n, (_, at) in enumerate(read):
            places[n, : len(at)] = at
        return {"awd_lstm_words": rows, "awd_lstm_lengths": lengths, "awd_lstm_places": places}

    def word_function(self) -> Callable[[Any, Mapping[str, Any], PRNGKeyArray | None], Array]:
        """Return the function of `Encoder.word_function`; vectors behind a row's end are zero."""
        module, width = AwdLstm(self.config), self.width

        def layers_of_words(params: Any, batch: Mapping[str, Any], key: PRNGKeyArray | None) -> Array:
            rows = batch["awd_lstm_words"], batch["awd_lstm_lengths"]
            output: Any = module.apply({"params": params}, *rows, **dropout_options(key))
            places = jnp.asarray(batch["awd_lstm_places"])[:, :, None]
            layers = [jnp.take_along_axis(x, places, axis=1, mode="fill", fill_value=0) for x in output.layers]
            padded = [jnp.pad(layer, [(0, 0), (0, 0), (0, width - layer.shape[-1])]) for layer in layers]
            return jnp.stack(padded).astype(jnp.float32)

        return layers_of_words

    @property
    def widths(self) -> list[int]:
        """The size of a vector in each layer."""
        return [self.config.embedding_size, *self.config.layer_sizes]

    @property
    def _marks(self) -> int:
        """The number of marks before a sentence: 1, or 0 if the vocabulary has none."""
        return int(self._begin is not None)

    @property
    def _begin(self) -> int | None:
        return begin_of(self.vocabulary, self.config.direction == "backward")

    def _read(self, words: Sequence[str]) -> tuple[Int32[np.ndarray, "N"], Int32[np.ndarray, "W"]]:
        """Return the ids of a sentence in reading order, after the mark of begin, and the place of each word."""
        ids, places = read_words(self.vocabulary, words, backward=self.config.direction == "backward")
        begin = self._begin
        return (ids, places) if begin is None else (np.append(np.int32(begin), ids), places + np.int32(1))

    def count_unknown(self, words: Sequence[str]) -> int:
        """Return how many of the words, or of their pieces, are unknown to the vocabulary."""
        ids, _ = read_words(self.vocabulary, words)
        return int((ids == self.vocabulary.unk_id).sum())

    def read_rows(self, sentences: Sequence[Words]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the ids of each sentence in reading order, and the places of its words."""
        rows, places = zip(*map(self._read, sentences))
        return rows, places

    def compute_rows(self, rows: Sequence[Any], height: int, width: int) -> Any:
        """Return the layers of rows of ids."""
        layers, _, _ = compute(self.config, self.params, *pad(rows, height, width), None, scores=False)
        return layers


def pad(
    rows: Sequence[Int32[np.ndarray, "_"]], height: int, width: int
) -> tuple[Int32[np.ndarray, "B T"], Int32[np.ndarray, " B"]]:
    """Return rows of ids as one array, padded with zeros, and their lengths."""
    ids, lengths = np.zeros((height, width), np.int32), np.zeros(height, np.int32)
    for n, row in enumerate(rows):
        ids[n, : len(row)], lengths[n] = row, len(row)
    return ids, lengths


# Compiled for each configuration and shape of batch, with logits or without.
@functools.partial(jax.jit, static_argnames=("config", "scores"))
def compute(
    config: AwdLstmConfig,
    params: Mapping[str, Any],
    words: Int[AnyArray, "B T"],
    lengths: Int[AnyArray, " B"],
    state: State | None,
    *,
    scores: bool,
) -> tuple[tuple[Array, ...], Array | None, State]:
    """Return the layers of rows of ids, the logits (None without `scores`) and the state."""
    output: Any = AwdLstm(config).apply({"params": params["encoder"]}, words, lengths, state=state)
    logits = None
    if scores:
        real = jnp.arange(words.shape[1])[None, :] < jnp.asarray(lengths)[:, None]
        logits = jnp.where(real[:, :, None], score_words(config, params, output.last), 0.0)
    return output.layers, logits, output.state
