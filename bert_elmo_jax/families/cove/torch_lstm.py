"""CoVe's weights as torch.nn.LSTM names them: `weight_ih_l0`, `bias_hh_l1_reverse`, …, with or without `rnn.` before.

The released file is `wmtlstm.pth`, read without torch. Sizes come from the tensors.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.families.cove.config import CoveConfig
from bert_elmo_jax.families.cove.formats import FILES, FIRST, WRITTEN, find_prefix
from bert_elmo_jax.weights.huggingface_files import write_safetensors
from bert_elmo_jax.weights.parameter_tree import Report
from bert_elmo_jax.weights.single_files import read_tensors
from bert_elmo_jax.weights.stored import StoredTensor
from bert_elmo_jax.weights.torch_lstm import make_tensors, read_sums

MOST_LAYERS = 100
PARTS = {"input_kernel": ("weight_ih",), "state_kernel": ("weight_hh",), "bias": ("bias_ih", "bias_hh")}
NAME = re.compile(r"(?:weight|bias)_(?:ih|hh|hr)_l(\d+)(?:_reverse)?")


def read_config(path: str | Path) -> CoveConfig:
    """Return the configuration that the shapes of the tensors show."""
    file = FILES.find_weights(path)
    stored = read_tensors(file)
    prefix, layers = _check_lstm(stored, file)
    shape = stored[prefix + FIRST].shape
    if len(shape) != 2 or shape[0] % 4 or 0 in shape:
        raise ValueError(f"{file}: {FIRST} has the shape {list(shape)}; an LSTM's is [4 · cells, inputs]")
    return CoveConfig(vector_size=shape[1], lstm_size=shape[0] // 4, num_layers=layers, decoder_layers=layers)


def read_weights(path: str | Path, *, config: CoveConfig | None = None) -> tuple[dict[str, Any], Report]:
    """Return the parameters of a file or a folder, and the report of its tensors."""
    file = FILES.find_weights(path)
    config = config or read_config(file)
    stored, report = read_tensors(file), Report(str(file))
    prefix, layers = _check_lstm(stored, file)
    biased = any(name.startswith(f"{prefix}bias_") for name in stored)  # torch leaves all of them out, or none
    table = _names(max(layers, config.num_layers), prefix)
    if not biased:
        table = {path: () if path.endswith("bias") else names for path, names in table.items()}
    return read_sums(stored, table, _shapes(config), report), report


def write(folder: str | Path, params: Mapping[str, Any], config: CoveConfig, **unused: Any) -> None:
    """Write the LSTM as `wmtlstm.safetensors`; `safetensors.torch.load_file` and torch.nn.LSTM read it.

    Word vectors and the decoder have no place in this format. `unused` are facts of classifiers, which a CoVe has not.
    """
    del unused
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_safetensors(Path(folder) / WRITTEN, make_tensors(params, _names(config.num_layers)))


def _names(layers: int, prefix: str = "") -> dict[str, tuple[str, ...]]:
    """Return the tensors that make each parameter."""
    return {
        f"encoder/layer_{n}/{direction}/{ours}": tuple(f"{prefix}{name}_l{n}{end}" for name in theirs)
        for n in range(layers)
        for direction, end in (("forward", ""), ("backward", "_reverse"))
        for ours, theirs in PARTS.items()
    }


def _shapes(config: CoveConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of the LSTM."""
    shapes: dict[str, tuple[int, ...]] = {}
    gates = 4 * config.lstm_size
    for path in _names(config.num_layers):
        inputs = config.vector_size if path.startswith("encoder/layer_0/") else config.layer_size
        rows = {"input_kernel": (inputs,), "state_kernel": (config.lstm_size,), "bias": ()}[path.rpartition("/")[2]]
        shapes[path] = (*rows, gates)
    return shapes


def _check_lstm(stored: Mapping[str, StoredTensor], file: Path) -> tuple[str, int]:
    """Return the prefix of an LSTM's tensors and its number of layers; raise on another model or kind of LSTM."""
    prefix = find_prefix(stored)
    if prefix is None:
        examples = ", ".join(sorted(stored)[:5])
        raise ValueError(f"{file} holds no CoVe: it has no {FIRST} (nor rnn.{FIRST}) but {examples}")
    if f"{prefix}{FIRST}_reverse" not in stored:
        raise ValueError(f"{file} holds an LSTM of one direction (it has no {FIRST}_reverse); a CoVe reads both")
    names = [name.removeprefix(prefix) for name in stored if name.startswith(prefix)]
    if any(name.startswith("weight_hr_") for name in names):
        raise ValueError(f"{file} holds an LSTM with a projection (weight_hr_l0), which a CoVe has not")
    layers = max(int(match[1]) for name in names if (match := NAME.fullmatch(name))) + 1
    if layers > MOST_LAYERS:
        raise ValueError(f"{file} names layer {layers - 1} of an LSTM; at most {MOST_LAYERS} layers are read")
    return prefix, layers
