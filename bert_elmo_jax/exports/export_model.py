"""Write a model for other programs: ONNX or StableHLO, with its tokenizer, labels and a runner."""

import dataclasses
import importlib
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from bert_elmo_jax.exports.jaxpr_to_onnx import convert_function
from bert_elmo_jax.exports.onnx_graph import check_opset
from bert_elmo_jax.exports.plain_forward import plain_forward
from bert_elmo_jax.exports.plain_graph import PlainForward
from bert_elmo_jax.exports.plain_writer import plain_writer
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.files import stage_folder, write_bytes, write_json, write_sums
from bert_elmo_jax.inference.convert import publish_folder, write_reading_files, write_tokenizer
from bert_elmo_jax.inference.load_model import load
from bert_elmo_jax.inference.rerank import is_reranker
from bert_elmo_jax.inference.task_model import TaskModel
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.text.sentencepiece import SentencePiece
from bert_elmo_jax.text.tokenizer_json import tokenizer_json
from bert_elmo_jax.weights.parameter_tree import nest

NEEDED = {"onnx": ("onnx", "onnxruntime"), "stablehlo": ("flatbuffers",)}  # libraries of the extra `export`
LARGEST = 2**31 - 2**20  # bytes of one file of ONNX; a larger model has its weights in a second file
LIMIT = 1e-4  # the largest difference to the loaded model, as a share of the largest number
LOOP_LIMIT = 1e-3  # the same for a recurrent model: its steps amplify rounding
INT8_LIMIT = 0.2  # the same for the mean difference of a quantised copy; random weights give 0.001 to 0.014
RECURRENT = ("words", "network")  # kinds
RUNNERS = {"words": "run_words.py", "network": "run_words.py", "write": "run_writer.py"}
Sizes = dict[str, int]


def export_model(
    model: str | Path | Any,
    folder: str | Path,
    *,
    to: Literal["onnx", "stablehlo"] = "onnx",
    int8: bool = False,
    generate: bool = False,
    opset: int = 17,
) -> Sizes:
    """Write a model for programs without this package, and return the sizes of its model files in bytes, by name.

    `model` is a folder or hub name, or what `load` returned. The ONNX folder has `onnx/model.onnx` and, with `int8`,
    `onnx/model_quantized.onnx`, with the names that optimum, sentence-transformers and transformers.js expect; the
    StableHLO folder has `model.stablehlo`, a function of `jax.export`. Number and length of texts are free. Both have
    the tokenizer, `config.json`, and `run.py`, which needs numpy, tokenizers and onnxruntime or jax. The result is
    compared with the model before the folder appears; `export.json` has the differences that were measured.

    With `generate`, the model is one step of writing, with its memory; a model that translates is two files,
    `encoder_model` and `decoder_model`.

    >>> import tempfile
    >>> list(export_model("tests/goldens/bert_tiny", f"{tempfile.mkdtemp()}/exported", to="stablehlo"))
    ['model.stablehlo']
    """
    if to not in NEEDED:
        raise ValueError(f"to={to!r} is not known; it is one of {', '.join(NEEDED)}")
    if int8 and to != "onnx":
        raise ValueError(f"int8 is for ONNX, not for --to={to}: leave it out")
    target = Path(folder).expanduser().resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} is not empty; give another --output")
    _check_libraries(to)
    if to == "onnx":
        check_opset(opset)
    with stage_folder(target) as stage:
        loaded: Any = load(model) if isinstance(model, str | Path) else model
        graphs = plain_writer(loaded) if generate else {"model": plain_forward(loaded)}
        graphs = {
            name: dataclasses.replace(plain, params=jax.tree.map(_to_float32, plain.params))
            for name, plain in graphs.items()
        }
        differences = {}
        for name, plain in graphs.items():
            runs = (
                _write_onnx(stage, name, plain, opset, int8) if to == "onnx" else _write_stablehlo(stage, name, plain)
            )
            for file, run in runs.items():
                differences[file] = check_outputs(loaded, plain, run, quantised="quantized" in file)
        _write_surroundings(stage, loaded, graphs, {"differences": differences})
        write_sums(stage)
        publish_folder(stage, target)
    files = [*target.glob("onnx/*"), *target.glob("*.stablehlo")]
    return {str(file.relative_to(target)): file.stat().st_size for file in sorted(files)}


def _to_float32(leaf: Any) -> np.ndarray:
    """Return an array in float32 if it holds floating numbers, whose other types the graph does not mix."""
    return np.asarray(leaf, np.float32 if jnp.issubdtype(leaf.dtype, jnp.floating) else None)


def _check_libraries(to: str) -> None:
    """Raise ImportError, in one line, if a library of the extra is missing."""
    for name in NEEDED[to]:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ImportError(f"--to={to} needs {name}: pip install 'bert_elmo_jax[export]'") from error


def _write_onnx(folder: Path, name: str, plain: PlainForward, opset: int, int8: bool) -> dict[str, Any]:
    """Write `onnx/NAME.onnx` and its quantised copy; return the functions from arrays to outputs, by file."""
    import onnx
    import onnxruntime

    file = folder / "onnx" / f"{name}.onnx"
    file.parent.mkdir(exist_ok=True)
    graph = convert_function(plain.function, plain.params, plain.symbolic_inputs(), plain.outputs, opset=opset)
    if sum(array.nbytes for array in jax.tree.leaves(plain.params)) > LARGEST:
        onnx.save(graph, file, save_as_external_data=True, location=f"{name}.onnx_data")
    else:
        onnx.save(graph, file)
    files = [file, _quantise(graph, file)] if int8 else [file]
    sessions = {file: onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"]) for file in files}
    return {
        str(file.relative_to(folder)): lambda arrays, session=session: session.run(list(plain.outputs), arrays)
        for file, session in sessions.items()
    }


def _quantise(graph: Any, file: Path) -> Path:
    """Write the products of the layers in int8, with a scale for each output; the others stay in float32."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantised = file.with_name(f"{file.stem}_quantized.onnx")
    heads = [node.name for node in graph.graph.node if node.op_type == "MatMul" and "/layer_" not in node.input[1]]
    logger = logging.getLogger()
    logger.addFilter(_is_no_advice)
    try:
        quantize_dynamic(
            file, quantised, op_types_to_quantize=["MatMul"], per_channel=True, weight_type=QuantType.QInt8,
            nodes_to_exclude=heads,
        )  # fmt: skip
    finally:
        logger.removeFilter(_is_no_advice)
    return quantised


def _is_no_advice(record: logging.LogRecord) -> bool:
    """Return False for the library's advice to fuse nodes first, which would rename the layers and the heads."""
    return not str(record.msg).startswith("Please consider to run pre-processing")


def _write_stablehlo(folder: Path, name: str, plain: PlainForward) -> dict[str, Any]:
    """Write `NAME.stablehlo`, which holds the weights, too; return the function from arrays to outputs, by file."""
    params = plain.params
    function = jax.jit(lambda *inputs: plain.function(params, *inputs))
    with _without_locations():
        exported = jax.export.export(function, platforms=("cpu", "cuda", "tpu"))(*plain.symbolic_inputs().values())
        write_bytes(folder / f"{name}.stablehlo", bytes(exported.serialize()))
    return {f"{name}.stablehlo": lambda arrays: exported.call(*to_int32(arrays))}


@contextmanager
def _without_locations() -> Iterator[None]:
    """Lower without the lines of code behind each operation, whose files are named by their paths on this machine."""
    settings = {"jax_include_full_tracebacks_in_locations": True, "jax_traceback_in_locations_limit": 0}
    previous = {name: getattr(jax.config, name) for name in settings}
    try:
        for name, value in settings.items():
            jax.config.update(name, value)
        yield
    finally:
        for name, value in previous.items():
            jax.config.update(name, value)


def to_int32(arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return arrays as a function of JAX reads them.

    >>> [x.dtype.name for x in to_int32({"ids": np.ones(2, np.int64), "vectors": np.ones(2, np.float32)})]
    ['int32', 'float32']
    """
    return [array.astype(np.int32) if array.dtype == np.int64 else array for array in arrays.values()]


def check_outputs(model: Any, plain: PlainForward, run: Any, *, quantised: bool = False) -> dict[str, float]:
    """Return the difference of each output to the model's; raise ValueError if they are not the same numbers.

    A difference is a share of the largest number: the largest one, or of a `quantised` copy the mean.
    """
    arrays = plain.example(3, min(plain.max_length or 12, 12))
    mask = arrays.get("attention_mask")
    expected = jax.jit(plain.function)(plain.params, *to_int32(arrays))
    differences = {}
    for name, ours, theirs in zip(plain.outputs, expected, run(arrays), strict=True):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        if mask is not None and ours.ndim > 1 and ours.shape[:2] == mask.shape:
            ours, theirs = ours[mask > 0], theirs[mask > 0]
        if ours.dtype.kind in "ib":  # a path of tags, which a rounding may change
            differences[name] = round(float((ours != theirs).mean()), 9)
            continue
        size = np.abs(ours - theirs)
        difference = float((size.mean() if quantised else size.max()) / max(np.abs(ours).max(), 1e-6))
        differences[name] = float(f"{difference:.2g}")
        limit = INT8_LIMIT if quantised else LOOP_LIMIT if plain.kind in RECURRENT else LIMIT
        if not difference < limit:
            raise ValueError(
                f"{model.source}: {name} of the {'quantised' if quantised else 'exported'} model differs by "
                f"{difference:.1e} of its largest number; please report it, with the versions of jax and onnxruntime"
            )
    return differences


def _write_surroundings(folder: Path, model: Any, graphs: Mapping[str, PlainForward], checked: Any) -> None:
    """Write the configuration, the tokenizer, labels, the runner and the file that it reads."""
    plain = list(graphs.values())[-1]
    if plain.kind in ("words", "network"):
        description = describe_words(model, plain)
    else:
        _write_config(folder, model)
        description = _describe(model, plain) if plain.kind != "write" else _describe_writer(model, graphs)
        task = model.task if isinstance(model, TaskModel) else None
        head = model.sentence_head if plain.kind == "sentences" else None
        write_reading_files(folder, model.tokenizer, model.config, model.params, task=task, head=head)
        _write_tokenizer_json(folder, model.tokenizer, model.source)
    if plain.kind == "network" and "input_ids" in plain.inputs:
        write_tokenizer(model.encoder.tokenizer, model.encoder.config, folder)
        _write_tokenizer_json(folder, model.encoder.tokenizer, model.encoder.source)
    parameters = sum(int(np.size(leaf)) for leaf in jax.tree.leaves(plain.params))
    write_json(folder / "export.json", {**description, "parameters": parameters, **checked})
    write_bytes(folder / "run.py", join_runner(RUNNERS.get(plain.kind, "runner.py")).encode())


def join_runner(name: str) -> str:
    """Return the code of a runner, with the functions that it imports in place of the imports.

    >>> "bert_elmo_jax" in join_runner("runner.py")
    False
    """

    def read_code(imported: re.Match[str]) -> str:
        file = Path(__file__).parents[1].joinpath(*imported[1].split(".")).with_suffix(".py")
        code = file.read_text("utf-8").split('"""', 2)[2]
        code = code.strip().removeprefix("from typing import Any").strip()
        return f"\n\n{code}\n" if code.startswith("def ") else f"{code}\n"

    runner = Path(__file__).with_name(name).read_text("utf-8")
    return re.sub(r"from bert_elmo_jax\.([\w.]+) import .*\n", read_code, runner)


def _write_config(folder: Path, model: Any) -> None:
    """Write the configuration in the first form that the family has for files of others."""
    task = model.task if isinstance(model, TaskModel) else None
    writers = [form.write for form in model.family.formats.values() if form.write]
    if not writers:
        return
    fields: dict[str, Any] = {}
    if task is not None and task.kind in ("classification", "tags"):
        fields["labels"] = list(task.labels)
        if task.kind == "classification" and len(task.labels) > 1:
            kind = "multi_label" if task.multi_label else "single_label"
            fields["problem_type"] = f"{kind}_classification"
    elif task is not None and task.kind == "regression":
        fields |= {"labels": list(task.labels) or None, "problem_type": "regression"}
    if task is not None and task.activation:
        fields["activation"] = task.activation
    head = model.head.name if isinstance(model, TaskModel) else "decoder"
    params = {name: model.params[name] for name in ("encoder", head) if name in model.params}
    if isinstance(model, TaskModel) and model.head.features is not None:  # the file's classes read a pooled vector
        shapes = param_shapes(model.family, model.config, pooler=True)
        pooler = {path: np.zeros(shape, np.float32) for path, shape in shapes.items() if "encoder/pooler/" in path}
        params["encoder"] = {**nest(pooler).get("encoder", {}), **params["encoder"]}
    writers[0](folder, params, model.config, **fields)
    for weights in folder.glob("*.safetensors*"):
        weights.unlink()


def _write_tokenizer_json(folder: Path, tokenizer: Any, source: str) -> None:
    """Write tokenizer.json, which the runner reads; warn if the tokenizer has no such file."""
    content = tokenizer_json(tokenizer)
    if content is not None:
        write_bytes(folder / "tokenizer.json", content)
        return
    logging.getLogger(__name__).warning(
        "%s: its tokenizer (%s) cannot be written as tokenizer.json, so run.py reads no texts: give ids to the "
        "exported model",
        source, tokenizer.kind,
    )  # fmt: skip


def _describe(model: Any, plain: PlainForward) -> Mapping[str, Any]:
    """Return what the runner of a model of pieces needs to know."""
    head, tokenizer = model.sentence_head, model.tokenizer
    task: Any = model.task if isinstance(model, TaskModel) else None
    sentences = plain.kind == "sentences"
    pad_id = getattr(model.config, "pad_id", tokenizer.pad_id)
    several = task is not None and task.multi_label
    released = task is not None and task.pipeline
    activation = ""  # as in `predict`: that of the task is for `score`
    if plain.kind == "classify":
        activation = "sigmoid" if several or len(task.labels) < 2 else "softmax"
    elif plain.kind == "regress" and task.name == "rank":
        activation = "sigmoid"
    may_have_none = plain.kind == "read" and task.unanswerable and not task.pipeline
    return {
        "kind": plain.kind,
        "is_reranker": task is not None and is_reranker(task),
        "inputs": list(plain.inputs),
        "outputs": list(plain.outputs),
        "max_length": plain.max_length,
        "cuts_start": tokenizer.cuts_start and plain.kind not in ("read", "tag"),
        "pad_id": pad_id,
        "pad_token": tokenizer.tokens[pad_id],
        "unk_token": tokenizer.tokens[tokenizer.unk_id],
        "labels": [] if task is None else list(task.labels),
        "tags_characters": task is not None and task.characters,
        "trims_spaces": not released or (isinstance(tokenizer, SentencePiece) and not tokenizer.includes_spaces),
        "several": several,
        "activation": activation,
        "whole_words": released,
        "cuts_pairs": plain.kind == "read" or (task is not None and not released),
        "question_length": 0 if task is None else task.question_length,
        "longest_answer": 0 if task is None else task.longest_answer,
        "null_threshold": task.null_threshold if may_have_none else None,
        "lowercase": sentences and head.lowercase,
        "prompt": head.prompt if sentences else "" if task is None else task.prompt,
    }


def _describe_writer(model: Any, graphs: Mapping[str, PlainForward]) -> Mapping[str, Any]:
    """Return what the runner of a model that writes needs to know."""
    decoder = model.find_decoder()
    frame = model.tokenizer.frame
    rules = {name: decoder.defaults.get(name, 0) for name in ("min_new", "no_repeat_ngram_size")}
    numbers = {
        name: None if getattr(decoder, name) is None else int(getattr(decoder, name))
        for name in ("pad", "most", "first", "forced_end", "forced_first")
    }
    return {
        "kind": "write", "before": [int(piece) for piece in frame.before], "ends": [int(end) for end in decoder.ends],
        "forbidden": [int(piece) for piece in decoder.forbidden], **rules, **numbers,
        "graphs": {
            name: {"inputs": list(plain.inputs), "outputs": list(plain.outputs)} for name, plain in graphs.items()
        },
        "empty_memory": {
            name: [[int(size) if size.strip().isdigit() else size.strip() for size in part.sizes.split(",")],
                   np.dtype(part.dtype).name]
            for name, part in list(graphs.values())[-1].read.items() if name not in ("input_ids", "attention_mask")
        },
    }  # fmt: skip


def describe_words(model: Any, plain: PlainForward) -> Mapping[str, Any]:
    """Return what the runner of a model of words needs to know."""
    description: dict[str, Any] = {
        "kind": plain.kind, "inputs": list(plain.inputs), "outputs": list(plain.outputs),
        "characters": {name: int(x.sizes.split(",")[-1]) for name, x in plain.read.items() if "characters" in name},
        "max_length": plain.max_length,
        "composed": isinstance(model, TaskNetwork) or model.word_rule is not None,
    }  # fmt: skip
    if "input_ids" in plain.inputs:
        pad_id, tokenizer = model.encoder.config.pad_id, model.encoder.tokenizer
        description |= {"pad_id": pad_id, "pad_token": tokenizer.tokens[pad_id]}
        description["unk_token"] = tokenizer.tokens[tokenizer.unk_id]
    if not isinstance(model, TaskNetwork):
        return description
    lexicon, vectors = model.lexicon, model.lexicon.kept_vectors
    return {
        **description,
        "labels": list(model.task.labels),
        "tags_characters": model.task.characters,
        "specials": len(lexicon.specials),
        "words": list(lexicon.words),
        "later_words": [] if vectors is None else list(vectors.words),
        "seed": lexicon.seed,
        "scale": float(lexicon.scale),
        "width": lexicon.width,
    }
