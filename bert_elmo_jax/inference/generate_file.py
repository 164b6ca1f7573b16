"""Texts for the prompts of a file or of standard input, as JSON lines; one prompt is streamed."""

import json
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import jax

from bert_elmo_jax.addresses import local_copy
from bert_elmo_jax.data.tasks.files import check_file, read_lines
from bert_elmo_jax.files import hash_file
from bert_elmo_jax.generation.written import Written
from bert_elmo_jax.inference.load_model import load
from bert_elmo_jax.inference.output_file import STDIN, Lines, find_output, open_lines
from bert_elmo_jax.progress_bars import progress_bar
from bert_elmo_jax.train.devices import describe_devices

AHEAD = 8  # batches of prompts that are sorted together
STREAM_OPTIONS = (
    "temperature",
    "top_k",
    "top_p",
    "seed",
    "max_new",
    "repetition_penalty",
    "stop",
)  # options of one stream


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
        options = _fill_in(options, encoder.find_decoder().defaults)
        plain = options["beams"] == options["n_best"] == 1 and encoder.reads is not None
        if prompt is not None and plain and path is None:
            return stream_prompt(encoder, prompt, options)
        lines = _read(source) if prompt is None else iter([prompt])
        size = 1 if prompt is None and source == "-" and sys.stdin.isatty() else AHEAD * batch_size
        options = {**options, "batch_size": batch_size}
        resumable = prompt is None and Path(source).is_file()  # a pipe can be read only once
        device = jax.devices()[0].device_kind
        machine = {"dtype": dtype, "model": encoder.fingerprint, "jax": jax.__version__, "device": device}
        out.begin({**options, **machine, "content": hash_file(source)} if resumable else None)
        return write_lines(encoder, lines, out, size, options, bar=path is not None)
    return out.finished or 0  # an earlier start of the same command has written them


def _fill_in(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the model's own values, or the usual ones, for those that are None."""
    usual = {"max_new": 64, "beams": 1, "length_penalty": 1.0, **defaults}
    if any(options.get(name) is not None for name in ("temperature", "top_k", "top_p")):
        usual["beams"] = 1
    return {name: usual.get(name) if value is None else value for name, value in options.items()}


def stream_prompt(encoder: Any, prompt: str, options: Mapping[str, Any]) -> int:
    """Write the text of one prompt to standard output as it comes, with a line break in the end."""
    try:
        for part in encoder.stream(prompt, **{name: options[name] for name in STREAM_OPTIONS}):
            print(part, end="", flush=True)
    finally:
        print(flush=True)
    return 1


def write_lines(
    encoder: Any, prompts: Iterator[str], out: Lines, size: int, options: Mapping[str, Any], bar: bool = False
) -> int:
    """Write a JSON line for each prompt, in their order, `size` at a time, and return their number."""
    count = 0
    with progress_bar(None, "writing", "prompts", shown=bar) as shown:
        while batch := list(islice(prompts, size)):
            if not out.skip(len(batch)):
                read = [to_prompt(encoder, line, count + number) for number, line in enumerate(batch, start=1)]
                entries = [
                    {"prompt": line, "texts": [describe_text(text) for text in texts]}
                    for line, texts in zip(batch, encoder.generate(read, **options))
                ]
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
    """Yield the lines of a file or of standard input, without empty ones."""
    lines = sys.stdin if source == "-" else read_lines(source, "utf-8")
    return (text for line in lines if (text := line.rstrip("\r\n")).strip())
