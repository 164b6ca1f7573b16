"""Vectors of texts from an encoder fed with pieces: the method `sentences`, whose texts share rows as in `encode`."""

import functools
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.encoders import arguments
from bert_elmo_jax.encoders.encoder import BAR_FROM
from bert_elmo_jax.encoders.layout import PieceArrays, Windows
from bert_elmo_jax.encoders.rows import Row, Text, shorten
from bert_elmo_jax.encoders.unfamiliar_texts import SAMPLE, warn_of_unfamiliar
from bert_elmo_jax.families.forward import Request
from bert_elmo_jax.families.piece_rows import read_row as read_text_row
from bert_elmo_jax.heads.sentence_head import NAME, SentenceHead, sentence_vectors
from bert_elmo_jax.progress_bars import progress_bar

ROUND = 16_384  # texts that are tokenised and packed together; only their pieces are in memory
ANY_LENGTH = 2**31 - 1
LongTexts = Literal["raise", "truncate"] | None  # for a text that is too long; None: cut it, and warn once

_pool = jax.jit(sentence_vectors, static_argnames=("head", "number", "skip"))


def encode_sentences(
    encoder: Any,
    texts: Sequence[Text],
    *,
    prompt: str | None = None,
    prompt_name: str | None = None,
    width: int | None = None,
    batch_size: int = 32,
    overflow: LongTexts = None,
    progress: bool | None = None,
) -> Float32[np.ndarray, "N E"]:
    """Return one vector per text: strings, or lists of words.

    A folder of sentence-transformers (`modules.json`) says how pieces are pooled, and which layers follow. Any other
    model gives the mean of the last layer over all pieces of a text, special ones included, not normalised.

    `prompt` is the name of one of the model's prompts, or a text of more than one word, such as "query: ", which is put
    before each text; "" turns off the model's default prompt. `prompt_name` is only a name. `width` cuts the vectors to
    their first numbers, for models that were trained for it; they are not scaled again. By default it is the folder's
    `truncate_dim`, or all numbers. A text with more pieces than the model takes is cut, with one warning for each
    model; `overflow` is "raise" to refuse it, or "truncate" for no warning.

    >>> from bert_elmo_jax import load
    >>> load("tests/goldens/bert_tiny").sentences(["[MASK] [MASK]", "[MASK]"]).shape
    (2, 64)
    """
    arguments.check_list(texts)
    texts = list(texts)  # a column of pandas finds its rows by label, but gives them in order
    batch_size = arguments.check_whole("batch_size", batch_size, 1)
    if overflow not in (None, "raise", "truncate"):
        raise ValueError(
            f"overflow={shorten(overflow)} is not known for sentences, which have one vector each; "
            "use 'raise' or 'truncate'"
        )
    head = find_head(encoder)
    if prompt_name is not None and prompt is not None:
        raise ValueError(f"prompt={prompt!r} and prompt_name={prompt_name!r} are given; give one of them")
    if prompt_name is not None and prompt_name not in dict(head.prompts):
        raise _unknown_prompt(head, "prompt_name", prompt_name)
    before = find_prompt(head, prompt if prompt_name is None else prompt_name)
    full = head.width(encoder.config.hidden_size)
    usual = head.default_width(encoder.config.hidden_size)
    width = usual if width is None else arguments.check_whole("width", width, 1)
    if width > full:
        raise ValueError(f"width={width} is more than the {full} numbers of this model's vectors")
    skip = 0 if head.include_prompt or not before else _count_pieces(encoder, head, before)
    vectors = np.zeros((len(texts), width), np.float32)
    progress = len(texts) >= BAR_FROM if progress is None else progress
    with progress_bar(len(texts), "encoding", "texts", shown=progress) as bar:
        for first in range(0, len(texts), ROUND):
            chosen = range(first, min(first + ROUND, len(texts)))
            rows = [read_row(encoder, head, add_prompt(texts[n], before, n), n, overflow) for n in chosen]
            if first == 0:
                warn_of_unfamiliar(encoder, (row.encoding.ids for row in rows), texts[:SAMPLE])
            _fill(encoder, head, vectors[first : first + ROUND], rows, batch_size, skip, bar)
    return vectors


def save_sentences(encoder: Any, folder: str | Path) -> None:
    """Write a folder that sentence-transformers can load, and `load`, too: the encoder, its tokenizer and the head.

    Pretraining and task heads are left out.

    >>> import tempfile
    >>> from bert_elmo_jax import load
    >>> folder = Path(tempfile.mkdtemp()) / "sentences"
    >>> load("tests/goldens/bert_tiny").save_sentences(folder)
    >>> load(folder).sentence_head.pooling
    ('mean',)
    """
    # Loading a model does not need it.
    from bert_elmo_jax.families.sentence_files import refuse_decoder_states, without_pooler, write_sentence_files

    head = find_head(encoder)
    refuse_decoder_states(encoder.family, encoder.source, "write a run directory with `save`")
    form = next((form for form in encoder.family.formats.values() if form.write), None)
    if form is None or form.write is None:
        raise ValueError(f"{encoder.source} is {encoder.family.called}, which has no format for transformers")
    tokenizer = encoder.tokenizer  # raises without one
    # The weights come last: a part of a folder, of a process that was killed, is no model with another pooling.
    folder = Path(folder).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    write_sentence_files(folder, head, encoder.params, encoder.config)
    tokenizer.save(folder)
    form.write(folder, {"encoder": without_pooler(encoder.params["encoder"], form, encoder.config)}, encoder.config)


def find_head(encoder: Any) -> SentenceHead:
    """Return the sentence head of an encoder; raise if it belongs to a file that is missing."""
    if encoder.pooling_unread and "sentence_head" not in vars(encoder):
        raise ValueError(
            f"{encoder.pooling_unread}, so the pooling of its vectors is not known: copy modules.json and the folders "
            'that it names, or choose with `model.sentence_head = SentenceHead(("mean",))` of '
            "bert_elmo_jax.heads.sentence_head"
        )
    head: SentenceHead = encoder.sentence_head
    return head


def _fill(
    encoder: Any,
    head: SentenceHead,
    target: Float32[np.ndarray, "N E"],
    rows: Sequence[Row],
    batch_size: int,
    skip: int,
    bar: Any,
) -> None:
    """Compute rows, and write their vectors."""
    windows, params = Windows(rows), encoder.params.get(NAME, {})

    def pool(arrays: PieceArrays) -> Any:
        number = arrays.firsts.shape[1] if encoder.family.inputs.packs else 1
        last = encoder._compute(arrays, Request()).last
        return _pool(head, params, last, arrays.segments, arrays.positions, number=number, skip=skip)

    for batch, vectors in encoder._run_batches(windows, batch_size, pool):
        target[batch.texts] = np.asarray(vectors)[batch.rows, batch.slots, : target.shape[1]]
        bar.update(len(batch.texts))


def most_pieces(encoder: Any, head: SentenceHead) -> int:
    """Return the largest number of pieces of a text."""
    return min(head.max_length or encoder.config.max_positions, encoder.config.max_positions)


def read_row(encoder: Any, head: SentenceHead, text: Text, number: int, overflow: LongTexts) -> Row:
    """Return the row of a text, cut to the most pieces that the model takes."""
    if head.lowercase:
        text = text.lower() if isinstance(text, str) else [word.lower() for word in text]  # type: ignore[union-attr]
    read = functools.partial(read_text_row, encoder, text, number, stride=None)
    size = most_pieces(encoder, head)
    row = read(size=ANY_LENGTH if overflow is None else size, overflow=overflow or "raise")
    if len(row) <= size:
        return row
    if not encoder.warned_of_length:
        encoder.warned_of_length = True
        warnings.warn(
            f"{encoder.source}: text {number} has {len(row):,} pieces and is cut to {size}, as sentence-transformers "
            'does; so are all others of more. overflow="truncate" leaves out this line, overflow="raise" refuses them',
            stacklevel=4,
        )
    return read(size=size, overflow="truncate")


def add_prompt(text: Any, before: str, number: int) -> Any:
    """Return a text with a prompt before it; raise on what cannot have a vector of its own."""
    if isinstance(text, tuple):
        raise TypeError(f"text {number} is a pair, {shorten(text)}: a vector belongs to one text, so give both alone")
    if not before:
        return text
    if isinstance(text, str):
        if not text.strip():  # the prompt alone would get a vector
            raise ValueError(f"text {number} is empty: {shorten(text)}")
        return before + text
    return [*before.split(), *text] if isinstance(text, list) else text


def find_prompt(head: SentenceHead, prompt: str | None) -> str:
    """Return the text of a prompt, "" for none.

    >>> head = SentenceHead(prompts=(("query", "query: "),))
    >>> find_prompt(head, "query"), find_prompt(head, "Represent: "), find_prompt(head, None)
    ('query: ', 'Represent: ', '')
    """
    prompts = dict(head.prompts)
    if prompt is None:
        return head.prompt
    if not isinstance(prompt, str):
        raise TypeError(f"prompt={prompt!r:.60}: expected the name of a prompt, or its text")
    if prompt in prompts:
        return prompts[prompt]
    if prompt and not any(sign.isspace() or sign == ":" for sign in prompt):
        raise _unknown_prompt(head, "prompt", prompt)
    return prompt


def _unknown_prompt(head: SentenceHead, argument: str, name: str) -> ValueError:
    prompts = dict(head.prompts)
    names = f"it has {', '.join(prompts)}{did_you_mean(name, prompts)}" if prompts else "it has none"
    spelling = "A prompt's own text has a space or a colon, such as prompt='query: '"
    return ValueError(f"{argument}={name!r} is not the name of a prompt of this model: {names}. {spelling}")


def _count_pieces(encoder: Any, head: SentenceHead, before: str) -> int:
    """Return the number of pieces of a prompt, with the special ones before it and without those after it."""
    return len(read_row(encoder, head, before, 0, "truncate")) - len(encoder.tokenizer.frame.after)
