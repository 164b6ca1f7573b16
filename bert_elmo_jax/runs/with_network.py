"""A task's own network, made ready for training: words and their vectors, an encoder's layers, parameters and loss."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import optax
from ml_collections import ConfigDict

from bert_elmo_jax import optim
from bert_elmo_jax.data.tasks.batches import Collate
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families import find_family
from bert_elmo_jax.inference.run_directory import describe_run
from bert_elmo_jax.inference.task_forward import scores_of
from bert_elmo_jax.inference.task_network import encode_of, layers_of
from bert_elmo_jax.inference.task_networks import NETWORKS, check_task
from bert_elmo_jax.inference.vector_cache import fill_cache
from bert_elmo_jax.inference.word_encoder import size_of, word_encoder
from bert_elmo_jax.inference.word_layers import Encoder
from bert_elmo_jax.networks import NetworkConfig
from bert_elmo_jax.runs import optimisation
from bert_elmo_jax.runs.network_directory import check_begun, keep_encoder
from bert_elmo_jax.runs.network_sizes import SIZES
from bert_elmo_jax.runs.starting_weights import say
from bert_elmo_jax.runs.task_data import Data
from bert_elmo_jax.runs.task_words import words_of
from bert_elmo_jax.runs.with_head import Prepared, Put


class NetworkStart(NamedTuple):
    """The encoder that a network reads, None for none, and where it came from."""

    encoder: Encoder | None
    source: str


def network_start(config: ConfigDict, init: str | None, tokenizer: str | None) -> NetworkStart:
    """The encoder of the config; a network begins from scratch."""
    if config.network not in NETWORKS:
        hint = did_you_mean(config.network, NETWORKS)
        raise ValueError(f"config.network={config.network!r} is not known; it is one of {', '.join(NETWORKS)}{hint}")
    for flag, value in (("init", init), ("tokenizer", tokenizer)):
        if value is not None:
            raise ValueError(
                f"--{flag}={value} says nothing to a {config.network}, which begins from scratch: give the encoder "
                "that it reads with --config.encoder=…"
            )
    return NetworkStart(word_encoder(config.encoder) if config.encoder else None, config.encoder)


def prepare_network(config: ConfigDict, data: Data, start: NetworkStart) -> Prepared:
    """A network with its words, and the encoder that it reads."""
    if start.source != config.encoder:  # a grid may name several
        start = network_start(config, None, None)
    task, encoder, own = with_length(data.task, config), start.encoder, NETWORKS[config.network]
    check_task(config.network, task)
    if config.tune_encoder and encoder is None:
        raise ValueError(
            "config.tune_encoder was asked for without an encoder: give --config.encoder=… or leave it out"
        )
    lexicon, known = words_of(config, own.words(task, data.train))
    layers, width = (0, 0) if encoder is None else size_of(encoder)
    network = own.config(
        num_words=len(lexicon.words), num_specials=len(lexicon.specials), word_size=lexicon.width,
        characters=lexicon.unknown == "characters", encoder_layers=layers, encoder_width=width, places=config.places,
        layers=config.layers,
        mix_dropout=config.mix_dropout, mix_l2=config.mix_l2, tuned=config.tune_encoder,
        **({} if own.counted is None else {own.counted: len(task.labels)}),
        **SIZES[config.network](config, data),
    )  # fmt: skip
    params = own.init(network, jax.random.key(config.seed), *lexicon.table(known))
    if encoder is not None and network.tuned:
        params["encoder"] = jax.tree.map(jax.numpy.array, encoder.params["encoder"])  # steps give their arrays away
    rows, notes = own.training_rows(task, data.train, lexicon)
    dev_rows = own.reading_rows(task, data.dev, lexicon)
    for note in notes:
        say(f"{config.train}: {note}")
    encode = encode_of(network, encoder)

    def begin(workdir: Path) -> tuple[Collate, Callable[[Any, Put], list[Any]]]:
        check_begun(workdir, network, task.labels, lexicon.fingerprint)
        described = None if encoder is None else keep_encoder(workdir / "encoder", encoder)
        describe_run(workdir, network, params, lexicon, task=task, encoder=described)
        read = layers_of(network, encoder)
        if encoder is not None and not network.tuned:
            folder = Path(config.cache) if config.cache else workdir / "vectors" / encoder.fingerprint
            read = fill_cache(folder, encoder, [text.words for row in (*rows, *dev_rows) for text in row.texts]).batch
        outputs = jax.jit(own.outputs(network, task, encode))
        make = functools.partial(own.collate, lexicon=lexicon, layers=read)
        inputs = functools.partial(make, targets=False)

        def predict(params: Any, put: Put) -> list[Any]:
            found = scores_of(lambda batch: outputs(params, put(batch)), dev_rows, config.batch_size, inputs)
            # As many answers as in use: the threshold for none is looked for with the best that is one.
            return own.predictions(task, data.dev, dev_rows, found, 20)

        return make, predict

    return Prepared(
        task, rows, params, own.loss(network, encode), own.coefficients(network),
        lambda steps, epoch: method_of(config, network, encoder, steps), begin,
        lambda batch: int(batch["lengths"].sum()),
        () if encoder is None else find_family(encoder.config).sharding,
    )  # fmt: skip


def with_length(task: Task, config: ConfigDict) -> Task:
    """The task with the number of words that its texts are cut to, where the config names one."""
    if "max_length" not in config:
        return task
    if config.max_length < 1:
        raise ValueError(f"config.max_length={config.max_length}: a text is cut to 1 word or more")
    return dataclasses.replace(task, max_length=config.max_length)


def method_of(
    config: ConfigDict, network: NetworkConfig, encoder: Encoder | None, steps: int
) -> tuple[optim.Schedule, optax.GradientTransformation]:
    """The learning rate and the optimiser: frozen vectors of words stay as they are."""
    rate = optimisation.learning_rate(config.optimizer, steps)
    method = optimisation.optimizer(config.optimizer, rate)
    if not config.tune_words and network.num_words:
        method = optim.freeze(method, ["words/table"])
    if config.layer_decay == 1:
        return rate, method
    if not network.tuned:
        raise ValueError(
            f"config.layer_decay={config.layer_decay} is for the layers of an encoder that is trained along: add "
            "--config.tune_encoder=true, or leave it out"
        )
    assert encoder is not None
    return rate, optax.chain(method, optim.scale_by_depth(config.layer_decay, find_family(encoder.config).depth_of))
