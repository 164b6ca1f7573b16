"""Texts for the prompts of a file or of standard input, as JSON lines; one prompt is streamed."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import jax

from bert_elmo_jax.addresses import local_copy
from bert_elmo_jax.data.tasks.files import check_file, read_lines
from bert_elmo_jax.files import hash_file
from bert_elmo_jax.generation.batches import count_copies
from bert_elmo_jax.generation.calls import write_texts
from bert_elmo_jax.generation.generate import DEFAULT
from bert_elmo_jax.generation.options import check_options, read_prompts
from bert_elmo_jax.generation.written import Written
from bert_elmo_jax.inference.load_model import load
from bert_elmo_jax.inference.output_file import STDIN, Lines, find_output, open_lines
from bert_elmo_jax.progress_bars import progress_bar
from bert_elmo_jax.train.devices import describe_devices

AHEAD = 8  # batches of prompts that are sorted together
MAX_NEW = 64  # pieces, if neither the caller nor the model says it
SEARCH_OPTIONS = ("beams", "n_best", "length_penalty")  # not of one stream


def generate_file(
    model: str,
    *,
    prompt: str | None = None,
    source: str = "-",
    target: str = "-",
    batch_size: int = 32,
    dtype: Literal["float32", "bfloat16", "int8"] = "float32",
    untrusted: bool = False,
    overwrite: bool = False,
    **options: Any,
) -> int:
    """Write the texts for one prompt, or for each line of `source`, and return the number of prompts.

    "-" is standard input or output. One prompt with one text is streamed to standard output as text; all else are JSON
    lines. A model without a tokenizer reads and writes ids. `generate` explains the other options.
    """
    if source != "-" and prompt is not None:
        raise ValueError(f"--prompt and --input={source} were both given: choose one")
    source = "-" if source in STDIN else local_copy(source)
    path = find_output(target, source, overwrite=overwrite)
    if source != "-":
        check_file(source)
    with open_lines(path, overwrite=overwrite) as out:
        encoder: Any = load(model, dtype=dtype, untrusted=untrusted)
        if not hasattr(encoder, "generate"):
            raise ValueError(f"--model={model} was fine-tuned for a task, and does not write: give the model itself")
        print(f"{model}, on {describe_devices()}", file=sys.stderr)
        decoder = encoder.find_decoder()
        if options["max_new"] is None and "max_new" not in decoder.defaults:
            options["max_new"] = MAX_NEW
        checked = check_options(encoder, decoder, DEFAULT | options)
        plain = checked.beams == checked.n_best == 1 and encoder.reads is not None
        if prompt is not None and plain and path is None:
            return stream_prompt(encoder, prompt, options)
        lines = _read(source) if prompt is None else iter([prompt])
        size = 1 if prompt is None and source == "-" and sys.stdin.isatty() else AHEAD * batch_size
        resumable = prompt is None and Path(source).is_file()  # a pipe can be read only once
        if resumable:
            check_prompts(encoder, source, checked.max_new)
        device = jax.devices()[0].device_kind
        machine = {"dtype": dtype, "model": encoder.fingerprint, "jax": jax.__version__, "device": device}
        rules = {name: value for name, value in decoder._asdict().items() if not callable(value)}  # the model's own
        same = {**asdict(checked), "batch_size": batch_size, **machine, "rules": rules}
        out.begin({**same, "content": hash_file(source)} if resumable else None)
        return write_lines(encoder, lines, out, size, batch_size, DEFAULT | options, bar=path is not None)
    return out.finished or 0  # an earlier start of the same command has written them


def stream_prompt(encoder: Any, prompt: str, options: Mapping[str, Any]) -> int:
    """Write the text of one prompt to standard output as it comes, with a line break in the end."""
    try:
        for part in encoder.stream(prompt, **{name: options[name] for name in options if name not in SEARCH_OPTIONS}):
            print(part, end="", flush=True)
    finally:
        print(flush=True)
    return 1


def check_prompts(encoder: Any, source: str, max_new: int) -> None:
    """Raise before anything is written if a prompt of a file does not fit into the model."""
    decoder = encoder.find_decoder()
    for number, line in enumerate(read_lines(source, "utf-8"), start=1):
        if (text := line.rstrip("\r\n")).strip():
            try:
                read_prompts(encoder, decoder, [to_prompt(encoder, text, number)], max_new, first=number)
            except ValueError as problem:
                raise ValueError(f"{source}, line {number}: {problem}") from None


def write_lines(
    encoder: Any,
    prompts: Iterator[str],
    out: Lines,
    size: int,
    batch_size: int,
    options: Mapping[str, Any],
    bar: bool = False,
) -> int:
    """Write a JSON line for each prompt, in their order, `size` at a time, and return their number."""
    count, copies, decoder = 0, Counter[bytes](), encoder.find_decoder()
    with progress_bar(None, "writing", "prompts", shown=bar) as shown:
        while batch := list(islice(prompts, size)):
            read = [to_prompt(encoder, line, count + number) for number, line in enumerate(batch, start=1)]
            if out.skip(len(batch)):
                count_copies(read_prompts(encoder, decoder, read, max_new=1), copies)
            else:
                texts = write_texts(encoder, read, None, None, batch_size, options, copies)
                entries = [{"prompt": line, "texts": list(map(describe_text, row))} for line, row in zip(batch, texts)]
                out.add((json.dumps(entry, ensure_ascii=False) for entry in entries), len(batch))
            count += len(batch)
            shown.update(len(batch))
    return count


def describe_text(text: Written) -> dict[str, Any]:
    """Return a text as an entry of a JSON line; without a tokenizer it has ids.

    >>> describe_text(Written([5, 2], -0.25, None, True))
    {'ids': [5, 2], 'score': -0.25, 'finished': True}
    """
    shown = {"ids": text.ids} if text.text is None else {"text": text.text}
    return {**shown, "score": round(text.score, 6), "finished": text.finished}


def to_prompt(encoder: Any, line: str, number: int) -> Any:
    """Return a line as the prompt of a model: a text, or ids for a model without a tokenizer."""
    if encoder.reads is not None:
        return line
    try:
        return [int(word) for word in line.split()]
    except ValueError:
        raise ValueError(
            f"{encoder.source} has no tokenizer, so prompts are ids with spaces between them; prompt {number} is "
            f"{line!r:.60}"
        ) from None


def _read(source: str) -> Iterator[str]:
    """Yield the lines of a file or of standard input, without empty ones and without a byte-order mark."""
    for number, line in enumerate(sys.stdin if source == "-" else read_lines(source, "utf-8")):
        text = (line if number else line.removeprefix("\ufeff")).rstrip("\r\n")
        if text.strip():
            yield text
