"""Save a model that your own training loop trained, so that `load` reads it and can predict."""

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bert_elmo_jax.data.tasks.rows import check_length
from bert_elmo_jax.data.tasks.task import Task, task_named
from bert_elmo_jax.families import Family, find_family
from bert_elmo_jax.families.init_params import PARTS
from bert_elmo_jax.families.sentences import find_head
from bert_elmo_jax.files import read_json
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.sentence_head import NAME
from bert_elmo_jax.inference.run_directory import (
    check_finite,
    describe,
    describe_encoder,
    is_run_directory,
    write_run_directory,
)
from bert_elmo_jax.inference.task_model import make_head
from bert_elmo_jax.inference.task_networks import NETWORKS, check_task, network_name
from bert_elmo_jax.weights.parameter_tree import flatten

USUAL_TASKS = {"classify": "classification", "tag": "tags", "choice": "swag", "span": "squad"}  # of each head
LABELLED = ("classification", "tags")
SHOWN = 3  # differences in a message


def save(
    folder: str | Path,
    encoder: Any,
    params: Mapping[str, Any] | None = None,
    *,
    labels: Sequence[str] = (),
    task: str | Task | None = None,
    length: int | None = None,
    features: Features | None = None,
    network: Any = None,
    lexicon: Any = None,
) -> Path:
    """Write parameters of an encoder, and of a head on it, as a run directory that `load` reads; return the folder.

    `params` are `{"encoder": …, head: …}`, by default the encoder's own. A head is `classify`, `tag`, `span` or
    `choice`, and `labels` are its outputs in order. `task` is a name such as "classification", "regression", "tags",
    "entities" or "squad", or the result of `data.tasks.task_named`; by default the head's usual one. Texts of
    predictions are cut at `length` pieces, by default 128 (384 for `span`). `features` are the layers that the head
    reads, if it does not read the pooled vector or the last layer. A task network, such as a tagger on an ELMo, gives
    its configuration as `network` and its words as `lexicon`.

    >>> import tempfile
    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax import load
    >>> from bert_elmo_jax.heads import Classify
    >>> encoder = load("tests/goldens/bert_tiny")
    >>> head = Classify(2).init(jax.random.key(0), jnp.zeros((1, encoder.width)))["params"]
    >>> params = {"encoder": encoder.params["encoder"], "classify": head}
    >>> folder = save(f"{tempfile.mkdtemp()}/mine", encoder, params, labels=["bad", "good"])
    >>> load(folder).predict(["[MASK]"])[0].label in ("bad", "good")
    True
    """
    folder = Path(folder).expanduser()
    labels = labels if isinstance(labels, str) else list(labels)
    if encoder is not None and not hasattr(encoder, "reads"):
        raise TypeError(f"{encoder!r:.80} is no encoder: give one as load() returns it")
    params = jax.tree.map(np.asarray, dict(encoder.params if params is None else params))
    check_finite(params, "params")
    run = {"program": "save", "from": str(encoder.source)}
    if network is not None:
        _save_network(folder, encoder, params, _choose_task(params, task, labels, "tags"), network, lexicon, run)
        return folder
    _check_encoder(params, encoder)
    reader = () if features is None else ("reader",)  # of a learned mix, or of BiLSTMs
    if unknown := [name for name in params if name not in (*PARTS, *reader, *encoder.params)]:
        raise ValueError(
            f"params has the part {unknown[0]!r}, but load knows the heads {', '.join(USUAL_TASKS)}: save one head in "
            "a folder, under one of these names"
        )
    heads = [name for name in USUAL_TASKS if name in params]
    if not (task or labels or heads):
        pools = getattr(encoder, "pooling_unread", "") or "sentence_head" in vars(encoder)  # more than the usual mean
        sentences = find_head(encoder) if pools else None
        if sentences is not None and NAME in encoder.params:
            params = {NAME: jax.tree.map(np.asarray, encoder.params[NAME]), **params}
        write_run_directory(folder, encoder.config, params, encoder.reads, run=run, sentences=sentences)
        return folder
    family = find_family(encoder.config)
    if not family.inputs.takes_heads:
        raise ValueError(
            f"{encoder.source} is {family.called}, which reads words: a task network reads its layers, so give "
            "network=… and lexicon=…"
        )
    usual = USUAL_TASKS[heads[0]] if len(heads) == 1 else None
    chosen = _choose_task(params, task, labels, usual)
    positions = encoder.config.max_positions
    usual_length = 384 if chosen.kind == "questions" and not isinstance(task, Task) else chosen.max_length
    chosen = dataclasses.replace(chosen, max_length=min(usual_length, positions) if length is None else length)
    check_length(chosen, positions)
    head = make_head(chosen, features, encoder.config)
    if head.pooled and not family.pooler:
        raise ValueError(f"{family.called} has no pooled vector: say which layers the head reads with features=…")
    _check_head(params, head.name, chosen, encoder, features)
    write_run_directory(folder, encoder.config, params, encoder.reads, run=run, task=chosen, features=features)
    return folder


def _choose_task(params: Mapping[str, Any], task: str | Task | None, labels: Sequence[str], usual: str | None) -> Task:
    """Return the task with its labels."""
    name = task or usual
    if name is None:
        raise ValueError(
            f"params has the parts {', '.join(params)}, and no head or several: give one of "
            f"{', '.join(USUAL_TASKS)}, and task=…"
        )
    chosen = task_named(name) if isinstance(name, str) else name
    if labels:
        if isinstance(labels, str) or len(set(labels)) < len(labels) or not all(isinstance(x, str) for x in labels):
            raise ValueError(f"labels={labels!r:.60}: expected a list of different strings, in the order of outputs")
        chosen = dataclasses.replace(chosen, labels=tuple(labels))
    if chosen.kind in LABELLED and not chosen.labels:
        raise ValueError(f"the task {chosen.name} needs labels=[…], in the order of the head's outputs")
    if chosen.kind not in LABELLED and labels:
        raise ValueError(f"the task {chosen.name} has no labels: leave labels={list(labels)!r:.60} out")
    return chosen


def _check_encoder(params: Mapping[str, Any], encoder: Any) -> None:
    """Raise ValueError, in one line, unless `params` has a tree of the encoder's shapes."""
    if "encoder" not in params:
        raise ValueError(f'params has the parts {", ".join(params)}; expected {{"encoder": …, head: …}}')
    if set(params["encoder"]) == {"params"}:
        raise ValueError('params["encoder"] is {"params": …}, as `encoder.variables`: give encoder.variables["params"]')
    expected, shapes = (
        {path: np.shape(x) for path, x in flatten(tree).items() if not path.startswith("pooler/")}
        for tree in (encoder.params["encoder"], params["encoder"])
    )
    differences = [
        *(f"{path} is missing" for path in expected if path not in shapes),
        *(f"{path} has no place" for path in shapes if path not in expected),
        *(
            f"{path} is {list(shape)}, not {list(expected[path])}"
            for path, shape in shapes.items()
            if path in expected and shape != expected[path]
        ),
    ]
    if differences:
        more = f" and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
        raise ValueError(
            f'params["encoder"] is not of this model, {encoder.source}: {"; ".join(differences[:SHOWN])}{more}'
        )


def _check_head(params: Mapping[str, Any], name: str, task: Task, encoder: Any, features: Features | None) -> None:
    """Raise ValueError unless `params` has the head of a task, with as many outputs as labels."""
    if name not in params:
        raise ValueError(
            f"the task {task.name} needs a head params[{name!r}], and params has the parts {', '.join(params)}"
        )
    if set(params[name]) == {"params"}:
        raise ValueError(f'params[{name!r}] is {{"params": …}}, as Linen gives it: give what is inside, ["params"]')
    family = find_family(encoder.config)
    check_bias(family, name, params[name])
    kernel = np.shape(params[name].get("kernel"))
    outputs = kernel[-1] if len(kernel) == 2 else 0
    if task.kind == "regression" and outputs != 1:
        raise ValueError(f"the task {task.name} has one number, and the head {name} has {outputs} outputs: Classify(1)")
    if task.kind in LABELLED and outputs != len(task.labels):
        raise ValueError(
            f"labels has {len(task.labels)} names ({', '.join(task.labels)}), and the head {name} has {outputs} "
            "outputs: give one label for each"
        )
    pooled = name == "classify" and family.pooler and not family.causal(encoder.config) and features is None
    if pooled and "pooler" not in params["encoder"]:
        raise ValueError(
            f'the head {name} reads the pooled vector, and params["encoder"] has no pooler: train one, of '
            "`encoder.init_pooler(key)`, or say which layers the head reads with features=…"
        )


def check_bias(family: Family, name: str, part: Mapping[str, Any]) -> None:
    """Raise ValueError if a head has a bias in a family whose heads have none, such as a GPT's."""
    if "bias" in part and not family.task_head(name).bias:
        raise ValueError(f"{family.called} has a head {name} without a bias: make it with Classify(…, use_bias=False)")


def _save_network(
    folder: Path, encoder: Any, params: Mapping[str, Any], task: Task, network: Any, lexicon: Any, run: Any
) -> None:
    """Write a task network, with the encoder that it reads in a folder of its own."""
    if lexicon is None:
        raise ValueError("network=… needs lexicon=…, the words that the network has vectors for")
    check_task(network_name(network), task)
    counted = NETWORKS[network_name(network)].counted
    if counted is not None and getattr(network, counted) != len(task.labels):
        raise ValueError(
            f"{len(task.labels)} labels were given, and the network has {counted}={getattr(network, counted)}: give "
            "one label for each"
        )
    described = None
    if encoder is not None:
        family = find_family(encoder.config)
        tree = {name: part for name, part in encoder.params["encoder"].items() if name != "pooler"}
        words = encoder.reads
        bare = family.inputs.make_encoder(family, encoder.config, {"encoder": tree}, words, str(encoder.source))
        described = describe_encoder(bare)
        describe(network, params, lexicon, task=task, encoder=described)  # raises before anything is written
        # Before the network, which makes the folder a model; a save that was killed may have left it.
        part = {**run, "part": "encoder"}
        if not is_run_directory(folder) and is_run_directory(folder / "encoder"):
            if read_json(folder / "encoder" / "run.json", default={}) != part:
                raise FileExistsError(f"{folder / 'encoder'} already holds a model: write to another folder")
            shutil.rmtree(folder / "encoder")
        write_run_directory(folder / "encoder", bare.config, bare.params, bare.reads, run=part)
    write_run_directory(folder, network, params, lexicon, run=run, task=task, encoder=described)
