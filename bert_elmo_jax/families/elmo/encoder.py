"""The encoder of ELMo: sentences in, vectors out, independent of earlier sentences."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, SupportsFloat

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.encoders.arguments import check_list, check_state, check_whole, check_word_ids
from bert_elmo_jax.encoders.encoded import show_shapes
from bert_elmo_jax.encoders.encoder import BAR_FROM
from bert_elmo_jax.encoders.rows import Words, shorten
from bert_elmo_jax.encoders.sentences import batches
from bert_elmo_jax.encoders.unfamiliar_texts import SAMPLE, warn_of_unknown_words
from bert_elmo_jax.encoders.word_encoder import EncodedWords, Sentence, WordEncoder, write_layers
from bert_elmo_jax.families import find_decoder
from bert_elmo_jax.families.elmo import batch as batching
from bert_elmo_jax.families.elmo.forward import TokenTable, check_cache, compute
from bert_elmo_jax.families.elmo.model import Elmo, ElmoConfig, State, zero_state
from bert_elmo_jax.generation.generate import generate, stream_text
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.dropout import dropout_options
from bert_elmo_jax.progress_bars import progress_bar
from bert_elmo_jax.text.characters import boundary_characters, character_table
from bert_elmo_jax.text.words import WordVocabulary


@dataclass(frozen=True, eq=False, repr=False)
class ElmoEncoded(EncodedWords):
    """Vectors of B sentences of up to T words: layer 0 is the token vector twice, the others forward and backward.

    `state` is the state after each sentence if a state was given.
    """

    layers: Float32[np.ndarray, "L B T D"]
    state: State | None = None

    def __repr__(self) -> str:
        return show_shapes("ElmoEncoded", len(self), layers=self.layers)

    @staticmethod
    def zeros(shape: tuple[int, ...], widths: Sequence[int]) -> Float32[np.ndarray, "L B T D"]:
        """Return zeros for all layers, which have one width."""
        return np.zeros((len(widths), *shape, widths[0]), np.float32)

    def cut_layers(self, part: slice, width: int) -> Float32[np.ndarray, "L B T D"]:
        """Return the layers of some sentences, up to a width."""
        return self.layers[:, part, :width]

    def cut_outputs(self, part: slice, width: int) -> dict[str, Any]:
        """Return the states of some sentences."""
        return {"state": None if self.state is None else jax.tree.map(lambda x: x[:, :, part], self.state)}


class ElmoEncoder(WordEncoder):
    """Weights, word vocabulary (for word input) and compiled model; made by `load`.

    Sentences are lists of words, or strings, which are split at whitespace. The marks of begin and end are added and
    left out of the result.

    >>> from bert_elmo_jax import load
    >>> elmo = load("tests/goldens/elmo_tiny")
    >>> encoding = elmo.encode([["The", "bank", "of", "the", "river"], "강가의 은행"])
    >>> encoding.layers.shape, encoding.last.shape, encoding.mask.tolist(), encoding.words[1]
    ((3, 2, 5, 24), (2, 5, 24), [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], ['강가의', '은행'])
    """

    RESULT: ClassVar[type[ElmoEncoded]] = ElmoEncoded
    EXTRACT_OPTIONS: ClassVar[tuple[str, ...]] = ("warmup",)
    find_decoder, generate, stream = find_decoder, generate, stream_text  # they raise: an ELMo does not write

    def __init__(
        self,
        config: ElmoConfig,
        params: Mapping[str, Any],
        vocabulary: WordVocabulary | None = None,
        source: str = "weights",
    ):
        super().__init__(config, params, vocabulary, source)
        self._tokens = TokenTable(config, self.params)

    def _build_module(self) -> Any:
        return Elmo(self.config)

    def __repr__(self) -> str:
        return f"ElmoEncoder({self.source}: {self.num_layers} × {self.width}, reads {self.config.input})"

    def check_words(self) -> None:
        """Raise if the vocabulary of word input is missing."""
        if self.config.input == "words":
            self.vocabulary  # noqa: B018 -- raises

    @property
    def reads(self) -> WordVocabulary | None:
        """The vocabulary of word input."""
        return self._reads if self.config.input == "words" else None

    @property
    def vocabulary(self) -> WordVocabulary:
        """The vocabulary of word input, or of a head that predicts words."""
        if self._reads is None:
            raise ValueError(
                f"{self.source} reads words, and has no vocabulary (words.txt): copy one there to encode sentences; "
                "forward() takes ids"
                if self.config.input == "words"
                else f"{self.source} has no word vocabulary, and needs none: it reads the characters of any word"
            )
        return self._reads

    def count_unknown(self, words: Sequence[str]) -> int:
        """Return how many of the words are unknown to the vocabulary of word input; 0 if characters are read."""
        if self.config.input == "characters":
            return 0
        return int((self.vocabulary.ids(words) == self.vocabulary.unk_id).sum())

    @property
    def tokenizer(self) -> "SentenceBatches":
        """The object that makes the arrays of sentences for `module`."""
        return SentenceBatches(self)

    def zero_state(self, batch_size: int) -> State:
        """Return the state before the first sentence."""
        state = zero_state(self.config, check_whole("batch_size", batch_size, 1))
        return jax.tree.map(np.array, state)

    def encode(
        self,
        sentences: Sequence[Sentence],
        *,
        batch_size: int = 32,
        state: State | None = None,
        warmup: int = 0,
        progress: bool | None = None,
    ) -> ElmoEncoded:
        """Return the vectors of sentences.

        Every sentence is read from a zero state, so its vectors depend on nothing else. With `state`, sentence n
        continues from row n, and the result has the state after it. With `warmup`, each sentence is read that many
        times before. By default, a progress bar shows for a few hundred sentences and more.
        """
        check_list(sentences)
        batch_size, warmup = self._check_batch_size(batch_size), check_whole("warmup", warmup, 0)
        self._check_state(state, warmup)
        words = [self.to_words(text, number) for number, text in enumerate(sentences)]
        if not words:
            return self._blank(words)
        if state is not None:
            if warmup:
                raise ValueError("state and warmup were both given: a warm state replaces the one given; leave one out")
            state = check_state(state, self.zero_state(len(words)), axis=2)
        warn_of_unknown_words(self, words[:SAMPLE])
        encoded = self._blank(words)
        bar = len(words) >= BAR_FROM if progress is None else progress
        after = self._fill(list(encoded), words, batch_size, bar, warmup, state)
        return ElmoEncoded(encoded.layers, encoded.mask, encoded.words, after)

    def encode_batches(
        self, sentences: Iterable[Sentence], *, batch_size: int = 32, warmup: int = 0
    ) -> Iterator[ElmoEncoded]:
        """Yield the results of `encode` in batches; options are checked at once, sentences one after the other."""
        warmup = check_whole("warmup", warmup, 0)
        self._check_state(None, warmup)
        return self._stream(sentences, batch_size, functools.partial(self._fill, warmup=warmup))

    def extract(
        self, texts: Iterable[Sentence], layers: Sequence[int], *, batch_size: int = 32, warmup: int = 0
    ) -> Iterator[Float32[np.ndarray, "L words D"]]:
        """Yield the layers of each sentence's words."""
        return self._take_layers(self.encode_batches(texts, batch_size=batch_size, warmup=warmup), layers)

    def word_batch(self, sentences: Sequence[Sequence[str]], height: int, width: int) -> dict[str, np.ndarray]:
        """Return the arrays that `word_function` reads, for a network that fine-tunes this encoder."""
        words = np.zeros((height, width + 2), np.int32)
        lengths = np.zeros(height, np.int32)
        lengths[: len(sentences)] = [len(sentence) + 2 for sentence in sentences]
        if self.config.input == "words":
            vocabulary = self.vocabulary
            for n, sentence in enumerate(sentences):
                ids = vocabulary.ids(sentence)
                words[n, : len(sentence) + 2] = [vocabulary.bos_id, *ids, vocabulary.eos_id]
            return {"elmo_words": words, "elmo_lengths": lengths}
        most = self.config.max_characters
        longest = max(len(word.encode("utf-8", "replace")) for sentence in sentences for word in sentence) + 2
        cut = min(next((size for size in batching.CHARACTERS if size >= longest), most), most)
        # Every row has its own table, its words in order, so that rows can be on any device.
        characters = np.zeros((height, width + 2, cut), np.int32)
        marks = boundary_characters(cut)
        words[:] = np.arange(width + 2)
        for n, sentence in enumerate(sentences):
            characters[n, 0], characters[n, len(sentence) + 1] = marks
            characters[n, 1 : len(sentence) + 1] = character_table(sentence, cut)
        return {"elmo_words": words, "elmo_lengths": lengths, "elmo_characters": characters}

    def word_function(self) -> Callable[[Any, Mapping[str, Any], PRNGKeyArray | None], Array]:
        """Return the function of `Encoder.word_function`; vectors behind a row's end are undefined."""
        module = Elmo(self.config)

        def layers_of_words(params: Any, batch: Mapping[str, Any], key: PRNGKeyArray | None) -> Array:
            rows, characters = (batch["elmo_words"], batch["elmo_lengths"]), batch.get("elmo_characters")
            output: Any = module.apply({"params": params}, *rows, characters=characters, **dropout_options(key))
            return output.layers[:, :, 1:-1].astype(jnp.float32)

        return layers_of_words

    def mix(
        self,
        encoding: "ElmoEncoded | Float[AnyArray, 'L B T D']",
        weights: Sequence[SupportsFloat] | AnyArray | None = None,
        gamma: SupportsFloat = 1.0,
    ) -> Float32[np.ndarray, "B T D"]:
        """Return the sum of the layers times their `weights` (default: only the last layer), times `gamma`."""
        layers = np.asarray(encoding.layers if isinstance(encoding, ElmoEncoded) else encoding)
        count = self.config.num_layers + 1
        if layers.ndim != 4 or len(layers) != count:
            raise ValueError(
                f"layers of shape {layers.shape} were given; expected the result of encode, or its layers, [{count}, "
                "sentences, words, numbers]"
            )
        factors = np.asarray([0.0] * (count - 1) + [1.0] if weights is None else weights, np.float32)
        if factors.shape != (count,):
            raise ValueError(
                f"weights={shorten(weights)}: this model has {count} layers (token vectors first); give {count} numbers"
            )
        if not np.isfinite([*factors.tolist(), float(gamma)]).all():
            raise ValueError(f"weights={shorten(weights)}, gamma={gamma}: expected finite numbers")
        return np.tensordot(factors * np.float32(float(gamma)), layers.astype(np.float32), axes=1)

    def cache(self, vocabulary: WordVocabulary | Sequence[str], *, progress: bool | None = None) -> None:
        """Compute the token layer of these words once, in place of an earlier call's; `encode` looks them up."""
        if self.config.input == "words":
            raise ValueError(
                f"{self.source} reads words, not characters: its token layer is a table already, which needs no cache"
            )
        self._tokens.cache(check_cache(vocabulary), progress)

    def forward(
        self,
        characters: Int[AnyArray, "B T C"] | None = None,
        *,
        words: Int[AnyArray, "B T"] | None = None,
        lengths: Int[AnyArray, " B"] | None = None,
        state: State | None = None,
        boundaries: batching.Boundaries | None = None,
    ) -> ElmoEncoded:
        """Return all layers of ids, and the state after each row.

        `characters` are the ids of AllenNLP's `batch_to_ids`: bytes + 1 between marks, padding 261, and all 0 for
        padding words. Word input takes ids of the vocabulary in `words`, and `lengths` if rows are padded. A row
        without words keeps its state.

        `boundaries="strip"` (the default) adds the marks of begin and end and leaves them out of the result, "keep"
        adds them to the result too, "given" takes rows that have them. Word input without a vocabulary does not know
        the ids of the marks: only "given", then the default, is possible.
        """
        self.check_process()
        self._check_state(state)
        reads, other = ("words", "characters") if self.config.input == "words" else ("characters", "words")
        arguments = {"characters": characters, "words": words}
        if arguments[reads] is None or arguments[other] is not None:
            raise ValueError(f"{self.source} reads {reads}: give forward({reads}=…) and no {other}")
        marks = self._marks()
        boundaries = batching.check_boundaries(boundaries, marks, self.source)
        table: np.ndarray | None = None
        if reads == "words":
            ids, sizes = check_word_ids(words, lengths, self.config.vocab_size or 0)
        else:
            if lengths is not None:
                raise ValueError("lengths are for word ids; characters mark padding words by 0: leave it out")
            ids, sizes, distinct = batching.distinct_words(characters, self.config.max_characters)
            table = self._tokens.of_characters(distinct)
        rows = [row[:size].astype(np.int32) for row, size in zip(ids, sizes)]
        if boundaries != "given" and marks is not None:
            rows = [np.array([marks[0], *row, marks[1]], np.int32) if len(row) else row for row in rows]
        like = self.zero_state(len(rows))
        state = like if state is None else check_state(state, like, axis=2)
        layers, after = compute(self.config, self.params, rows, table, state, len(rows))
        first, width = int(boundaries == "strip"), ids.shape[1] + 2 * (boundaries == "keep")
        counts = np.array([max(0, len(row) - 2 * first) for row in rows])
        mask = np.arange(width) < counts[:, None]
        padded = np.zeros((len(layers), *mask.shape, layers.shape[-1]), np.float32)
        for n, size in enumerate(counts):
            padded[:, n, :size] = layers[:, n, first : first + size]
        return ElmoEncoded(padded, mask.astype(np.int32), None, after)

    def _check_state(self, state: State | None, warmup: int = 0) -> None:
        """Raise if a state was given, or is to be made by `warmup`, and the model has none."""
        if self.config.reader == "attention" and (state is not None or warmup):
            name = "warmup" if warmup else "state"
            raise ValueError(f"{self.source} reads with attention, and so has no state: leave out {name}=")

    def _fill(
        self,
        targets: Sequence[ElmoEncoded],
        sentences: Sequence[Words],
        batch_size: int,
        progress: bool,
        warmup: int = 0,
        state: State | None = None,
    ) -> State | None:
        """Compute sentences, write the vectors of each into its target, and return the state after them."""
        after = None if state is None else jax.tree.map(np.zeros_like, state)
        rows, table = self._rows(sentences, progress)
        places = [slice(1, len(row) - 1) for row in rows]
        with progress_bar(len(rows), "encoding", "sentences", shown=progress) as bar:
            for batch in batches(list(map(len, rows)), batch_size):
                before = self.zero_state(len(batch))
                if state is not None:
                    before = jax.tree.map(lambda part, batch=batch: part[:, :, batch], state)
                batch_rows = [rows[n] for n in batch]
                layers, remembered = compute(self.config, self.params, batch_rows, table, before, batch_size, warmup)
                write_layers(layers, batch, places, targets)
                if after is not None:
                    after.cell[:, :, batch], after.hidden[:, :, batch] = remembered.cell, remembered.hidden
                bar.update(len(batch))
        return after

    def _rows(self, sentences: Sequence[Words], progress: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
        """Return sentences with their marks as places in a table of token vectors, or as ids of the vocabulary."""
        if self.config.input == "words":
            begin, end = self.vocabulary.bos_id, self.vocabulary.eos_id
            return [np.array([begin, *self.vocabulary.ids(words), end], np.int32) for words in sentences], None
        distinct, rows = batching.number_words(sentences)
        return rows, self._tokens.of_words(distinct, progress)

    def _marks(self) -> tuple[int, int] | None:
        """Return the marks of begin and end: places in the table of distinct words, or ids if these are known."""
        if self.config.input == "characters":
            return batching.BEGIN, batching.END
        return None if self._reads is None else (self._reads.bos_id, self._reads.eos_id)


class SentenceBatches:
    """The part of an `ElmoEncoder` that turns sentences into arrays."""

    def __init__(self, encoder: ElmoEncoder):
        self._encoder = encoder

    def batch(
        self, texts: Sequence[Sentence], *, length: int | None = None, packed: bool = False
    ) -> dict[str, np.ndarray]:
        """Return the arrays `words` [B, T], `lengths` [B] and, if the model reads characters, `characters` [B, T, C].

        Each sentence is between the marks of its begin and end, and has a row of its own. Words behind `length`, which
        counts both marks, are cut; by default a row is as long as the longest sentence.

        >>> from bert_elmo_jax import load
        >>> elmo = load("tests/goldens/elmo_tiny")
        >>> inputs = elmo.tokenizer.batch(["강가의 은행", "the river bank"], length=8)
        >>> inputs["lengths"].tolist(), elmo.module.apply(elmo.variables, **inputs).last.shape
        ([4, 5], (2, 8, 24))
        """
        if packed:
            raise ValueError("packed=True is for pieces: an LSTM would read on from one sentence to the next")
        if length is not None and length < 3:
            raise ValueError(f"length={length}: use 3 or more, both marks included")
        check_list(texts)
        if not len(texts):
            raise ValueError("no texts were given: the list is empty, and a batch has at least one row")
        self._encoder.check_words()
        sentences = [self._encoder.to_words(text, number)[: None if length is None else length - 2]
                     for number, text in enumerate(texts)]  # fmt: skip
        width = max(map(len, sentences)) if length is None else length - 2
        arrays = self._encoder.word_batch(sentences, len(sentences), width)
        return {name.removeprefix("elmo_"): array for name, array in arrays.items()}
