"""The files of sentence-transformers: `modules.json`, the pooling, dense layers, normalisation and prompts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families.family import Family, WeightFormat
from bert_elmo_jax.files import read_json, read_json_value
from bert_elmo_jax.heads.sentence_head import MODES, NAME, SIMILARITIES, Dense, SentenceHead
from bert_elmo_jax.json_values import OBJECT, TEXT, TRUTH, Fields, any_of, list_of, object_of, one_of, whole_number
from bert_elmo_jax.text.tokenizer_checks import read_tokenizer_config
from bert_elmo_jax.weights.huggingface_files import read_folder, write_safetensors

MODULES = "modules.json"
MOST_MODULES, DEEPEST = 100, 2  # modules of a model, and folders inside each other in the path of one
SETTINGS = "config_sentence_transformers.json"
# Every version of sentence-transformers knows the types by these names.
TYPE = "sentence_transformers.models."
KINDS = ("Transformer", "Pooling", "Dense", "Normalize")
# The file with the length of a text, next to the weights; for some families it was written under other names.
LENGTH, LENGTHS = "sentence_bert_config.json", "sentence_*_config.json"
# The names of the pooling modes before sentence-transformers 6: one truth value each.
OLD_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
SIZES = ("embedding_dimension", "word_embedding_dimension")  # of a piece, today and before
ACTIVATIONS = {  # ours -> the class of PyTorch
    "identity": "torch.nn.modules.linear.Identity",
    **{name.lower(): f"torch.nn.modules.activation.{name}" for name in ("Tanh", "ReLU", "GELU", "Sigmoid", "SiLU")},
}
DENSE_FIELDS = ("in_features", "out_features", "bias", "activation_function")
# The kinds of the fields that are read, by file.
POOLING_FIELDS: Fields = {
    **dict.fromkeys((*OLD_MODES, "include_prompt"), TRUTH),
    **dict.fromkeys(SIZES, whole_number(1, 10**6)),
    "pooling_mode": any_of(TEXT, list_of(TEXT, most=len(MODES))),
}
DENSE_KINDS: Fields = {"in_features": whole_number(1, 10**6), "out_features": whole_number(1, 10**6), "bias": TRUTH,
                       "activation_function": TEXT, "use_residual": TRUTH}  # fmt: skip
LENGTH_FIELDS: Fields = {"max_seq_length": whole_number(3), "do_lower_case": TRUTH, "processing_kwargs": OBJECT}
SETTINGS_FIELDS: Fields = {
    "prompts": object_of(TEXT),
    "default_prompt_name": TEXT,
    "similarity_fn_name": one_of(*SIMILARITIES),
    "truncate_dim": whole_number(1),
}
VECTOR = "sentence_embedding"  # what modules after the pooling read and write


class SentenceFolder(NamedTuple):
    """The folder of the encoder, the head, the parameters of its dense layers, and the size of the pooled vectors."""

    encoder: Path
    head: SentenceHead
    params: dict[str, Any]
    size: int | None  # None: the file of the pooling does not say it


def read_sentence_folder(folder: Path) -> SentenceFolder:
    """Read all of a folder of sentence-transformers except the encoder; raise on what would change its vectors."""
    modules = list(_read_modules(folder / MODULES))
    kinds = [kind for kind, _ in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or not set(kinds[2:]) <= {"Dense", "Normalize"}:
        raise ValueError(
            f"{folder / MODULES} lists {', '.join(kinds)}; expected Transformer, Pooling, and then only Dense and "
            "Normalize: other models are not supported"
        )
    encoder = folder / modules[0][1]
    pooling, include_prompt, size = _read_pooling(folder / modules[1][1] / "config.json")
    layers: list[Any] = []
    params: dict[str, Any] = {}
    for kind, path in modules[2:]:
        if kind == "Normalize":
            _check_whole_vector(folder / path / "config.json")
            layers.append("normalize")
        else:
            layer, params[f"dense_{len(params)}"] = _read_dense(folder / path)
            layers.append(layer)
    settings = {**_read_length(encoder), **read_settings(folder)}
    try:
        head = SentenceHead(pooling, tuple(layers), include_prompt=include_prompt, **settings)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None
    return SentenceFolder(encoder, head, params, size)


def refuse_decoder_states(family: Family, source: str | Path, advice: str) -> None:
    """Raise for a family whose vectors of sentences differ in sentence-transformers.

    >>> from bert_elmo_jax.families import get_family
    >>> refuse_decoder_states(get_family("bert"), "a folder", "copy it")
    """
    if not family.sentence_files:
        raise ValueError(
            f"{source} holds {family.called}: sentence-transformers pools the states of its decoder, and `sentences` "
            f"those of its encoder, so the vectors would differ: {advice}"
        )


def _read_modules(file: Path) -> Any:
    """Yield the kind and the folder of each module."""
    modules = read_json_value(file)
    if not isinstance(modules, list) or not all(
        isinstance(module, dict) and "type" in module and isinstance(module.get("path"), str) for module in modules
    ):
        raise ValueError(f"{file} is not a list of modules, each with a type and a path: copy it again")
    if len(modules) > MOST_MODULES:
        raise ValueError(f"{file} lists {len(modules):,} modules; at most {MOST_MODULES} are possible")
    for module in modules:
        kind = str(module["type"]).rpartition(".")[2]
        if kind not in KINDS or not str(module["type"]).startswith("sentence_transformers."):
            raise ValueError(
                f"{file}: the module type {module['type']!r} is not supported; known are {', '.join(KINDS)}"
            )
        path = Path(str(module["path"]))
        if len(path.parts) > DEEPEST:  # `files.check_links` does not look deeper
            raise ValueError(f"{file}: {module['path']!r:.60} has more than {DEEPEST} folders inside each other")
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{file} names a module outside its folder, which is refused: {module['path']!r}")
        yield kind, path


def _read_pooling(file: Path) -> tuple[tuple[str, ...], bool, int | None]:
    """Return the modes, from either form of the file, whether a prompt is pooled, and the size of a piece's vector."""
    fields = _read_object(file, "the pooling", POOLING_FIELDS)
    fields_read = {*OLD_MODES, *SIZES, "pooling_mode", "include_prompt"}
    unknown = [name for name in fields if name not in fields_read and fields[name] not in (False, None)]
    if unknown:
        raise ValueError(
            f"{file}: {unknown[0]} is not supported; known are pooling_mode ({', '.join(MODES)}) and include_prompt"
            f"{did_you_mean(unknown[0], fields_read)}"
        )
    mode: Any = fields.get("pooling_mode")
    modes: Any = [mode] if isinstance(mode, str) else mode
    if mode is None:
        modes = [mode for name, mode in OLD_MODES.items() if fields.get(name)]
        if not modes:
            raise ValueError(f"{file} turns on no pooling; one of {', '.join(OLD_MODES)} must be true")
    wrong = [mode for mode in modes if mode not in MODES] if isinstance(modes, list) else [modes]
    if wrong or not modes:
        hint = did_you_mean(str(wrong[0]), MODES) if wrong else ""
        raise ValueError(f"{file}: the pooling {mode!r} is not known; known are {', '.join(MODES)}{hint}")
    if len(set(modes)) < len(modes):
        raise ValueError(f"{file}: the pooling {mode!r} names a mode twice")
    size = next((fields[name] for name in SIZES if fields.get(name) is not None), None)
    return tuple(modes), fields.get("include_prompt", True) is not False, size


def _read_dense(folder: Path) -> tuple[Dense, dict[str, np.ndarray]]:
    """Return a dense layer and its parameters, with the kernel as [in, out]."""
    file = folder / "config.json"
    fields = _read_object(file, "the dense layer", DENSE_KINDS)
    _check_whole_vector(file)
    if fields.get("use_residual"):
        raise ValueError(f"{file}: use_residual is not supported")
    missing = [name for name in DENSE_FIELDS[:2] if not isinstance(fields.get(name), int)]
    if missing:
        raise ValueError(f"{file} lacks {' and '.join(missing)}, whole numbers: copy it again")
    full = fields.get("activation_function", ACTIVATIONS["tanh"])
    activations = {name: ours for ours, name in ACTIVATIONS.items()}
    activations |= {f"torch.nn.{name.rpartition('.')[2]}": ours for name, ours in activations.items()}
    if full not in activations:
        raise ValueError(f"{file}: activation_function {full!r} is not known; known are {', '.join(activations)}")
    layer: Any = Dense(fields["in_features"], fields["out_features"], fields.get("bias", True), activations[full])
    source, stored = read_folder(folder)
    params = {}
    for ours, theirs, shape in (
        ("kernel", "linear.weight", (layer.outputs, layer.inputs)),
        *((("bias", "linear.bias", (layer.outputs,)),) if layer.bias else ()),
    ):
        if theirs not in stored or stored[theirs].shape != shape:
            problem = f"has {theirs} of shape {stored[theirs].shape}" if theirs in stored else f"lacks {theirs}"
            raise ValueError(f"{source} {problem}; {file} says {shape}")
        if "float" not in stored[theirs].dtype:
            raise ValueError(f"{source}: {theirs} has numbers of the type {stored[theirs].dtype}; expected floats")
        value = np.asarray(stored[theirs].read(), np.float32)
        if not np.isfinite(value).all():
            raise ValueError(f"{source}: {theirs} holds NaN or infinity: the file is damaged, copy it again")
        params[ours] = np.ascontiguousarray(value.T)
    return layer, params


def _check_whole_vector(file: Path) -> None:
    """Raise if a module reads or writes something else than the vector of a text."""
    fields = read_json(file, default={})
    for name in ("module_input_name", "module_output_name"):
        if fields.get(name) not in (None, VECTOR):
            raise ValueError(f"{file}: {name} is {fields[name]!r}; only {VECTOR!r} is supported")


def _read_length(encoder: Path) -> dict[str, Any]:
    """Return the length of a text, and whether it is lower-cased."""
    files = sorted(encoder.glob(LENGTHS))
    fields: dict[str, Any] = read_json(files[0], fields=LENGTH_FIELDS) if files else {}
    if fields.get("processing_kwargs"):
        raise ValueError(
            f"{files[0]}: processing_kwargs is {fields['processing_kwargs']!r:.80}, which is not supported: remove it, "
            "and write the length of a text as max_seq_length"
        )
    length = fields.get("max_seq_length")
    if length is None:
        # Newer versions write it here; models without a limit have a very large number.
        length = read_tokenizer_config(encoder).get("model_max_length")
        length = int(length) if isinstance(length, int | float) and abs(length) < 10**6 else None
    if length is not None and length < 3:
        raise ValueError(f"{encoder}: max_seq_length is {length!r}; expected a whole number, 3 or more")
    return {"max_length": length, "lowercase": bool(fields.get("do_lower_case", False))}


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the prompts, the similarity and the size of a vector, as fields of `SentenceHead`."""
    file = folder / SETTINGS
    fields = read_json(file, default={}, fields=SETTINGS_FIELDS)
    prompts = fields.get("prompts") or {}
    return {
        "prompts": tuple((name, text or "") for name, text in prompts.items()),
        "default_prompt": fields.get("default_prompt_name"),
        "similarity": fields.get("similarity_fn_name") or "cosine",
        "vector_width": fields.get("truncate_dim"),
    }


def _read_object(file: Path, subject: str, kinds: Fields) -> dict[str, Any]:
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing, which describes {subject}: copy it there")
    return read_json(file, fields=kinds)


def without_pooler(encoder: Mapping[str, Any], form: WeightFormat, config: Any) -> Mapping[str, Any]:
    """Return the parameters of an encoder alone; a pooler that the format stores with a classifier has no place there.

    No vector of a sentence reads it.
    """
    if form.names is None or "pooler" in form.names(config).encoder:
        return encoder
    return {name: tree for name, tree in encoder.items() if name != "pooler"}


def write_sentence_files(folder: Path, head: SentenceHead, params: Mapping[str, Any], config: Any) -> None:
    """Write the files of sentence-transformers next to a model that transformers can load."""
    size = config.hidden_size
    head.width(size)  # raises if the layers do not fit each other
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    old = {name: mode in head.pooling for name, mode in OLD_MODES.items()}
    pooling: dict[str, Any] = {"word_embedding_dimension": size, **old, "include_prompt": head.include_prompt}
    if tuple(mode for mode in MODES if mode in head.pooling) != head.pooling:  # another order, which old names lack
        pooling = {"embedding_dimension": size, "pooling_mode": list(head.pooling)}
        pooling["include_prompt"] = head.include_prompt
    files: dict[str, Any] = {"1_Pooling/config.json": pooling}
    dense = 0
    for n, layer in enumerate(head.layers, start=2):
        kind = "Normalize" if layer == "normalize" else "Dense"
        path = f"{n}_{kind}"
        modules.append((path, kind))
        (folder / path).mkdir(parents=True, exist_ok=True)
        if isinstance(layer, Dense):
            values = layer.inputs, layer.outputs, layer.bias, ACTIVATIONS[layer.activation]
            files[f"{path}/config.json"] = dict(zip(DENSE_FIELDS, values))
            weights = params[NAME][f"dense_{dense}"]
            theirs = {"linear.weight": weights["kernel"].T, **({"linear.bias": weights["bias"]} if layer.bias else {})}
            tensors = {name: np.ascontiguousarray(value, np.float32) for name, value in theirs.items()}
            write_safetensors(folder / path / "model.safetensors", tensors, {"format": "pt"})
            dense += 1
        else:
            files[f"{path}/config.json"] = {}
    length = head.max_length or config.max_positions
    files[LENGTH] = {"max_seq_length": length, "do_lower_case": head.lowercase}
    files[SETTINGS] = {
        "__version__": {},
        "prompts": dict(head.prompts),
        "default_prompt_name": head.default_prompt,
        "similarity_fn_name": head.similarity,
        **({} if head.vector_width is None else {"truncate_dim": head.vector_width}),
    }
    listed = [{"idx": n, "name": str(n), "path": path, "type": TYPE + kind} for n, (path, kind) in enumerate(modules)]
    for name, content in {**files, MODULES: listed}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def write_reranker_files(folder: Path, prompt: str, activation: str) -> None:
    """Write the files that make sentence-transformers 6 put a prompt before each query; older versions have none."""
    files: dict[str, Any] = {
        MODULES: [{"idx": 0, "name": "0", "path": "", "type": f"{TYPE}Transformer"}],
        LENGTH: {"transformer_task": "sequence-classification"},
        SETTINGS: {"model_type": "CrossEncoder", "prompts": {"query": prompt}, "default_prompt_name": "query"},
    }
    if activation:
        files[SETTINGS]["activation_fn"] = ACTIVATIONS[activation]
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8", newline="\n")


def head_to_json(head: SentenceHead) -> dict[str, Any]:
    """Return a head as plain values, for `model.json`."""
    layers: Sequence[Any] = [vars(layer) if isinstance(layer, Dense) else layer for layer in head.layers]
    return {**vars(head), "pooling": list(head.pooling), "layers": list(layers), "prompts": dict(head.prompts)}


def head_from_json(fields: Mapping[str, Any], source: str = "model.json") -> SentenceHead:
    """Return the head from the result of `head_to_json`; raise on invalid fields."""
    try:
        layers = tuple(Dense(**layer) if isinstance(layer, Mapping) else str(layer) for layer in fields["layers"])
        values = {"pooling": tuple(fields["pooling"]), "layers": layers, "prompts": tuple(fields["prompts"].items())}
        if any(isinstance(layer, str) and layer != "normalize" for layer in layers):
            raise ValueError(f"layers is {fields['layers']!r}; expected dense layers and 'normalize'")
        return SentenceHead(**{**fields, **values})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{source}: sentences: {error}; copy it again from the run") from error
