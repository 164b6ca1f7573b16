r"""The time of `predict`, compared with the bare forward pass of the same rows: tokenising, packing, decoding.

  python -m experiments.benchmarks.predict                         # a BERT-mini from scratch, generated sentences
  python -m experiments.benchmarks.predict --model=runs/sst2 --input=sst2/test.tsv
  python -m experiments.benchmarks.predict --preset=base --sentences=256

The bare forward pass runs the same compiled function on the batches of `predict`, made beforehand, and fetches the
scores. Both are warmed up and take turns.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import jax
import numpy as np
from absl import flags

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.data.tasks.task import read_examples, task_named
from bert_elmo_jax.families.init_params import init_task_params
from bert_elmo_jax.inference import TaskModel
from bert_elmo_jax.inference.packed_outputs import make_inputs, plan_inputs
from bert_elmo_jax.inference.task_model import make_head
from bert_elmo_jax.text import train_wordpiece
from bert_elmo_jax.toyworld import ToyWorld

from ..command_line.start import start
from ._inputs import FAMILY, make_config
from ._timing import in_turn, seconds

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("model", None, "A fine-tuned run directory; without it a BERT from scratch.")
    flags.DEFINE_string("input", None, "A file of its task; without it sentences of the toy world, English and Korean.")
    flags.DEFINE_string("preset", "mini", "Size of the BERT from scratch.")
    flags.DEFINE_integer("sentences", 512, "The number of examples.")
    flags.DEFINE_integer("batch_size", 32, "Rows per batch.")
    flags.DEFINE_integer("repeats", 5, "Timed rounds of each.")


def make_examples(count: int) -> list[TextExample]:
    """Return sentences of the toy world as examples without a label."""
    worlds = [ToyWorld(language) for language in ("en", "ko")]
    texts = (s.text for n in range(count) for world in worlds for s in world.document(n).sentences)
    return [TextExample(text, None, None, None, "toy world", n) for n, text in enumerate(islice(texts, count))]


def make_model(examples: Sequence[TextExample]) -> TaskModel:
    """Return an untrained classifier."""
    tokenizer = train_wordpiece([example.text for example in examples], vocab_size=2048)
    config = make_config(FLAGS.preset, vocab_size=tokenizer.vocab_size)
    task = dataclasses.replace(task_named("sst2"), labels=("0", "1"))
    params = init_task_params(FAMILY, config, make_head(task, None, config), jax.random.key(0))
    return TaskModel(FAMILY, config, params, tokenizer, "from scratch", task)


def bare(model: TaskModel, examples: Sequence[Any]) -> Callable[[], None]:
    """Return the forward pass of all batches, in the order and shapes of `predict`."""
    rows = make_rows(model.task, examples, model.tokenizer, labelled=False)
    run = jax.jit(functools.partial(model._scores, model.params))
    planned = plan_inputs(np.array([row.size for row in rows]), FLAGS.batch_size, model.config.max_positions)
    batches = list(make_inputs(rows, planned, model.config.pad_id))

    def forward() -> None:
        for batch in batches:
            jax.tree.map(np.asarray, run(batch))

    return forward


def main() -> None:
    """Time both, and print the ratio."""
    examples: Sequence[Any] = make_examples(FLAGS.sentences)
    model = load(FLAGS.model) if FLAGS.model else make_model(examples)
    if not isinstance(model, TaskModel):
        raise ValueError(f"--model={FLAGS.model} was not fine-tuned for a task: give a run of finetune")
    if FLAGS.input:
        examples = read_examples(FLAGS.input, model.task, labelled=False)[: FLAGS.sentences]
    forward = bare(model, examples)
    predict = functools.partial(model.predict_examples, examples, batch_size=FLAGS.batch_size, progress=False)
    forward()
    predict()
    pairs = in_turn(lambda: seconds(forward), predict, FLAGS.repeats)
    for name, value in (("forward", pairs.theirs), ("predict", pairs.ours)):
        print(f"{name}: {value:.3f} s, {len(examples) / value:,.0f} examples per second")
    print(f"predict takes {pairs.ratio:.2f} times as long as the bare forward pass")


if __name__ == "__main__":
    start("benchmarks.predict", define, main, stopped="stopped")
