"""Prepare a task network for training: its words and their vectors, an encoder's layers, parameters and loss.

The run directory of a network has its encoder in `encoder/`, which is itself a run directory without heads:
`load("runs/tagger/encoder")` returns the encoder.
"""

import dataclasses
import functools
import shutil
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import jax
from ml_collections import ConfigDict

from bert_elmo_jax import load, train
from bert_elmo_jax.data.tasks.batches import Collate
from bert_elmo_jax.data.tasks.labels import find_scheme
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.data.tasks.tree_rows import find_root_relation
from bert_elmo_jax.data.tasks.word_rows import words_of_sentences
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.evals.entities import entities
from bert_elmo_jax.families import find_family
from bert_elmo_jax.inference.model_kinds import read_config, read_facts
from bert_elmo_jax.inference.row_outputs import compute_outputs
from bert_elmo_jax.inference.run_directory import describe_encoder, describe_run, is_run_directory, write_run_directory
from bert_elmo_jax.inference.task_network import build_encode, build_layers
from bert_elmo_jax.inference.task_networks import NETWORKS, check_task
from bert_elmo_jax.inference.word_encoder import fill_cache, find_columns, layer_shape, word_encoder
from bert_elmo_jax.inference.word_layers import Encoder
from bert_elmo_jax.networks import NetworkConfig, init_network, network_coefficients
from bert_elmo_jax.networks.word_network import CHARACTER_ENCODERS
from bert_elmo_jax.runs.initial_state import choose
from bert_elmo_jax.runs.prepared_task import Predict, PreparedTask, Put
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.task_data import Data, count_steps
from bert_elmo_jax.runs.transfer import build_transfer, hold
from bert_elmo_jax.text import Lexicon, WordVectors, read_vectors, width_of
from bert_elmo_jax.text.lexicon import FROM_FILE, MOST_VECTORS, OFTEN, places_of
from bert_elmo_jax.text.word_features import WordFeatures

CHARACTERS = ("none", *CHARACTER_ENCODERS)
# The values that fields had before they were fields.
ADDED = {
    "directions": "both", "character_vectors": "", "character_size": 128, "character_embedding_size": 16,
    "character_layers": 1, "cell": "lstm", "min_count": OFTEN, "window": 11,
    "suffix": 0, "capitals": False, "gazetteer": False, "feature_size": 5,
}  # fmt: skip


class NetworkStart(NamedTuple):
    """The encoder that a network reads, or None, and its source."""

    encoder: Encoder | None
    source: str


def start_network(config: ConfigDict, init: str | None, tokenizer: str | None) -> NetworkStart:
    """Return the encoder of the config; a network is always trained from scratch."""
    choose("network", config.network, NETWORKS)
    for flag, value in (("init", init), ("tokenizer", tokenizer)):
        if value is not None:
            why = "which is trained from scratch: give the encoder that it reads with --config.encoder=…"
            raise ValueError(f"--{flag}={value} has no use for a {config.network}, {why}")
    return NetworkStart(word_encoder(config.encoder) if config.encoder else None, config.encoder)


def prepare_network(
    config: ConfigDict,
    data: Data,
    start: NetworkStart,
    placement: train.Placement = train.ONE_DEVICE,
    report: bool = True,
) -> PreparedTask:
    """Return a network with its words, and with the encoder that it reads."""
    if start.source != config.encoder:  # a grid may name several
        start = start_network(config, None, None)
    task, encoder, functions = data.task, start.encoder, NETWORKS[config.network]
    if "max_length" in config:
        least = 2 if task.kind == "questions" else 1
        if config.max_length < least:
            raise ValueError(f"config.max_length={config.max_length}: expected {least} or more words")
        task = dataclasses.replace(task, max_length=config.max_length)
    check_task(config.network, task)
    if config.tune_encoder and encoder is None:
        raise ValueError("config.tune_encoder needs an encoder: give --config.encoder=… or leave it out")
    width = functions.config.fixed_width(config.to_dict(), len(task.labels))
    features = build_features(config, task, data.train)
    lexicon, vectors = build_lexicon(config, functions.words(task, data.train), width, features)
    network = build_config(config, data, lexicon, encoder)
    params = init_network(network, jax.random.key(config.seed), *lexicon.table(vectors))
    if encoder is not None and network.tuned:
        params["encoder"] = jax.tree.map(jax.numpy.array, encoder.params["encoder"])  # a copy: steps donate arrays
    rows, notes = functions.training_rows(task, data.train, lexicon)
    dev_rows = functions.reading_rows(task, data.dev, lexicon)
    for note in notes:
        say(f"{config.train}: {note}")
    length = count_steps(config, len(rows))
    depth_of = None if encoder is None else find_family(encoder.config).depth_of
    words = ("words/table",) if not config.tune_words and network.num_words else ()
    rate, method, still = build_transfer(config, depth_of, params, length, frozen=words)
    encode = build_encode(network, encoder)

    def describe(workdir: Path) -> None:
        check_same_network(workdir, network, task.labels, lexicon.fingerprint)
        described = None if encoder is None else save_encoder(workdir / "encoder", encoder)
        describe_run(workdir, network, params, lexicon, task=task, encoder=described)

    def open_task(workdir: Path) -> tuple[Collate, Predict]:
        layers = build_layers(network, encoder)
        if encoder is not None and not network.tuned:
            folder = Path(config.cache) if config.cache else workdir / "vectors" / encoder.fingerprint
            layers = fill_cache(folder, encoder, [text.words for row in (*rows, *dev_rows) for text in row.texts]).batch
        outputs = jax.jit(functions.outputs(network, task, encode))
        make = functools.partial(functions.collate, lexicon=lexicon, layers=layers)
        inputs = functools.partial(make, targets=False)

        def predict(params: Any, put: Put) -> list[Any]:
            row_outputs = compute_outputs(
                lambda batch: outputs(params, put(batch)), dev_rows, config.batch_size, inputs
            )
            # 20 answers per question, as `predict` has: the threshold for no answer depends on the best of them.
            return functions.predictions(task, data.dev, dev_rows, row_outputs, 20)

        return make, predict

    return PreparedTask(
        task, rows, length, params, hold(functions.loss(network, encode), still), network_coefficients(network),
        rate, method, describe, open_task, lambda batch: int(batch["lengths"].sum()),
        () if encoder is None else find_family(encoder.config).sharding,
    )  # fmt: skip


def build_features(config: ConfigDict, task: Task, train: Sequence[Any]) -> WordFeatures | None:
    """Return the hand-made features of a config for the words of training sentences, or None."""
    suffix, capitals, gazetteer = (config.get(name) for name in ("suffix", "capitals", "gazetteer"))
    if gazetteer and not task.entities:
        lists = "lists the entities of the training part"
        raise ValueError(f"config.gazetteer=true {lists}, and --task={task.name} has none: leave it out")
    if not (suffix or capitals or gazetteer):
        return None
    words = list(words_of_sentences(train))
    counts = Counter(chain.from_iterable(words))
    phrases = {
        (n, kind, " ".join(words[n][begin:end]))
        for n, sentence in enumerate(train if gazetteer else ()) for kind, begin, end in entities(sentence.tags)
    }  # fmt: skip
    return WordFeatures.build(counts, suffix, capitals, (phrase[1:] for phrase in phrases), config.min_count)


def build_lexicon(
    config: ConfigDict, texts: Iterable[Sequence[str]], width: int = 0, features: WordFeatures | None = None
) -> tuple[Lexicon, WordVectors | None]:
    """Return the words of the training texts, and the pretrained vectors of `config.vectors`.

    With a `width` that the network fixes, vectors are weights, which begin with zeros.
    """
    counts = Counter(word for words in texts for word in words)
    size = width or config.word_size or 100
    if width and (config.vectors or config.word_size or not config.tune_words):
        instead = "has a weight for each word and tag instead of vectors"
        raise ValueError(f"config.cell={config.cell} {instead}: leave out vectors, word_size and tune_words")
    if width and config.unknown == "random":  # their weights would be zeros that never change
        why = "has weights instead of vectors, and random weights of unknown words would say nothing"
        raise ValueError(f"config.unknown=random: config.cell={config.cell} {why}: use unk or classes")
    vectors = later = None
    if config.unknown in FROM_FILE and not config.vectors:
        raise ValueError(f"config.unknown={config.unknown} needs a file: give --config.vectors=…, or another value")
    if config.vectors:
        size, read = open_vectors(config.vectors)
        if config.word_size and config.word_size != size:
            has = f"has vectors of {size} numbers: leave word_size out, or give a file of that width"
            raise ValueError(f"config.word_size={config.word_size}, and {config.vectors} {has}")
        vectors = read({*counts, *(word.lower() for word in counts)})
        count = int((places_of(list(counts), vectors) >= 0).sum())
        twice = f" ({vectors.repeated:,} are in the file more than once)" if vectors.repeated else ""
        say(f"{config.vectors}: vectors of {count:,} of the {len(counts):,} words of the training data{twice}")
        if not count:
            raise ValueError(f"{config.vectors} has no vector for any word of {config.train}; give one of its language")
        if config.unknown in FROM_FILE:
            later = read(None, most=MOST_VECTORS)
            # The network's words are composed; a file may have decomposed ones.
            later = later._replace(words=tuple(unicodedata.normalize("NFC", word) for word in later.words))
    characters = choose_characters(config) != "none"
    least = config.get("min_count", OFTEN)
    build = functools.partial(
        Lexicon.build, min_count=least, tuned=config.tune_words, seed=config.seed, characters=characters,
        features=features, scale=0.0 if width else None,
    )  # fmt: skip
    return build(counts, config.unknown, size, pretrained=vectors, later=later), vectors


def open_vectors(source: str) -> tuple[int, Callable[..., WordVectors]]:
    """Return the width of the vectors of a file or of a run of `static`, and the function `read_vectors` for it.

    >>> width, read = open_vectors("tests/goldens/static_tiny/gensim.bin")
    >>> width, read(["river", "nowhere"]).words, len(read(None, most=3).words)
    (16, ('river',), 3)
    """
    if not Path(source).is_dir() and Path(source).suffix.lower() != ".bin":
        return width_of(source), functools.partial(read_vectors, source)
    table: Any = load(source)
    if not hasattr(table, "vectors_of"):
        how = "give a file of vectors, or a run of --config=static; other models are --config.encoder"
        raise ValueError(f"config.vectors={source} holds no vectors of words: {how}")

    def read(words: Iterable[str] | None, most: int | None = None) -> WordVectors:
        names = tuple(table.words[:most] if words is None else sorted(word for word in set(words) if word in table))
        return WordVectors(names, table.vectors_of(names), len(table.words), 0)

    return table.config.hidden_size, read


def choose_characters(config: ConfigDict) -> str:
    """Return the network that reads the characters of each word: cnn, gru, lstm or none."""
    name = config.character_vectors or ("cnn" if config.unknown == "characters" else "none")
    if name not in CHARACTERS:
        hint = did_you_mean(name, CHARACTERS)
        raise ValueError(f"config.character_vectors={name!r} is not known; use {', '.join(CHARACTERS)}{hint}")
    if name == "none" and config.unknown == "characters":
        why = "and config.unknown=characters reads them: use another value of one of the two"
        raise ValueError(f"config.character_vectors=none, {why}")
    return name


def build_config(config: ConfigDict, data: Data, lexicon: Lexicon, encoder: Encoder | None) -> NetworkConfig:
    """Return the network's configuration: fields of the run's config, and sizes of the data, words and encoder."""
    network_class = NETWORKS[config.network]
    names = {field.name for field in dataclasses.fields(network_class.config)}
    layers, width = (0, 0) if encoder is None else layer_shape(encoder)
    fields = {name: config[name] for name in names if name in config} | {
        "num_words": len(lexicon.words), "num_specials": len(lexicon.specials), "word_size": lexicon.width,
        "characters": lexicon.characters, "encoder_layers": layers, "encoder_width": width,
        "encoder_columns": find_columns(encoder, config.directions),
        "tuned": config.tune_encoder, "pairs": data.task.pairs, "unanswerable": data.task.unanswerable,
        "num_tags": len(data.task.tags),
    }  # fmt: skip
    if lexicon.characters:
        fields["character_encoder"] = choose_characters(config)
    if lexicon.features is not None:
        fields |= {"num_features": lexicon.features.rows, "feature_columns": lexicon.features.columns}
    if width := network_class.config.fixed_width(config.to_dict(), len(data.task.labels)):
        fields["feature_size"] = width
    if network_class.counted is not None:
        fields[network_class.counted] = len(data.task.labels)
    if "root_relation" in names:
        fields["root_relation"] = find_root_relation(data.train, data.task.labels)
    if "scheme" in names and data.task.entities:
        fields["scheme"] = find_scheme(data.train)
    return network_class.config(**{name: value for name, value in fields.items() if name in names})


def check_same_network(workdir: Path, network: NetworkConfig, labels: Sequence[str], words: str) -> None:
    """Raise ValueError if a run directory has a network with other words, labels or sizes."""
    if not is_run_directory(workdir):
        return
    stored = read_facts(workdir / "model.json")
    config = read_config(stored["config"], stored["family"], str(workdir / "model.json"))
    identity = (config, stored["labels"] or [], (stored["tokenizer"] or {}).get("fingerprint"))
    if identity != (network, list(labels), words):
        why = "its words, labels or sizes differ): resume with the same, or choose another run directory"
        raise ValueError(f"{workdir} was started with other training data, vectors or encoder ({why}")


def save_encoder(folder: Path, encoder: Encoder) -> dict[str, Any]:
    """Copy an encoder into a folder, and return its description; raise ValueError if another one is there."""
    described = describe_encoder(encoder)
    if is_run_directory(folder):
        fingerprint = word_encoder(str(folder)).fingerprint
        if fingerprint != encoder.fingerprint:
            other = f"{fingerprint}, and {encoder.source} is {encoder.fingerprint}"
            how = "resume with that one, or choose another run directory"
            raise ValueError(f"this run was started with another encoder ({other}): {how}")
        return described
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed while writing it
    run_fields = {"program": "finetune", "encoder": encoder.source}
    write_run_directory(folder, encoder.config, encoder.params, encoder.reads, run=run_fields)
    return described
