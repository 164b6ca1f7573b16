"""Temporary: what the lead's pretraining will do."""

import functools
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from bert_elmo_jax.data.pipeline.batches import eval_batches, train_batches
from bert_elmo_jax.data.pipeline.phases import Phases
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import is_run_directory
from bert_elmo_jax.losses import perplexity
from bert_elmo_jax.runs import pretraining, starting_weights
from bert_elmo_jax.runs.corpora import corpora_of, tokenizer_of
from bert_elmo_jax.runs.objectives import Objective, bert_objective
from bert_elmo_jax.text import Tokenizer


def weights(
    config: ConfigDict, init: str | None, tokenizer: Tokenizer, begins: bool
) -> tuple[BertConfig, Objective, dict[str, Any]]:
    """The model's configuration, its objective and parameters: those of --init, what they lack drawn from the seed."""
    asked = dict(config.model)
    if init is None:
        model = BertConfig(vocab_size=tokenizer.vocab_size, pad_id=tokenizer.pad_id, **asked)
        objective = bert_objective(config, model)
        return model, objective, objective.init(jax.random.key(config.seed))
    stored = read_model(init)
    if not isinstance(stored.config, BertConfig):
        raise ValueError(f"--init={init} is no BERT; give one, or use pretrain_elmo")
    if stored.tokenizer is not None and stored.tokenizer.fingerprint != tokenizer.fingerprint:
        raise ValueError(
            f"the data was not prepared with the tokenizer of --init={init}: prepare it again with --tokenizer={init}"
        )
    model = starting_weights.computed(stored.config, asked)
    objective = bert_objective(config, model)
    fresh = objective.init(jax.random.key(config.seed))
    return model, objective, starting_weights.completed(fresh, stored.params, begins)


def task_of(config: ConfigDict, init: str | None, workdir: Path, mesh: Any) -> pretraining.Task:
    """BERT's part of a run."""
    del mesh
    corpora = corpora_of(config, workdir, "wordpiece")
    tokenizer = tokenizer_of(corpora)
    model, objective, params = weights(config, init, tokenizer, begins=not is_run_directory(workdir))
    here = {"process": jax.process_index(), "processes": jax.process_count()}
    feed = {"seed": config.seed, "workers": config.workers, **here}
    first = objective.phases[0].examples
    return pretraining.Task(
        model, params, tokenizer, objective.loss, objective.held_out_loss, objective.coefficients,
        Phases([(steps, train_batches(corpora, examples, rows, **feed)) for steps, rows, examples in objective.phases]),
        functools.partial(eval_batches, corpora, first, config.batch_size, limit=config.eval_batches, **here),
        figures, "held_out/mlm_accuracy", size=lambda batch: int((batch["segments"] > 0).sum()),
        work=objective.work(params, first.length), long_steps=objective.long_steps,
    )  # fmt: skip


def figures(means: Any) -> dict[str, float]:
    """What the held-out means are called."""
    named = {f"held_out/{name}": value for name, value in means.items() if name != "mlm"}
    return {"held_out/mlm_perplexity": perplexity(means["mlm"], 1), **named}
