"""Load a model from any format."""

import dataclasses
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bert_elmo_jax.addresses import is_address, local_copy
from bert_elmo_jax.families import find_family
from bert_elmo_jax.families.family import TASK_HEADS
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import StoredModel
from bert_elmo_jax.nn.attention import choose_attention
from bert_elmo_jax.nn.int8_kernels import is_int8, quantise_layers

if TYPE_CHECKING:
    from bert_elmo_jax.inference.model_types import Model
else:
    Model = Any  # no class has all of its methods, so checks while running would refuse each


def load(
    path: str | Path,
    *,
    format: str | None = None,
    lowercase: bool | None = None,
    dtype: Literal["float32", "bfloat16", "int8"] = "float32",
    attention: str | None = None,
    verify: bool = False,
    revision: str | None = None,
    token: str | bool | None = None,
    adapter: str | Path | None = None,
    untrusted: bool = False,
    strict: bool = False,
    implementation: str | None = None,
) -> Model:
    """Load an encoder, a fine-tuned model or a task network from a folder in any format, or by its hub name.

    `format` selects one of two models in a folder. `lowercase` tells whether a vocabulary is uncased, if its files do
    not. A Google checkpoint may be given by its prefix. `dtype="bfloat16"` computes in half precision, `dtype="int8"`
    multiplies the matrices of a transformer's layers in int8 (see `nn.int8_kernels`), `attention="fused"` with the
    device's fused attention (see `nn.attention`; `implementation` is an earlier name of this argument). A folder that
    `convert` wrote in int8 computes in int8 without it. The run directory of a fine-tuned model gives a `TaskModel`, a
    `TaskNetwork` or a `DocumentModel`, which can `predict`. `verify=True` first checks the hashes of the files, which
    folders written by `convert`, run directories and the hub's cache have, and raises where there are none. `revision`
    is a branch, tag or commit of a hub name; `token` is for private models, by default the one that `hf auth login`
    stored. `adapter` is a folder with an adapter of peft, which is added to the weights. `untrusted=True` is for a
    model that someone sent you: it is read in a process of its own first, which opens no file outside of the folder
    and has bounded memory and time, and hashes are checked where there are some. A field of unknown meaning in a
    `config.json` is logged and ignored; `strict=True` refuses it.

    >>> load("tests/goldens/bert_tiny").config.hidden_size, load("tests/goldens/elmo_tiny").config.cell_size
    (64, 48)
    """
    loaded: Any  # one of many classes
    if implementation is not None:
        moved = "load(implementation=…) is now load(attention=…); the old name goes in version 0.4"
        warnings.warn(moved, DeprecationWarning, stacklevel=2)
        attention = attention or implementation
    path = local_copy(str(path)) if is_address(path) else path
    model = read_model(
        path, format=format, lowercase=lowercase, verify=verify, revision=revision, token=token, adapter=adapter,
        untrusted=untrusted, strict=strict,
    )  # fmt: skip
    if model.network:
        from bert_elmo_jax.inference.task_network import load_network

        if attention is not None or dtype != "float32":
            raise ValueError(f"{path} is a task network, which computes in float32: leave out dtype and attention")
        loaded = load_network(model, path)
        return loaded
    family = find_family(model.config)
    names = {field.name for field in dataclasses.fields(model.config)}
    model, width = _choose_width(model, dtype, "attention" in names, str(path))
    computed: dict[str, Any] = {"dtype": width} if "dtype" in names else {}
    if "attention" in names:
        computed["attention"] = choose_attention(model.config.attention, attention)
    elif attention is not None:
        raise ValueError(f"{path} is {family.called}, which has no attention: leave out attention={attention!r}")
    config = dataclasses.replace(model.config, **computed)
    if model.task is not None and family.inputs.documents is not None:
        from bert_elmo_jax.inference.document_model import load_documents

        loaded = load_documents(family, dataclasses.replace(model, config=config), path)
        return loaded
    released = [name for name in TASK_HEADS if name in model.params] if family.inputs.takes_heads else []
    if model.task is not None or released:
        from bert_elmo_jax.inference.released_task import find_task
        from bert_elmo_jax.inference.task_model import TaskModel

        positions, extras = config.max_positions, model.task_fields
        tokenizer: Any = model.tokenizer
        task: Any = model.task or find_task(model.params, str(path), positions=positions, extras=extras)
        loaded = TaskModel(family, config, model.params, tokenizer, str(path), task, model.features, model.sentences)
        return loaded
    loaded = family.inputs.make_encoder(family, config, model.params, model.tokenizer, str(path))
    if model.sentences is not None:
        loaded.sentence_head = model.sentences
    if model.pooling_unread:
        loaded.pooling_unread = model.pooling_unread
    return loaded


def _choose_width(model: StoredModel, dtype: str, attends: bool, path: str) -> tuple[StoredModel, str]:
    """Return a model, quantised for int8, and the type that it computes in apart from its int8 products."""
    stored = is_int8(model.params)
    if dtype not in ("float32", "bfloat16", "int8"):
        raise ValueError(f"dtype={dtype!r} is not known; it is one of float32, bfloat16, int8")
    if stored and dtype == "bfloat16":
        raise ValueError(f"{path} is an int8 model: leave out dtype={dtype!r}, or load the model it was made from")
    if dtype != "int8" or stored:
        return model, "float32" if stored else dtype
    return dataclasses.replace(model, params=quantise_model(model.params, attends, path)), "float32"


def quantise_model(params: Mapping[str, Any], attends: bool, path: str) -> dict[str, Any]:
    """Return the parameters of a model with its layers in int8; raise if it is no transformer."""
    if not attends:
        raise ValueError(f"{path} is no transformer, and only those compute in int8: leave out dtype='int8'")
    return {name: quantise_layers(part) if name in ("encoder", "decoder") else part for name, part in params.items()}
