r"""The input pipeline alone: tokens per second and cost of its plans, compared with the use of a training step.

  python -m experiments.benchmarks.pipeline                                       # on a generated corpus
  python -m experiments.benchmarks.pipeline --data=corpora/novels --words=corpora/novels_words
  python -m experiments.benchmarks.pipeline --data=corpora/reviews --words=none --steps=none
  python -m experiments.benchmarks.pipeline --steps=base                        # where there is a GPU

One process makes the batches, without workers. `first batch` is the time from opening the corpus to its first batch;
`plan` is the cost of reading and planning a window per token, as a share of all the time per token; `filled` is the
share of positions that hold a real token. A step is a whole update of BERT with 8 rows on a CPU, and 256 on a GPU
(there in bfloat16). A faster pipeline never delays a device.
"""

import statistics
import tempfile
import time
from pathlib import Path

from absl import flags

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.data.pipeline.batches import train_batches
from bert_elmo_jax.data.rows.masking import Masking
from bert_elmo_jax.data.rows.pieces import PieceExamples
from bert_elmo_jax.data.rows.stream import LanguageModelExamples
from bert_elmo_jax.runs.config_files import read_config

from ..command_line.start import start
from ._timing import median_seconds

FLAGS = flags.FLAGS

LENGTHS = (128, 512)


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("data", None, "A corpus of pieces for BERT; without it one is generated; or none.")
    flags.DEFINE_string(
        "words", None, "A corpus of words for the language model; without it one is generated; or none."
    )
    flags.DEFINE_integer("documents", 20_000, "Documents of a generated corpus.")
    flags.DEFINE_integer("positions", 32_768, "Positions per BERT batch.")
    flags.DEFINE_integer("batches", 40, "Batches to time, of each kind.")
    flags.DEFINE_list("steps", ["tiny"], "Sizes of BERT to time steps of; or none.")


def time_batches(name: str, corpus: str, examples: PieceExamples | LanguageModelExamples, rows: int) -> float:
    """Print one line, and return the share of positions that hold a token."""
    start = time.perf_counter()
    batches = train_batches(corpus, examples, rows)
    next(batches)
    first = time.perf_counter() - start
    start = time.perf_counter()
    size = batches.epoch_size()  # reads and plans everything once
    plan = (time.perf_counter() - start) / open_store(corpus).counts["tokens"]
    tokens = positions = 0
    seconds = []
    for _ in range(FLAGS.batches):
        start = time.perf_counter()
        batch = next(batches)
        seconds.append(time.perf_counter() - start)
        real = batch["segments"] > 0 if "segments" in batch else batch["forward_weights"]
        tokens, positions = tokens + int(real.sum()), positions + real.size
    build = statistics.median(seconds) * len(seconds) / tokens  # the median: the plan of a window delays some batch
    print(
        f"{name:34} {1 / (build + plan) / 1e6:6.2f} M tokens/s   first batch {first:5.2f} s   "
        f"plan {plan / (build + plan):5.1%} ({plan * 1e9:4.0f} ns per token)   filled {tokens / positions:6.1%}   "
        f"{size:,} {'rows' if isinstance(examples, PieceExamples) else 'steps'} per epoch",
        flush=True,
    )
    return tokens / positions


def time_step(preset: str, length: int) -> None:
    """Print the tokens per second that a training step consumes."""
    import jax  # only now: without steps, this benchmark measures the pipeline without JAX

    from ._inputs import FAMILY, make_batch
    from .ours.step import make_step

    gpu = jax.default_backend() == "gpu"
    options = {"dtype": "bfloat16", "attention": "fused", "attention_dropout": 0.0} if gpu else {}
    config, _ = read_config(f"bert:{preset}")
    config.model.update(options)
    batch = make_batch(FAMILY.config(**config.model), (256 if gpu else 8) * 128 // length, length)
    step, _, _ = make_step(config, batch)
    step()
    rate = batch["tokens"].size / median_seconds(step, 5)
    device = jax.devices()[0].device_kind
    print(f"a step of BERT-{preset} at {length} consumes {rate / 1e6:9.4f} M tokens/s ({device})", flush=True)


def main() -> None:
    """Time every kind of batch, then the steps."""
    with tempfile.TemporaryDirectory() as folder:
        data, words = (
            str(toy_corpus(Path(folder, kind), documents=FLAGS.documents, tokenizer=kind)) if corpus is None else corpus
            for kind, corpus in (("wordpiece", FLAGS.data), ("words", FLAGS.words))
        )
        if data != "none":
            for length in LENGTHS:
                rows, many = max(1, FLAGS.positions // length), length // 8
                for kind in ("token", "word", "span"):
                    examples = PieceExamples(length, masking=Masking(kind))
                    time_batches(f"BERT {length}, pairs, {kind} masks", data, examples, rows)
                time_batches(f"BERT {length}, pairs, packed", data, PieceExamples(length, sequences=many), rows)
                plain = time_batches(f"BERT {length}, documents", data, PieceExamples(length, "documents"), rows)
                packed = PieceExamples(length, "documents", sequences=many)
                full = time_batches(f"BERT {length}, documents, packed", data, packed, rows)
                print(f"{'':34} packed: a row holds {full / plain:.2f} times as many real tokens")
        if words != "none":
            for name, stream in (
                ("streams of characters", LanguageModelExamples(widest_filter=7)),
                ("streams of word ids", LanguageModelExamples(input="words")),
                ("sentences of characters", LanguageModelExamples("sentences", 50, widest_filter=7)),
            ):
                time_batches(f"biLM 128 rows, {name}", words, stream, 128)
        for preset in FLAGS.steps if FLAGS.steps != ["none"] else ():
            for length in LENGTHS:
                time_step(preset, length)


if __name__ == "__main__":
    start("benchmarks.pipeline", define, main, stopped="stopped")
