"""Temporary: what the lead's pretraining will do."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from bert_elmo_jax.data.pipeline.batches import eval_batches, train_batches
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.loss import DIRECTIONS
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import is_run_directory
from bert_elmo_jax.losses import perplexity
from bert_elmo_jax.runs import pretraining, starting_weights
from bert_elmo_jax.runs.corpora import corpora_of, tokenizer_of
from bert_elmo_jax.runs.objectives import Objective, elmo_objective
from bert_elmo_jax.text import WordVocabulary


def weights(
    config: ConfigDict, init: str | None, vocabulary: WordVocabulary, begins: bool
) -> tuple[ElmoConfig, Objective, dict[str, Any]]:
    """The model's configuration, its objective and parameters: those of --init, what they lack drawn from the seed.

    Released weights have no softmax, and an own domain has words of its own: then that is new.
    """
    asked = dict(config.model)
    if init is None:
        model = ElmoConfig(vocab_size=len(vocabulary), **asked)
        objective = elmo_objective(config, model)
        return model, objective, objective.init(jax.random.key(config.seed))
    stored = read_model(init)
    if not isinstance(stored.config, ElmoConfig):
        raise ValueError(f"--init={init} is no ELMo; give one, or use pretrain_bert")
    same = stored.tokenizer is not None and stored.tokenizer.fingerprint == vocabulary.fingerprint
    if stored.config.input == "words" and not same:
        raise ValueError(
            f"the data was not prepared with the vocabulary of --init={init}, whose input is words: "
            f"prepare it again with --tokenizer=<the folder of its words.txt>"
        )
    model = starting_weights.computed(stored.config, {**asked, "vocab_size": len(vocabulary)})
    objective = elmo_objective(config, model)
    fresh = objective.init(jax.random.key(config.seed))
    kept = stored.params if same else {"encoder": stored.params["encoder"]}
    return model, objective, starting_weights.completed(fresh, kept, begins)


def task_of(config: ConfigDict, init: str | None, workdir: Path, mesh: Any) -> pretraining.Task:
    """ELMo's part of a run."""
    corpora = corpora_of(config, workdir, "words")
    vocabulary = tokenizer_of(corpora, words=True)
    model, objective, params = weights(config, init, vocabulary, begins=not is_run_directory(workdir))
    examples = objective.phases[0].examples
    shards = mesh.shape["data"] * mesh.shape["fsdp"] if mesh else jax.device_count()
    here = {"process": jax.process_index(), "processes": jax.process_count(), "shards": shards}
    carry = objective.carry(config.batch_size)
    return pretraining.Task(
        model, params, vocabulary, objective.loss, objective.held_out_loss, objective.coefficients,
        train_batches(corpora, examples, config.batch_size, seed=config.seed, workers=config.workers, **here),
        functools.partial(eval_batches, corpora, examples, config.batch_size, limit=config.eval_batches, **here),
        figures, "held_out/score", size=lambda batch: int(batch["lengths"].sum()),
        work=objective.work(params, config.length), carry=carry, held_out_carry=carry, step=objective.step,
    )  # fmt: skip


def figures(means: Mapping[str, float]) -> dict[str, float]:
    """Perplexities by the full softmax; the published figure is the mean of the two directions'."""
    each = {f"held_out/{direction}_perplexity": perplexity(means[direction], 1) for direction in DIRECTIONS}
    mean = sum(each.values()) / len(each)
    return {**each, "held_out/perplexity": mean, "held_out/score": -mean}
