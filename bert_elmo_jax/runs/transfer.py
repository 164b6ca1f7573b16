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
from bert_elmo_jax.inference.read_model import StoredModel, read_model
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.task_loss import TaskHead, init_task_params
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.nn.layer_numbers import layer_numbers
from bert_elmo_jax.families.bert.config import PRESETS
from bert_elmo_jax.text import Lexicon, Tokenizer, WordVocabulary, load_tokenizer
from bert_elmo_jax.runs import optimisation
from bert_elmo_jax.runs.starting_weights import completed, say

WAYS = ("all", "frozen", "head_first", "top_down")


class Start(NamedTuple):
    """A model before its head: its configuration, its tokenizer, and its weights if it has any."""

    model: BertConfig
    tokenizer: Tokenizer
    stored: StoredModel | None


def start_of(config: ConfigDict, init: str | None, tokenizer: str | None) -> Start:
    """The weights of --init; or nothing but a tokenizer and a configuration."""
    asked: dict[str, Any] = {"dtype": config.dtype, "implementation": config.implementation}
    if config.dropout is not None:
        asked |= {"dropout": config.dropout, "attention_dropout": config.dropout}
    if init is not None:
        if tokenizer is not None:
            raise ValueError(f"--tokenizer={tokenizer} was given beside --init={init}, which has its own: leave it out")
        stored, model = _bert(init, "--init")
        if stored.tokenizer is None or isinstance(stored.tokenizer, WordVocabulary | Lexicon):
            raise ValueError(f"--init={init} has no tokenizer (vocab.txt or a SentencePiece model): copy one there")
        return Start(dataclasses.replace(model, **asked), stored.tokenizer, stored)
    if tokenizer is None:
        raise ValueError("--init=… is needed (anything `load` understands), or --tokenizer=… for a model from scratch")
    folder = Path(tokenizer) / "tokenizer"
    pieces = load_tokenizer(folder if folder.is_dir() else tokenizer)
    sizes: dict[str, Any] = {"vocab_size": pieces.vocab_size, "pad_id": pieces.pad_id}
    if config.preset in PRESETS:
        return Start(BertConfig.preset(config.preset, **{**sizes, **asked}), pieces, None)
    if not Path(config.preset).exists():
        raise ValueError(
            f"config.preset={config.preset!r} is neither a preset ({', '.join(PRESETS)}) nor a model: name one of both"
            + did_you_mean(config.preset, PRESETS)
        )
    _, model = _bert(config.preset, "config.preset")
    return Start(dataclasses.replace(model, **asked, **sizes), pieces, None)


def _bert(source: str, flag: str) -> tuple[StoredModel, BertConfig]:
    stored = read_model(source)
    if not isinstance(stored.config, BertConfig):
        raise ValueError(f"{flag}={source} is no BERT; give one")
    return stored, stored.config


def features_of(config: ConfigDict, model: BertConfig) -> Features | None:
    """Which layers the head reads, where the config names some."""
    f = config.features
    if not f.layers:
        return None
    try:
        layers: Any = "all" if f.layers == "all" else [int(part) for part in str(f.layers).split(",")]
    except ValueError:
        raise ValueError(f"config.features.layers={f.layers!r}: use numbers, such as -4,-3,-2,-1, or all") from None
    return Features(tuple(layer_numbers(layers, model.num_layers)), f.combine, f.lstm_layers, f.lstm_size, f.dropout)


def params_of(start: Start, task: Task, head: TaskHead, seed: int, begins: bool = True) -> tuple[dict[str, Any], bool]:
    """The parameters to begin with, what the weights lack drawn from the seed; and whether the pooler was."""
    fresh = init_task_params(start.model, head, jax.random.key(seed))
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
    params = completed(fresh, stored, begins)
    return jax.tree.map(lambda x: jax.numpy.asarray(x), params), pooler


def method_of(
    config: ConfigDict, params: Mapping[str, Any], steps: int, epoch: int, new_pooler: bool
) -> tuple[optim.Schedule, optax.GradientTransformation]:
    """The learning rate, and the optimiser for the way of transfer that the config names."""
    if config.transfer not in WAYS:
        hint = did_you_mean(config.transfer, WAYS)
        raise ValueError(f"config.transfer={config.transfer!r} is not known; it is one of {', '.join(WAYS)}{hint}")
    o = config.optimizer
    rate = optimisation.learning_rate(o, steps)
    if config.transfer in ("head_first", "top_down"):
        unclipped = ConfigDict({**o, "clip": float("inf")})
        starts = starts_of(config, params, epoch, new_pooler)
        method = optim.join_later(starts, rate, lambda later: optimisation.optimizer(unclipped, later), o.clip)
    else:
        method = optimisation.optimizer(o, rate)
    if config.transfer == "frozen":
        patterns = [r"encoder/(embeddings|layer_\d+)/.*"]
        patterns += ["encoder/pooler/.*"] if "pooler" in params["encoder"] and not new_pooler else []
        method = optim.freeze(method, patterns)
    return rate, method if config.layer_decay == 1 else optax.chain(method, optim.scale_by_depth(config.layer_decay))


def starts_of(config: ConfigDict, params: Mapping[str, Any], epoch: int, new_pooler: bool) -> Any:
    """The step from which each parameter is trained: the head's is 0, a pooler joins with the last layer."""
    depths = optim.depths(dict(params))
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
