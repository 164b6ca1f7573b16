"""Adapters and the model below them: in a run directory, and in files of peft."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.encoders.encoder import fingerprint
from bert_elmo_jax.families import find_family
from bert_elmo_jax.families.family import TASK_HEADS
from bert_elmo_jax.files import check_links
from bert_elmo_jax.inference.run_directory import StoredModel, check_finite, is_run_directory, write_run_directory
from bert_elmo_jax.inference.save_model import check_bias
from bert_elmo_jax.json_values import NUMBER, TRUTH, Fields, check_fields, whole_number
from bert_elmo_jax.nn.int8_kernels import is_int8
from bert_elmo_jax.optim.adapters import Merge
from bert_elmo_jax.train.checkpoint import load_params

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
    parts = {name: part for name, part in trained.items() if name != "adapters"}
    encoder = {**base["encoder"], **parts.pop("encoder", {})}
    return {**base, **merge({"encoder": encoder}, trained["adapters"]), **parts}


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
    ['adapter_config.json', 'adapter_model.safetensors']
    """
    from bert_elmo_jax.families.peft_files import write_adapter

    if "adapters" in adapters:
        raise ValueError('adapters has a part "adapters": give trained["adapters"], and other trained parts as parts=…')
    merge(encoder.params, adapters)  # raises for adapters of another model or rank
    family = find_family(encoder.config)
    for name, part in (parts or {}).items():
        if name in TASK_HEADS:
            check_bias(family, name, part)
    write_adapter(Path(folder), family, encoder.config, adapters, merge, parts or {}, base=str(encoder.source))
    return Path(folder)


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
    adapter = read_adapter(Path(folder), find_family(model.config), model.config)
    try:
        params = join_trained(model.params, {**adapter.parts, "adapters": adapter.adapters}, adapter.merge)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None
    check_finite(params, f"{model.report.source} with the adapter {folder}")
    sentences = None if any(name in TASK_HEADS for name in adapter.parts) else model.sentences  # a head takes its place
    return dataclasses.replace(model, params=params, sentences=sentences)
