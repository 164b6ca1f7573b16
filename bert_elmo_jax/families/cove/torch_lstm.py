"""CoVe's weights as torch.nn.LSTM names them: `weight_ih_l0`, `bias_hh_l1_reverse`, …, with or without `rnn.` before.

The released file is `wmtlstm.pth`, read without torch. Sizes come from the tensors. The gates are i, f, g, o there, and
i, j (= g), f, o here, where the forget gate has a bias of 1 of its own; of torch's two biases, only the sum matters.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.families.cove.config import CoveConfig
from bert_elmo_jax.families.cove.files import FIRST, WRITTEN, Tensors, find_prefix, find_weights, read_tensors
from bert_elmo_jax.weights.huggingface_files import write_safetensors
from bert_elmo_jax.weights.parameter_tree import FLOATS, Report, nest
from bert_elmo_jax.weights.stored import StoredTensor

DIRECTIONS = ("forward", "backward")
MOST_LAYERS = 100
NAME = re.compile(r"(weight|bias)_(ih|hh|hr)_l(\d+)(_reverse)?")
GATES = (0, 2, 1, 3)  # places of torch's gates i, f, g, o in the order i, g, f, o; the same permutation goes back


def read_config(path: str | Path) -> CoveConfig:
    """Return the configuration that the shapes of the tensors show.

    >>> read_config("tests/goldens/cove_tiny").lstm_size
    24
    """
    file = find_weights(path)
    tensors = _lstm_tensors(file)
    shape = tensors[FIRST].shape
    if len(shape) != 2 or shape[0] % 4 or 0 in shape:
        raise ValueError(f"{file}: {FIRST} has the shape {list(shape)}; an LSTM's is [4 · cells, inputs]")
    layers = max(int(found[3]) for name in tensors if (found := NAME.fullmatch(name))) + 1
    if layers > MOST_LAYERS:
        raise ValueError(f"{file} names layer {layers - 1} of an LSTM; at most {MOST_LAYERS} layers are read")
    return CoveConfig(vector_size=shape[1], lstm_size=shape[0] // 4, num_layers=layers, decoder_layers=layers)


def read_weights(path: str | Path, *, config: CoveConfig | None = None) -> tuple[dict[str, Any], Report]:
    """Return the parameters of a file or a folder, and the report of its tensors."""
    file = find_weights(path)
    config = config or read_config(file)
    stored = read_tensors(file)
    prefix = find_prefix(stored) or ""
    report = Report(str(file))
    own = {name.removeprefix(prefix): name for name in stored if name.startswith(prefix)}
    report.unexpected += sorted(set(stored) - {prefix + name for name in own if NAME.fullmatch(name)})
    _check_kind({name: stored[theirs] for name, theirs in own.items()}, str(file))
    biased = any(name.startswith("bias_") for name in own)  # torch leaves all of them out, or none
    arrays: dict[str, Float32[np.ndarray, "..."]] = {}
    wanted = set()
    for path_of, names in _names(config).items():
        for name, shape in names.items():
            wanted.add(name)
            if name not in own:
                if name.startswith("weight_") or biased:
                    report.missing[path_of] = prefix + name
                continue
            tensor = stored[own[name]]
            if tensor.shape != shape or tensor.dtype not in FLOATS:
                what = f"{list(tensor.shape)} of {tensor.dtype}, expected {list(shape)} of {', '.join(sorted(FLOATS))}"
                report.misshaped[own[name]] = what
            else:
                with np.errstate(all="ignore"):  # values too large for float32 become infinity, reported below
                    arrays[name] = np.array(tensor.read(), np.float32)
    more = sorted(name for name in own if NAME.fullmatch(name) and name not in wanted)
    report.contradictions += [f"{prefix + name} is in no layer of the configuration" for name in more]
    report.raise_if_unusable()
    broken = [prefix + name for name, array in arrays.items() if not np.isfinite(array).all()]
    if broken:
        raise ValueError(f"{file} holds NaN or infinity (as float32) in {', '.join(broken)}; the file is damaged")
    flat = {}
    for path_of, names in _names(config).items():
        flat[path_of] = _ours(path_of, [arrays[name] for name in names if name in arrays], config.lstm_size)
        report.mapped[path_of] = " + ".join(prefix + name for name in names if name in arrays) or "no biases"
    return nest(flat), report


def write(folder: str | Path, params: Mapping[str, Any], config: CoveConfig, **told: Any) -> None:
    """Write the LSTM as `wmtlstm.safetensors`; `safetensors.torch.load_file` and torch.nn.LSTM read it.

    Word vectors and the decoder have no place in this format. `told` are facts of classifiers, which a CoVe has not.
    """
    del told
    tensors = {}
    for path_of, names in _names(config).items():
        value: Any = params
        for part in path_of.split("/"):
            value = value[part]
        array = np.asarray(value, np.float32)
        if path_of.endswith("bias"):
            array = array.copy()
            array[2 * config.lstm_size : 3 * config.lstm_size] += 1
        array = np.ascontiguousarray(_reorder(array.T, config.lstm_size))  # safetensors writes the raw bytes
        first, *second = names
        tensors[first] = array
        tensors |= {name: np.zeros_like(array) for name in second}
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_safetensors(Path(folder) / WRITTEN, tensors)


def _names(config: CoveConfig) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the tensors that make each parameter, with their shapes in the file."""
    found: dict[str, dict[str, tuple[int, ...]]] = {}
    gates = 4 * config.lstm_size
    for n in range(config.num_layers):
        for direction in DIRECTIONS:
            end = f"_l{n}" + "_reverse" * (direction == "backward")
            where = f"encoder/layer_{n}/{direction}/"
            inputs = config.layer_size if n else config.vector_size
            found[where + "input_kernel"] = {"weight_ih" + end: (gates, inputs)}
            found[where + "state_kernel"] = {"weight_hh" + end: (gates, config.lstm_size)}
            found[where + "bias"] = {name + end: (gates,) for name in ("bias_ih", "bias_hh")}
    return found


def _ours(path: str, arrays: list[Float32[np.ndarray, "..."]], size: int) -> Float32[np.ndarray, "..."]:
    if not path.endswith("bias"):
        return np.ascontiguousarray(_reorder(arrays[0], size).T)
    bias = _reorder(sum(arrays, np.zeros(4 * size, np.float32)), size)
    bias[2 * size : 3 * size] -= 1
    return bias


def _reorder(array: Float32[np.ndarray, "G ..."], size: int) -> Float32[np.ndarray, "G ..."]:
    """Return an array with torch's order of gates in ours, or the other way around."""
    return np.concatenate([array[gate * size : (gate + 1) * size] for gate in GATES])


def _lstm_tensors(file: Path) -> dict[str, StoredTensor]:
    """Return the tensors of the LSTM in a file by their bare names."""
    stored = read_tensors(file)
    prefix = find_prefix(stored)
    if prefix is None:
        examples = ", ".join(sorted(stored)[:5])
        raise ValueError(f"{file} holds no CoVe: it has no {FIRST} (nor rnn.{FIRST}) but {examples}")
    tensors = {name.removeprefix(prefix): tensor for name, tensor in stored.items() if name.startswith(prefix)}
    _check_kind(tensors, str(file))
    return tensors


def _check_kind(tensors: Tensors, source: str) -> None:
    """Raise on an LSTM of another kind: of one direction, or with a projection."""
    if FIRST + "_reverse" not in tensors:
        raise ValueError(f"{source} holds an LSTM of one direction (it has no {FIRST}_reverse); a CoVe reads both")
    if any(name.startswith("weight_hr_") for name in tensors):
        raise ValueError(f"{source} holds an LSTM with a projection (weight_hr_l0), which a CoVe has not")
