"""GPT-2 and GPT-1 as OpenAI released them.

GPT-2 is a TensorFlow checkpoint with `hparams.json`; see https://github.com/openai/gpt-2. GPT-1 is one flat array, cut
into `params_0.npy`, `params_1.npy`, …, with `params_shapes.json`; see https://github.com/openai/finetune-transformer-lm.
Kernels are [in, out] like ours, with a first axis of size 1.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.families.gpt.formats import SHAPES, SIZES
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.files import read_array, read_json, read_json_value
from bert_elmo_jax.json_values import list_of, whole_number
from bert_elmo_jax.text.tokenizer_specs import END
from bert_elmo_jax.weights.parameter_tree import Report, check_depth, collect, encoder_prefix, keep_weights, locate
from bert_elmo_jax.weights.stored import StoredTensor, what_is
from bert_elmo_jax.weights.tensor_bundle import checkpoint_prefix, read_tensor_bundle

# Our field -> theirs in `hparams.json`.
FIELDS = {
    "vocab_size": "n_vocab",
    "max_positions": "n_ctx",
    "hidden_size": "n_embd",
    "num_heads": "n_head",
    "num_layers": "n_layer",
}
# The modules of a layer in the order of GPT-1's array.
MODULES = {
    "attention/query": "attn/c_attn",
    "attention/key": "attn/c_attn",
    "attention/value": "attn/c_attn",
    "attention/output": "attn/c_proj",
    "attention/norm": "ln_1",
    "feed_forward/up": "mlp/c_fc",
    "feed_forward/down": "mlp/c_proj",
    "feed_forward/norm": "ln_2",
}
ARRAY = re.compile(r"params_[0-9]{1,9}\.npy")
PARTS = ("query", "key", "value")
WIDTH, HEADS = 768, 12  # of the released GPT-1, whose files do not say the number of heads


def names(num_layers: int, norm_first: bool = True) -> dict[str, str]:
    """Return their name for each path of the tree; the parts of a joined kernel are called `…/w:query` and so on here.

    >>> names(1)["encoder/layer_0/attention/key/kernel"]
    'h0/attn/c_attn/w:key'
    """
    table = {"encoder/embeddings/word": "wte", "encoder/embeddings/position": "wpe"}
    modules = {f"layer_{i}/{ours}": f"h{i}/{theirs}" for i in range(num_layers) for ours, theirs in MODULES.items()}
    for ours, theirs in (modules | ({"norm": "ln_f"} if norm_first else {})).items():
        last = ours.rsplit("/", 1)[-1]
        part = f":{last}" if last in PARTS else ""
        weight = ("scale", "g") if last == "norm" else ("kernel", "w")
        table |= {f"encoder/{ours}/{weight[0]}": f"{theirs}/{weight[1]}{part}"}
        table |= {f"encoder/{ours}/bias": f"{theirs}/b{part}"}
    return table


def read_config(path: str | Path) -> GptConfig:
    """Return the configuration of a folder: from `hparams.json`, or from the shapes of a GPT-1.

    The files of a GPT-1 do not give its number of heads: it is 12 for the released width. For another width, the folder
    needs an `hparams.json` with `n_head`.
    """
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    if (folder / SHAPES).is_file():
        return _config_of_shapes(folder)
    file = folder / SIZES
    if not file.is_file():
        raise FileNotFoundError(
            f"{file} does not exist; it holds the sizes of the GPT-2: copy it there, or give config="
        )
    fields = read_json(file)
    values = _read_sizes(fields, file)
    missing = [theirs for ours, theirs in FIELDS.items() if ours not in values]
    if missing:
        raise ValueError(f"{file} lacks {', '.join(missing)}: copy it again")
    end = read_json(folder / "encoder.json", default={}).get(END)
    ends = {} if end is None else {"end_id": end, "pad_id": end}
    return _checked(file, **values, feed_forward_size=4 * values["hidden_size"], **ends)


def read_weights(path: str | Path, *, config: GptConfig | None = None) -> tuple[dict[str, Any], Report]:
    """Return the parameter tree of a released model (its folder, or a checkpoint's prefix) and a report."""
    config = config or read_config(path)
    flat = Path(path).is_dir() and (Path(path) / SHAPES).is_file()
    if flat != (not config.norm_first):
        kind = "a GPT-1 (norm_first=False)" if flat else "a GPT-2 (norm_first=True)"
        raise ValueError(f"the weights in {path} are those of {kind}, but config= has norm_first={config.norm_first}")
    source = Path(path) / SHAPES if flat else checkpoint_prefix(path)
    report = Report(str(source))
    stored = _read_flat(Path(path)) if flat else read_tensor_bundle(source)
    check_depth(config.num_layers, stored, report.source)
    weights = dict(_split(keep_weights(stored, report)))
    scope = encoder_prefix(weights, "wte", "/", report.source)
    located, expected = locate(names(config.num_layers, config.norm_first), {n: n for n in weights}, scope, "/")
    return collect(weights, located, expected, set(), param_shapes(get_family("gpt"), config), report), report


def _read_sizes(fields: Mapping[str, Any], file: Path) -> dict[str, int]:
    unknown = sorted(set(fields) - set(FIELDS.values()))
    if unknown:
        hint = did_you_mean(unknown[0], FIELDS.values())
        raise ValueError(f"{file} has the field {unknown[0]!r}, which is of unknown meaning{hint}")
    wrong = [f"{name} is {value!r}" for name, value in fields.items() if type(value) is not int]
    if wrong:
        raise ValueError(f"{file}: {', '.join(wrong)}; sizes are whole numbers")
    return {ours: fields[theirs] for ours, theirs in FIELDS.items() if theirs in fields}


def _checked(file: Path, **values: Any) -> GptConfig:
    try:
        return GptConfig(**values)
    except ValueError as error:
        listed = ", ".join(f"{ours} is its {theirs}" for ours, theirs in FIELDS.items() if ours in str(error))
        raise ValueError(f"{file}: {error}" + (f" ({listed})" if listed else "")) from None


def _config_of_shapes(folder: Path) -> GptConfig:
    file, shapes = folder / SHAPES, _read_shapes(folder)
    layers, remainder = divmod(len(shapes) - 2, 12)
    if remainder or layers < 1 or any(len(shape) != 2 or shape[1] != shapes[0][-1] for shape in shapes[:2]):
        raise ValueError(
            f"{file} lists {len(shapes)} shapes that begin with {shapes[:2]}; a GPT-1 has its positions, its words, "
            "and 12 more for each layer"
        )
    (positions, width), (words, _) = shapes[:2]
    sizes = _read_sizes(read_json(folder / SIZES, default={}), folder / SIZES)
    shown = {"vocab_size": words, "max_positions": positions, "hidden_size": width, "num_layers": layers}
    for ours, size in shown.items():
        if sizes.get(ours, size) != size:
            raise ValueError(f"{folder / SIZES}: {FIELDS[ours]} is {sizes[ours]}, but {file} has {size}")
    if "num_heads" not in sizes and width != WIDTH:
        raise ValueError(
            f"{file} does not say how many heads a GPT-1 of width {width} has (the released one of width {WIDTH} has "
            f'{HEADS}): write {{"n_head": …}} into {folder / SIZES}'
        )
    ends = [shape[-1] for shape in shapes[8:9]]  # the kernel of the first feed-forward layer
    more = {"num_heads": sizes.get("num_heads", HEADS), "feed_forward_size": ends[0], "norm_first": False}
    return _checked(file, **shown, **more)


SHAPE_LIST = list_of(list_of(whole_number(1), most=4), most=100_000)


def _read_shapes(folder: Path) -> list[list[int]]:
    file = folder / SHAPES
    shapes: list[list[int]] = read_json_value(file)
    if not (shapes and SHAPE_LIST.accepts(shapes) and all(shapes)):
        raise ValueError(f"{file} is not a list of shapes, such as [[512, 768], …]: copy it again")
    return shapes


def _read_flat(folder: Path) -> dict[str, StoredTensor]:
    """Return the tensors of a GPT-1 by the names of the program that wrote them."""
    shapes = _read_shapes(folder)
    layer = [f"{theirs}/{kind}" for theirs in dict.fromkeys(MODULES.values()) for kind in _kinds(theirs)]
    layers = range((len(shapes) - 2) // 12)
    listed = ["wpe", "wte", *(f"h{i}/{name}" for i in layers for name in layer)]
    starts = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
    named = list(folder.glob("params_*.npy"))
    if odd := [file for file in named if not ARRAY.fullmatch(file.name)]:
        raise ValueError(f"{odd[0]}: expected a name such as params_0.npy; rename the file, or remove it")
    files = sorted(named, key=lambda file: int(file.stem.removeprefix("params_")))
    numbers = [int(file.stem.removeprefix("params_")) for file in files]
    arrays = [_open(file) for file in files]
    have = sum(array.size for array in arrays)
    if numbers != list(range(len(files))) or have != starts[-1]:
        names = ", ".join(file.name for file in files) or "no file"
        raise ValueError(
            f"{folder / SHAPES} lists {starts[-1]:,} numbers, but {names} "
            f"beside it hold {have:,}: a file params_N.npy is missing or damaged, copy the folder again"
        )
    joined = np.concatenate(arrays)

    def tensor(start: int, end: int, shape: list[int]) -> StoredTensor:
        return StoredTensor(tuple(shape), str(joined.dtype), lambda: joined[start:end].reshape(shape))

    ranges = zip(starts, starts[1:], shapes, strict=False)
    return {name: tensor(int(a), int(b), shape) for name, (a, b, shape) in zip(listed, ranges, strict=False)}


def _kinds(module: str) -> tuple[str, str]:
    return ("g", "b") if module.startswith("ln_") else ("w", "b")


def _open(file: Path) -> np.ndarray:
    try:
        array: np.ndarray = read_array(file)
    except (ValueError, OSError) as error:
        raise ValueError(f"{file} is not an array of numpy but {what_is(file)} ({error})") from None
    return array.ravel()


def _split(stored: Mapping[str, StoredTensor]) -> Iterator[tuple[str, StoredTensor]]:
    """Yield the tensors with kernels of two axes, and the joined ones of attention in their three parts."""
    for name, tensor in stored.items():
        shape = tensor.shape[1:] if len(tensor.shape) == 3 and tensor.shape[0] == 1 else tensor.shape
        if not name.endswith(("attn/c_attn/w", "attn/c_attn/b")) or shape[-1] % len(PARTS):
            yield name, StoredTensor(shape, tensor.dtype, _reader(tensor, shape))
            continue
        size = shape[-1] // len(PARTS)
        for number, part in enumerate(PARTS):
            read = _reader(tensor, shape, slice(number * size, (number + 1) * size))
            yield f"{name}:{part}", StoredTensor((*shape[:-1], size), tensor.dtype, read)


def _reader(tensor: StoredTensor, shape: tuple[int, ...], part: slice = slice(None)) -> Any:
    return lambda: tensor.read().reshape(shape)[..., part]
