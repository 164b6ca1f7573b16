"""fastai's weights: `0.encoder.weight`, `0.rnns.0.weight_hh_l0_raw`, `1.decoder.bias`, …, read without torch.

Sizes come from the tensors. A file may hold a language model (`0.…`, `1.decoder.…`), a classifier (`0.module.…`,
`1.layers.…`) or an encoder alone. The recurrent matrix before weight drop is called `weight_hh_l0_raw` and lies outside
`.module` (inside in fastai 0.7).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.formats import FILES, FIRST, SIGN, WRITTEN
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.weights.huggingface_files import write_safetensors
from bert_elmo_jax.weights.parameter_tree import Report, check_depth
from bert_elmo_jax.weights.single_files import read_tensors
from bert_elmo_jax.weights.stored import StoredTensor
from bert_elmo_jax.weights.torch_lstm import make_tensors, read_sums

Tensors = Mapping[str, StoredTensor]
Table = dict[str, tuple[str, ...]]
COPIES = ("encoder_dp.emb.weight", "encoder_with_dropout.embed.weight")  # fastai lists the embeddings twice
RAW = ("weight_hh_l0_raw", "module.weight_hh_l0_raw", "module.weight_hh_l0")
DROPPED = "module.weight_hh_l0"  # what weight drop made of the raw matrix in the last training step
BACKWARD = re.compile(r"(?<![a-z])(bwd|backwards?)(?![a-z])", re.IGNORECASE)
NORM = {"scale": "weight", "bias": "bias", "mean": "running_mean", "variance": "running_var"}


@dataclass(frozen=True)
class Names:
    """The names of one file's tensors: our paths to the tensors whose sum they are."""

    table: Mapping[str, tuple[str, ...]]
    ignored: Mapping[str, str]  # theirs -> reason
    sizes: Mapping[str, Any]  # fields of the configuration


def read_config(path: str | Path) -> AwdLstmConfig:
    """Return the configuration that the shapes of the tensors show; dropout rates are the class's defaults."""
    file = FILES.find_weights(path)
    sizes = find_names(read_tensors(file), str(file)).sizes
    return AwdLstmConfig(**sizes, direction=direction_of(file))  # type: ignore[arg-type]


def direction_of(file: Path) -> str:
    """Return "backward" for a file that is named so, because its tensors do not show it."""
    return "backward" if BACKWARD.search(file.stem.replace("_", " ")) else "forward"


def read_weights(path: str | Path, *, config: AwdLstmConfig | None = None) -> tuple[dict[str, Any], Report]:
    """Return the parameters of a file or a folder, and the report of its tensors."""
    file = FILES.find_weights(path)
    stored = read_tensors(file)
    names = find_names(stored, str(file))
    report = Report(str(file), skipped=dict(names.ignored))
    heads = [head for head in ("lm", "classifier") if any(path.startswith(f"{head}/") for path in names.table)]
    [words] = names.table["encoder/embeddings/word"]
    copies = [name for name, why in names.ignored.items() if why.startswith("a copy")]
    report.contradictions += [f"{name} is not the same as {words}" for name in copies if not _same(stored, name, words)]
    shapes = param_shapes(get_family("awd_lstm"), config or read_config(file), heads)
    return read_sums(stored, names.table, shapes, report), report


def find_names(stored: Tensors, source: str) -> Names:
    """Return which tensors make which parameter, and the sizes that they show; raise on another kind of model."""
    first = next((match for name in stored if (match := FIRST.fullmatch(name))), None)
    if first is None:
        examples = ", ".join(sorted(stored)[:5])
        raise ValueError(f"{source} holds no AWD-LSTM: it has no {SIGN} but {examples}")
    prefix = first[1] or ""
    if first[2].startswith("layers"):
        raise ValueError(
            f"{source} holds an AWD-QRNN ({first[0]}), whose layers are no LSTMs; only LSTMs are supported"
        )
    if first[0] + "_reverse" in stored:
        raise ValueError(f"{source} holds an LSTM of both directions ({first[0]}_reverse); an AWD-LSTM has one")
    number = re.compile(re.escape(prefix) + r"rnns\.(\d+)\.")
    layers = max(int(match[1]) for name in stored if (match := number.match(name))) + 1
    check_depth(layers, stored, source)
    words = prefix + "encoder.weight"
    copies = [prefix + name for name in COPIES if prefix + name in stored]
    if words not in stored and copies:
        words = copies.pop()
    ignored = dict.fromkeys(copies, "a copy of the embeddings")
    table: Table = {"encoder/embeddings/word": (words,)}
    for n in range(layers):
        theirs = f"{prefix}rnns.{n}."
        raw = next((name for name in RAW if theirs + name in stored), RAW[0])
        table |= _layer_names(n, theirs, raw)
        if raw != DROPPED and theirs + DROPPED in stored:
            ignored[theirs + DROPPED] = "after weight drop"
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
    return Names(table | more, ignored | counters, sizes | ({"classifier": widths} if widths else {}))


def _layer_names(number: int, prefix: str, raw: str = RAW[0]) -> Table:
    """Return the names of a layer's tensors; `raw` is the recurrent matrix."""
    ours, theirs = f"encoder/layer_{number}/", f"{prefix}module."
    return {
        ours + "input_kernel": (theirs + "weight_ih_l0",),
        ours + "state_kernel": (prefix + raw,),
        ours + "bias": (theirs + "bias_ih_l0", theirs + "bias_hh_l0"),
    }


def _read_sizes(stored: Tensors, words: str, first: str, source: str) -> dict[str, int]:
    """Return the sizes of vocabulary, embeddings and cells."""
    if words not in stored or len(stored[words].shape) != 2:
        raise ValueError(f"{source} has no embeddings {words} [words, size], which a language model reads")
    vocab_size, embedding_size = stored[words].shape
    shape = stored[first].shape
    if len(shape) != 2 or shape[0] % 4 or 0 in shape:
        raise ValueError(f"{source}: {first} has the shape {list(shape)}; an LSTM's is [4 · cells, inputs]")
    return {"vocab_size": vocab_size, "embedding_size": embedding_size, "cell_size": shape[0] // 4}


def _classifier(stored: Tensors, prefix: str, source: str) -> tuple[Table, tuple[int, ...], dict[str, str]]:
    """Return the names of a classifier's tensors, its widths, and the counters that are not used."""
    names = [name.removeprefix(prefix) for name in stored if name.startswith(prefix)]
    counters = {prefix + name: "a counter" for name in names if name.endswith("num_batches_tracked")}
    matrices = [name for name in names if name.endswith(".weight") and len(stored[prefix + name].shape) == 2]
    table: Table = {}
    widths = []
    for block in range(len({name.split(".")[0] for name in names})):
        kernels = [name for name in matrices if re.fullmatch(rf"{block}\.\d+\.weight", name)]
        if len(kernels) != 1 or f"{block}.0.running_mean" not in names:
            raise ValueError(
                f"{source}: {prefix}{block} is not batch norm and a linear layer, as in fastai 2: this classifier is "
                "not supported (an encoder saved by save_encoder is)"
            )
        if kernels[0].replace("weight", "bias") in names:
            raise ValueError(f"{source}: {prefix}{kernels[0]} has a bias, which fastai's linear layers have not")
        table |= _block_names(block, prefix, kernels[0])
        widths.append(stored[prefix + kernels[0]].shape[0])
    return table, tuple(widths), counters


def _block_names(number: int, prefix: str, kernel: str) -> Table:
    """Return the names of the tensors of batch norm and a linear layer of a classifier."""
    ours, theirs = f"classifier/layer_{number}", f"{prefix}{number}.0."
    norm: Table = {f"{ours}/norm/{part}": (theirs + name,) for part, name in NORM.items()}
    return norm | {f"{ours}/kernel": (prefix + kernel,)}


def write(folder: str | Path, params: Mapping[str, Any], config: AwdLstmConfig, **unused: Any) -> None:
    """Write the model with fastai's names as `lm.safetensors`, a backward one as `lm_bwd.safetensors`.

    `safetensors.torch.load_file` reads it for torch.
    A classifier of the model is written, too. `unused` are facts of other classifiers, which an AWD-LSTM has not.
    """
    del unused
    prefix = "0.module." if "classifier" in params else "0."
    words = f"{prefix}encoder.weight"
    table: Table = {"encoder/embeddings/word": (words,)}
    for n in range(config.num_layers):
        table |= _layer_names(n, f"{prefix}rnns.{n}.")
    copies = {f"{prefix}{COPIES[0]}"}
    if "classifier" in params:
        if config.pooling != AwdLstmConfig.pooling:
            usual = f"fastai's classifiers read {AwdLstmConfig.pooling}: convert --to_format=run, or train it with that"
            raise ValueError(f"this classifier reads the pooling {config.pooling}, and {usual}")
        for n in range(len(config.classifier)):
            table |= _block_names(n, "1.layers.", f"{n}.2.weight")
    elif "lm" in params or not config.has_lm_params:
        if config.tie_softmax:
            copies.add("1.decoder.weight")
        else:
            table["lm/embedding"] = ("1.decoder.weight",)
        if config.output_bias:
            table["lm/bias"] = ("1.decoder.bias",)
    tensors = make_tensors(params, table)
    tensors |= {name: tensors[words].copy() for name in copies}
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_safetensors(Path(folder) / WRITTEN[config.direction], tensors)


def _same(stored: Tensors, one: str, other: str) -> bool:
    """Return whether two tensors hold the same numbers."""
    a, b = stored[one], stored[other]
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a.read(), b.read())
