r"""Contextual vectors of a file's texts, by a BERT or an ELMo, into HDF5 or npz.

A text a line; a BERT's last layer, a vector a piece:
  python -m experiments.extract --model=google-bert/bert-base-cased --input=texts.txt --output=vectors.h5

Words split already (CoNLL columns, the word in column 0), layers 9 and 12, a vector a word:
  python -m experiments.extract --model=runs/base --input=train.conll --layers=9,12 --units=words --output=train.h5

An ELMo: all its layers, a vector a word, as its first authors' own program writes them; a line is split at whitespace,
for one that was pretrained here as prepare_data split its text (--word_rule):
  python -m experiments.extract --model=elmo_2x4096_512_2048cnn_2xhighway --input=texts.txt --output=vectors.h5

The output holds one array per text, named by its number from 0: [layers, units, width]. HDF5 has also
`sentence_to_index` (JSON), as ELMo's own dumps do, and is for millions of texts, of which only some are in memory. All
are checked first; what is computed is kept in parts beside the output (in the end twice its room is needed): the same
command goes on where it was stopped, however that was, and ends with the same file.
"""

import errno
import functools
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import flags
from tqdm import tqdm

from bert_elmo_jax import load
from bert_elmo_jax.data.corpora.text_files import each_text, find_file
from bert_elmo_jax.encoders.arguments import check_layers, check_whole
from bert_elmo_jax.encoders.streaming import READ_AHEAD
from bert_elmo_jax.files import hash_file
from bert_elmo_jax.inference import BadText, BertEncoder, ElmoEncoder, TaskNetwork
from bert_elmo_jax.inference.array_file import Parts
from bert_elmo_jax.runs.starting_weights import devices
from bert_elmo_jax.text.running_text import split_by
from bert_elmo_jax.train.run_guard import INTERRUPTED
from experiments.command_line.start import layers_asked, refuse, start

flags.DEFINE_string("model", None, "Anything `load` understands.", required=True)
flags.DEFINE_string("input", None, "A text a line, or CoNLL columns (.conll, .conllu, .iob, .bio).", required=True)
flags.DEFINE_string("output", None, "The file to write: .h5, .hdf5 or .npz.", required=True)
flags.DEFINE_enum("input_format", "auto", ["auto", "text", "conll"], "auto: by the ending of --input.")
flags.DEFINE_integer("column", None, "Of the word in CoNLL input; without it 0, or 1 for .conllu.")
flags.DEFINE_string("encoding", "utf-8", "Of the input.")
flags.DEFINE_list("layers", None, "Numbers (0: token vectors, -1: the last; usual of a BERT), or all (of an ELMo).")
flags.DEFINE_enum("units", None, ["pieces", "words"], "Of a BERT a vector a piece (special ones included), or a word.")
flags.DEFINE_enum("pool", "mean", ["mean", "first", "last"], "How the pieces of a word become its vector (BERT).")
flags.DEFINE_enum("overflow", "raise", ["raise", "truncate", "windows"], "Of texts longer than the model (BERT).")
flags.DEFINE_integer("warmup", 0, "How often each text is read before the reading that counts (ELMo).")
flags.DEFINE_integer("batch_size", 32, "Rows a batch.")
flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "What the model computes in.")
FLAGS = flags.FLAGS
HEADINGS = {"model": "From what to what", "input_format": "How the input is read", "layers": "Which vectors"}
HEADINGS |= {"batch_size": "How they are computed"}
CHANGING = ("dtype", "units", "pool", "overflow", "warmup", "batch_size", "input_format", "column", "encoding")
PART = 8 * READ_AHEAD  # batches, what a stop costs at most; it must not divide those that are sorted together


def bert_arrays(encoder: BertEncoder, texts: Iterator[Any], layers: list[int]) -> Iterator[np.ndarray]:
    """[layers, units, width] of each text."""
    options: dict[str, Any] = {"batch_size": FLAGS.batch_size, "overflow": FLAGS.overflow}
    for batch in encoder.encode_batches(texts, layers=layers, **options):
        assert batch.layers is not None
        if FLAGS.units == "words":
            yield from map(np.stack, zip(*(batch.words(FLAGS.pool, values) for values in batch.layers)))
        else:
            yield from (batch.layers[:, n, : len(text)] for n, text in enumerate(batch.texts))


def elmo_arrays(encoder: ElmoEncoder, texts: Iterator[Any], layers: list[int]) -> Iterator[np.ndarray]:
    """[layers, words, width] of each text."""
    for batch in encoder.encode_batches(texts, batch_size=FLAGS.batch_size, warmup=FLAGS.warmup):
        yield from (batch.layers[layers, n, :size] for n, size in enumerate(batch.mask.sum(axis=1)))


def refuse_idle(is_elmo: bool) -> None:
    """Refuse flags that say nothing to this model."""
    idle = ["pool", "overflow", *(["units"] if FLAGS.units == "pieces" else [])] if is_elmo else ["warmup"]
    if wrong := [f"--{name}={FLAGS[name].value}" for name in idle if FLAGS[name].present]:
        family = "an ELMo" if is_elmo else "a BERT"
        raise ValueError(f"{', '.join(wrong)} says nothing to {family}, which {FLAGS.model} is: leave it out")


def extract(parts: Parts) -> None:
    """Write the vectors of all texts."""
    for name, least in (("batch_size", 1), ("warmup", 0)):
        check_whole(name, FLAGS[name].value, least)
    wanted = None if FLAGS.layers is None else layers_asked(FLAGS.layers)
    source = find_file(FLAGS.input)
    lines = functools.partial(each_text, source, FLAGS.input_format, FLAGS.column, FLAGS.encoding)
    count = sum(1 for _ in lines())  # and what is wrong with the file is said before a model is loaded
    encoder = load(FLAGS.model, dtype=FLAGS.dtype)
    if isinstance(encoder, TaskNetwork):
        raise ValueError(f"--model={FLAGS.model} is a task's network; give its encoder, if it has one: …/encoder")
    refuse_idle(is_elmo := isinstance(encoder, ElmoEncoder))
    read = functools.partial(split_by, rule := getattr(encoder, "word_rule", None), lines)
    compute: Any = elmo_arrays if is_elmo else bert_arrays
    usual, fit = ("all", {}) if is_elmo else ([-1], {"overflow": FLAGS.overflow})
    layers = list(check_layers(wanted or usual, encoder.config.num_layers) or ())
    asked = {name: FLAGS[name].value for name in CHANGING} | {"layers": layers, "rule": rule, "jax": jax.__version__}
    asked |= {"model": encoder.fingerprint, "content": hash_file(source)[:16]}
    asked["device"] = jax.devices()[0].device_kind
    if not parts.resume(asked):
        try:
            encoder.check((text for _, text in tqdm(read(), "checking", count, False, delay=1)), **fit)
        except BadText as error:
            line, _ = next(islice(read(), error.number, None))
            raise ValueError(f"{FLAGS.input}, line {line}: {error}") from error
        parts.begin(asked)
    done = f"; {parts.done:,} are done" if parts.done else ""
    print(f"{count:,} texts of {FLAGS.input} -> {parts.path}, layers {layers}, on {devices()}{done}")
    rest = islice((text for _, text in read()), parts.done, None)
    with tqdm(total=count, initial=parts.done, desc="extracting", unit="texts") as bar:
        for _ in parts.write(compute(encoder, rest, layers), PART * FLAGS.batch_size):
            bar.update()
    with tqdm(total=count, desc="putting together", unit="texts", delay=1) as bar:
        parts.merge((text for _, text in lines()), bar.update)


def main(argv: list[str]) -> None:
    """Extract, and end every expected trouble in one message and status 2."""
    try:
        if len(argv) > 1:
            raise ValueError(f"unexpected argument {argv[1]!r}; use --input=…")
        with Parts(Path(FLAGS.output)) as parts:
            extract(parts)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        refuse("extract", f"{error}{'; make room, and the same command goes on from here' if full else ''}")
    except (ValueError, TypeError, ImportError) as error:
        refuse("extract", error)
    except MemoryError as error:
        advice = "lower --batch_size, ask for fewer --layers, or shorten the longest texts (--overflow=truncate)"
        refuse("extract", f"out of memory ({error}): {advice}")
    except KeyboardInterrupt:
        refuse("extract", "stopped; the same command goes on from here", INTERRUPTED)


if __name__ == "__main__":
    start(main, "extract", HEADINGS)
