"""ELMo as bilm-tf and AllenNLP store it: HDF5 weights and an `options.json`.

Reads the names of released files, of training dumps and of newer TensorFlow versions. Writes the names of released
files. Their tree differs from ours in two ways: the input and state kernels of an LSTM layer are one matrix, and
convolutions have a leading axis of size 1.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from bert_elmo_jax.families.elmo import files
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import DIRECTIONS, elmo_shapes
from bert_elmo_jax.files import write_json
from bert_elmo_jax.nn.char_cnn import NUM_IDS
from bert_elmo_jax.weights.hdf5 import Disk, read_hdf5
from bert_elmo_jax.weights.parameter_tree import Report, check_depth, check_shapes, collect, flatten, nest
from bert_elmo_jax.weights.stored import StoredTensor

WEIGHTS, OPTIONS = "weights.hdf5", "options.json"  # the files that `write` creates
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


@dataclass(frozen=True)
class ElmoFile:
    """The datasets of a file of weights, keyed by their names in released files.

    `called` and `groups` map those names to the actual names of datasets and groups, `prefix` is the scope of all
    names, and `skipped` maps unused datasets to the reason.
    """

    weights: Path
    prefix: str
    tensors: dict[str, StoredTensor]
    called: dict[str, str]
    groups: dict[str, str]
    skipped: dict[str, str]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every dataset."""
        return {name: tensor.shape for name, tensor in self.tensors.items()}


def read_config(path: str | Path) -> ElmoConfig:
    """Return the configuration of a folder or a file of weights, from its options and the shapes of its weights."""
    return _config(_find(path))


def _config(elmo_file: ElmoFile) -> ElmoConfig:
    options = files.find_options(elmo_file.weights)
    return files.from_options(files.read_options(options), elmo_file.shapes, f"The options in {options}")


def read_weights(path: str | Path, *, config: ElmoConfig | None = None) -> tuple[dict[str, Any], Report]:
    """Return the parameter tree of a folder or file of weights, and a report; `config` replaces the `options.json`."""
    elmo_file = _find(path)
    config = config or _config(elmo_file)
    report = Report(str(elmo_file.weights), skipped=dict(elmo_file.skipped))
    check_depth(config.num_layers, elmo_file.tensors, report.source)
    report.contradictions += files.contradictions(config, elmo_file.shapes)
    # Without a vocabulary size the shapes of the head are unknown; `contradictions` reports that.
    shapes = their_shapes(config, lm=config.vocab_size is not None)
    table = {ours: theirs for ours, theirs in names(config).items() if ours in shapes}
    places = {ours: elmo_file.called[theirs] for ours, theirs in table.items() if theirs in elmo_file.called}
    for ours, theirs in table.items():
        if theirs in elmo_file.groups:
            report.misshaped[elmo_file.groups[theirs]] = f"a group, expected a dataset {list(shapes[ours])}"
    other = "characters" if config.input == "words" else "words"
    for name, called in elmo_file.called.items():
        if called not in places.values() and _input_of(name) == other:
            report.skipped[called] = f"for input of {other}, the options say {config.input}"
    expected = {ours: elmo_file.groups.get(theirs, elmo_file.prefix + theirs) for ours, theirs in table.items()}
    stored = {called: elmo_file.tensors[name] for name, called in elmo_file.called.items()}
    theirs_tree = collect(stored, places, expected, set(), shapes, report)
    report.mapped = {path: called for ours, called in report.mapped.items() for path in our_paths(ours)}
    return nest(to_ours(flatten(theirs_tree))), report


def _input_of(name: str) -> str | None:
    """Return the kind of input that a dataset belongs to, None if to both."""
    if name == "embedding":
        return "words"
    return "characters" if name == "char_embed" or name.startswith("CNN") else None


def _find(path: str | Path) -> ElmoFile:
    weights, other_files = files.find_weights(path)
    tensors, groups = read_hdf5(weights)
    prefixes = [prefix for prefix in files.PREFIXES if any(name.startswith(f"{prefix}RNN_") for name in tensors)]
    if len(prefixes) != 1:
        names = ", ".join(sorted(tensors)[:5]) or "nothing"
        content = f"{len(prefixes)} ELMos, under {' and '.join(map(repr, prefixes))}" if prefixes else "no ELMo"
        raise ValueError(
            f"{weights} has {content}: expected LSTMs named RNN_0 and RNN_1 once. It has {len(tensors)} datasets: "
            f"{names}"
        )
    [prefix] = prefixes

    def released(name: str) -> str:
        return released_name(name.removeprefix(prefix))

    elmo_file = ElmoFile(weights, prefix, {}, {}, {released(name): name for name in groups}, {})
    for name, tensor in tensors.items():
        key = released(name)
        if key in elmo_file.called:
            raise ValueError(f"{weights} has the same dataset under two names: {elmo_file.called[key]}, {name}")
        elmo_file.called[key], elmo_file.tensors[key] = name, tensor
    _add_embedding(elmo_file, other_files)
    _drop_extra_character(elmo_file)
    return elmo_file


def _add_embedding(elmo_file: ElmoFile, other_files: list[Path]) -> None:
    """Add the word vectors that bilm-tf reads from a separate file."""
    has_embedding = "embedding" in elmo_file.called
    for file in other_files:
        for name, tensor in read_hdf5(file)[0].items():
            called = f"{name} in {file.name}"
            if name in files.EMBEDDINGS and has_embedding:
                elmo_file.skipped[called] = f"{elmo_file.weights.name} has its own embedding"
            elif name in files.EMBEDDINGS and "embedding" in elmo_file.called:
                raise ValueError(
                    f"{elmo_file.weights.parent} has two tables of word vectors: {elmo_file.called['embedding']}, "
                    f"{called}. Move one away."
                )
            elif name in files.EMBEDDINGS:
                elmo_file.called["embedding"], elmo_file.tensors["embedding"] = called, tensor


def _drop_extra_character(elmo_file: ElmoFile) -> None:
    """Reduce 262 characters to 261: drop the mask's row of zeros in front, else the unused character at the end."""
    table = elmo_file.tensors.get("char_embed")
    if table is None or len(table.shape) != 2 or table.shape[0] != NUM_IDS + 1:
        return
    values = table.read()
    masked = not np.any(values[0])
    rows = values[1:] if masked else values[:-1]
    elmo_file.tensors["char_embed"] = StoredTensor(rows.shape, table.dtype, lambda: rows)
    row, why = (0, "zeros of the padding mask") if masked else (NUM_IDS, "an unused character")
    elmo_file.skipped[f"{elmo_file.called['char_embed']}, row {row}"] = why


def write(folder: str | Path, params: Mapping[str, Any], config: ElmoConfig, **unused: Any) -> None:
    """Write a folder that bilm-tf and AllenNLP can load: `options.json` and `weights.hdf5`.

    The language-model head is written too; both programs ignore it. AllenNLP only supports character input with both
    projections and skip connections. Raise if the parameters do not fit the configuration.
    """
    folder = Path(folder)
    flat = {path: np.asarray(value, np.float32) for path, value in flatten(params).items()}
    lm = "lm" in params
    check_shapes({path: value.shape for path, value in flat.items()}, elmo_shapes(config, lm), "the parameters")
    existing = [*files.named_options(folder), *files.named_weights(folder)] if folder.is_dir() else []
    if existing:
        listed = ", ".join(file.name for file in existing)
        raise FileExistsError(f"{folder} already holds a model ({listed}): write to another folder")
    folder.mkdir(parents=True, exist_ok=True)
    # The weights appear last and at once, so a folder that can be loaded is complete.
    unfinished = folder / f"{WEIGHTS}.unfinished"
    try:
        with Disk(unfinished, "w+") as disk, h5py.File(disk, "w") as file:
            table = names(config)
            for path in their_shapes(config, lm):
                file[table[path]] = to_theirs(flat, path)
        if disk.failed is not None:
            raise disk.failed
        write_json(folder / OPTIONS, config.to_options())
        unfinished.replace(folder / WEIGHTS)
    finally:
        unfinished.unlink(missing_ok=True)


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
    """Return the name of a dataset in released files, for any of its names in training dumps.

    >>> released_name("RNN_0/rnn/multi_rnn_cell/cell_1/lstm_cell/projection/kernel")
    'RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0'
    """
    name = name.removesuffix(":0")
    match = LSTM.fullmatch(name)
    return f"{_cell(match[1], match[2] or 0)}/{RELEASED.get(match[3], match[3])}" if match else name


def their_shapes(config: ElmoConfig, lm: bool) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor of their tree."""
    theirs = {}
    for path, shape in elmo_shapes(config, lm).items():
        if path.endswith(PARTS[0]):
            theirs[path.removesuffix(PARTS[0]) + "kernel"] = (2 * shape[0], *shape[1:])
        elif not path.endswith(PARTS[1]):
            theirs[path] = (1, *shape) if CONVOLUTION.fullmatch(path) else shape
    return theirs


def our_paths(path: str) -> list[str]:
    """Return the paths in our tree that one tensor of their tree becomes.

    >>> our_paths("encoder/forward/layer_0/kernel")
    ['encoder/forward/layer_0/input_kernel', 'encoder/forward/layer_0/state_kernel']
    """
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
    """Return one tensor of their tree from our flat tree; one at a time, so the whole model is never copied."""
    if JOINED.fullmatch(path):
        return np.concatenate([ours[part] for part in our_paths(path)])
    return ours[path][None] if CONVOLUTION.fullmatch(path) else ours[path]
