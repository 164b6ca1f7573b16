"""What fine-tuning begins with, and which of it is trained when and how fast."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from ml_collections import ConfigDict

from bert_elmo_jax import optim
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families import Family, all_families, get_family
from bert_elmo_jax.families.init_params import init_task_params
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.task_head import TaskHead
from bert_elmo_jax.inference.read_model import StoredModel, read_model
from bert_elmo_jax.nn.layer_numbers import layer_numbers
from bert_elmo_jax.runs import optimisation
from bert_elmo_jax.runs.starting_weights import adopt_config, fill_missing, say
from bert_elmo_jax.text import Lexicon, Tokenizer, WordVocabulary, load_tokenizer

WAYS = ("all", "frozen", "head_first", "top_down")


class Start(NamedTuple):
    """A model before its head: its configuration, its tokenizer, and its weights if it has any."""

    family: Family
    model: Any  # its configuration
    tokenizer: Tokenizer
    stored: StoredModel | None


def start_of(config: ConfigDict, init: str | None, tokenizer: str | None) -> Start:
    """Return the weights of --init, or a configuration with the tokenizer of a model from scratch."""
    asked: dict[str, Any] = {"dtype": config.dtype, "implementation": config.implementation}
    if config.dropout is not None:
        asked |= {"dropout": config.dropout, "attention_dropout": config.dropout}
    if init is not None:
        if tokenizer is not None:
            raise ValueError(f"--tokenizer={tokenizer} was given beside --init={init}, which has its own: leave it out")
        stored, family = _read_encoder(init, "--init")
        if stored.tokenizer is None or isinstance(stored.tokenizer, WordVocabulary | Lexicon):
            raise ValueError(f"--init={init} has no tokenizer (vocab.txt or a SentencePiece model): copy one there")
        return Start(family, adopt_config(stored.config, asked), stored.tokenizer, stored)
    if tokenizer is None:
        raise ValueError("--init=… is needed (anything `load` understands), or --tokenizer=… for a model from scratch")
    folder = Path(tokenizer) / "tokenizer"
    pieces = load_tokenizer(folder if folder.is_dir() else tokenizer)
    presets = {name: family for family in all_families() if family.inputs == "pieces" for name in family.presets}
    if config.preset in presets:
        family = presets[config.preset]
        model = family.config(**family.presets[config.preset])
    elif Path(config.preset).exists():
        stored, family = _read_encoder(config.preset, "config.preset")
        model = stored.config
    else:
        raise ValueError(
            f"config.preset={config.preset!r} is neither a preset ({', '.join(presets)}) nor a model: name one of them"
            + did_you_mean(config.preset, presets)
        )
    known = {field.name for field in dataclasses.fields(model)}
    sizes = {name: getattr(pieces, name) for name in ("vocab_size", "pad_id") if name in known}
    return Start(family, dataclasses.replace(adopt_config(model, asked), **sizes), pieces, None)


def _read_encoder(source: str, flag: str) -> tuple[StoredModel, Family]:
    stored = read_model(source)
    if stored.network or get_family(stored.kind).inputs != "pieces":
        known = ", ".join(family.name for family in all_families() if family.inputs == "pieces")
        raise ValueError(f"{flag}={source} is of the kind {stored.kind}, which has no pieces: give one of {known}")
    return stored, get_family(stored.kind)


def features_of(config: ConfigDict, family: Family, num_layers: int, kind: str) -> Features | None:
    """Return the layers that the head reads; None for the last one alone.

    A family without a pooler gives its last layer, averaged, to heads that read one vector per row.
    """
    f = config.features
    if not f.layers:
        no_pooler = not family.pooler and kind in ("classification", "regression", "choice")
        return Features((num_layers,)) if no_pooler else None
    try:
        layers: Any = "all" if f.layers == "all" else [int(part) for part in str(f.layers).split(",")]
    except ValueError:
        raise ValueError(f"config.features.layers={f.layers!r}: use numbers, such as -4,-3,-2,-1, or all") from None
    return Features(tuple(layer_numbers(layers, num_layers)), f.combine, f.lstm_layers, f.lstm_size, f.dropout)


def params_of(start: Start, task: Task, head: TaskHead, seed: int, begins: bool = True) -> tuple[dict[str, Any], bool]:
    """The parameters to begin with, what the weights lack drawn from the seed; and whether the pooler was."""
    fresh = init_task_params(start.family, start.model, head, jax.random.key(seed))
    if start.stored is None:
        return fresh, True
    stored = dict(start.stored.params)
    # A head of another task, or of other labels, is none for this one.
    same = tuple(start.stored.labels or ()) == task.labels and jax.tree.map(
        np.shape, stored.get(head.name)
    ) == jax.tree.map(np.shape, fresh[head.name])
    if not same or start.stored.features != head.features:
        if begins and head.name in stored:
            say(f"the weights have a head {head.name} of another task, or for other labels: it is not taken over")
        stored.pop(head.name, None)
        stored.pop("reader", None)
    pooler = "pooler" in fresh["encoder"] and "pooler" not in stored["encoder"]
    params = fill_missing(fresh, stored, begins)
    return jax.tree.map(lambda x: jax.numpy.asarray(x), params), pooler


def method_of(
    config: ConfigDict, family: Family, params: Mapping[str, Any], steps: int, epoch: int, new_pooler: bool
) -> tuple[optim.Schedule, optax.GradientTransformation]:
    """The learning rate, and the optimiser for the way of transfer that the config names."""
    if config.transfer not in WAYS:
        hint = did_you_mean(config.transfer, WAYS)
        raise ValueError(f"config.transfer={config.transfer!r} is not known; it is one of {', '.join(WAYS)}{hint}")
    o = config.optimizer
    rate = optimisation.learning_rate(o, steps)
    if config.transfer in ("head_first", "top_down"):
        unclipped = ConfigDict({**o, "clip": float("inf")})
        starts = starts_of(config, params, epoch, new_pooler, family)
        method = optim.join_later(starts, rate, lambda later: optimisation.optimizer(unclipped, later), o.clip)
    else:
        method = optimisation.optimizer(o, rate)
    if config.transfer == "frozen":
        patterns = [f"encoder/{name}(/.*)?" for name in params["encoder"] if name != "pooler" or not new_pooler]
        method = optim.freeze(method, patterns)
    return rate, method if config.layer_decay == 1 else optax.chain(
        method, optim.scale_by_depth(config.layer_decay, family.depth_of)
    )


def starts_of(config: ConfigDict, params: Mapping[str, Any], epoch: int, new_pooler: bool, family: Family) -> Any:
    """The step from which each parameter is trained: the head's is 0, a pooler joins with the last layer."""
    depths = optim.depths(dict(params), family.depth_of)
    top = max(jax.tree.leaves(depths))
    first = round(config.head_epochs * epoch)
    if first < 1:
        raise ValueError(f"config.head_epochs={config.head_epochs} is no step; use more, or transfer=all")

    def start(depth: int) -> int:
        return first + (max(0, top - 1 - depth) * epoch if config.transfer == "top_down" else 0)

    starts = jax.tree.map(lambda depth: 0, depths) | {"encoder": jax.tree.map(start, depths["encoder"])}
    if new_pooler and "pooler" in starts["encoder"]:
        starts["encoder"]["pooler"] = jax.tree.map(lambda _: 0, starts["encoder"]["pooler"])
    return starts
