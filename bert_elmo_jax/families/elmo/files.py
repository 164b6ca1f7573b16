"""Find the files of an ELMo (weights, options, separate word vectors), and compare the options with the weights."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.files import check_regular, read_json
from bert_elmo_jax.weights.stored import what_is

Shapes = Mapping[str, tuple[int, ...]]  # keyed by the names of released files
CELL = r"RNN_[01]/RNN/MultiRNNCell/Cell(\d+)/LSTMCell/"
ENDINGS = (".hdf5", ".h5")
OTHER_MODELS = ("tf_model.h5",)  # files of other models with such a name
PREFIXES = ("", "lm/", "bilm/")  # the scopes of a training run and of its inference graph; released files have none
LSTMS = tuple(f"{prefix}RNN_{direction}" for prefix in PREFIXES for direction in (0, 1))
EMBEDDINGS = tuple(f"{prefix}embedding" for prefix in PREFIXES)


def elmo_files(folder: str | Path) -> list[str]:
    """Return the names of the ELMo files in a folder, or none unless it has both weights and options."""
    weights, options = named_weights(Path(folder)), named_options(Path(folder))
    return [file.name for file in options + weights] if weights and options else []


def named_weights(folder: Path) -> list[Path]:
    """Return the files of a folder with an HDF5 ending."""
    files = (file for file in folder.iterdir() if file.name.lower().endswith(ENDINGS) and file.is_file())
    return sorted(file for file in files if file.name not in OTHER_MODELS)


def named_options(folder: Path) -> list[Path]:
    """Return the files of a folder named `*options*.json`."""
    return sorted(file for file in folder.glob("*options*.json") if file.is_file())


def find_weights(path: str | Path) -> tuple[Path, list[Path]]:
    """Return the file with an ELMo's LSTMs, and those with its word vectors, for a folder or a file."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    files = named_weights(folder)
    if not files:
        raise FileNotFoundError(f"{folder} has no ELMo: no file ends with {' or '.join(ENDINGS)}")
    if not path.is_dir():
        return path, [file for file in files if file != path and _holds(file, EMBEDDINGS) is True]
    if len(files) == 1:
        return files[0], []
    answers = {file: _holds(file, LSTMS) for file in files}
    weights = [file for file, answer in answers.items() if answer is True]
    if len(weights) > 1:
        listed = ", ".join(file.name for file in weights)
        raise ValueError(f"{folder} has {len(weights)} ELMos, give the path of one: {listed} (such as {weights[0]})")
    if not weights:
        listed = "; ".join(
            answer if isinstance(answer, str) else f"{file.name} has no LSTM (RNN_0)"
            for file, answer in answers.items()
        )
        raise ValueError(f"{folder} has no readable ELMo: {listed}")
    return weights[0], [file for file in files if file != weights[0] and _holds(file, EMBEDDINGS) is True]


def _holds(file: Path, names: tuple[str, ...]) -> bool | str:
    """Return whether a file holds any of these names, or the error message if it cannot be read."""
    from bert_elmo_jax.weights.hdf5 import holds

    try:
        return holds(file, names)
    except (ValueError, OSError) as problem:
        return str(problem)


def find_options(weights: Path) -> Path:
    """Return the options file for a file of weights: the only one in its folder, or the one with a matching name."""
    options = named_options(weights.parent)
    if len(options) == 1:
        return options[0]
    if not options:
        raise FileNotFoundError(
            f"{weights.parent} has no options.json (or *options*.json), which holds the sizes of the ELMo: copy it "
            "there, or give config="
        )
    alike = [file for file in options if file.stem.replace("options", "weights") == weights.stem]
    if len(alike) == 1:
        return alike[0]
    raise ValueError(
        f"{weights.parent} has {len(options)} options files ({', '.join(file.name for file in options)}), and none "
        f"matches the name of {weights.name}: move the options of other models away"
    )


def read_options(path: Path) -> Mapping[str, Any]:
    """Return the content of an `options.json`."""
    try:
        return read_json(path)
    except ValueError as problem:
        check_regular(path)
        content = what_is(path)
        if content == "a JSON text":
            raise
        raise ValueError(f"{path} is not a JSON file but {content}: {problem}") from None


def from_options(options: Mapping[str, Any], shapes: Shapes, where: str) -> ElmoConfig:
    """Return the configuration of the options; the weights' shapes show projections and the size of the vocabulary."""
    fields: dict[str, Any] = {}
    if _indices(shapes, CELL + "W_P_0"):
        fields["projection"] = True
    if "char_cnn" in options and any(name.startswith("CNN_proj/") for name in shapes):
        fields["token_projection"] = True
    if options.get("n_tokens_vocab") is None:
        is_words = "char_cnn" not in options
        words = (is_words and _sizes(shapes, "embedding", 2, 0)) or _words(shapes, False)
        if words:
            options = {**options, "n_tokens_vocab": max(words)}
        elif is_words:
            have = "" if "char_embed" not in shapes else " but char_embed: add char_cnn to the options"
            raise ValueError(f"{where} have no char_cnn (word input), but the weights have no `embedding`{have}")
    return ElmoConfig.from_options(options, where=where, **fields)


def contradictions(config: ElmoConfig, shapes: Shapes) -> list[str]:
    """Return a message for each option that the weights contradict, if these agree among themselves.

    >>> config = ElmoConfig(input="words", vocab_size=9)
    >>> contradictions(config, {"RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B": (8192,)})
    ['lstm.n_layers is 2, but the weights have 1 (Cell0)', 'lstm.dim is 4096, but the weights have 2048']
    """
    words = config.input == "words"
    lines = []

    def compare(option: str, value: Any, have: set[Any]) -> None:
        if len(have) == 1 and have != {value}:
            lines.append(f"{option} is {json.dumps(value)}, but the weights have {json.dumps(*have)}")

    only = {name for name in ("embedding", "char_embed") if name in shapes}
    if words and only == {"char_embed"}:
        lines.append("there is no char_cnn (word input), but the weights have char_embed and no embedding")
    if not words and only == {"embedding"}:
        lines.append("there is a char_cnn (character input), but the weights have embedding and no char_embed")
    _compare_count(lines, "lstm.n_layers", config.num_layers, "Cell", _indices(shapes, CELL + ".*"))
    cells = _sizes(shapes, CELL + "B", 1, 0) | _sizes(shapes, CELL + "W_0", 2, 1)
    compare("lstm.dim", config.cell_size, {size // 4 for size in cells})
    # The input and the state of a layer both have this width.
    both = {size // 2 for size in _sizes(shapes, CELL + "W_0", 2, 0)}
    compare("lstm.projection_dim", config.width, both | _sizes(shapes, CELL + "W_P_0", 2, 1))
    if not words and only != {"embedding"}:
        compare("char_cnn.filters", config.filters, _filters(shapes))
        _compare_count(
            lines, "char_cnn.n_highway", config.num_highways, "CNN_high_", _indices(shapes, r"CNN_high_(\d+)/.*")
        )
        embedding = _sizes(shapes, "char_embed", 2, 1) | _sizes(shapes, r"CNN/W_cnn_\d+", 4, 2)
        compare("char_cnn.embedding.dim", config.char_embedding_size, embedding)
    compare("n_tokens_vocab", config.vocab_size, _words(shapes, words))
    if config.tie_softmax and "softmax/W" in shapes:
        lines.append("share_embedding_softmax is true, but the weights have a separate softmax/W")
    return lines


def _compare_count(lines: list[str], option: str, count: int, name: str, have: Sequence[int]) -> None:
    if list(have) != list(range(count)):
        listed = f" ({', '.join(f'{name}{number}' for number in have)})" if have else ""
        lines.append(f"{option} is {count}, but the weights have {len(have)}{listed}")


def _indices(shapes: Shapes, pattern: str) -> list[int]:
    return sorted({int(match[1]) for name in shapes if (match := re.fullmatch(pattern, name))})


def _sizes(shapes: Shapes, pattern: str, rank: int, axis: int) -> set[int]:
    return {shape[axis] for name, shape in shapes.items() if len(shape) == rank and re.fullmatch(pattern, name)}


def _words(shapes: Shapes, words: bool) -> set[int]:
    sizes = _sizes(shapes, "softmax/W", 2, 0) | _sizes(shapes, "softmax/b", 1, 0)
    return sizes | (_sizes(shapes, "embedding", 2, 0) if words else set())


def _filters(shapes: Shapes) -> set[tuple[tuple[int, int], ...]]:
    """Return the width and number of each convolution, if all exist and fit their biases."""
    numbers = _indices(shapes, r"CNN/[Wb]_cnn_(\d+)")
    kernels = [shapes.get(f"CNN/W_cnn_{number}", ()) for number in numbers]
    biases = [shapes.get(f"CNN/b_cnn_{number}", ()) for number in numbers]
    complete = numbers == list(range(len(numbers))) and all(len(kernel) == 4 for kernel in kernels)
    if not numbers or not complete or any(bias != kernel[3:] for kernel, bias in zip(kernels, biases)):
        return set()
    return {tuple((kernel[1], kernel[3]) for kernel in kernels)}
