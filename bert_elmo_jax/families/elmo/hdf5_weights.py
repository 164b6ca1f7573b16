"""ELMo as bilm-tf and AllenNLP store it: HDF5 weights beside an `options.json`.

Released files, what a training run dumps, and the names that newer TensorFlow gave the same variables are read; what is
written is named as released files are.
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
    ENDINGS,
    PREFIXES,
    elmo_files,
    find_options,
    find_weights,
    named_options,
    named_weights,
    read_options,
)
from bert_elmo_jax.families.elmo.init_params import elmo_shapes
from bert_elmo_jax.families.elmo.options import contradictions, from_options
from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.nn.char_cnn import NUM_IDS
from bert_elmo_jax.weights.hdf5 import Disk, read_hdf5
from bert_elmo_jax.weights.parameter_tree import check_shapes, collect, flatten, nest
from bert_elmo_jax.weights.report import Report
from bert_elmo_jax.weights.stored import StoredTensor

WEIGHTS, OPTIONS = "weights.hdf5", "options.json"  # the names of what is written


@dataclass(frozen=True)
class Found:
    """The datasets of a file of weights, by the names that released files have for them.

    `called` and `groups` say what they and the file's groups are called in fact, `prefix` what all of it stands under,
    `skipped` what is of no use whatever the options say.
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
    """Return the configuration of a folder (or of a file of weights): its options, and what the weights alone tell.

    >>> read_config("tests/goldens/elmo_tiny").width
    12
    """
    return _config(_find(path))


def _config(found: Found) -> ElmoConfig:
    options = find_options(found.weights)
    return from_options(read_options(options), found.shapes, f"The options in {options}")


def read_weights(path: str | Path, *, config: ElmoConfig | None = None) -> tuple[dict[str, Any], Report]:
    """Return the parameter tree of a folder (or of a file of weights) and what became of every dataset.

    `config` replaces the `options.json` beside it. The language-model head is in the tree where it is in the file.

    >>> params, report = read_weights("tests/goldens/elmo_tiny")
    >>> params["encoder"]["backward"]["layer_1"]["state_kernel"].shape, report.heads, report.unexpected
    ((12, 192), (), [])
    """
    found = _find(path)
    config = config or _config(found)
    report = Report(str(found.weights), skipped=dict(found.skipped))
    report.contradictions += contradictions(config, found.shapes)
    # Of a head whose number of words nothing says, which is among the contradictions, no shape is known.
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
    """The kind of input that a dataset is for, where it is for one."""
    if name == "embedding":
        return "words"
    return "characters" if name == "char_embed" or name.startswith("CNN") else None


def _find(path: str | Path) -> Found:
    weights, beside = find_weights(path)
    tensors, groups = read_hdf5(weights)
    prefixes = [prefix for prefix in PREFIXES if any(name.startswith(f"{prefix}RNN_") for name in tensors)]
    if len(prefixes) != 1:
        some = ", ".join(sorted(tensors)[:5]) or "nothing"
        what = f"{len(prefixes)} ELMos, under {' and '.join(map(repr, prefixes))}" if prefixes else "no ELMo"
        raise ValueError(
            f"{weights} holds {what}: its LSTMs should be called RNN_0 and RNN_1. Among its {len(tensors)} datasets: "
            f"{some}"
        )
    [prefix] = prefixes

    def today(name: str) -> str:
        return elmo_layout.released_name(name.removeprefix(prefix))

    found = Found(weights, prefix, {}, {}, {today(name): name for name in groups}, {})
    for name, tensor in tensors.items():
        if today(name) in found.called:
            raise ValueError(f"{weights} holds the same twice, under two names: {found.called[today(name)]}, {name}")
        found.called[today(name)], found.tensors[today(name)] = name, tensor
    _add_embedding(found, beside)
    _leave_out_a_row(found)
    return found


def _add_embedding(found: Found, beside: list[Path]) -> None:
    """Take word vectors from a file of their own, which is how bilm-tf is given them."""
    own = "embedding" in found.called
    for file in beside:
        for name, tensor in read_hdf5(file)[0].items():
            called = f"{name} in {file.name}"
            if name in EMBEDDINGS and own:
                found.skipped[called] = f"{found.weights.name} has its own"
            elif name in EMBEDDINGS and "embedding" in found.called:
                raise ValueError(
                    f"{found.weights.parent} holds two tables of words, and nothing says which is meant: "
                    f"{found.called['embedding']}, {called}. Move one away."
                )
            elif name in EMBEDDINGS:
                found.called["embedding"], found.tensors["embedding"] = called, tensor


def _leave_out_a_row(found: Found) -> None:
    """Make 261 characters of 262: some files count the mask, whose row is zeros, some a character that no byte is."""
    table = found.tensors.get("char_embed")
    if table is None or len(table.shape) != 2 or table.shape[0] != NUM_IDS + 1:
        return
    values = table.read()
    masked = not np.any(values[0])
    rows = values[1:] if masked else values[:-1]
    found.tensors["char_embed"] = StoredTensor(rows.shape, table.dtype, lambda: rows)
    row, why = (0, "the mask of a padded word, zeros") if masked else (NUM_IDS, "of a character that no byte is")
    found.skipped[f"{found.called['char_embed']}, row {row}"] = why


def write(folder: str | Path, params: Mapping[str, Any], config: ElmoConfig) -> None:
    """Write a folder that bilm-tf and AllenNLP load: `options.json` and `weights.hdf5`.

    The language-model head goes in where the tree has one; those two pass it over. AllenNLP knows only models of
    character input with both projections and skip connections. Parameters that are not those of the configuration are
    an error.

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
    there = [*named_options(folder), *named_weights(folder)] if folder.is_dir() else []
    if there:
        listed = ", ".join(file.name for file in there)
        raise FileExistsError(f"{folder} already holds a model ({listed}): write to another folder")
    folder.mkdir(parents=True, exist_ok=True)
    # The weights come last and appear at once, so that a folder that can be loaded is whole.
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


def _advice(folder: Path) -> str:
    half = [file.name for file in named_options(folder) + named_weights(folder)]
    files = ", ".join(half)
    return f"Of an ELMo's two files only one kind is there ({files}): put the other beside it." if half else ""


FORMAT = WeightFormat(
    owner="an ELMo's",
    looks_like=f"a file of weights, *{' or *'.join(ENDINGS)}, beside options.json",
    files=elmo_files,
    read_config=read_config,
    read_weights=read_weights,
    write=lambda folder, params, config, **_: write(folder, params, config),
    is_file=lambda path: path.is_file() and path in named_weights(path.parent),
    advice=_advice,
)
