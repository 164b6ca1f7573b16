"""One cell of the quickstart's table: a task's seeds trained side by side, scored, and the best of them kept.

The quickstart starts it with the words of `finetune`.
"""

import shutil
import sys
import time
from collections.abc import Sequence
from typing import Any

from bert_elmo_jax.files import write_json
from bert_elmo_jax.quickstart.parts import RESULT, read_words
from bert_elmo_jax.runs.freed_memory import keep_freed_memory
from bert_elmo_jax.runs.side_by_side import train_seeds
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.runs.task_scores import score_name
from bert_elmo_jax.runs.transfer import start_of
from bert_elmo_jax.runs.with_network import network_start
from bert_elmo_jax.train.checkpoint import save_params


def transfer(words: Sequence[str]) -> None:
    """Train, score, and write: the model of the seed that scored best, and last of all `result.json`."""
    began = time.perf_counter()
    given = read_words(words)
    workdir = given.workdir
    shutil.rmtree(workdir / "checkpoints", ignore_errors=True)  # of a start before this one, half done
    data = read_data(given.config)
    start = (network_start if "network" in given.config else start_of)(given.config, given.init, given.tokenizer)
    trained = train_seeds(given.config, workdir, data, start, given.seeds, workdir.name)
    score = score_name(data.task)
    seeds = {str(one.seed): dict(one.figures) for one in trained}
    if data.task.kind == "tags":
        # Most words have one sense only, and are not worth asking about.
        score = "accuracy, words of several senses"
        for one in trained:
            seeds[str(one.seed)][score] = accuracy_where_tagged(data.dev, one.predictions)
    best = max(trained, key=lambda one: seeds[str(one.seed)][score])
    save_params(workdir, best.step, best.params)
    seconds = time.perf_counter() - began
    write_json(workdir / RESULT, {"score": score, "seeds": seeds, "best": best.seed, "seconds": seconds})


def accuracy_where_tagged(sentences: Sequence[Any], predictions: Sequence[Any]) -> float:
    """The share of right tags among the words that have one.

    >>> from types import SimpleNamespace as Of
    >>> accuracy_where_tagged([Of(tags=("O", "배.ship", "배.pear"))], [Of(tags=("O", "배.ship", "O"))])
    0.5
    """
    pairs = [(a, b) for s, p in zip(sentences, predictions) for a, b in zip(s.tags, p.tags) if a != "O"]
    return sum(a == b for a, b in pairs) / len(pairs)


if __name__ == "__main__":
    keep_freed_memory()
    transfer(sys.argv[1:])
