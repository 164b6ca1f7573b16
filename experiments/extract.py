r"""Contextual vectors of a file's texts, into HDF5 or npz.

A text a line, the last layer, a vector a piece:
  python -m experiments.extract --model=google-bert/bert-base-cased --input=texts.txt --output=vectors.h5

Words split already (CoNLL columns, the word in column 0), layers 9 and 12, a vector a word:
  python -m experiments.extract --model=runs/base --input=train.conll --layers=9,12 --units=words --output=train.h5

The output holds one array per text, named by its number from 0: [layers, units, width]. HDF5 has also
`sentence_to_index` (JSON), as ELMo's own dumps do. It appears when it is whole: all texts are checked first, and what
was stopped leaves nothing.
"""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from absl import app, flags
from tqdm import tqdm

from bert_elmo_jax import load
from bert_elmo_jax.api import BadText, Encoded
from bert_elmo_jax.api.array_file import check_target, writing
from bert_elmo_jax.data.text_files import read_conll, read_lines

flags.DEFINE_string("model", None, "Anything `load` understands.", required=True)
flags.DEFINE_string("input", None, "A text a line, or CoNLL columns (.conll, .conllu, .iob, .bio).", required=True)
flags.DEFINE_string("output", None, "The file to write: .h5, .hdf5 or .npz.", required=True)
flags.DEFINE_enum("input_format", "auto", ["auto", "text", "conll"], "auto: by the ending of --input.")
flags.DEFINE_integer("column", None, "Of the word in CoNLL input; without it 0, or 1 for .conllu.")
flags.DEFINE_list("layers", ["-1"], "Layers to write: numbers (0 is the embeddings, -1 the last), or all.")
flags.DEFINE_enum("units", "pieces", ["pieces", "words"], "A vector a piece (special ones included), or a word.")
flags.DEFINE_enum("pool", "mean", ["mean", "first", "last"], "How the pieces of a word become its vector.")
flags.DEFINE_enum("overflow", "raise", ["raise", "truncate", "windows"], "What to do with texts longer than the model.")
flags.DEFINE_integer("batch_size", 32, "Rows a batch.")
flags.DEFINE_string("encoding", "utf-8", "Of the input.")
flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "What the model computes in.")
FLAGS = flags.FLAGS
CONLL = (".conll", ".conllu", ".iob", ".bio")


def texts_of(path: str) -> tuple[Sequence[int], Sequence[str | list[str]]]:
    """The texts of the input, strings or lists of words, and the line each begins on."""
    columns = FLAGS.input_format == "conll" or (FLAGS.input_format == "auto" and path.lower().endswith(CONLL))
    if not columns:
        lines = read_lines(path, FLAGS.encoding)
        return range(1, len(lines) + 1), lines
    numbered = path.lower().endswith(".conllu")
    column = int(numbered) if FLAGS.column is None else FLAGS.column
    starts, sentences = zip(*read_conll(path, column, FLAGS.encoding, numbered=numbered))
    return starts, list(sentences)


def layers_of(names: list[str]) -> Literal["all"] | list[int]:
    """The layers to write."""
    if names == ["all"]:
        return "all"
    with contextlib.suppress(ValueError):
        if numbers := [int(name) for name in names]:
            return numbers
    raise ValueError(f"--layers={','.join(names)}: use numbers, such as 0,9,-1, or all alone")


def arrays_of(batch: Encoded) -> Iterator[np.ndarray]:
    """[layers, units, width] of every text of a batch."""
    assert batch.layers is not None
    if FLAGS.units == "words":
        pooled = [batch.words(FLAGS.pool, values) for values in batch.layers]
        return (np.stack(of_text) for of_text in zip(*pooled))
    return (batch.layers[:, n, : len(text)] for n, text in enumerate(batch.texts))


def extract(path: Path) -> None:
    """Write the vectors of all texts."""
    layers = layers_of(FLAGS.layers)
    check_target(path)
    lines, texts = texts_of(FLAGS.input)
    encoder = load(FLAGS.model, dtype=FLAGS.dtype)
    batches = encoder.encode_batches(texts, batch_size=FLAGS.batch_size, overflow=FLAGS.overflow, layers=layers)
    try:
        encoder.check(texts, overflow=FLAGS.overflow)
    except BadText as error:
        raise ValueError(f"{FLAGS.input}, line {lines[error.number]}: {error}") from error
    print(f"{len(texts):,} texts of {FLAGS.input} -> {path} (layers {','.join(FLAGS.layers)}, {FLAGS.units})")
    with writing(path, texts) as write, tqdm(total=len(texts), desc="extracting", unit="texts") as bar:
        for n, array in enumerate(array for batch in batches for array in arrays_of(batch)):
            write(n, np.ascontiguousarray(array, np.float32))
            bar.update()


def main(argv: list[str]) -> None:
    """Extract, and end every expected trouble in one message and status 2."""
    try:
        if len(argv) > 1:
            raise ValueError(f"unexpected argument {argv[1]!r}; use --input=…")
        extract(Path(FLAGS.output))
    except (ValueError, TypeError, OSError, ImportError) as error:
        sys.exit(_refuse(str(error), 2))
    except MemoryError as error:
        advice = "lower --batch_size, ask for fewer --layers, or shorten the longest texts (--overflow=truncate)"
        sys.exit(_refuse(f"out of memory ({error}): {advice}", 2))
    except KeyboardInterrupt:
        sys.exit(_refuse("stopped; nothing was written", 130))


def _refuse(message: str, status: int) -> int:
    print(f"extract: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    app.run(main)
