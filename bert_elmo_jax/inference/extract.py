"""Contextual vectors of all texts in a file, written to HDF5 or npz; a stopped extraction can be resumed."""

import errno
import functools
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import jax

from bert_elmo_jax.data.corpora.text_files import each_text, find_file
from bert_elmo_jax.data.tasks.files import hash_files
from bert_elmo_jax.encoders.arguments import check_layers, check_whole
from bert_elmo_jax.encoders.encoder import MOST_AHEAD
from bert_elmo_jax.encoders.rows import BadText
from bert_elmo_jax.families import find_family
from bert_elmo_jax.inference.array_file import Parts
from bert_elmo_jax.inference.document_model import DocumentModel
from bert_elmo_jax.inference.load_model import load
from bert_elmo_jax.inference.output_file import Finished
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.progress_bars import progress_bar
from bert_elmo_jax.text.words import split_texts
from bert_elmo_jax.train.devices import describe_devices

PART = MOST_AHEAD  # batches; a part that a stop can lose; it must not divide those that are computed together
OPTIONS = {"units": None, "pool": "mean", "overflow": "raise", "warmup": 0}


def extract(
    model: str,
    source: str | Path,
    target: str | Path,
    *,
    layers: Sequence[int] | Literal["all"] | None = None,
    input_format: str = "auto",
    column: int | None = None,
    text: str | None = None,
    encoding: str = "utf-8",
    batch_size: int = 32,
    dtype: Literal["float32", "bfloat16", "int8"] = "float32",
    untrusted: bool = False,
    **options: Any,
) -> int:
    """Write the layers of each text of a file to `target`, [layers, units, width], and return the number of texts.

    `text` is the column of the texts in a table, by default "text". `layers` are numbers, "all", or None for those
    usual with the encoder. `options` (`units`, `pool`, `overflow`, `warmup`; None: not given) must be ones that the
    encoder's `extract` takes. All texts are checked first. Finished parts are kept next to `target`, so the same call
    resumes where it was stopped, and leaves a complete `target` alone.
    """
    with Parts(Path(target)) as parts:
        try:
            options_set = {name: value for name, value in options.items() if value is not None}
            settings: dict[str, Any] = {"input_format": input_format, "column": column, "encoding": encoding}
            settings |= {"batch_size": batch_size, **({} if text is None else {"text": text})}
            return _extract(parts, model, source, layers, settings, options_set, dtype, untrusted)
        except Finished as error:
            print(error)
            return error.examples
        except MemoryError as error:
            advice = "lower --batch_size, ask for fewer --layers, or shorten the longest texts (--overflow=truncate)"
            raise MemoryError(f"{error}; {advice}") from error
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                where = f": '{target}'" if error.filename is None else ""
                raise OSError(f"{error}{where}; make room, and the same command resumes from here") from error
            raise


def _extract(
    parts: Parts,
    model: str,
    source: str | Path,
    layers: Any,
    settings: dict[str, Any],
    options: dict[str, Any],
    dtype: Any,
    untrusted: bool,
) -> int:
    batch_size = check_whole("batch_size", settings["batch_size"], 1)
    check_whole("warmup", options.get("warmup", 0), 0)
    file = find_file(source)
    place = (file, settings["input_format"], settings["column"], settings["encoding"])
    lines = functools.partial(each_text, *place, text=settings.get("text"))
    count = sum(1 for _ in lines())  # this finds errors in the file before a model is loaded
    encoder: Any = load(model, dtype=dtype, untrusted=untrusted)
    if isinstance(encoder, DocumentModel):
        encoder = encoder.encoder
    if isinstance(encoder, TaskNetwork):
        raise ValueError(f"--model={model} is a task network; give its encoder, if it has one: …/encoder")
    called = find_family(encoder.config).called
    names = encoder.EXTRACT_OPTIONS
    chosen = {name: value for name, value in options.items() if name in names}
    idle = options.keys() - chosen.keys() - ({"units"} if options.get("units") == "words" else set())
    if idle:
        wrong = ", ".join(f"--{name}={options[name]}" for name in options if name in idle)
        raise ValueError(f"{wrong} means nothing for {called}, which {model} is: leave it out")
    if "pool" in chosen and options.get("units") != "words":
        raise ValueError(f"--pool={chosen['pool']} joins the pieces of each word: add --units=words, or leave it out")
    read = functools.partial(split_texts, rule := getattr(encoder, "word_rule", None), lines)
    numbers = list(check_layers(layers or encoder.USUAL_LAYERS, encoder.num_layers) or ())
    request = {"dtype": dtype, **OPTIONS, **settings, **options, "layers": numbers, "rule": rule}
    request |= {"model": encoder.fingerprint, "content": hash_files(file)[:16]}
    request |= {"jax": jax.__version__, "device": jax.devices()[0].device_kind}
    if not parts.resume(request):
        fit = {name: value for name, value in chosen.items() if name == "overflow"}
        try:
            with progress_bar(count, "checking", "texts", delay=1, leave=False) as bar:
                encoder.check((text for _, text in read() if bar.update() or True), **fit)
        except BadText as error:
            line, _ = next(islice(read(), error.number, None))
            raise ValueError(f"{source}, line {line}: {error}") from error
        parts.begin(request)
    done = f"; {parts.done:,} are done" if parts.done else ""
    print(f"{count:,} texts of {source} -> {parts.path}, layers {numbers}, on {describe_devices()}{done}")
    remaining = islice((text for _, text in read()), parts.done, None)
    with progress_bar(count, "extracting", "texts", initial=parts.done) as bar:
        arrays = encoder.extract(remaining, numbers, batch_size=batch_size, **chosen)
        written = parts.write(arrays, PART * batch_size)
        with bar.waiting_for("compiling"):
            bar.update(sum(1 for _ in islice(written, 1)))
        for _ in written:
            bar.update()
    with progress_bar(count, "merging", "texts", delay=1) as bar:
        parts.merge((text for _, text in lines()), bar.update)
    if encoder.work.positions:
        print(encoder.work)
    return count
