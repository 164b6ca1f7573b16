"""Adapt a word encoder to a task: train it as a language model on the training texts, without labels.

See Peters et al. 2018, section 3.4. The adapted encoder is a run directory, `adapted/`, inside the task's.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.corpora.reading import Reading
from bert_elmo_jax.families import find_family, get_family
from bert_elmo_jax.files import write_text
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import StoredModel
from bert_elmo_jax.inference.task_networks import NETWORKS, check_task
from bert_elmo_jax.inference.word_encoder import word_encoder
from bert_elmo_jax.programs import show_program
from bert_elmo_jax.report.language import Language
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.task_data import Data, count_steps
from bert_elmo_jax.runs.train_run import SharedBy
from bert_elmo_jax.runs.transfer import build_transfer
from bert_elmo_jax.runs.with_network import NetworkStart
from bert_elmo_jax.text import WordVocabulary

HELD_OUT = 0.05  # the share of the texts on which the perplexity is measured
FULL_SOFTMAX = 20_000  # words; the softmax over a larger vocabulary is sampled


def check_adaptation(config: ConfigDict, settings: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError on contradictory fields of an adaptation, or on settings of a grid that would need several."""
    for name in (name for setting in settings for name in setting):
        if name.startswith("adapt.") or (name == "encoder" and "adapt" in config and config.adapt.epochs):
            raise ValueError(
                f"--grid names {name}, but all runs of a grid share one adapted encoder: start a run for each value"
            )
    if "adapt" not in config or config.adapt.epochs == 0:
        return
    if not config.encoder:
        raise ValueError(f"config.adapt.epochs={config.adapt.epochs} needs an encoder: give --config.encoder=…")


def adapt_encoder(
    config: ConfigDict,
    workdir: Path,
    data: Data,
    start: NetworkStart,
    parallel: SharedBy = "jit",
    language: Language = "en",
    configs: Sequence[ConfigDict] = (),
) -> tuple[NetworkStart, int]:
    """Adapt the encoder in `workdir/adapted` if the config says so; return it, and 0, or 75 if it was stopped.

    `configs` are those of the runs of a grid.
    """
    if "adapt" not in config or config.adapt.epochs == 0:
        return start, 0
    folder = workdir / "adapted"
    stored = read_model(config.encoder)
    family = None if stored.network else get_family(stored.kind)
    if family is None or not family.inputs.adapts:
        kind = f"{config.encoder} is of the kind {stored.kind}"
        how = f"adapt it with `{show_program('pretrain')} --init={config.encoder}`, and give that run directory"
        raise ValueError(f"config.adapt is for encoders that read words, and {kind}: {how}")
    if "lm" not in family.heads:
        why = f"trains an encoder as a language model, and {config.encoder} is {family.called}, which is none"
        raise ValueError(f"config.adapt {why}: set config.adapt.epochs=0")
    for run_config in configs or [config]:
        check_network(run_config, data, start)
    folder.mkdir(parents=True, exist_ok=True)
    texts = write_texts(folder / "texts.txt", NETWORKS[config.network].words(data.task, data.train))
    say(f"the encoder is first trained as a language model on {texts:,} texts: {folder}")
    request = Request(
        (str(folder / "texts.txt"),), str(folder / "corpus"), word_rule="whitespace", heldout=HELD_OUT, shards=1,
        tokenizer=save_words(stored, folder / "vocabulary"), vocab_size=50_000, reading=Reading(on_bad="skip"),
    )  # fmt: skip
    manifest = prepare(request)
    if not manifest["counts"]["heldout"]["documents"]:
        how = "set config.adapt.epochs=0, or adapt with `pretrain` on more text"
        raise ValueError(f"{config.train} has {texts:,} texts, too few to hold some out: {how}")
    recipe = build_recipe(config, stored, manifest, folder / "corpus")
    status = pretrain(recipe, folder, init=config.encoder, parallel=parallel, program="adapt", language=language)
    return (start if status else NetworkStart(word_encoder(str(folder)), start.source)), status


def check_network(config: ConfigDict, data: Data, start: NetworkStart) -> None:
    """Raise ValueError for fields of the network's training that cannot be used, before the encoder is adapted."""
    assert start.encoder is not None
    check_task(config.network, data.task)
    params: dict[str, Any] = {"network": 0.0}  # only the names of the encoder's parts matter
    if config.tune_encoder:
        params["encoder"] = start.encoder.params["encoder"]
    depth_of = find_family(start.encoder.config).depth_of
    build_transfer(config, depth_of, params, count_steps(config, len(data.train)), report=False)


def save_words(stored: StoredModel, folder: Path) -> str:
    """Save the words of the weights' softmax and return the folder, or "words", for new ones, if it has none."""
    if not isinstance(stored.tokenizer, WordVocabulary) or (
        "lm" not in stored.params and not get_family(stored.kind).inputs.reads_vocabulary(stored.config, ())
    ):
        return "words"
    if not (folder / "words.txt").is_file():
        stored.tokenizer.save(folder)
    return str(folder)


def build_recipe(config: ConfigDict, stored: StoredModel, manifest: dict, corpus: Path) -> ConfigDict:
    """Return the config of the language model's run: single sentences, and a rate that falls to zero."""
    counts, fields = manifest["counts"]["train"], config.adapt
    length = 20
    rows = counts["sentences"] + counts["words"] // length  # long sentences are several rows
    steps = max(1, round(fields.epochs * rows / fields.batch_size))
    every = max(1, steps // 4)
    sizes = dataclasses.asdict(stored.config)
    optimizer = {
        "name": "adamw", "schedule": "linear_after_warmup", "learning_rate": fields.learning_rate, "warmup": 0.1,
        "long_learning_rate": 0.0, "long_warmup": 0.0, "decay": 0.0, "clip": 1.0, "gradient_scale": 1.0,
    }  # fmt: skip
    return ConfigDict({
        "family": stored.kind, "data": str(corpus), "steps": steps, "batch_size": fields.batch_size, "accumulate": 1,
        "seed": config.seed, "log_every": config.log_every, "eval_every": every, "eval_batches": None,
        "checkpoint_every": every, "keep": 3, "stop_after_failures": config.stop_after_failures, "workers": 0,
        "mesh": config.mesh, "optimizer": optimizer, "reading": "sentences", "length": length,
        "negatives": 0 if manifest["tokenizer"]["vocab_size"] <= FULL_SOFTMAX else 8192,
        "model": {name: value for name, value in sizes.items() if name != "vocab_size"},
    })  # fmt: skip


def write_texts(file: Path, texts: Iterable[Sequence[str]]) -> int:
    """Write each different text as a document of one line, and return their number; keep a file with the same texts."""
    lines = list(dict.fromkeys(" ".join(words) for words in texts if words))
    text = "\n\n".join(lines) + "\n"
    if not file.is_file() or file.read_bytes() != text.encode():
        write_text(file, text)
    return len(lines)
