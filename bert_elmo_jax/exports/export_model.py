"""Write a model for other programs: ONNX or StableHLO, with its tokenizer, labels and a runner."""

import importlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from bert_elmo_jax.exports.jaxpr_to_onnx import convert_function
from bert_elmo_jax.exports.onnx_graph import check_opset
from bert_elmo_jax.exports.plain_forward import PlainForward, plain_forward
from bert_elmo_jax.exports.tokenizer_json import tokenizer_json
from bert_elmo_jax.families.sentence_files import write_sentence_files
from bert_elmo_jax.files import write_bytes, write_json, write_sums
from bert_elmo_jax.inference.convert import publish_folder, write_tokenizer
from bert_elmo_jax.inference.load_model import load
from bert_elmo_jax.inference.task_model import TaskModel

NEEDED = {"onnx": ("onnx", "onnxruntime"), "stablehlo": ("flatbuffers",)}  # libraries of the extra `export`
LARGEST = 2**31 - 2**20  # bytes of one file of ONNX; a larger model has its weights in a second file
LIMIT = 1e-4  # the largest difference to the loaded model, as a share of the largest number


def export_model(
    model: str | Path | Any,
    folder: str | Path,
    *,
    to: Literal["onnx", "stablehlo"] = "onnx",
    int8: bool = False,
    opset: int = 17,
) -> dict[str, int]:
    """Write a model for programs without this package, and return the sizes of its model files in bytes, by name.

    `model` is a folder or hub name, or what `load` returned. The ONNX folder has `onnx/model.onnx` and, with `int8`,
    `onnx/model_quantized.onnx`, with the names that optimum, sentence-transformers and transformers.js expect; that of
    StableHLO has `model.stablehlo`, a function of `jax.export`. Number and length of texts are free. Both have the
    tokenizer, `config.json`, and `run.py`, which needs numpy, tokenizers and onnxruntime or jax. The result is compared
    with the model before the folder appears.

    >>> import tempfile
    >>> list(export_model("tests/goldens/bert_tiny", f"{tempfile.mkdtemp()}/exported", to="stablehlo"))
    ['model.stablehlo']
    """
    if to not in NEEDED:
        raise ValueError(f"to={to!r} is not known; it is one of {', '.join(NEEDED)}")
    if int8 and to != "onnx":
        raise ValueError(f"int8 is for ONNX, not for --to={to}: leave it out")
    target = Path(folder).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} is not empty; give another --output")
    _check_libraries(to)
    if to == "onnx":
        check_opset(opset)
    loaded: Any = load(model) if isinstance(model, str | Path) else model
    plain = plain_forward(loaded)
    stage = target.with_name(f"{target.name}.partial")
    shutil.rmtree(stage, ignore_errors=True)  # of an export that was killed
    try:
        stage.mkdir(parents=True)
        _write_surroundings(stage, loaded, plain)
        run = _write_onnx(stage, loaded, plain, opset, int8) if to == "onnx" else _write_stablehlo(stage, loaded, plain)
        check_outputs(loaded, plain, run)
        write_sums(stage)
        publish_folder(stage, target)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    files = [*target.glob("onnx/*"), *target.glob("*.stablehlo")]
    return {str(file.relative_to(target)): file.stat().st_size for file in sorted(files)}


def _check_libraries(to: str) -> None:
    """Raise ImportError, in one line, if a library of the extra is missing."""
    for name in NEEDED[to]:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ImportError(f"--to={to} needs {name}: pip install 'bert_elmo_jax[export]'") from error


def _shapes(model: Any, plain: PlainForward) -> dict[str, tuple[Any, ...]]:
    """Return the symbolic shape of each input."""
    limit = [f"length <= {model.config.max_positions}"]
    shape = tuple(jax.export.symbolic_shape("batch, length", constraints=limit))
    return dict.fromkeys(plain.inputs, shape)


def _write_onnx(folder: Path, model: Any, plain: PlainForward, opset: int, int8: bool) -> Any:
    """Write `onnx/model.onnx` and its quantised copy; return the function from arrays to outputs."""
    import onnx
    import onnxruntime

    file = folder / "onnx" / "model.onnx"
    file.parent.mkdir()
    params = jax.tree.map(np.asarray, dict(model.params))
    graph = convert_function(plain.function, params, _shapes(model, plain), plain.outputs, opset=opset)
    if sum(array.nbytes for array in jax.tree.leaves(params)) > LARGEST:
        onnx.save(graph, file, save_as_external_data=True, location="model.onnx_data")
    else:
        onnx.save(graph, file)
    if int8:
        _quantise(graph, file)
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return lambda arrays: session.run(list(plain.outputs), arrays)


def _quantise(graph: Any, file: Path) -> None:
    """Write the products of the layers in int8, with a scale for each output; the others stay in float32."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    heads = [node.name for node in graph.graph.node if node.op_type == "MatMul" and "/layer_" not in node.input[1]]
    quantize_dynamic(
        file, file.with_name("model_quantized.onnx"), op_types_to_quantize=["MatMul"], per_channel=True,
        weight_type=QuantType.QInt8, nodes_to_exclude=heads,
    )  # fmt: skip


def _write_stablehlo(folder: Path, model: Any, plain: PlainForward) -> Any:
    """Write `model.stablehlo`, which holds the weights, too; return the function from arrays to outputs."""
    params = model.params
    shapes = [jax.ShapeDtypeStruct(shape, jnp.int32) for shape in _shapes(model, plain).values()]
    function = jax.jit(lambda *inputs: plain.function(params, *inputs))
    exported = jax.export.export(function, platforms=("cpu", "cuda", "tpu"))(*shapes)
    write_bytes(folder / "model.stablehlo", bytes(exported.serialize()))
    return lambda arrays: exported.call(*(array.astype(np.int32) for array in arrays.values()))


def check_outputs(model: Any, plain: PlainForward, run: Any) -> None:
    """Raise ValueError if an exported model gives other numbers than the model itself."""
    length = min(plain.max_length, 12)
    ids = np.random.default_rng(0).integers(0, model.config.vocab_size, (3, length))
    mask = (np.arange(length)[None, :] < np.array([[length], [length - 1], [max(1, length // 2)]])).astype(np.int64)
    arrays = dict(zip(plain.inputs, (ids, mask, np.zeros_like(ids))))
    expected = jax.jit(plain.function)(model.params, *(array.astype(np.int32) for array in arrays.values()))
    for name, ours, theirs in zip(plain.outputs, expected, run(arrays), strict=True):
        per_piece = ours.ndim > 1 and ours.shape[:2] == mask.shape
        ours, theirs = (np.asarray(x)[mask > 0] if per_piece else np.asarray(x) for x in (ours, theirs))
        difference = np.abs(ours - theirs).max() / max(np.abs(ours).max(), 1e-6)
        if not difference < LIMIT:
            raise ValueError(
                f"{model.source}: {name} of the exported model differs by {difference:.1e} of its largest number; "
                "please report it, with the versions of jax and onnxruntime"
            )


def _write_surroundings(folder: Path, model: Any, plain: PlainForward) -> None:
    """Write the configuration, the tokenizer, labels, the runner and what it reads."""
    tokenizer, task = model.tokenizer, model.task if isinstance(model, TaskModel) else None
    writers = [form.write for form in model.family.formats.values() if form.write]
    if writers:
        fields: dict[str, Any] = {}
        if task is not None and task.kind in ("classification", "tags"):
            fields["labels"] = list(task.labels)
            if task.kind == "classification" and len(task.labels) > 1:
                kind = "multi_label" if task.multi_label else "single_label"
                fields["problem_type"] = f"{kind}_classification"
        elif task is not None and task.kind == "regression":
            fields |= {"labels": list(task.labels) or None, "problem_type": "regression"}
        parts = [name for name in model.params if name in ("encoder", "classify", "tag", "span")]
        writers[0](folder, {name: model.params[name] for name in parts}, model.config, **fields)
        for weights in folder.glob("*.safetensors*"):
            weights.unlink()
    write_tokenizer(tokenizer, model.config, folder)
    content = tokenizer_json(tokenizer)
    if content is not None:
        write_bytes(folder / "tokenizer.json", content)
    if plain.kind == "sentences":
        write_sentence_files(folder, model.sentence_head, model.params, model.config)
    write_json(folder / "export.json", _describe(model, plain, task))
    shutil.copyfile(Path(__file__).with_name("runner.py"), folder / "run.py")


def _describe(model: Any, plain: PlainForward, task: Any) -> Mapping[str, Any]:
    """Return what the runner needs to know."""
    head, tokenizer = model.sentence_head, model.tokenizer
    sentences = plain.kind == "sentences"
    pad_id = getattr(model.config, "pad_id", tokenizer.pad_id)
    several = task is not None and task.multi_label
    activation = task.activation if task is not None else ""
    if plain.kind == "classify" and not activation:
        activation = "sigmoid" if several or len(task.labels) < 2 else "softmax"
    elif plain.kind == "regress" and task.name == "rank":
        activation = "sigmoid"
    return {
        "kind": plain.kind,
        "inputs": list(plain.inputs),
        "outputs": list(plain.outputs),
        "max_length": plain.max_length,
        "pad_id": pad_id,
        "pad_token": tokenizer.tokens[pad_id],
        "labels": [] if task is None else list(task.labels),
        "several": several,
        "activation": activation,
        "whole_words": task is not None and task.pipeline,
        "longest_answer": 0 if task is None else task.longest_answer,
        "lowercase": sentences and head.lowercase,
        "prompt": dict(head.prompts).get(head.default_prompt, "") if sentences else "",
    }
