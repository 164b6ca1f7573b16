"""The calls behind `generate` and `stream`: from prompts to texts."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert_elmo_jax.data.rows.widths import height_for
from bert_elmo_jax.encoders.arguments import check_whole
from bert_elmo_jax.generation.batches import CHUNK, Pieces, Writer, cut, make_keys, plan, search_batch, write_chunks
from bert_elmo_jax.generation.beam_search import weigh_length
from bert_elmo_jax.generation.options import Options, Prompt, check_options, choose_prompts, count_pieces, read_prompts
from bert_elmo_jax.generation.written import Written
from bert_elmo_jax.text.growing_text import GrowingText, continuation, find_stop

STOP_CHUNK = 16  # pieces after which stop texts are looked for
Decode = Callable[[Sequence[int]], str]


def find_writer(encoder: Any) -> Writer:
    """Return what writes with an encoder, which keeps it; raise for a family that does not write."""
    writer: Writer | None = encoder.__dict__.get("_writer")
    if writer is None:
        decoder = encoder.find_decoder()
        writer = encoder._writer = Writer(decoder, encoder.params, count_pieces(encoder, decoder))
    return writer


def write_texts(
    encoder: Any,
    prompts: Any,
    tokens: Any,
    source: Any,
    batch_size: int,
    settings: Mapping[str, Any],
    copies_before: Counter[bytes] | None = None,
) -> list[list[Written]]:
    """Return the texts of `generate`; `copies_before` counts the prompts of earlier calls, and those of this one."""
    writer = find_writer(encoder)
    options = check_options(encoder, writer.decoder, settings)
    batch_size = check_whole("batch_size", batch_size, 1)
    chosen = choose_prompts(writer.decoder, prompts, tokens, source)
    rows = read_prompts(encoder, writer.decoder, chosen, options.max_new)
    decodes = [make_decode(encoder, writer, prompt) for prompt in rows]
    forced = writer.decoder.forced_end is not None
    written: list[list[Written]] = [[] for _ in rows]
    if options.beams > 1:
        for places in plan(rows, batch_size):
            batch, height = [rows[place] for place in places], height_for(len(places), batch_size)
            for place, texts in zip(places, search_batch(writer, batch, options, height)):
                written[place] = [finish(pieces, decodes[place], options, forced) for pieces in texts]
        return written
    copies = [prompt for prompt in rows for _ in range(options.n_best)]
    keys = make_keys(rows, options, Counter() if copies_before is None else copies_before)
    for places in plan(copies, batch_size):
        batch, height = [copies[place] for place in places], height_for(len(places), batch_size)
        batch_decodes = [decodes[prompt.number] for prompt in batch]
        for prompt, decode, pieces in zip(
            batch, batch_decodes, write_batch(writer, batch, keys[np.array(places)], options, height, batch_decodes)
        ):
            written[prompt.number].append(finish(pieces, decode, options, forced))
    return [sorted(texts, key=lambda text: -text.score) for texts in written]


def write_batch(
    writer: Writer,
    prompts: Sequence[Prompt],
    keys: Any,
    options: Options,
    height: int,
    decodes: Sequence[Decode | None],
) -> list[Pieces]:
    """Return the pieces of each row of a batch, greedy or drawn."""
    chunk = STOP_CHUNK if options.stop else CHUNK
    for chunk_texts in write_chunks(writer, prompts, keys, options, height, chunk):
        texts = [
            cut(ids, logs, options.ends) for ids, logs in zip(chunk_texts.written.tolist(), chunk_texts.logs.tolist())
        ]
        if options.stop:
            for row, (pieces, decode) in enumerate(zip(texts, decodes)):
                assert decode is not None
                chunk_texts.done[row] |= find_stop(decode(pieces.ids), options.stop) is not None
    return texts


def finish(pieces: Pieces, decode: Decode | None, options: Options, forced: bool) -> Written:
    """Return a text from its pieces, cut at the first stop text; an end is `forced` in the last place."""
    ids, logs, ended = pieces.ids, pieces.logs, pieces.ended
    finished = ended and not (forced and len(ids) == options.max_new)
    text = None if decode is None else decode(ids[:-1] if ended else ids)
    if decode is not None and text is not None and (place := find_stop(text, options.stop)) is not None:
        size = next(n for n in range(1, len(ids) + 1) if find_stop(decode(ids[:n]), options.stop) is not None)
        ids, logs, finished, text = ids[:size], logs[:size], True, text[:place]
    score = pieces.score
    if score is None:
        score = sum(logs) / weigh_length(len(ids), options.length_penalty, options.length_rule)
    return Written(ids, score, text, finished)


def make_decode(encoder: Any, writer: Writer, prompt: Prompt) -> Decode | None:
    """Return the function that decodes what follows a prompt; None without a tokenizer."""
    if encoder.reads is None:
        return None
    return continuation(encoder.reads, prompt.ids if writer.decoder.first is None else ())


def stream_parts(encoder: Any, prompt: Any, every: int, settings: Mapping[str, Any]) -> Iterator[str]:
    """Return the parts of `stream`; arguments are checked at once."""
    writer = find_writer(encoder)
    options = check_options(encoder, writer.decoder, settings)
    every = check_whole("every", every, 1)
    [row] = read_prompts(encoder, writer.decoder, [prompt], options.max_new)
    decode = make_decode(encoder, writer, row)
    if decode is None:
        raise ValueError(f"{encoder.source} has no tokenizer, so there is no text to stream; generate() returns ids")
    return _parts(writer, row, options, GrowingText(decode, options.stop), every)


def _parts(writer: Writer, prompt: Prompt, options: Options, text: GrowingText, every: int) -> Iterator[str]:
    count = 0
    for chunk in write_chunks(writer, [prompt], make_keys([prompt], options, Counter()), options, 1, every):
        pieces = cut(chunk.written[0].tolist(), chunk.logs[0].tolist(), options.ends)
        fresh = pieces.ids[count : len(pieces.ids) - pieces.ended]
        count = len(pieces.ids)
        if part := text.add(fresh):
            yield part
        chunk.done[0] |= text.stopped
    if part := text.finish():
        yield part
