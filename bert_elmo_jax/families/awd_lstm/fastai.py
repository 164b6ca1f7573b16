"""fastai's weights: `0.encoder.weight`, `0.rnns.0.weight_hh_l0_raw`, `1.decoder.bias`, …, read without torch.

Sizes come from the tensors. A file may hold a language model (`0.…`, `1.decoder.…`), a classifier (`0.module.…`,
`1.layers.…`) or an encoder alone. The recurrent matrix before weight drop is called `weight_hh_l0_raw` and lies outside
`.module` (inside in fastai 0.7). The gates are i, f, g, o there, and i, j (= g), f, o here, where the forget gate has a
bias of 1 of its own; of torch's two biases, only the sum matters.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.files import FIRST, WRITTEN, direction_of, find_weights, read_tensors
from bert_elmo_jax.families.awd_lstm.model import awd_lstm_shapes
from bert_elmo_jax.weights.huggingface_files import write_safetensors
from bert_elmo_jax.weights.parameter_tree import FLOATS, Report, check_depth, nest
from bert_elmo_jax.weights.stored import StoredTensor

Tensors = Mapping[str, StoredTensor]
GATES = (0, 2, 1, 3)  # places of torch's gates i, f, g, o in the order i, g, f, o; the same permutation goes back
COPIES = ("encoder_dp.emb.weight", "encoder_with_dropout.embed.weight")  # fastai lists the embeddings twice
RAW = ("weight_hh_l0_raw", "module.weight_hh_l0_raw", "module.weight_hh_l0")
DROPPED = ("module.weight_hh_l0",)  # what weight drop made of the raw matrix in the last training step
NORM = {"scale": "weight", "bias": "bias", "mean": "running_mean", "variance": "running_var"}


@dataclass(frozen=True)
class Names:
    """The names of one file's tensors: parts of our paths to the tensors whose sum they are."""

    prefix: str  # of the encoder
    table: Mapping[str, tuple[str, ...]]
    ignored: Mapping[str, str]  # theirs -> reason
    sizes: Mapping[str, Any]  # fields of the configuration


def read_config(path: str | Path) -> AwdLstmConfig:
    """Return the configuration that the shapes of the tensors show; dropout rates are the class's defaults.

    >>> read_config("tests/goldens/awd_lstm_tiny").layer_sizes
    (36, 36, 24)
    """
    file = find_weights(path)
    sizes = find_names(read_tensors(file), str(file)).sizes
    return AwdLstmConfig(**sizes, direction=direction_of(file))  # type: ignore[arg-type]


def read_weights(path: str | Path, *, config: AwdLstmConfig | None = None) -> tuple[dict[str, Any], Report]:
    """Return the parameters of a file or a folder, and the report of its tensors."""
    file = find_weights(path)
    stored = read_tensors(file)
    names = find_names(stored, str(file))
    config = config or read_config(file)
    report = Report(str(file), skipped=dict(names.ignored))
    lm, classifier = (any(path.startswith(head) for path in names.table) for head in ("lm/", "classifier/"))
    flat: dict[str, Float32[np.ndarray, "..."]] = {}
    for path_of, shape in awd_lstm_shapes(config, lm=lm, classifier=classifier).items():
        theirs = names.table.get(path_of, ())
        lacking = [name for name in theirs if name not in stored]
        if not theirs or lacking:
            report.missing[path_of] = ", ".join(lacking) or path_of
            continue
        expected = shape[::-1] if path_of.endswith("kernel") else shape
        wrong = {name: stored[name] for name in theirs if not _has_shape(stored[name], expected)}
        for name, tensor in wrong.items():
            types = ", ".join(sorted(FLOATS))
            report.misshaped[name] = f"{list(tensor.shape)} of {tensor.dtype}, expected {list(expected)} of {types}"
        if not wrong:
            flat[path_of] = _ours(path_of, [_read(stored[name]) for name in theirs])
            report.mapped[path_of] = " + ".join(theirs)
    used = {name for theirs in names.table.values() for name in theirs} | set(names.ignored)
    report.unexpected += sorted(set(stored) - used)
    listed = {*report.mapped, *report.missing, *(path_of for path_of in names.table if report.misshaped)}
    report.contradictions += [f"{name} is not in the configuration" for name in names.table if name not in listed]
    report.contradictions += _copies_differ(stored, names)
    report.raise_if_unusable()
    broken = [report.mapped[path_of] for path_of, array in flat.items() if not np.isfinite(array).all()]
    if broken:
        raise ValueError(f"{file} holds NaN or infinity (as float32) in {', '.join(broken)}; the file is damaged")
    return nest(flat), report


def find_names(stored: Tensors, source: str) -> Names:
    """Return which tensors make which parameter, and the sizes that they show; raise on another kind of model."""
    first = next((match for name in stored if (match := FIRST.fullmatch(name))), None)
    if first is None:
        examples = ", ".join(sorted(stored)[:5])
        raise ValueError(f"{source} holds no AWD-LSTM: it has no rnns.0.module.weight_ih_l0 but {examples}")
    prefix = first[1] or ""
    if first[2].startswith("layers"):
        raise ValueError(
            f"{source} holds an AWD-QRNN ({first[0]}), whose layers are no LSTMs; only LSTMs are supported"
        )
    if first[0] + "_reverse" in stored:
        raise ValueError(f"{source} holds an LSTM of both directions ({first[0]}_reverse); an AWD-LSTM has one")
    layers = (
        max(int(match[1]) for name in stored if (match := re.match(re.escape(prefix) + r"rnns\.(\d+)\.", name))) + 1
    )
    check_depth(layers, stored, source)
    words = prefix + "encoder.weight"
    copies = [prefix + name for name in COPIES if prefix + name in stored]
    if words not in stored and copies:
        words = copies.pop()
    ignored = dict.fromkeys(copies, "a copy of the embeddings")
    table: dict[str, tuple[str, ...]] = {"encoder/embeddings/word": (words,)}
    for n in range(layers):
        theirs, ours = f"{prefix}rnns.{n}.", f"encoder/layer_{n}/"
        raw = next((theirs + name for name in RAW if theirs + name in stored), theirs + RAW[0])
        ignored |= {
            theirs + name: "after weight drop" for name in DROPPED if theirs + name in stored and theirs + name != raw
        }
        table[ours + "input_kernel"] = (theirs + "module.weight_ih_l0",)
        table[ours + "state_kernel"] = (raw,)
        table[ours + "bias"] = (theirs + "module.bias_ih_l0", theirs + "module.bias_hh_l0")
    sizes: dict[str, Any] = {"num_layers": layers}
    sizes |= _read_sizes(stored, words, first[0], source)
    outer = re.sub(r"0\.(module\.)?$", "", prefix)  # a model is a list of an encoder, 0, and a head, 1
    decoder = outer + "1.decoder."
    if decoder + "weight" in stored or decoder + "bias" in stored:
        sizes["output_bias"] = decoder + "bias" in stored
        sizes["tie_softmax"] = decoder + "weight" not in stored or _same(stored, decoder + "weight", words)
        if sizes["output_bias"]:
            table["lm/bias"] = (decoder + "bias",)
        if sizes["tie_softmax"]:
            ignored |= {decoder + "weight": "tied to the embeddings"} if decoder + "weight" in stored else {}
        else:
            table["lm/embedding"] = (decoder + "weight",)
    more, widths, counters = _classifier(stored, outer + "1.layers.", source)
    return Names(prefix, table | more, ignored | counters, sizes | ({"classifier": widths} if widths else {}))


def _read_sizes(stored: Tensors, words: str, first: str, source: str) -> dict[str, int]:
    """Return the sizes of vocabulary, embeddings and cells."""
    if words not in stored or len(stored[words].shape) != 2:
        raise ValueError(f"{source} has no embeddings {words} [words, size], which a language model reads")
    vocab_size, embedding_size = stored[words].shape
    shape = stored[first].shape
    if len(shape) != 2 or shape[0] % 4 or 0 in shape:
        raise ValueError(f"{source}: {first} has the shape {list(shape)}; an LSTM's is [4 · cells, inputs]")
    return {"vocab_size": vocab_size, "embedding_size": embedding_size, "cell_size": shape[0] // 4}


def _classifier(
    stored: Tensors, prefix: str, source: str
) -> tuple[dict[str, tuple[str, ...]], tuple[int, ...], dict[str, str]]:
    """Return the names of a classifier's tensors, its widths, and the counters that are not used."""
    names = [name.removeprefix(prefix) for name in stored if name.startswith(prefix)]
    counters = {prefix + name: "a counter" for name in names if name.endswith("num_batches_tracked")}
    table: dict[str, tuple[str, ...]] = {}
    widths = []
    for block in range(len({name.split(".")[0] for name in names})):
        kernels = [
            name for name in names if re.fullmatch(rf"{block}\.\d+\.weight", name) and _rank(stored, prefix + name) == 2
        ]
        if len(kernels) != 1 or f"{block}.0.running_mean" not in names:
            raise ValueError(
                f"{source}: {prefix}{block} is not batch norm and a linear layer, as in fastai 2: this classifier is "
                "not supported (an encoder saved by save_encoder is)"
            )
        if kernels[0].replace("weight", "bias") in names:
            raise ValueError(f"{source}: {prefix}{kernels[0]} has a bias, which fastai's linear layers have not")
        table |= {
            f"classifier/layer_{block}/norm/{ours}": (f"{prefix}{block}.0.{name}",) for ours, name in NORM.items()
        }
        table[f"classifier/layer_{block}/kernel"] = (prefix + kernels[0],)
        widths.append(stored[prefix + kernels[0]].shape[0])
    return table, tuple(widths), counters


def write(folder: str | Path, params: Mapping[str, Any], config: AwdLstmConfig, **unused: Any) -> None:
    """Write the model with fastai's names as `lm.safetensors`, a backward one as `lm_bwd.safetensors`.

    `safetensors.torch.load_file` reads it for torch.
    A classifier of the model is written, too. `unused` are facts of other classifiers, which an AWD-LSTM has not.
    """
    del unused
    encoder, tensors = params["encoder"], dict[str, np.ndarray]()
    prefix = "0.module." if "classifier" in params else "0."
    words = np.asarray(encoder["embeddings"]["word"], np.float32)
    tensors |= {prefix + name: words.copy() for name in ("encoder.weight", COPIES[0])}
    for n, size in enumerate(config.layer_sizes):
        layer, theirs = encoder[f"layer_{n}"], f"{prefix}rnns.{n}."
        bias = np.array(layer["bias"], np.float32)
        bias[2 * size : 3 * size] += 1
        tensors[theirs + "weight_hh_l0_raw"] = _reorder(np.asarray(layer["state_kernel"], np.float32).T)
        tensors[theirs + "module.weight_ih_l0"] = _reorder(np.asarray(layer["input_kernel"], np.float32).T)
        tensors[theirs + "module.bias_ih_l0"] = _reorder(bias)
        tensors[theirs + "module.bias_hh_l0"] = np.zeros_like(bias)
    if "classifier" in params:
        for n in range(len(config.classifier)):
            layer = params["classifier"][f"layer_{n}"]
            for ours, name in NORM.items():
                tensors[f"1.layers.{n}.0.{name}"] = np.asarray(layer["norm"][ours], np.float32)
            tensors[f"1.layers.{n}.2.weight"] = np.ascontiguousarray(np.asarray(layer["kernel"], np.float32).T)
    elif "lm" in params or not config.has_lm_params:
        table = words if config.tie_softmax else np.asarray(params["lm"]["embedding"], np.float32)
        tensors["1.decoder.weight"] = table.copy()
        if config.output_bias:
            tensors["1.decoder.bias"] = np.asarray(params["lm"]["bias"], np.float32)
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_safetensors(Path(folder) / WRITTEN[config.direction], tensors)


def _ours(path: str, arrays: list[Float32[np.ndarray, "..."]]) -> Float32[np.ndarray, "..."]:
    array = sum(arrays[1:], arrays[0])
    if re.match(r"encoder/layer_\d+/", path):
        array = _reorder(array)
    if path.endswith("kernel"):
        return np.ascontiguousarray(array.T)
    if re.match(r"encoder/layer_\d+/bias", path):
        size = len(array) // 4
        array[2 * size : 3 * size] -= 1
    return array


def _reorder(array: Float32[np.ndarray, "G ..."]) -> Float32[np.ndarray, "G ..."]:
    """Return an array with torch's order of gates in ours, or the other way around."""
    parts = np.split(array, 4)
    # Safetensors writes the raw bytes, so the array must be contiguous, not a transposed view.
    return np.ascontiguousarray(np.concatenate([parts[gate] for gate in GATES]))


def _read(tensor: StoredTensor) -> Float32[np.ndarray, "..."]:
    with np.errstate(all="ignore"):  # values too large for float32 become infinity, reported by the caller
        return np.array(tensor.read(), np.float32)


def _has_shape(tensor: StoredTensor, shape: tuple[int, ...]) -> bool:
    return tensor.shape == shape and tensor.dtype in FLOATS


def _rank(stored: Tensors, name: str) -> int:
    return len(stored[name].shape)


def _same(stored: Tensors, one: str, other: str) -> bool:
    """Return whether two tensors hold the same numbers."""
    a, b = stored[one], stored[other]
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a.read(), b.read())


def _copies_differ(stored: Tensors, names: Names) -> list[str]:
    """Return a message for each copy of the embeddings that is none."""
    [words] = names.table["encoder/embeddings/word"]
    copies = [name for name, why in names.ignored.items() if why.startswith("a copy")]
    return [f"{name} is not the same as {words}" for name in copies if not _same(stored, name, words)]
