r"""Raw text -> a folder of training shards with its tokenizer.

English novels, a paragraph a line:
  python -m experiments.prepare_data --input='novels/*.txt' --split=sentences --output=corpora/novels

Korean reviews from JSON lines, a SentencePiece vocabulary, two processes:
  python -m experiments.prepare_data --input=reviews.jsonl.gz --text_field=review --tokenizer=sentencepiece \
    --vocab_size=16000 --workers=2 --output=corpora/reviews

Words for ELMo:
  python -m experiments.prepare_data --input='novels/*.txt' --split=sentences --tokenizer=words --vocab_size=50000 \
    --output=corpora/novels_words

Stop it whenever you like; the same command goes on where it was. Check a finished folder: --verify --output=…
"""

import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

from absl import flags
from tqdm import tqdm

from bert_elmo_jax.data.corpora.prepare import Request, prepare, refuse_idle_options
from bert_elmo_jax.data.corpora.reading import Reading
from bert_elmo_jax.data.corpora.runners import Report, local_runner, ray_runner
from bert_elmo_jax.data.corpora.store import verify
from bert_elmo_jax.train.run_guard import INTERRUPTED
from experiments.command_line.start import refuse, start
from experiments.preparation_report import report

flags.DEFINE_multi_string("input", [], "Files or globs (quoted): .txt or .jsonl, also .gz .xz .bz2 .zst; repeatable.")
flags.DEFINE_string("output", None, "The folder to write; it is begun, gone on with, or found finished.", required=True)
flags.DEFINE_bool("verify", False, "Check the hash of every file in --output, and do nothing else.")
flags.DEFINE_enum(
    "documents",
    "blank_line",
    ["blank_line", "line", "file"],
    "A blank line ends a document; or a line, or a file, is one (a .jsonl line always is).",
)
flags.DEFINE_enum(
    "split", "lines", ["lines", "sentences"], "A line is a sentence, or lines are running text to be split."
)
flags.DEFINE_string("encoding", "utf-8", "Of the files: utf-8, utf-8-sig, cp949, utf-16, …")
flags.DEFINE_string("text_field", "text", "The field of .jsonl records that holds the text.")
flags.DEFINE_enum("on_bad", "error", ["error", "skip"], "A line that cannot be used is named, or skipped and counted.")
flags.DEFINE_float("max_line_mb", 4.0, "A longer line is bad input.")
flags.DEFINE_string("tokenizer", "wordpiece", "wordpiece, sentencepiece or words (trained here), or the folder of one.")
flags.DEFINE_integer("vocab_size", 8192, "Size of a trained vocabulary, special pieces included.")
flags.DEFINE_float("sample_mb", 32.0, "Text that it is trained on.")
flags.DEFINE_bool("lowercase", False, "Lower-case, for a trained WordPiece vocabulary (Hangul stays composed).")
flags.DEFINE_enum("sentencepiece_model", "unigram", ["unigram", "bpe"], "Kind of a trained SentencePiece model.")
flags.DEFINE_enum(
    "word_rule", "punctuation", ["punctuation", "whitespace"], "What separates words for --tokenizer=words."
)
flags.DEFINE_float("heldout", 0.01, "Share of documents held out for evaluation.")
flags.DEFINE_integer("shards", 0, "How many shards; 0: by the size of the input.")
flags.DEFINE_integer("seed", 0, "Of the sample and of the held-out choice.")
flags.DEFINE_integer("workers", os.cpu_count() or 1, "Processes of this machine; changes nothing in what comes out.")
flags.DEFINE_enum("runner", "local", ["local", "ray"], "This machine, or a Ray cluster that shares the file system.")
flags.DEFINE_string("ray_address", None, "Of the cluster; without it the one around, or one started here.")
FLAGS = flags.FLAGS
HEADINGS = {"input": "From what to what", "documents": "How text is read", "tokenizer": "The vocabulary"}
HEADINGS |= {"heldout": "What is written", "workers": "Where it is computed"}


STOP: list[int] = []


def interrupt(number: int, frame: object) -> None:
    """Ask for a stop at the next report of progress, when nothing is half-way; asked again, stop at once."""
    del frame
    if STOP:
        raise KeyboardInterrupt
    STOP.append(number)


@contextlib.contextmanager
def progress(name: str, size: int) -> Iterator[Report]:
    """A bar with MB/s and time left."""
    with tqdm(total=size or None, desc=name, unit="B", unit_scale=True, smoothing=0.1, mininterval=0.2) as bar:

        def step(done: int) -> None:
            bar.update(done)
            if STOP:
                raise KeyboardInterrupt

        yield step


def request() -> Request:
    """What the flags ask for."""
    asked: dict[str, Any] = FLAGS.flag_values_dict()
    asked |= {name: os.path.expanduser(asked[name]) for name in ("output", "tokenizer")}  # noqa: PTH111 -- text, not a Path
    reading = {f.name: asked[f.name] for f in dataclasses.fields(Reading)}
    own = {f.name: asked[f.name] for f in dataclasses.fields(Request) if f.name not in ("inputs", "reading")}
    wish = Request(inputs=tuple(FLAGS.input), reading=Reading(**reading), **own)
    refuse_idle_options(wish, [name for name in own if FLAGS[name].present])
    return wish


def main(argv: list[str]) -> None:
    """Prepare, and end every expected trouble in one clear message and status 2."""
    if len(argv) > 1:
        refuse("prepare_data", f"unexpected argument {argv[1]!r}; quote globs and use --input='…'")
    start = time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        if FLAGS.verify:
            print(f"{FLAGS.output}: {verify(FLAGS.output)} files are as they were written")
            return
        wish = request()
        runner = ray_runner(FLAGS.ray_address) if FLAGS.runner == "ray" else local_runner(FLAGS.workers)
        local = f"{FLAGS.workers} process{'es' if FLAGS.workers > 1 else ''} of this machine"
        where = "a Ray cluster" if FLAGS.runner == "ray" else local
        print(f"Preparing {' '.join(FLAGS.input)} -> {FLAGS.output}, on {where}")
        report(prepare(wish, runner, progress), FLAGS.output, time.monotonic() - start, FLAGS.heldout > 0)
    except KeyboardInterrupt:
        refuse("prepare_data", "stopped; the same command goes on from here", INTERRUPTED)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else f" while working on {FLAGS.output}"
        refuse("prepare_data", f"{error.strerror or error}{where}; mend it, the same command goes on from here")
    except (ValueError, ImportError, MemoryError) as error:
        refuse("prepare_data", error)


if __name__ == "__main__":
    start(main, "prepare_data", HEADINGS)
