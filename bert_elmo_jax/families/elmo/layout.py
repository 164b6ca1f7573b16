"""The tree of an ELMo as its HDF5 files store it: names, shapes, and conversions to and from our tree.

Their tree differs from ours in two ways: the input and state kernels of an LSTM layer are one matrix, and convolutions
have a leading axis of size 1.
"""

import re
from collections.abc import Mapping

import numpy as np

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.init_params import elmo_shapes
from bert_elmo_jax.families.elmo.model import DIRECTIONS

PARTS = ("input_kernel", "state_kernel")  # stacked in this order in their matrix
JOINED = re.compile(r"encoder/(?:forward|backward)/layer_\d+/kernel")
CONVOLUTION = re.compile(r"encoder/token/conv_\d+/kernel")
# A single layer has no MultiRNNCell; newer TensorFlow uses lower case and calls matrices kernels.
LSTM = re.compile(
    r"RNN_([01])/(?:RNN|rnn)/(?:(?:MultiRNNCell|multi_rnn_cell)/(?:Cell|cell_)(\d+)/)?(?:rnn/)?(?:LSTMCell|lstm_cell)/"
    r"(W_0|B|W_P_0|kernel|bias|weights|biases|projection/kernel|projection/weights)"
)
RELEASED = {"kernel": "W_0", "weights": "W_0", "bias": "B", "biases": "B"} | {
    f"projection/{name}": "W_P_0" for name in ("kernel", "weights")
}


def names(config: ElmoConfig) -> dict[str, str]:
    """Return their name for each path of their tree, including the language-model head."""
    token, table = "encoder/token", {}
    if config.input == "words":
        table[f"{token}/embedding"] = "embedding"
    else:
        table[f"{token}/embedding"] = "char_embed"
        for n in range(len(config.filters)):
            table |= {f"{token}/conv_{n}/kernel": f"CNN/W_cnn_{n}", f"{token}/conv_{n}/bias": f"CNN/b_cnn_{n}"}
        for n in range(config.num_highways):
            for gate in ("carry", "transform"):
                table |= _dense(f"{token}/highway_{n}/{gate}", f"CNN_high_{n}", gate)
        if config.token_projection:
            table |= _dense(f"{token}/projection", "CNN_proj", "proj")
    for number, direction in enumerate(DIRECTIONS):
        for layer in range(config.num_layers):
            ours, theirs = f"encoder/{direction}/layer_{layer}", _cell(number, layer)
            table |= {f"{ours}/kernel": f"{theirs}/W_0", f"{ours}/bias": f"{theirs}/B"}
            if config.projection:
                table[f"{ours}/projection"] = f"{theirs}/W_P_0"
    if not config.tie_softmax:
        table["lm/embedding"] = "softmax/W"
    return table | {"lm/bias": "softmax/b"}


def _dense(ours: str, scope: str, theirs: str) -> dict[str, str]:
    return {f"{ours}/kernel": f"{scope}/W_{theirs}", f"{ours}/bias": f"{scope}/b_{theirs}"}


def _cell(direction: int | str, layer: int | str) -> str:
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def released_name(name: str) -> str:
    """Return the name of a dataset in released files, for any of its names in training dumps."""
    name = name.removesuffix(":0")
    match = LSTM.fullmatch(name)
    return f"{_cell(match[1], match[2] or 0)}/{RELEASED.get(match[3], match[3])}" if match else name


def shapes(config: ElmoConfig, lm: bool) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor of their tree."""
    theirs = {}
    for path, shape in elmo_shapes(config, lm).items():
        if path.endswith(PARTS[0]):
            theirs[path.removesuffix(PARTS[0]) + "kernel"] = (2 * shape[0], *shape[1:])
        elif not path.endswith(PARTS[1]):
            theirs[path] = (1, *shape) if CONVOLUTION.fullmatch(path) else shape
    return theirs


def our_paths(path: str) -> list[str]:
    """Return the paths in our tree that one tensor of their tree becomes."""
    return [path.removesuffix("kernel") + part for part in PARTS] if JOINED.fullmatch(path) else [path]


def to_ours(theirs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Convert their flat tree to our flat tree."""
    ours: dict[str, np.ndarray] = {}
    for path, value in theirs.items():
        if JOINED.fullmatch(path):
            ours |= zip(our_paths(path), np.split(value, 2), strict=True)
        else:
            ours[path] = value[0] if CONVOLUTION.fullmatch(path) else value
    return ours


def to_theirs(ours: Mapping[str, np.ndarray], path: str) -> np.ndarray:
    """Return one tensor of their tree, made from our flat tree.

    One at a time, so the whole model is never copied.
    """
    if JOINED.fullmatch(path):
        return np.concatenate([ours[part] for part in our_paths(path)])
    return ours[path][None] if CONVOLUTION.fullmatch(path) else ours[path]
