r"""Contextual vectors of a file's texts, into HDF5 or npz.

A text a line, the last layer, a vector a piece:
  python -m experiments.extract --model=google-bert/bert-base-cased --input=texts.txt --output=vectors.h5

Words split already (CoNLL columns, the word in column 0), layers 9 and 12, a vector a word:
  python -m experiments.extract --model=runs/base --input=train.conll --layers=9,12 --units=words --output=train.h5

The output holds one array per text, named by its number from 0: [layers, units, width]. HDF5 has also
`sentence_to_index` (JSON), as ELMo's own dumps do.
"""

import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
from absl import app, flags
from tqdm import tqdm

from bert_elmo_jax import load
from bert_elmo_jax.api.encoded import Encoded
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


def texts_of(path: str) -> list[str] | list[list[str]]:
    """The texts of the input: strings, or lists of words."""
    columns = FLAGS.input_format == "conll" or (FLAGS.input_format == "auto" and path.lower().endswith(CONLL))
    if not columns:
        return read_lines(path, FLAGS.encoding)
    numbered = path.lower().endswith(".conllu")
    return read_conll(path, int(numbered) if FLAGS.column is None else FLAGS.column, FLAGS.encoding, numbered=numbered)


def arrays_of(batch: Encoded) -> Iterator[np.ndarray]:
    """[layers, units, width] of every text of a batch."""
    assert batch.layers is not None
    if FLAGS.units == "words":
        pooled = [batch.words(FLAGS.pool, values) for values in batch.layers]
        return (np.stack(of_text) for of_text in zip(*pooled))
    return (batch.layers[:, n, : len(text)] for n, text in enumerate(batch.texts))


def open_writer(path: Path) -> tuple[Callable[[int, np.ndarray], object], Callable[[list[str]], object]]:
    """(write array n, finish) for a file; neither format holds more than one array in memory."""
    if path.suffix in (".h5", ".hdf5"):
        file = h5py.File(path.with_name(path.name + ".partial"), "w")

        def finish(keys: list[str]) -> None:
            index = json.dumps({key: str(n) for n, key in enumerate(keys)}, ensure_ascii=False)
            file.create_dataset("sentence_to_index", data=[index], dtype=h5py.string_dtype())
            file.close()

        return lambda n, array: file.create_dataset(str(n), data=array), finish
    archive = zipfile.ZipFile(path.with_name(path.name + ".partial"), "w", allowZip64=True)

    def write(n: int, array: np.ndarray) -> None:
        with archive.open(f"{n}.npy", "w", force_zip64=True) as entry:
            np.lib.format.write_array(entry, array)

    return write, lambda keys: archive.close()


def main(argv: list[str]) -> None:
    """Extract, and end every expected trouble in one message and status 2."""
    try:
        if len(argv) > 1:
            raise ValueError(f"unexpected argument {argv[1]!r}; use --input=…")
        layers = "all" if FLAGS.layers == ["all"] else [int(layer) for layer in FLAGS.layers]
        path = Path(FLAGS.output)
        if path.suffix not in (".h5", ".hdf5", ".npz"):
            raise ValueError(f"--output={path} ends in {path.suffix or 'nothing'}; use .h5, .hdf5 or .npz")
        if path.exists():
            raise FileExistsError(f"{path} exists; remove it, or give another --output")
        texts, encoder = texts_of(FLAGS.input), load(FLAGS.model, dtype=FLAGS.dtype)
        write, finish = open_writer(path)
        print(f"{len(texts):,} texts of {FLAGS.input} -> {path} (layers {','.join(FLAGS.layers)}, {FLAGS.units})")
        number, options = 0, {"batch_size": FLAGS.batch_size, "overflow": FLAGS.overflow, "layers": layers}
        with tqdm(total=len(texts), desc="extracting", unit="texts") as bar:
            for batch in encoder.encode_batches(texts, **options):
                for array in arrays_of(batch):
                    write(number, np.ascontiguousarray(array, np.float32))
                    number += 1
                bar.update(len(batch))
        finish([text if isinstance(text, str) else " ".join(text) for text in texts])
        path.with_name(path.name + ".partial").replace(path)
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"extract: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    app.run(main)
