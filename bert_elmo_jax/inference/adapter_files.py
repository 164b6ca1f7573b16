"""Adapters and the model below them: in a run directory, and in files of peft."""

import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.encoders.encoder import fingerprint
from bert_elmo_jax.families import find_family
from bert_elmo_jax.families.family import TASK_HEADS, Family
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.files import check_links
from bert_elmo_jax.inference.run_directory import StoredModel, check_finite, is_run_directory, write_run_directory
from bert_elmo_jax.inference.save_model import check_bias
from bert_elmo_jax.json_values import NUMBER, TRUTH, Fields, check_fields, whole_number
from bert_elmo_jax.nn.int8_kernels import is_int8
from bert_elmo_jax.optim.adapters import Merge, list_adapters
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.weights.parameter_tree import flatten

BASE = "base"  # the folder of a run directory
LORA: Fields = {"rank": whole_number(1, 10**5), "alpha": NUMBER, "rslora": TRUTH, "any_rank": TRUTH}


def join_trained(base: Mapping[str, Any], trained: Mapping[str, Any], merge: Merge) -> dict[str, Any]:
    """Return a base's parameters with the trained ones: `adapters` are merged, other parts are taken over unchanged.

    >>> import numpy as np
    >>> trained = {"classify": {"bias": np.ones(2)}, "adapters": {}, "encoder": {"pooler": {"bias": np.ones(1)}}}
    >>> params = join_trained({"encoder": {"embeddings": {}}}, trained, Merge(rank=1, alpha=1.0))
    >>> {name: list(part) for name, part in params.items()}
    {'encoder': ['embeddings', 'pooler'], 'classify': ['bias']}
    """
    params = _join(base, {name: part for name, part in trained.items() if name != "adapters"})
    return merge(params, trained["adapters"])


def _join(params: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with the leaves of `parts` in place of their own."""
    inner = {name: _join(params[name], part) for name, part in parts.items()
             if isinstance(part, Mapping) and name in params}  # fmt: skip
    return {**params, **parts, **inner}


def write_base(workdir: Path, config: Any, base: Mapping[str, Any], tokenizer: Any) -> None:
    """Write the encoder of a run with adapters, unless it is there; raise ValueError if another one is there."""
    folder = Path(workdir) / BASE
    if not is_run_directory(folder):
        write_run_directory(folder, config, base, tokenizer, run={"program": "finetune", "part": BASE})
        return
    _, stored = load_params(folder)
    if fingerprint("", stored) != fingerprint("", base):
        raise ValueError(
            f"this run was started with another encoder than --init has now: give the one it was started with, or "
            f"{folder}, or choose another run directory"
        )


def read_adapted(folder: Path, fields: Any, trained: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a run with adapters, from the field `lora` of its `model.json` and a checkpoint."""
    source = f"{folder / 'model.json'}: lora"
    if not isinstance(fields, Mapping):
        raise ValueError(f"{source} is {fields!r:.60}; expected an object: copy it again from the run")
    check_fields(fields, LORA, source)
    try:
        merge = Merge(**fields)
    except TypeError as error:
        raise ValueError(f"{source}: {error}; copy it again from the run") from None
    if not is_run_directory(folder / BASE):
        raise FileNotFoundError(f"{folder / BASE} is missing: the encoder below the adapters; copy it from the run")
    if "adapters" not in trained:
        raise ValueError(f"{folder}: the checkpoint has no adapters; copy it again from the run")
    return join_trained(load_params(folder / BASE)[1], trained, merge)


def save_adapter(
    folder: str | Path, encoder: Any, adapters: Mapping[str, Any], merge: Merge, parts: Mapping[str, Any] | None = None
) -> Path:
    """Write the adapters of a loop of your own as peft does; return the folder, for `load(…, adapter=folder)`.

    `adapters` and `merge` are of `optim.lora`, for the parameters of `encoder`; `parts` were trained in full, such as
    `{"classify": …}`.

    >>> import tempfile
    >>> from bert_elmo_jax import load
    >>> from bert_elmo_jax.optim import lora
    >>> encoder = load("tests/goldens/bert_tiny")
    >>> folder = save_adapter(tempfile.mkdtemp(), encoder, *lora(encoder.params, rank=2))
    >>> sorted(file.name for file in folder.iterdir())
    ['SHA256SUMS', 'adapter_config.json', 'adapter_model.safetensors']
    """
    from bert_elmo_jax.families.peft_files import write_adapter

    if "adapters" in adapters:
        raise ValueError('adapters has a part "adapters": give trained["adapters"], and other trained parts as parts=…')
    params = join_trained(encoder.params, {**(parts or {}), "adapters": adapters}, merge)  # raises for another model
    family = find_family(encoder.config)
    for name, part in (parts or {}).items():
        if name in TASK_HEADS:
            check_bias(family, name, part)
    folder = Path(folder).expanduser()
    write_adapter(folder, family, encoder.config, adapters, merge, parts or {}, params, base=str(encoder.source))
    _warn_of_tied_table(folder, family, encoder.config, params, {**(parts or {}), "adapters": adapters})
    return folder


def _warn_of_tied_table(
    folder: str | Path, family: Family, config: Any, params: Mapping[str, Any], trained: Mapping[str, Any]
) -> None:
    """Warn if the adapted model has a head that reads a trained table of words, too; a model of a task uses none."""
    from bert_elmo_jax.families.peft_files import WORDS, find_tied_head

    changed = {*dict(list_adapters(trained["adapters"])), *flatten({**trained, "adapters": {}})}
    head = find_tied_head(family, config, params)
    if head and WORDS in changed and not any(name in params for name in TASK_HEADS):
        logging.getLogger(__name__).warning(
            "%s changes the table of words, which the head %s of the model reads, too: its logits are those of peft's "
            "merge_and_unload; in peft's forward pass this head keeps the table of the model below", folder, head,
        )  # fmt: skip


def add_adapter(model: StoredModel, folder: str | Path) -> StoredModel:
    """Return a model with an adapter of peft added to its weights, and with the parts that the adapter replaces."""
    from bert_elmo_jax.families.peft_files import read_adapter

    if model.network or model.task is not None:
        raise ValueError(f"adapter={folder} is for an encoder, and {model.report.source} was trained for a task")
    if is_int8(model.params):
        raise ValueError(
            f"adapter={folder} cannot be added to {model.report.source}, an int8 model: load the model that it was "
            'made from, with dtype="int8"'
        )
    check_links(folder)
    family = find_family(model.config)
    adapter = read_adapter(Path(folder), family, model.config, heads=model.params)
    trained = {**adapter.parts, "adapters": adapter.adapters}
    try:
        params = join_trained(model.params, trained, adapter.merge)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None
    check_finite(params, f"{model.report.source} with the adapter {folder}")
    _warn_of_tied_table(folder, family, model.config, params, trained)
    head = next((name for name in TASK_HEADS if name in adapter.parts), None)
    if head is None:
        return dataclasses.replace(model, params=params)
    lacks_pooler = family.task_head(head).pooled and "pooler" not in params["encoder"]
    if lacks_pooler and any(path.startswith("encoder/pooler/") for path in param_shapes(family, model.config)):
        raise ValueError(
            f"{folder} has a head that reads pooled vectors, and neither it nor {model.report.source} has a pooler: "
            "the adapter is of another model, or not complete"
        )
    params = {name: part for name, part in params.items() if name == head or name not in TASK_HEADS}
    outputs, extras = np.shape(params[head]["kernel"])[1], model.report.extras
    report = dataclasses.replace(model.report, extras={**extras, "num_labels": outputs})
    model = dataclasses.replace(model, params=params, report=report, sentences=None)  # the head takes its place
    number = len(model.labels) if model.labels else extras.get("num_labels", outputs)
    # As in transformers, labels of another number are of the head that this one replaces.
    return model if number == outputs else dataclasses.replace(model, labels=None, problem_type=None)
