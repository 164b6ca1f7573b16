r"""Preparation of a corpus, compared with the tokenizer alone on the same text.

  python -m experiments.benchmarks.prepare
  python -m experiments.benchmarks.prepare --input='novels/*.txt' --split=sentences

Both sides use the same trained WordPiece vocabulary and the same number of cores. The tokenizer alone gets the
sentences in memory and that many threads. The preparation reads, decodes, splits, encodes, holds out, hashes and writes
with that many worker processes. They run in turn; the figure is the median of the ratios. Aim: at most 1.5.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import tokenizers
from absl import flags

from bert_elmo_jax.data.corpora.corpus import iterate_sample
from bert_elmo_jax.data.corpora.describe_source import describe
from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.corpora.reading import Reading, Tally, find_files
from bert_elmo_jax.data.corpora.runners import local_runner
from bert_elmo_jax.text import train_wordpiece
from bert_elmo_jax.toyworld import ToyWorld, write_corpus

from ..command_line.start import start
from ._timing import in_turn

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_multi_string("input", [], "Files or globs; without them a bilingual text is generated.")
    flags.DEFINE_enum("split", "lines", ["lines", "sentences"], "As in prepare_data.")
    flags.DEFINE_float("megabytes", 24.0, "Size of the generated text.")
    flags.DEFINE_integer("pairs", 3, "Runs of each side.")
    flags.DEFINE_list("workers", ["1", "2"], "Numbers of cores to compare at.")
    flags.DEFINE_string(
        "alone", None, "(Internal) Time the tokenizer in this folder on the sentences in standard input."
    )


def time_tokenizer_alone(folder: str) -> None:
    """Print the seconds that the library takes for the lines of standard input, which are read beforehand."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece.from_file(f"{folder}/vocab.txt", unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    lines = sys.stdin.buffer.read().decode("utf-8").split("\n")
    tokenizer.encode_batch_fast(lines[:100], add_special_tokens=False)
    start = time.perf_counter()
    for at in range(0, len(lines), 10_000):  # in batches, so that gigabytes of results slow neither side
        tokenizer.encode_batch_fast(lines[at : at + 10_000], add_special_tokens=False)
    print(time.perf_counter() - start)


def generate(path: Path, megabytes: float) -> None:
    """Write documents of the toy world in both languages, repeated up to the size."""
    texts = []
    for language in ("en", "ko"):
        corpus, _ = write_corpus(path.parent / language, ToyWorld(language), documents=2000, held_out=0)
        texts.append(corpus.read_text(encoding="utf-8"))
    with open(path, "w", encoding="utf-8") as out:
        while out.tell() < megabytes * 1e6:
            out.writelines(texts)


def main() -> None:
    """Make the input of both sides, then measure in turn."""
    if FLAGS.alone:
        time_tokenizer_alone(FLAGS.alone)
        return
    with tempfile.TemporaryDirectory() as folder:
        inputs = tuple(FLAGS.input)
        if not inputs:
            inputs = (f"{folder}/toy.txt",)
            generate(Path(inputs[0]), FLAGS.megabytes)
        reading = Reading(split=FLAGS.split)
        sources = [describe(path, path) for path in find_files(inputs, Tally(reading))]
        size = sum(source.size for source in sources) / 1e6
        tokenizer = f"{folder}/tokenizer"
        train_wordpiece(iterate_sample(sources, reading, 8.0, 0), 8192).save(tokenizer)
        sentences = "\n".join(iterate_sample(sources, reading, 1e6, 0)).encode()
        print(
            f"{size:.1f} MB; medians of {FLAGS.pairs} runs in turn: the tokenizer alone, the preparation, their ratio"
        )
        command = [sys.executable, "-m", f"{__package__}.prepare", f"--alone={tokenizer}"]
        request = Request(inputs, f"{folder}/out", tokenizer, reading=reading)

        def tokenize(workers: int) -> float:
            shutil.rmtree(request.output, ignore_errors=True)  # of the preparation before
            limits = os.environ | {"RAYON_NUM_THREADS": str(workers), "TOKENIZERS_PARALLELISM": "true"}
            return float(
                subprocess.run(command, input=sentences, env=limits, stdout=subprocess.PIPE, check=True).stdout
            )

        def ours(workers: int) -> None:
            prepare(request, local_runner(workers))

        for workers in map(int, FLAGS.workers):
            pairs = in_turn(partial(tokenize, workers), partial(ours, workers), FLAGS.pairs)
            speeds = f"({size / pairs.theirs:.1f} and {size / pairs.ours:.1f} MB/s)"
            print(f"{workers} core(s): {pairs.theirs:6.2f} s  {pairs.ours:6.2f} s  {pairs.ratio:.2f}  {speeds}")


if __name__ == "__main__":
    start("benchmarks.prepare", define, main, stopped="stopped")
