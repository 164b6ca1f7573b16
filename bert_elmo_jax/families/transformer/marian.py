"""Marian models as Hugging Face transformers stores them: the names of their tensors, read and written."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.embeddings import sinusoids
from bert_elmo_jax.families.transformer.marian_config import FILE, generation_fields, read_fields
from bert_elmo_jax.weights.huggingface_files import read_folder, write_model
from bert_elmo_jax.weights.parameter_tree import Report, check_depth, check_shapes, collect, encoder_prefix, flatten
from bert_elmo_jax.weights.stored import StoredTensor

ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
LAYER = {f"attention/{ours}": f"self_attn.{theirs}" for ours, theirs in ATTENTION.items()} | {
    "attention/norm": "self_attn_layer_norm",
    "feed_forward/up": "fc1",
    "feed_forward/down": "fc2",
    "feed_forward/norm": "final_layer_norm",
}
CROSS = {f"cross_attention/{ours}": f"encoder_attn.{theirs}" for ours, theirs in ATTENTION.items()}
CROSS["cross_attention/norm"] = "encoder_attn_layer_norm"
BIAS, SOFTMAX = "final_logits_bias", "lm_head.weight"
# The tables of embeddings: in the whole model, of the source, of the target.
SHARED, SOURCE, TARGET = "shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"


def layer_names(config: TransformerConfig) -> dict[str, str]:
    """Return the file's name for each parameter of the layers, without `model.`."""
    modules = {
        f"{side}/layer_{i}/{ours}": f"{side}.layers.{i}.{theirs}"
        for side, layers in (("encoder", config.num_layers), ("decoder", config.target.num_layers))
        for i in range(layers)
        for ours, theirs in (LAYER | (CROSS if side == "decoder" else {})).items()
    }
    table: dict[str, str] = {}
    for ours, theirs in modules.items():
        weight = "scale" if ours.endswith("/norm") else "kernel"
        table |= {f"{ours}/{weight}": f"{theirs}.weight", f"{ours}/bias": f"{theirs}.bias"}
    return table


def read_config(folder: str | Path) -> TransformerConfig:
    """Return the configuration of a folder, from its `config.json` and `generation_config.json`."""
    config: TransformerConfig = FILE.read_folder(TransformerConfig, folder, "Marian model", read_fields)
    return config


def read_weights(
    folder: str | Path, *, config: TransformerConfig | None = None, classifier: str | None = None
) -> tuple[dict[str, Any], Report]:
    """Return the parameter tree of a folder and a report on every tensor; `config` replaces its `config.json`."""
    config = config or read_config(folder)
    source, stored = read_folder(folder)
    report = Report(source)
    check_depth(max(config.num_layers, config.target.num_layers), stored, source)
    prefix = encoder_prefix(stored, "encoder.layers.0.fc1.weight", ".", source)
    layers = {path: prefix + name for path, name in layer_names(config).items()}
    located = {path: name for path, name in layers.items() if name in stored}
    expected = dict(layers)
    expected |= _find_tables(config, stored, prefix, located, report)
    for side, name in (("encoder", "source"), ("decoder", "target")):
        positions = f"{prefix}{side}.embed_positions.weight"
        if positions in stored:
            table = stored[positions].read().astype(np.float32)
            if table.shape[1:] != (config.hidden_size,) or np.abs(table - sinusoids(*table.shape)).max() > 1e-5:
                report.contradictions.append(f"{positions}: the positions of the {name} are not sines and cosines")
            report.skipped[positions] = "a constant"
    bias = stored.get(BIAS)
    if config.output_bias:
        if bias is None:  # transformers takes zeros, too
            report.initialised.append("decoder/output_bias")
        stored[BIAS] = _zeros(config.target.vocab_size) if bias is None else _flat(bias)
        located["decoder/output_bias"] = expected["decoder/output_bias"] = BIAS
    shapes = _shapes(config)
    transposed = {path for path in expected if path.endswith("/kernel")}
    if not any(path.startswith("decoder/layer") for path in located):
        report.missing |= {path: name for path, name in expected.items() if path.startswith("decoder/layer")}
    return collect(stored, located, expected, transposed, shapes, report), report


def _find_tables(
    config: TransformerConfig, stored: Mapping[str, StoredTensor], prefix: str, located: dict[str, str], report: Report
) -> dict[str, str]:
    """Add the tables of embeddings and of the softmax to `located`, and return all their expected names."""
    source, target, shared = prefix + SOURCE, prefix + TARGET, prefix + SHARED
    tied = [SOFTMAX] if config.tie_output else []
    if config.share_embeddings:
        groups = {"encoder/embeddings/word": [shared, source, target, *tied]}
    else:
        groups = {"encoder/embeddings/word": [source], "decoder/embeddings/word": [target, *tied]}
        if shared in stored:
            report.skipped[shared] = "each side has its own embeddings"
    if not tied:
        groups["decoder/output"] = [SOFTMAX]
    for path, names in groups.items():
        stored_names = [name for name in names if name in stored]
        if stored_names:
            located[path] = stored_names[0]
        for copy in stored_names[1:]:
            if stored[copy].equals(stored[stored_names[0]]):
                report.skipped[copy] = "a copy of its tied tensor"
            else:
                report.contradictions.append(f"{copy} differs from {stored_names[0]}, but the configuration ties them")
    return {path: names[0] for path, names in groups.items()}


def write(
    folder: str | Path,
    params: Mapping[str, Any],
    config: TransformerConfig,
    *,
    labels: Sequence[str] | None = None,
    problem_type: str | None = None,
) -> None:
    """Write a folder that transformers can load as a `MarianMTModel`, without its tokenizer.

    Raise on what Marian does not have: learned positions, and keys or values of another size than d / heads.
    """
    if labels is not None or problem_type is not None:
        raise ValueError("labels or a problem_type were given, but a Marian model has no classifier: leave them out")
    _check_writable(config)
    flat = {path: np.asarray(value, np.float32) for path, value in flatten(params).items()}
    # transformers has no place for a pooler, which only task heads read.
    flat = {path: value for path, value in flat.items() if not path.startswith("encoder/pooler/")}
    check_shapes({path: value.shape for path, value in flat.items()}, _shapes(config), "cannot write")
    names = {path: f"model.{name}" for path, name in layer_names(config).items()}
    names["encoder/embeddings/word"] = f"model.{SHARED if config.share_embeddings else SOURCE}"
    names |= {"decoder/embeddings/word": f"model.{TARGET}", "decoder/output": SOFTMAX, "decoder/output_bias": BIAS}
    tensors = {
        names[path]: np.ascontiguousarray(value.T if path.endswith("/kernel") else value)
        for path, value in flat.items()
    }
    tensors[BIAS] = tensors.get(BIAS, np.zeros(config.target.vocab_size, np.float32))[None]
    if config.share_embeddings and not config.tie_output:  # transformers then ties nothing at all
        word = tensors.pop(f"model.{SHARED}")
        tensors |= {f"model.{name}": word.copy() for name in (SHARED, SOURCE, TARGET)}
    content = {**FILE.write(config, ("decoder",)), "dtype": "float32"}
    write_model(folder, {"config.json": content, "generation_config.json": generation_fields(config)}, tensors)


def _check_writable(config: TransformerConfig) -> None:
    sizes = {side.hidden_size // side.num_heads for side in (config, config.target)}
    wrong = ["positions"] if config.positions != "sinusoidal" else []
    for name in ("key_size", "value_size"):
        if (size := getattr(config, name)) is not None and sizes != {size}:
            wrong.append(name)
    if wrong:
        shown = ", ".join(f"{name}={getattr(config, name)!r}" for name in wrong)
        raise ValueError(f"{shown} cannot be written: transformers' Marian has no such model")


def _shapes(config: TransformerConfig) -> dict[str, tuple[int, ...]]:
    return param_shapes(get_family("transformer"), config, ("decoder",), pooler=False)


def _zeros(size: int) -> StoredTensor:
    return StoredTensor((size,), "float32", lambda: np.zeros(size, np.float32))


def _flat(tensor: StoredTensor) -> StoredTensor:
    shape = tensor.shape[1:] if tensor.shape[:1] == (1,) else tensor.shape
    return StoredTensor(shape, tensor.dtype, lambda: tensor.read().reshape(shape))
