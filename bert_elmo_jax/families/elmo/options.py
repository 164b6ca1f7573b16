"""What `options.json` says of an ELMo, held against what its weights show."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bert_elmo_jax.families.elmo.config import ElmoConfig

Shapes = Mapping[str, tuple[int, ...]]  # by the names of released files
CELL = r"RNN_[01]/RNN/MultiRNNCell/Cell(\d+)/LSTMCell/"


def from_options(options: Mapping[str, Any], shapes: Shapes, where: str) -> ElmoConfig:
    """Return the configuration that the options describe, with what only the weights can tell.

    That is whether there is a projection where it changes no width, and how many words there are where no option says.

    >>> from_options({"lstm": {"dim": 8, "projection_dim": 4}}, {"embedding": (100, 4)}, "The options").vocab_size
    100
    """
    found: dict[str, Any] = {}
    if _indices(shapes, CELL + "W_P_0"):
        found["projection"] = True
    if "char_cnn" in options and any(name.startswith("CNN_proj/") for name in shapes):
        found["token_projection"] = True
    if options.get("n_tokens_vocab") is None:
        is_words = "char_cnn" not in options
        words = (is_words and _sizes(shapes, "embedding", 2, 0)) or _words(shapes, False)
        if words:
            options = {**options, "n_tokens_vocab": max(words)}
        elif is_words:
            have = "" if "char_embed" not in shapes else " but char_embed, so char_cnn is missing from the options"
            raise ValueError(f"{where} have no char_cnn, which means word input: the weights have no `embedding`{have}")
    return ElmoConfig.from_options(options, where=where, **found)


def contradictions(config: ElmoConfig, shapes: Shapes) -> list[str]:
    """Return each option that the weights contradict, with what it says and what they have.

    Only where the weights agree among themselves; a single dataset of another shape is no contradiction but damage.

    >>> config = ElmoConfig(input="words", vocab_size=9)
    >>> contradictions(config, {"RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B": (8192,)})
    ['lstm.n_layers is 2, but the weights have 1 (Cell0)', 'lstm.dim is 4096, but the weights have 2048']
    """
    words = config.input == "words"
    lines = []

    def differ(option: str, said: Any, have: set[Any]) -> None:
        if len(have) == 1 and have != {said}:
            lines.append(f"{option} is {json.dumps(said)}, but the weights have {json.dumps(*have)}")

    only = {name for name in ("embedding", "char_embed") if name in shapes}
    if words and only == {"char_embed"}:
        lines.append("there is no char_cnn, which means word input, but the weights have char_embed and no embedding")
    if not words and only == {"embedding"}:
        lines.append("char_cnn says character input, but the weights have embedding and no char_embed")
    _number(lines, "lstm.n_layers", config.num_layers, "Cell", _indices(shapes, CELL + ".*"))
    cells = _sizes(shapes, CELL + "B", 1, 0) | _sizes(shapes, CELL + "W_0", 2, 1)
    differ("lstm.dim", config.cell_size, {size // 4 for size in cells})
    # What a layer reads and what it remembers are both of this width.
    both = {size // 2 for size in _sizes(shapes, CELL + "W_0", 2, 0)}
    differ("lstm.projection_dim", config.width, both | _sizes(shapes, CELL + "W_P_0", 2, 1))
    if not words and only != {"embedding"}:
        differ("char_cnn.filters", config.filters, _filters(shapes))
        _number(lines, "char_cnn.n_highway", config.num_highways, "CNN_high_", _indices(shapes, r"CNN_high_(\d+)/.*"))
        embedding = _sizes(shapes, "char_embed", 2, 1) | _sizes(shapes, r"CNN/W_cnn_\d+", 4, 2)
        differ("char_cnn.embedding.dim", config.char_embedding_size, embedding)
    differ("n_tokens_vocab", config.vocab_size, _words(shapes, words))
    if config.tie_softmax and "softmax/W" in shapes:
        lines.append("share_embedding_softmax is true, but the weights have a softmax/W of their own")
    return lines


def _number(lines: list[str], option: str, said: int, name: str, have: Sequence[int]) -> None:
    if list(have) != list(range(said)):
        listed = f" ({', '.join(f'{name}{number}' for number in have)})" if have else ""
        lines.append(f"{option} is {said}, but the weights have {len(have)}{listed}")


def _indices(shapes: Shapes, pattern: str) -> list[int]:
    return sorted({int(match[1]) for name in shapes if (match := re.fullmatch(pattern, name))})


def _sizes(shapes: Shapes, pattern: str, rank: int, axis: int) -> set[int]:
    return {shape[axis] for name, shape in shapes.items() if len(shape) == rank and re.fullmatch(pattern, name)}


def _words(shapes: Shapes, words: bool) -> set[int]:
    found = _sizes(shapes, "softmax/W", 2, 0) | _sizes(shapes, "softmax/b", 1, 0)
    return found | (_sizes(shapes, "embedding", 2, 0) if words else set())


def _filters(shapes: Shapes) -> set[tuple[tuple[int, int], ...]]:
    """The width and number of each convolution, if all are there and each fits its bias."""
    numbers = _indices(shapes, r"CNN/[Wb]_cnn_(\d+)")
    kernels = [shapes.get(f"CNN/W_cnn_{number}", ()) for number in numbers]
    biases = [shapes.get(f"CNN/b_cnn_{number}", ()) for number in numbers]
    whole = numbers == list(range(len(numbers))) and all(len(kernel) == 4 for kernel in kernels)
    if not numbers or not whole or any(bias != kernel[3:] for kernel, bias in zip(kernels, biases)):
        return set()
    return {tuple((kernel[1], kernel[3]) for kernel in kernels)}
