"""Prepare a pretrained encoder with a task head for fine-tuning."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import jax
import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.addresses import local_copy
from bert_elmo_jax.data.tasks.batches import Collate, collate
from bert_elmo_jax.data.tasks.examples import text_of
from bert_elmo_jax.data.tasks.labels import compose
from bert_elmo_jax.data.tasks.packed_batches import choose_packing
from bert_elmo_jax.data.tasks.rows import Row, check_length, make_rows
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.encoders.unfamiliar_texts import SAMPLE, describe_unfamiliar
from bert_elmo_jax.families import Family, all_families, get_family
from bert_elmo_jax.families.init_params import init_task_params
from bert_elmo_jax.families.piece_embeddings import word_table
from bert_elmo_jax.families.piece_rows import describe_missing
from bert_elmo_jax.files import read_json
from bert_elmo_jax.heads.features import Combine, Features
from bert_elmo_jax.heads.sentence_task import OF_WHOLE_BATCH, sentence_loss
from bert_elmo_jax.heads.task_head import OF_PIECES, TaskHead, coefficients, task_loss, task_outputs
from bert_elmo_jax.inference.predictions import make_predictions
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import StoredModel, describe_run, is_run_directory
from bert_elmo_jax.inference.save_model import LABELLED
from bert_elmo_jax.inference.task_model import RowShapes, make_head
from bert_elmo_jax.nn.int8_kernels import refuse_int8
from bert_elmo_jax.nn.layers import layer_numbers
from bert_elmo_jax.runs.framed import frame_texts
from bert_elmo_jax.runs.initial_state import adopt_config, choose, fill_missing
from bert_elmo_jax.runs.prepared_task import Predict, PreparedTask, Put
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.task_data import Data, class_weights, count_steps
from bert_elmo_jax.runs.transfer import build_transfer, hold
from bert_elmo_jax.runs.with_adapters import (
    BASE,
    adapt,
    describe_adapters,
    export_adapters,
    join_loss,
    join_outputs,
    train_adapters,
)
from bert_elmo_jax.runs.with_sentences import loss_options, prepare_sentences
from bert_elmo_jax.text import Tokenizer, load_tokenizer

LENGTH, QUESTION_LENGTH = 128, 384


# The values of fields that are read with config.features.layers only, or with config.transfer=lora only.
FEATURES: Mapping[str, Any] = {"combine": "concat", "lstm_layers": 0, "lstm_size": 768, "dropout": 0.1}
LORA: Mapping[str, Any] = {"rank": 8, "alpha": 16.0, "targets": "query,value", "rslora": False, "in_full": ""}


class Start(NamedTuple):
    """A model without a task head: its family, configuration and tokenizer, and its weights if it has any."""

    family: Family
    model: Any
    tokenizer: Tokenizer
    stored: StoredModel | None


def check_unread(config: ConfigDict, settings: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError for fields of features or adapters, of a config or the settings of a grid, that no run reads."""
    runs = settings or [{}]
    for setting in runs:
        combine = setting.get("features.combine", config.features.combine)
        choose("features.combine", combine, dict.fromkeys(get_args(Combine)))
    with_layers = any(setting.get("features.layers", config.features.layers) for setting in runs)
    with_adapters = any(setting.get("transfer", config.transfer) == "lora" for setting in runs)
    for group, usual, is_read, remedy in (
        ("features", FEATURES, with_layers, "config.features.layers=…, such as -1"),
        ("lora", LORA, with_adapters, "config.transfer=lora"),
    ):
        for name, value in usual.items():
            field = f"{group}.{name}"
            if not is_read and any(setting.get(field, config[group][name]) != value for setting in runs):
                raise ValueError(f"config.{field} has no effect without {remedy}: add it, or leave config.{field} out")


def start_head(config: ConfigDict, init: str | None, tokenizer: str | None) -> Start:
    """Return the model of `init`, or one of `config.preset` without weights for a given tokenizer."""
    requested: dict[str, Any] = {"dtype": config.dtype, "attention": config.attention}
    if config.dropout is not None:
        requested |= {"dropout": config.dropout, "attention_dropout": config.dropout}
    if config.attention_dropout is not None:
        requested["attention_dropout"] = config.attention_dropout
    if init is not None:
        if tokenizer is not None:
            raise ValueError(f"--tokenizer={tokenizer} was given with --init={init}, which has its own: leave it out")
        stored, family = _read_encoder(init, "--init")
        if not isinstance(stored.tokenizer, Tokenizer):
            raise ValueError(f"--init={init} has no tokenizer (vocab.txt or a SentencePiece model): copy one there")
        return Start(family, adopt_config(stored.config, requested), stored.tokenizer, stored)
    if tokenizer is None:
        raise ValueError("--init=… is needed (anything `load` understands), or --tokenizer=… for a model from scratch")
    tokenizer = local_copy(tokenizer)
    folder = Path(tokenizer) / "tokenizer"
    pieces = load_tokenizer(folder if folder.is_dir() else tokenizer)
    presets = list_presets()
    if config.preset in presets:
        family, sizes = presets[config.preset]
        model = family.config(**sizes)
    elif Path(config.preset).exists():
        stored, family = _read_encoder(config.preset, "config.preset")
        model = stored.config
    else:
        listed, hint = ", ".join(presets), did_you_mean(config.preset, presets)
        raise ValueError(f"config.preset={config.preset!r} is neither a preset ({listed}) nor a model{hint}")
    vocabulary_fields = family.vocabulary_fields(pieces)
    return Start(family, dataclasses.replace(adopt_config(model, requested), **vocabulary_fields), pieces, None)


def list_presets(documents: bool = False) -> dict[str, tuple[Family, Mapping[str, Any]]]:
    """Return the sizes of all families that take heads, or that read `documents`.

    They are called `FAMILY-NAME`, and for the first family `NAME`, too.

    >>> list_presets()["base"][0].name, list_presets()["distilbert-base"][0].name
    ('bert', 'distilbert')
    """
    presets: dict[str, tuple[Family, Mapping[str, Any]]] = {}
    for family in all_families():
        if family.inputs.documents is not None if documents else family.inputs.takes_heads:
            for name, sizes in family.presets.items():
                presets.setdefault(name, (family, sizes))
                presets[f"{family.name}-{name}"] = family, sizes
    return presets


def _read_encoder(source: str, flag: str) -> tuple[StoredModel, Family]:
    stored = read_model(source)
    refuse_int8(stored.params, f"{flag}={source}")
    if stored.network or not get_family(stored.kind).inputs.takes_heads:
        families = ", ".join(family.name for family in all_families() if family.inputs.takes_heads)
        raise ValueError(f"{flag}={source} is of the kind {stored.kind}, which reads no pieces: give one of {families}")
    return stored, get_family(stored.kind)


def prepare_head(
    config: ConfigDict, data: Data, start: Start, placement: train.Placement = train.ONE_DEVICE, report: bool = True
) -> PreparedTask:
    """Return a model with the head of the task; `report` which of its parameters are new."""
    init_tokenizer = start.tokenizer
    start = frame_texts(start, data.task.kind, config.seed, report)
    model, tokenizer, family = start.model, start.tokenizer, start.family
    usual = QUESTION_LENGTH if data.task.kind == "questions" else LENGTH
    task = order_labels(data.task, start.stored.labels if start.stored else None)
    task = dataclasses.replace(task, max_length=config.max_length or min(usual, model.max_positions))
    sentences = None
    if task.kind == "sentences":
        task, sentences = prepare_sentences(config, task, start.stored, model.max_positions)
    elif task.name == "rank" and start.stored is not None:
        task = dataclasses.replace(task, prompt=find_prompt(start.stored))
    check_length(task, model.max_positions)
    features = read_features(config, family, model.num_layers, task.kind)
    head = make_head(task, features, model, sentences)
    module = family.build(model, pooler=head.pooled)
    params, new_pooler = init_params(start, task, head, config.seed, report)
    rows, dev_rows = (make_rows(task, examples, tokenizer) for examples in (data.train, data.dev))
    for row in itertools.chain(rows, dev_rows):
        for ids in row.ids:
            if missing := describe_missing(tokenizer, model.vocab_size, ids, "the model"):
                raise ValueError(f"a text of the task {missing}")
    sample = [text_of(example) for example in data.train[:SAMPLE]]
    unfamiliar = describe_unfamiliar(tokenizer, (ids for row in rows for ids in row.ids), sample, "the tokenizer")
    if unfamiliar and report:
        say(f"warning: {unfamiliar}")
    if report and (cut_texts := describe_cut_texts(rows, task.max_length, model.max_positions)):
        say(cut_texts)
    length = count_steps(config, len(rows))
    fresh = ("encoder/pooler/.*",) if new_pooler and "pooler" in params["encoder"] else ()
    adapted = adapt(config, params, bool(fresh), report) if config.transfer == "lora" else None
    if adapted is None:
        rate, method, still = build_transfer(config, family.depth_of, params, length, fresh)
    else:
        (rate, method), still = train_adapters(config, length), ()
    weights = class_weights(config.class_weights, task, data.train)
    frozen = config.transfer == "frozen"
    score_next = choose_next(config, family, model, task.kind)
    whole_batch = task.loss in OF_WHOLE_BATCH
    if sentences is None:
        loss = task_loss(module, head, weights, frozen=frozen, score_next=score_next)
    else:
        loss = sentence_loss(
            module, head, **loss_options(config, task, sentences.width(model.hidden_size)),
            parts=config.accumulate if whole_batch else 1, frozen=frozen, axis=placement.axis,
        )  # fmt: skip
    if adapted is not None:
        loss = join_loss(loss, adapted.merge)
    shapes = RowShapes.of(task, head, family, model)

    def describe(workdir: Path) -> None:
        check_same_labels(workdir, task)
        fields: dict[str, Any] = {"task": task, "features": features, "sentences": sentences}
        if adapted is not None:
            fields["lora"] = describe_adapters(workdir, model, adapted, tokenizer)
        describe_run(workdir, model, params, tokenizer, **fields)

    def open_task(workdir: Path) -> tuple[Collate, Predict]:
        outputs: Callable[..., Any] = functools.partial(task_outputs, module, head)
        outputs = jax.jit(outputs if adapted is None else join_outputs(outputs, adapted.merge))

        def predict(params: Any, put: Put) -> list[Any]:
            def run(batch: Mapping[str, np.ndarray]) -> Any:
                return outputs(params, put(batch))

            row_outputs = shapes.compute(run, dev_rows, config.batch_size, parts=placement.parts)
            width = None if sentences is None else sentences.vector_width
            return make_predictions(task, data.dev, dev_rows, row_outputs, width=width)

        packed, padding = choose_packing(
            rows, config.batch_size, placement.parts * config.accumulate, packs=shapes.packs, limit=shapes.limit,
            positions=shapes.positions, pad_id=shapes.pad_id,
        )  # fmt: skip
        shape = f", {packed.shapes[0].rows} rows of {packed.shapes[0].width} in a batch" if packed else ""
        say(f"padding: {padding:.1%} of positions{shape}")
        return packed or functools.partial(collate, limit=shapes.limit, pad_id=shapes.pad_id), predict

    terms = coefficients(head.kind, task.name == "rank") | ({} if score_next is None else {"lm": config.lm_weight})
    prepared = PreparedTask(
        task, rows, length, params, hold(loss, still), terms, rate, method, describe, open_task,
        lambda batch: int((batch["segments"] > 0).sum()), family.sharding, whole_batch=whole_batch,
    )  # fmt: skip
    if adapted is None:
        return prepared
    obstacle = find_obstacle(head, model.num_layers, new_pieces=tokenizer is not init_tokenizer)
    export = functools.partial(export_adapters, model=model, adapted=adapted, obstacle=obstacle)
    return prepared._replace(params=adapted.trained, constants={BASE: adapted.base}, conclude=export)


def find_obstacle(head: TaskHead, num_layers: int, new_pieces: bool) -> str:
    """Return why adapters and head would predict otherwise on the original model; empty if they would not.

    A released head reads the pooled vector or, for tags and questions, the last layer.

    >>> find_obstacle(TaskHead("tags", 9, Features((12,))), 12, False)
    ''
    >>> find_obstacle(TaskHead("tags", 9, Features((11,))), 12, False)
    'with config.features the head reads other vectors than a released head; load the run itself'
    """
    f = head.features
    reads_last = f is not None and (f.layers, f.combine, f.lstm_layers) == ((num_layers,), "concat", 0)
    if f is not None and not (reads_last and head.kind in OF_PIECES and not head.pools_pieces):
        return "with config.features the head reads other vectors than a released head; load the run itself"
    if head.both_orders:
        return "with config.both_orders the head reads pairs twice; load the run itself"
    if new_pieces:
        return "the run added pieces to the tokenizer; load the run itself, or convert it"
    return ""


def describe_cut_texts(rows: Sequence[Row], max_length: int, max_positions: int) -> str:
    """Return how many training texts lose their ends, and how to read more of them; empty if none does.

    >>> pieces = (np.arange(8, dtype=np.int32),)
    >>> describe_cut_texts([Row(0, pieces, pieces, lost=3), Row(1, pieces, pieces)], 8, 512)
    '1 of 2 training texts is longer than 8 pieces, and its end is not read; --config.max_length= takes up to 512'
    """
    cut = sum(row.lost > 0 for row in rows)
    if not cut:
        return ""
    verb, end = ("is", "its end is") if cut == 1 else ("are", "their ends are")
    remedy = f"; --config.max_length= takes up to {max_positions}" if max_length < max_positions else ""
    texts = f"{cut:,} of {len(rows):,} training texts {verb}"
    return f"{texts} longer than {max_length} pieces, and {end} not read{remedy}"


def choose_next(config: ConfigDict, family: Family, model: Any, kind: str) -> Callable[[Any, Any], Any] | None:
    """Return the function that scores next pieces for the term `lm`; None without `config.lm_weight`."""
    weight = config.lm_weight
    if not weight:
        return None
    tied = [name for name, pretraining in family.heads.items() if pretraining.tied]
    if not family.causal(model) or not tied:
        raise ValueError(
            f"config.lm_weight={weight} is for models that predict the next piece by their word embeddings, such as a "
            f"GPT; {family.called} does not: leave it out"
        )
    if config.transfer == "frozen" or kind == "sentences":
        reason = "with transfer=frozen" if config.transfer == "frozen" else "for task=sentences"
        raise ValueError(f"config.lm_weight={weight} {reason} would change nothing: leave it out")
    [name] = tied
    head = family.head(name, model)
    return lambda params, states: head.apply({"params": {}}, states, word_table(params["encoder"]["embeddings"]))


def read_features(config: ConfigDict, family: Family, num_layers: int, kind: str) -> Features | None:
    """Return the layers of `config.features` that the head reads; None for the last layer, with its pooler."""
    f = config.features
    if not f.layers:
        no_pooler = not family.pooler and kind in ("classification", "regression", "choice")
        return Features((num_layers,)) if no_pooler else None
    try:
        layers: Any = "all" if f.layers == "all" else [int(part) for part in str(f.layers).split(",")]
    except ValueError:
        raise ValueError(f"config.features.layers={f.layers!r}: use numbers, such as -4,-3,-2,-1, or all") from None
    return Features(tuple(layer_numbers(layers, num_layers)), f.combine, f.lstm_layers, f.lstm_size, f.dropout)


def order_labels(task: Task, stored: Sequence[str] | None) -> Task:
    """Return a task with its labels in the order of a stored head's, if these are the same.

    >>> order_labels(Task("nli", "classification", labels=("no", "yes")), ["yes", "no"]).labels
    ('yes', 'no')
    """
    spelled = {compose(label): label for label in task.labels}
    order = [compose(label) for label in stored or ()]
    if task.kind not in LABELLED or sorted(order) != sorted(spelled):
        return task
    return dataclasses.replace(task, labels=tuple(spelled[label] for label in order))


def check_same_labels(workdir: Path, task: Task) -> None:
    """Raise ValueError if a run began with its labels in another order, as in versions that did not keep the head's."""
    began = read_json(workdir / "model.json")["task"]["labels"] if is_run_directory(workdir) else task.labels
    if tuple(began) != task.labels:
        raise ValueError(
            f"{workdir} began with the labels {', '.join(began)}, and they are {', '.join(task.labels)} now, in the "
            "order of --init: give another --workdir"
        )


def find_prompt(stored: StoredModel) -> str:
    """Return the text that a reranker, released or of a run, puts before each query; "" for other models."""
    if stored.task is not None:
        return "" if stored.task.kind == "sentences" else stored.task.prompt
    return str(stored.report.extras.get("prompt", ""))


def init_params(
    start: Start, task: Task, head: TaskHead, seed: int, report: bool = True
) -> tuple[dict[str, Any], bool]:
    """Return the stored parameters, without the head of another task, completed from the seed; True: a new pooler."""
    fresh = init_task_params(start.family, start.model, head, jax.random.key(seed))
    if start.stored is None:
        return fresh, True
    stored = dict(start.stored.params)
    shapes, needed = (jax.tree.map(np.shape, params.get(head.name)) for params in (stored, fresh))
    # In config.json, models of other kinds may have labels, too: LABEL_0 and LABEL_1.
    same = task.kind not in LABELLED or [*map(compose, start.stored.labels or ())] == [*map(compose, task.labels)]
    if not same or shapes != needed or start.stored.features != head.features:
        if report and head.name in stored:
            say(f"the weights have a head {head.name} for another task or other labels: it is not used")
        stored.pop(head.name, None)
        stored.pop("reader", None)
    new_pooler = "pooler" in fresh["encoder"] and "pooler" not in stored["encoder"]
    return jax.tree.map(lambda x: jax.numpy.asarray(x), fill_missing(fresh, stored, report)), new_pooler
