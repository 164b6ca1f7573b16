"""The encoder of families fed with pieces: texts in, vectors out."""

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int, PRNGKeyArray

from bert_elmo_jax.data.rows.packed_rows import SMALL, PackedBatch, plan_packed, plan_padded
from bert_elmo_jax.data.rows.widths import width_for
from bert_elmo_jax.encoders import arguments
from bert_elmo_jax.encoders.arguments import Layers
from bert_elmo_jax.encoders.encoded import Encoded, blank, join
from bert_elmo_jax.encoders.encoder import BAR_FROM, MOST_AHEAD, Encoder, stream
from bert_elmo_jax.encoders.layout import PieceArrays, Windows
from bert_elmo_jax.encoders.rows import Overflow, Row, Text
from bert_elmo_jax.encoders.unfamiliar_texts import SAMPLE, warn_of_unfamiliar
from bert_elmo_jax.families import find_decoder
from bert_elmo_jax.families.family import Family
from bert_elmo_jax.families.fill_mask import fill_mask
from bert_elmo_jax.families.forward import ForwardOutput, Request, choose_head, compile_run
from bert_elmo_jax.families.init_params import init_params, param_shapes
from bert_elmo_jax.families.piece_rows import check_sizes, describe_missing, read_row
from bert_elmo_jax.families.sentences import encode_sentences, save_sentences
from bert_elmo_jax.generation.generate import generate, stream_text
from bert_elmo_jax.heads.sentence_head import SentenceHead
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.dropout import dropout_options
from bert_elmo_jax.nn.int8_kernels import is_int8
from bert_elmo_jax.nn.matrix_product import cast_kernels, transposed_is_faster, turn_kernels
from bert_elmo_jax.progress_bars import progress_bar
from bert_elmo_jax.text import Tokenizer


class PieceEncoder(Encoder):
    """Weights, tokenizer and compiled model; made by `load`.

    >>> from bert_elmo_jax import load
    >>> encoder = load("tests/goldens/bert_tiny")
    >>> encoding = encoder.encode(["[MASK] [MASK]", "[MASK]"], layers=[0, -1])
    >>> encoding.last.shape, encoding.pooled.shape, encoding.layers.shape, encoding.mask.tolist()
    ((2, 4, 64), (2, 64), (2, 2, 4, 64), [[1, 1, 1, 1], [1, 1, 1, 0]])
    """

    ROUND: ClassVar[int] = MOST_AHEAD
    USUAL_LAYERS: ClassVar[Any] = [-1]  # of `extract`
    EXTRACT_OPTIONS: ClassVar[tuple[str, ...]] = ("units", "pool", "overflow")
    sentence_head, warned_of_length = SentenceHead(), False  # of `sentences`; `load` sets the head of the model
    warns_of_texts = True  # that the tokenizer knows little of
    pooling_unread = ""  # why `load` could not read that head
    sentences, save_sentences, generate, stream = encode_sentences, save_sentences, generate, stream_text
    find_decoder, fill_mask = find_decoder, fill_mask

    def __init__(
        self, family: Family, config: Any, params: Mapping[str, Any], tokenizer: Tokenizer | None,
        source: str = "weights",
    ):  # fmt: skip
        if tokenizer is not None:
            check_sizes(tokenizer, config.vocab_size, source)
        super().__init__(config, params, tokenizer, source)
        self.family = family
        if tokenizer is not None:
            tokenizer.max_positions = config.max_positions

    @functools.cached_property
    def _run(self) -> Callable[..., Any]:
        return compile_run(self.family, self.config)

    @functools.cached_property
    def _run_turned(self) -> Callable[..., Any]:
        return compile_run(self.family, self.config, turned=True)

    def __repr__(self) -> str:
        heads = f", heads {', '.join(self.heads)}" if self.heads else ""
        return f"{type(self).__name__}({self.source}: {self.family.name}, {self.num_layers} × {self.width}{heads})"

    def _build_module(self) -> Any:
        return self.family.build(self.config, pooler=not self._lacks_pooler)

    @functools.cached_property
    def _lacks_pooler(self) -> bool:
        if "pooler" in self._params["encoder"] or not self.family.pooler:
            return False
        shapes = param_shapes(self.family, self.config, pooler=True)  # a GPT's pooler has no parameters
        return any(path.startswith("encoder/pooler/") for path in shapes)

    def init_pooler(self, key: PRNGKeyArray) -> dict[str, Any]:
        """Return fresh parameters of a pooler, to train with a head where the weights have none.

        >>> import jax
        >>> from bert_elmo_jax import load
        >>> encoder = load("tests/goldens/distilbert_tiny")
        >>> params = {**encoder.params["encoder"], "pooler": encoder.init_pooler(jax.random.key(0))}
        >>> encoder.module.apply({"params": params}, **encoder.tokenizer.batch(["[MASK]"])).pooled.shape
        (1, 48)
        """
        if not self._lacks_pooler:
            raise ValueError(f"{self.source} has what its heads read: a pooler with weights, or one that needs none")
        make = jax.jit(lambda key: init_params(self.family, self.config, key, pooler=True)["encoder"]["pooler"])
        return dict(make(key))

    @property
    def has_maps(self) -> bool:
        """True if `forward` returns attention maps, which fused attention and models without attention do not have."""
        return getattr(self.config, "attention", None) == "reference"

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that came with the weights."""
        if self._reads is None:
            raise ValueError(
                f"{self.source} has no tokenizer (vocab.txt, tokenizer.json or a SentencePiece model): copy one there "
                "to encode texts; forward() takes ids"
            )
        return self._reads

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads that the weights have."""
        return tuple(name for name in self._params if name != "encoder")

    @property
    def _logits_head(self) -> str | None:
        """The head of `forward(…).logits`."""
        return choose_head(self.family, self.params)

    @property
    def working_params(self) -> dict[str, Any]:
        """The parameters as `encode` reads them: the encoder's kernels are cast to the type of the computation once."""
        self.check_process()
        return self._cast_params

    @functools.cached_property
    def _cast_params(self) -> dict[str, Any]:
        return {**self.params, "encoder": cast_kernels(self.params["encoder"], jnp.dtype(self.config.dtype))}

    @functools.cached_property
    def _turns(self) -> bool:
        """True if small requests use kernels that lie transposed."""
        return self.config.dtype == "float32" and transposed_is_faster() and not is_int8(self.params)

    @functools.cached_property
    def _turned_params(self) -> dict[str, Any]:
        """A copy of the parameters for small requests, made by the first of them."""
        return {**self.params, "encoder": turn_kernels(self.params["encoder"])}

    def check_words(self) -> None:
        """Raise if the tokenizer is missing."""
        self.tokenizer  # noqa: B018 -- raises

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
        progress: bool | None = None,
    ) -> Encoded:
        """Return the vectors of texts: strings, lists of words, or pairs (tuples) of these.

        A text with more pieces than `max_length` (default: the model's positions) raises, is cut
        (`overflow="truncate"`), or is encoded in windows that begin every `stride` pieces (`overflow="windows"`;
        default: half a window). A piece then gets its vector from the window with the most context around it; a pair
        is split in its second text, and `pooled` comes from the first window. Results are in the order of the texts.
        By default, a progress bar shows for a few hundred texts and more.

        Short texts share rows, so little is padded. `batch_size` bounds memory: a batch has at most as many pieces as
        `batch_size` rows that just hold the longest text. `pooled=False` leaves out the pooled vectors. `encoder.work`
        counts pieces and positions.
        """
        arguments.check_list(texts)
        batch_size, numbers = self._wishes(batch_size, layers)
        read = self._reader(overflow, stride, max_length)
        rows = [read(text, number) for number, text in enumerate(texts)]
        warn_of_unfamiliar(self, (row.encoding.ids for row in rows), texts[:SAMPLE])
        encoded = self._blank(rows, numbers, pooled)
        self._fill(list(encoded), rows, batch_size, numbers, len(rows) >= BAR_FROM if progress is None else progress)
        return encoded

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
    ) -> Iterator[Encoded]:
        """Yield the results of `encode`, `batch_size` texts at a time.

        Options are checked at once, texts one after the other. About 1,024 pieces per row of a batch are read ahead.
        """
        arguments.check_stream(texts)
        batch_size, numbers = self._wishes(batch_size, layers)

        sample: list[Text] = []
        reader = self._reader(overflow, stride, max_length)

        def read(text: Text, number: int) -> Row:
            if number < SAMPLE:
                sample.append(text)
            return reader(text, number)

        def fill(encoded: list[Encoded], rows: list[Row]) -> None:
            if sample:  # in the first round
                warn_of_unfamiliar(self, (row.encoding.ids for row in rows), sample)
                sample.clear()
            self._fill(encoded, rows, batch_size, numbers, progress=False)

        return stream(iter(texts), batch_size, read, lambda row: self._blank([row], numbers, pooled), fill, join, len)

    def check(
        self,
        texts: Iterable[Text],
        *,
        overflow: Overflow = "raise",
        stride: int | None = None,
        max_length: int | None = None,
    ) -> None:
        """Raise the error that `encode` would raise on these texts; this runs only the tokenizer."""
        arguments.check_stream(texts)
        read = self._reader(overflow, stride, max_length)
        for number, text in enumerate(texts):
            read(text, number)

    def forward(
        self,
        tokens: Int[AnyArray, "B T"],
        types: Int[AnyArray, "B T"] | None = None,
        mask: Int[AnyArray, "B T"] | None = None,
        *,
        positions: Int[AnyArray, "B T"] | None = None,
        segments: Int[AnyArray, "B T"] | None = None,
    ) -> ForwardOutput:
        """Return all outputs for ids: all layers, attention maps, and the logits of the model's heads.

        `attentions` is None for fused attention, which has no maps. `mask` is 1 for real pieces and 0 for padding;
        without it all are real. Rows packed with several texts give `segments` (0 for padding, 1, 2, … for the text of
        a piece) and `positions` instead.
        """
        if mask is not None and segments is not None:
            raise ValueError("mask and segments were both given; segments marks real pieces too: leave out mask")
        ids = arguments.to_ids("tokens", tokens)
        optional = {"types": types, "positions": positions, "segments": segments}
        arrays = {name: None if a is None else arguments.to_ids(name, a, ids.shape) for name, a in optional.items()}
        arrays["mask"] = arguments.to_mask("mask", mask, ids.shape)
        arguments.check_batch(self.config, ids, arrays["types"], arrays["positions"])
        if arrays["segments"] is not None and not ((arrays["segments"] >= 0) & (arrays["segments"] < 2**31)).all():
            raise ValueError(
                "segments holds numbers below 0 or beyond 32 bits; 0 is padding, and 1, 2, … are the texts of a row"
            )
        request = Request(
            layers=tuple(range(self.config.num_layers + 1)),
            attentions=self.has_maps,
            head=self._logits_head,
            nsp="nsp" in self.params and "pooler" in self.params["encoder"],
            pooled=True,
        )
        real = arrays["mask"] if segments is None else arrays["segments"]
        inputs = [None if a is None else a.astype(np.int32) for a in (ids, arrays["types"], arrays["positions"], real)]
        return self._run(self.working_params, *inputs, request=request)

    def extract(
        self,
        texts: Iterable[Text],
        layers: Sequence[int],
        *,
        batch_size: int = 32,
        units: Literal["pieces", "words"] = "pieces",
        pool: Literal["mean", "first", "last"] = "mean",
        overflow: Overflow = "raise",
    ) -> Iterator[Float32[np.ndarray, "L units D"]]:
        """Yield the layers of each text, one vector per piece or per word."""
        for name, value, choices in ("units", units, ("pieces", "words")), ("pool", pool, ("mean", "first", "last")):
            if value not in choices:
                raise ValueError(f"{name}={value!r:.60} is not known; it is one of {', '.join(choices)}")
        options: Any = {"batch_size": batch_size, "layers": layers, "pooled": False, "overflow": overflow}
        for batch in self.encode_batches(texts, **options):
            assert batch.layers is not None
            if units == "words":
                yield from map(np.stack, zip(*(batch.words(pool, values) for values in batch.layers)))
            else:
                yield from (batch.layers[:, n, : len(text)] for n, text in enumerate(batch.texts))

    def word_layers(
        self,
        sentences: Iterable[Sequence[str]],
        layers: Sequence[int],
        *,
        pieces: Literal["mean", "first", "last"] = "mean",
        batch_size: int = 32,
    ) -> Iterator[Float32[np.ndarray, "L words D"]]:
        """Yield the layers of each sentence's words, in windows if it is too long."""
        # The number of words of each sentence that was read and not yielded, if it has no pieces at all.
        waiting: deque[int | None] = deque()

        def readable() -> Iterator[list[str]]:
            for words in map(list, sentences):
                empty = not self.tokenizer.encode_words(words, specials=False).ids.size
                waiting.append(len(words) if empty else None)
                if not empty:
                    yield words

        def zeros() -> Iterator[Float32[np.ndarray, "L words D"]]:
            while waiting and (words := waiting[0]) is not None:
                waiting.popleft()
                yield np.zeros((len(layers), words, self.width), np.float32)

        options: Any = {"batch_size": batch_size, "layers": layers, "pooled": False, "overflow": "windows"}
        for batch in self.encode_batches(readable(), **options):
            assert batch.layers is not None
            for of_layers in zip(*(batch.words(pieces, values) for values in batch.layers)):
                yield from zeros()
                waiting.popleft()
                yield np.stack(of_layers)
        yield from zeros()

    def word_batch(self, sentences: Sequence[Sequence[str]], height: int, width: int) -> dict[str, np.ndarray]:
        """Return the arrays that `word_function` reads, for a network that fine-tunes this encoder."""
        read = [self._piece_ids(words) for words in sentences]
        size = width_for(max(len(ids) for ids, _ in read), self.config.max_positions)
        shape = (height, size)
        pieces, segments = np.full(shape, self.config.pad_id, np.int32), np.zeros(shape, np.int32)
        first = np.zeros((height, width), np.int32)
        for n, (ids, places) in enumerate(read):
            pieces[n, : len(ids)], segments[n, : len(ids)] = ids, 1
            first[n, : len(places)] = places
        return {"pieces": pieces, "segments": segments, "first": first}

    def word_function(self) -> Callable[[Any, Mapping[str, Any], PRNGKeyArray | None], Array]:
        """Return the function of `Encoder.word_function`; a word is its first piece, as in Devlin et al. 2018."""
        module, numbers = self.family.build(self.config), tuple(range(self.num_layers + 1))

        def layers_of_words(params: Any, batch: Mapping[str, Any], key: PRNGKeyArray | None) -> Array:
            output: Any = module.apply(
                {"params": params}, batch["pieces"], None, None, batch["segments"], layers=numbers,
                **dropout_options(key),
            )  # fmt: skip
            layers = output.layers.astype(jnp.float32)
            first = jnp.asarray(batch["first"])[None, :, :, None]
            first = jnp.broadcast_to(first, (len(layers), *batch["first"].shape, 1))
            return jnp.take_along_axis(layers, first, axis=2)

        return layers_of_words

    def _piece_ids(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of a sentence, and the place of each word's first piece."""
        from bert_elmo_jax.data.tasks.examples import TaggedSentence
        from bert_elmo_jax.data.tasks.rows import tag_places

        sentence = TaggedSentence(tuple(words), None, "", (0,) * len(words), 0)
        parts = list(tag_places([sentence], self.tokenizer, self.config.max_positions))
        if len(parts) > 1:
            raise ValueError(
                f"a sentence of {len(words)} words ({' '.join(words[:8])} …) has more than the "
                f"{self.config.max_positions} pieces that {self.source}, which is fine-tuned here, can take: split it, "
                "or leave the encoder frozen"
            )
        _, ids, places = parts[0]
        if problem := describe_missing(self.tokenizer, self.config.vocab_size, ids, self.source):
            raise ValueError(f"a sentence of {len(words)} words ({' '.join(words[:8])} …) {problem}")
        return ids, places[:, 1]

    def _wishes(self, batch_size: int, layers: Layers) -> tuple[int, tuple[int, ...] | None]:
        batch_size = arguments.check_whole("batch_size", batch_size, 1)
        return batch_size, arguments.check_layers(layers, self.config.num_layers)

    def _reader(self, overflow: Overflow, stride: int | None, max_length: int | None) -> Callable[[Text, int], Row]:
        """Return the function from a text and its number to its row."""
        size, overflow, stride = arguments.check_fit(overflow, stride, max_length, self.config.max_positions)
        return functools.partial(read_row, self, size=size, overflow=overflow, stride=stride)

    def _blank(self, rows: Sequence[Row], numbers: tuple[int, ...] | None, pooled: bool) -> Encoded:
        return blank(
            [row.encoding for row in rows],
            [row.words for row in rows],
            self.config.hidden_size,
            layers=None if numbers is None else len(numbers),
            pooled=pooled and "pooler" in self.params["encoder"],
        )

    def _fill(
        self,
        targets: Sequence[Encoded],
        rows: Sequence[Row],
        batch_size: int,
        numbers: tuple[int, ...] | None,
        progress: bool,
    ) -> None:
        """Compute rows, and write the vectors of each into its target."""
        if not rows:
            return
        windows = Windows(rows)
        request = Request(layers=numbers or (), pooled=targets[0].pooled is not None)
        with progress_bar(len(rows), "encoding", "texts", shown=progress) as bar:
            for batch, output in self._run_batches(windows, batch_size, lambda arrays: self._compute(arrays, request)):
                windows.write(batch, targets, *jax.device_get((output.last, output.layers, output.pooled)))
                bar.update(int((windows.numbers[batch.texts] == 0).sum()))

    def _run_batches(
        self, windows: Windows, batch_size: int, compute: Callable[[PieceArrays], Any]
    ) -> Iterator[tuple[PackedBatch, Any]]:
        """Yield each batch and what `compute` returns for it, when the device has begun with the next batch."""
        plan = plan_packed if self.family.inputs.packs else plan_padded
        waiting: list[tuple[PackedBatch, Any]] = []
        for batch in plan(windows.lengths, batch_size, self.config.max_positions):
            output = compute(windows.lay_out(batch, self.config.pad_id))
            self.work.add(int(windows.lengths[batch.texts].sum()), batch.positions)
            yield from waiting
            waiting = [(batch, output)]
        yield from waiting

    def plan_shapes(self, call: str, lengths: Sequence[int], batch_size: int) -> set[tuple[int, int]]:
        """Return the shapes of the batches that a call needs for texts of these lengths."""
        del call
        plan = plan_packed if self.family.inputs.packs else plan_padded
        batches = plan(np.array(lengths), batch_size, self.config.max_positions)
        return {(batch.height, batch.width) for batch in batches}

    def mask_logits(self, arrays: PieceArrays) -> Array:
        """Return the scores [B, T, V] of the pieces that may stand at each place; raise without a head for them."""
        if "mlm" not in self.params:
            sees = " (a piece sees only those before it)" if self.family.causal(self.config) else ""
            heads = ", ".join(self.heads) or "none"
            raise ValueError(f"{self.source} has no masked-language-model head{sees}; it has: {heads}")
        logits = self._compute(arrays, Request(head="mlm")).logits
        assert logits is not None
        return logits

    def _compute(self, arrays: PieceArrays, request: Request) -> ForwardOutput:
        """Return the outputs of a batch; `pooled` has one vector per window of a row."""
        if self.family.inputs.packs:
            self.check_process()
            if self._turns and arrays.tokens.size <= SMALL:
                return self._run_turned(self._turned_params, *arrays, request=request)
            return self._run(self.working_params, *arrays, request=request)
        output = self._run(self.working_params, arrays.tokens, arrays.types, None, arrays.segments, request=request)
        return output if output.pooled is None else output.replace(pooled=output.pooled[:, None])
