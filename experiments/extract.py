r"""Contextual vectors of the texts in a file, by any encoder, into HDF5 or npz.

One text per line. An encoder fed with pieces gives its last layer, one vector per piece:
  python -m experiments.extract --model=google-bert/bert-base-cased --input=texts.txt --output=vectors.h5

Words that are split already (CoNLL columns, the word in column 0), layers 9 and 12, one vector per word:
  python -m experiments.extract --model=runs/base --input=train.conll --layers=9,12 --units=words --output=train.h5

An ELMo gives all its layers, one vector per word. Lines are split at whitespace, or, by a model that was pretrained
here, as prepare_data did (--word_rule):
  python -m experiments.extract --model=elmo_2x4096_512_2048cnn_2xhighway --input=texts.txt --output=vectors.h5

The output has one array per text, named by its number from 0: [layers, units, width]. HDF5 also has
`sentence_to_index` (JSON), as ELMo's own dumps have, and suits millions of texts, since few are in memory at a time.
All texts are checked first. Finished parts are kept next to the output (at the end this needs twice its size): the same
command resumes after any stop and gives the same file. With a * in --output, each of several input files has an output
of its own, and --workers or --runner=ray share them out.
"""

from absl import flags

from bert_elmo_jax.inference.extract import extract

from .command_line.sharing import call_for_files, define_sharing
from .command_line.start import read_layers, read_values, start

FLAGS = flags.FLAGS
OPTIONS = ("input_format", "column", "text", "encoding", "units", "pool", "overflow", "warmup", "batch_size", "dtype")


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("model", None, "Anything `load` understands.", required=True)
    flags.DEFINE_string("input", None, "Texts, one per line; CoNLL columns; or .csv, .jsonl, .parquet.", required=True)
    flags.DEFINE_string("output", None, "The file to write: .h5, .hdf5 or .npz.", required=True)
    flags.DEFINE_enum("input_format", "auto", ["auto", "text", "conll", "table"], "auto: by the ending of --input.")
    flags.DEFINE_integer("column", None, "Of the word in CoNLL input; by default 0, or 1 for .conllu.", 0)
    flags.DEFINE_string("text", None, "The column of texts in a table; by default text.")
    flags.DEFINE_string("encoding", "utf-8", "Of the input.")
    flags.DEFINE_list("layers", None, "Numbers (0: token vectors, -1: the last), or all. Default: -1; for ELMo all.")
    flags.DEFINE_enum("units", None, ["pieces", "words"], "One vector per piece (special ones, too), or per word.")
    flags.DEFINE_enum("pool", None, ["mean", "first", "last"], "How pieces become a word's vector. Default: mean.")
    flags.DEFINE_enum("overflow", None, ["raise", "truncate", "windows"], "For long texts of pieces. Default: raise.")
    flags.DEFINE_integer("warmup", None, "How often ELMo reads each text before the reading that counts. Default: 0.")
    flags.DEFINE_integer("batch_size", 32, "Most rows per batch; it bounds memory.")
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16", "int8"], "The type that the model computes in.")
    define_sharing()
    flags.DEFINE_bool("untrusted", False, "First read the model in a process that may open no other file; see load.")


def main() -> None:
    """Extract the vectors."""
    call_for_files(extract, {"layers": read_layers(FLAGS.layers), **read_values((*OPTIONS, "untrusted"))})


if __name__ == "__main__":
    headings = {"model": "From what to what", "input_format": "How the input is read", "layers": "Which vectors"}
    headings |= {"batch_size": "How they are computed"}
    start("extract", define, main, headings)
