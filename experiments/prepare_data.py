"""Raw text -> a folder of training shards with its tokenizer.

  python -m experiments.prepare_data --input='novels/*.txt' --split=sentences --output=corpora/novels
  python -m experiments.prepare_data --input=reviews.jsonl.gz --text_field=review --dedupe=0.8 --output=corpora/reviews
  python -m experiments.prepare_data --source=news.en --target=news.ko --output=corpora/news  # line-aligned
The same command resumes a preparation that was stopped.
"""

import os

from absl import flags

from bert_elmo_jax.data.corpora.run_preparation import prepare_from_flags

from .command_line.start import start


def define() -> None:
    """Define the flags."""
    flags.DEFINE_multi_string("input", [], "Files or globs: .txt .jsonl .csv .parquet, .gz .xz .bz2 .zst; repeatable.")
    flags.DEFINE_multi_string("source", [], "For translation: files whose lines …; repeatable.")
    flags.DEFINE_multi_string("target", [], "… have their translations in the same lines of these files.")
    flags.DEFINE_multi_string("pairs", [], "Or .tsv files with source and target in two columns; repeatable.")
    flags.DEFINE_list("columns", [], "Names of the two columns, if the first line of --pairs has names.")
    flags.DEFINE_string("output", None, "The folder to write, new or to be resumed.", required=True)
    flags.DEFINE_bool("verify", False, "Only check the hash of every file in --output.")
    flags.DEFINE_enum("documents", "blank_line", ["blank_line", "line", "file"], "The end of a document of a .txt.")
    flags.DEFINE_enum("split", "lines", ["lines", "sentences"], "One sentence per line, or running text to be split.")
    flags.DEFINE_string("encoding", "utf-8", "Of the files: utf-8, utf-8-sig, cp949, utf-16, …")
    flags.DEFINE_string("text_field", "text", "The field or column that holds the text, in .jsonl and tables.")
    flags.DEFINE_enum("on_bad", "error", ["error", "skip"], "Report an unusable line, or skip and count it.")
    flags.DEFINE_float("max_line_mb", 4.0, "Longer lines are bad input.", 0.001, 1024)
    flags.DEFINE_float("dedupe", 0.0, "0.5 to 1: leave out documents this similar to earlier ones.", 0, 1)
    flags.DEFINE_string("filter", "", "default: leave out poor text; or with other limits, such as default,words=3.")
    flags.DEFINE_string("mix", "", "Weights of the inputs by their names, such as novels=0.7,reviews=0.3.")
    flags.DEFINE_float("temperature", 1.0, "Or shares as bytes ** temperature: 0 makes inputs equal.", 0, 1)
    flags.DEFINE_string("tokenizer", "wordpiece", "wordpiece, sentencepiece, byte_bpe or words; or a folder or run.")
    flags.DEFINE_integer("vocab_size", 8192, "Size of a trained vocabulary, special pieces included.", 4, 10**7)
    flags.DEFINE_float("sample_mb", 32.0, "Text to train it on.", 0.001, 10**6)
    flags.DEFINE_bool("lowercase", False, "Lower-case, for a trained WordPiece vocabulary (Hangul stays composed).")
    flags.DEFINE_enum("sentencepiece_model", "unigram", ["unigram", "bpe"], "Kind of a trained SentencePiece model.")
    flags.DEFINE_enum("word_rule", "punctuation", ["punctuation", "whitespace"], "The separators of --tokenizer=words.")
    flags.DEFINE_integer("min_count", 1, "Rarer words of --tokenizer=words are unknown.", 1, 10**9)
    flags.DEFINE_float("heldout", 0.01, "Share of documents held out for evaluation.", 0, 0.99)
    flags.DEFINE_integer("shards", 0, "Number of shards; 0: by the size of the input.", 0, 16_384)
    flags.DEFINE_integer("seed", 0, "Of the sample and of the held-out choice.", 0, 2**32 - 1)
    flags.DEFINE_integer("workers", os.cpu_count() or 1, "Processes; the result is always the same.", 1, 1024)
    flags.DEFINE_enum("runner", "local", ["local", "ray"], "This machine, or a Ray cluster that shares its files.")
    flags.DEFINE_string("ray_address", None, "Of the cluster; by default a cluster in reach, or one started here.")


def main() -> None:
    """Prepare the corpus, or verify it."""
    values = flags.FLAGS
    prepare_from_flags(values.flag_values_dict(), flags_set=[name for name in values if values[name].present])


if __name__ == "__main__":
    headings = {"input": "Files", "documents": "The text", "tokenizer": "The vocabulary", "heldout": "The shards"}
    start("prepare_data", define, main, headings, hint="quote globs and use --input='…'")
