"""ELMo as bilm-tf and AllenNLP store it: HDF5 weights and an `options.json`.

Reads the names of released files, of training dumps and of newer TensorFlow versions. Writes the names of released
files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from bert_elmo_jax.families.elmo import layout as elmo_layout
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.files import (
    EMBEDDINGS,
    PREFIXES,
    find_options,
    find_weights,
    named_options,
    named_weights,
    read_options,
)
from bert_elmo_jax.families.elmo.init_params import elmo_shapes
from bert_elmo_jax.families.elmo.options import contradictions, from_options
from bert_elmo_jax.nn.char_cnn import NUM_IDS
from bert_elmo_jax.weights.hdf5 import Disk, read_hdf5
from bert_elmo_jax.weights.parameter_tree import Report, check_shapes, collect, flatten, nest
from bert_elmo_jax.weights.stored import StoredTensor

WEIGHTS, OPTIONS = "weights.hdf5", "options.json"  # the files that `write` creates


@dataclass(frozen=True)
class Found:
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
    """Return the configuration of a folder or a file of weights, from its options and the shapes of its weights.

    >>> read_config("tests/goldens/elmo_tiny").width
    12
    """
    return _config(_find(path))


def _config(found: Found) -> ElmoConfig:
    options = find_options(found.weights)
    return from_options(read_options(options), found.shapes, f"The options in {options}")


def read_weights(path: str | Path, *, config: ElmoConfig | None = None) -> tuple[dict[str, Any], Report]:
    """Return the parameter tree of a folder or a file of weights, and a report on every dataset.

    `config` replaces the folder's `options.json`. The tree has the language-model head if the file has it.

    >>> params, report = read_weights("tests/goldens/elmo_tiny")
    >>> params["encoder"]["backward"]["layer_1"]["state_kernel"].shape, report.heads, report.unexpected
    ((12, 192), (), [])
    """
    found = _find(path)
    config = config or _config(found)
    report = Report(str(found.weights), skipped=dict(found.skipped))
    report.contradictions += contradictions(config, found.shapes)
    # Without a vocabulary size the shapes of the head are unknown; `contradictions` reports that.
    shapes = elmo_layout.shapes(config, lm=config.vocab_size is not None)
    table = {ours: theirs for ours, theirs in elmo_layout.names(config).items() if ours in shapes}
    places = {ours: found.called[theirs] for ours, theirs in table.items() if theirs in found.called}
    for ours, theirs in table.items():
        if theirs in found.groups:
            report.misshaped[found.groups[theirs]] = f"a group, expected a dataset {list(shapes[ours])}"
    other = "characters" if config.input == "words" else "words"
    for name, called in found.called.items():
        if called not in places.values() and _input_of(name) == other:
            report.skipped[called] = f"for input of {other}, the options say {config.input}"
    expected = {ours: found.groups.get(theirs, found.prefix + theirs) for ours, theirs in table.items()}
    stored = {called: found.tensors[name] for name, called in found.called.items()}
    theirs_tree = collect(stored, places, expected, set(), shapes, report)
    report.mapped = {path: called for ours, called in report.mapped.items() for path in elmo_layout.our_paths(ours)}
    return nest(elmo_layout.to_ours(flatten(theirs_tree))), report


def _input_of(name: str) -> str | None:
    """Return the kind of input that a dataset belongs to, None if to both."""
    if name == "embedding":
        return "words"
    return "characters" if name == "char_embed" or name.startswith("CNN") else None


def _find(path: str | Path) -> Found:
    weights, others = find_weights(path)
    tensors, groups = read_hdf5(weights)
    prefixes = [prefix for prefix in PREFIXES if any(name.startswith(f"{prefix}RNN_") for name in tensors)]
    if len(prefixes) != 1:
        some = ", ".join(sorted(tensors)[:5]) or "nothing"
        what = f"{len(prefixes)} ELMos, under {' and '.join(map(repr, prefixes))}" if prefixes else "no ELMo"
        raise ValueError(
            f"{weights} has {what}: expected LSTMs named RNN_0 and RNN_1 once. It has {len(tensors)} datasets: {some}"
        )
    [prefix] = prefixes

    def released(name: str) -> str:
        return elmo_layout.released_name(name.removeprefix(prefix))

    found = Found(weights, prefix, {}, {}, {released(name): name for name in groups}, {})
    for name, tensor in tensors.items():
        key = released(name)
        if key in found.called:
            raise ValueError(f"{weights} has the same dataset under two names: {found.called[key]}, {name}")
        found.called[key], found.tensors[key] = name, tensor
    _add_embedding(found, others)
    _drop_extra_character(found)
    return found


def _add_embedding(found: Found, others: list[Path]) -> None:
    """Add the word vectors that bilm-tf reads from a separate file."""
    own = "embedding" in found.called
    for file in others:
        for name, tensor in read_hdf5(file)[0].items():
            called = f"{name} in {file.name}"
            if name in EMBEDDINGS and own:
                found.skipped[called] = f"{found.weights.name} has its own embedding"
            elif name in EMBEDDINGS and "embedding" in found.called:
                raise ValueError(
                    f"{found.weights.parent} has two tables of word vectors: {found.called['embedding']}, {called}. "
                    "Move one away."
                )
            elif name in EMBEDDINGS:
                found.called["embedding"], found.tensors["embedding"] = called, tensor


def _drop_extra_character(found: Found) -> None:
    """Reduce 262 characters to 261: drop the mask's row of zeros in front, else the unused character at the end."""
    table = found.tensors.get("char_embed")
    if table is None or len(table.shape) != 2 or table.shape[0] != NUM_IDS + 1:
        return
    values = table.read()
    masked = not np.any(values[0])
    rows = values[1:] if masked else values[:-1]
    found.tensors["char_embed"] = StoredTensor(rows.shape, table.dtype, lambda: rows)
    row, why = (0, "zeros of the padding mask") if masked else (NUM_IDS, "an unused character")
    found.skipped[f"{found.called['char_embed']}, row {row}"] = why


def write(folder: str | Path, params: Mapping[str, Any], config: ElmoConfig) -> None:
    """Write a folder that bilm-tf and AllenNLP can load: `options.json` and `weights.hdf5`.

    The language-model head is written too; both programs ignore it. AllenNLP only supports character input with both
    projections and skip connections. Raise if the parameters do not fit the configuration.

    >>> import tempfile
    >>> params, _ = read_weights("tests/goldens/elmo_tiny")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder, params, read_config("tests/goldens/elmo_tiny"))
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['options.json', 'weights.hdf5']
    """
    folder = Path(folder)
    flat = {path: np.asarray(value, np.float32) for path, value in flatten(params).items()}
    lm = "lm" in params
    check_shapes({path: value.shape for path, value in flat.items()}, elmo_shapes(config, lm), "the parameters")
    existing = [*named_options(folder), *named_weights(folder)] if folder.is_dir() else []
    if existing:
        listed = ", ".join(file.name for file in existing)
        raise FileExistsError(f"{folder} already holds a model ({listed}): write to another folder")
    folder.mkdir(parents=True, exist_ok=True)
    # The weights appear last and at once, so a folder that can be loaded is complete.
    unfinished = folder / f"{WEIGHTS}.unfinished"
    try:
        with Disk(unfinished, "w+") as disk, h5py.File(disk, "w") as file:
            table = elmo_layout.names(config)
            for path in elmo_layout.shapes(config, lm):
                file[table[path]] = elmo_layout.to_theirs(flat, path)
        if disk.failed is not None:
            raise disk.failed
        config.to_json(folder / OPTIONS)
        unfinished.replace(folder / WEIGHTS)
    finally:
        unfinished.unlink(missing_ok=True)
