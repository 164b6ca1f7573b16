"""A preparation with its progress bars, answers to signals, and the report at its end."""

import contextlib
import dataclasses
import os
import signal
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.addresses import local_copy
from bert_elmo_jax.data.corpora.pair_files import joined_inputs
from bert_elmo_jax.data.corpora.prepare import (
    DROPPED,
    TRAINED,
    Request,
    find_tokenizer_folder,
    prepare,
    refuse_idle_options,
)
from bert_elmo_jax.data.corpora.reading import Reading
from bert_elmo_jax.data.corpora.runners import Report, local_runner, ray_runner
from bert_elmo_jax.data.corpora.store import verify
from bert_elmo_jax.files import read_json
from bert_elmo_jax.progress_bars import progress_bar

MANY_UNKNOWN = {
    True: "is words outside the vocabulary of {:,}: a model of characters reads them, but predicts them all as one\n"
    "  word, <UNK>; a larger --vocab_size knows more of them if the text has enough of each",
    False: "is pieces outside the vocabulary of {:,}: this tokenizer was made for other text; train one "
    "(--tokenizer=…)",
}


def prepare_from_flags(values: Mapping[str, Any], flags_set: Collection[str] = ()) -> None:
    """Prepare a corpus, or verify it, by the values of the program's flags; `flags_set` are those that the user set."""
    if not values["output"].strip():
        raise ValueError("--output= is empty: give the folder to write")
    if values["verify"]:
        print(f"{values['output']}: {verify(values['output'])} files are unchanged")
        return
    with joined_inputs(values, flags_set) as joined:
        request = read_request(joined, flags_set)
        run_preparation(
            request, workers=values["workers"], ray=values["runner"] == "ray", address=values["ray_address"]
        )


def read_request(values: Mapping[str, Any], flags_set: Collection[str] = ()) -> Request:
    """Return the request in the values of flags; refuse those that were given but mean nothing for the tokenizer.

    A folder of words brings the rule that they were split by.
    """
    values = {**values, **{name: os.path.expanduser(values[name]) for name in ("output", "tokenizer")}}  # noqa: PTH111
    values["tokenizer"] = local_copy(values["tokenizer"])
    vocabulary = values["tokenizer"] if values["tokenizer"] not in TRAINED else ""
    if vocabulary and (rule := read_json(find_tokenizer_folder(vocabulary) / "words.json", default={}).get("rule")):
        if "word_rule" in flags_set and values["word_rule"] != rule:
            raise ValueError(
                f"--word_rule={values['word_rule']}: the words of --tokenizer={vocabulary} were split by {rule}; leave "
                "--word_rule out"
            )
        values["word_rule"] = rule
    reading = Reading(**{field.name: values[field.name] for field in dataclasses.fields(Reading)})
    fields = [field.name for field in dataclasses.fields(Request) if field.name not in ("inputs", "reading")]
    request = Request(
        tuple(values["input"]), reading=reading, **{name: values[name] for name in fields if name in values}
    )
    refuse_idle_options(request, [name for name in flags_set if name in fields])
    return request


def run_preparation(request: Request, *, workers: int = 1, ray: bool = False, address: str | None = None) -> None:
    """Prepare a corpus in `workers` processes or on a Ray cluster, and print a report.

    In the main thread, the first SIGINT or SIGTERM stops at the next report of progress, when no file is half written,
    and raises KeyboardInterrupt.
    """
    stop: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        if stop:
            raise KeyboardInterrupt
        stop.append(number)

    @contextlib.contextmanager
    def progress(name: str, size: int) -> Iterator[Report]:
        with progress_bar(size or None, name, "B", unit_scale=True, smoothing=0.1) as bar:

            def step(done: int) -> None:
                bar.update(done)
                if stop:
                    raise KeyboardInterrupt

            yield step

    started = time.monotonic()
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        runner = ray_runner(address) if ray else local_runner(workers)
        where = "a Ray cluster" if ray else f"{workers} process{'es' if workers > 1 else ''} of this machine"
        print(f"Preparing {' '.join(request.inputs)} -> {request.output}, on {where}")
        manifest = prepare(request, runner, progress)
    except OSError as error:
        file = f" ({error.filename})" if error.filename else f" while working on {request.output}"
        raise OSError(f"{error.strerror or error}{file}; fix this, and the same command resumes from here") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    print_report(manifest, request.output, time.monotonic() - started, expects_heldout=request.heldout > 0)


def print_report(manifest: Mapping[str, Any], output: str, seconds: float, *, expects_heldout: bool) -> None:
    """Print the report, with remarks on many unknown words and on held-out text that is missing."""
    size = sum(source["bytes"] for source in manifest["sources"]) / 1e6
    tokenizer = manifest["tokenizer"]
    speed = f"{size:.1f} MB in {seconds:.1f} s ({size / seconds:.2f} MB/s)"
    print(f"\n{output}: {len(manifest['sources'])} files, {speed}, {len(manifest['shards'])} shards")
    print(f"  {tokenizer['kind']} with {tokenizer['vocab_size']:,} entries")
    for part, counts in manifest["counts"].items():
        numbers = "".join(f" {counts[name]:>12,} {name}" for name in ("documents", "sentences", "words", "tokens"))
        print(f"  {part:8}{numbers}   unknown {counts['unknown'] / max(1, counts['tokens']):.4%}")
    counts = manifest["counts"]["train"]
    if (share := counts["unknown"] / max(1, counts["tokens"])) > 0.1:
        print(f"  {share:.0%} of the text {MANY_UNKNOWN[tokenizer['kind'] == 'words'].format(tokenizer['vocab_size'])}")
    for problem, count in manifest["skipped"].items():
        print(f"  skipped or repaired: {count:,} × {problem}")
    if (path := Path(output, DROPPED)).exists():
        print_dropped(read_json(path), path)
    if expects_heldout and not manifest["counts"]["heldout"]["documents"]:
        print("  no text is held out: there are too few documents. If every line is a text, use --documents=line;")
        print("  otherwise raise --heldout, try another --seed, or separate chapters by blank lines")


def print_dropped(report: Mapping[str, Any], path: Path) -> None:
    """Print how many documents were left out for each reason, with an example, and the shares of a mixture."""
    if total := report.get("documents"):
        print(f"  {report['remaining']:,} of {total:,} documents remain; examples of the others are in {path}")
        for reason, entry in report["dropped"].items():
            print(f"  left out: {entry['documents']:,} ({entry['documents'] / total:.1%}) × {reason}")
            print(f"    {entry['samples'][0]['text'][:100]}")
    for name, entry in report.get("mixture", {}).items():
        print(
            f"  {name}: {entry['share']:.1%} of the mixture, {entry['copies']:.2f} copies of {entry['bytes']:,} bytes"
        )
