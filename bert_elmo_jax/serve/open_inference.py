"""Version 2 of the Open Inference Protocol, as KServe and Triton speak it: texts are tensors of BYTES in JSON."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bert_elmo_jax.encoders.rows import shorten
from bert_elmo_jax.serve.bodies import read_json_body
from bert_elmo_jax.serve.limits import RequestError
from bert_elmo_jax.serve.served_model import ServedModel, check_texts

Routes = list[tuple[str, str, Callable[[Request], Awaitable[Response]]]]


def open_inference_routes(service: Any) -> Routes:
    """Return the routes (path, method, handler) of the protocol for a service."""
    model: ServedModel = service.model

    async def report_server(request: Request) -> Response:
        from bert_elmo_jax import __version__

        return JSONResponse({"name": "bert_elmo_jax", "version": __version__, "extensions": []})

    async def report_ready(request: Request) -> Response:
        return JSONResponse({"ready": True, "live": True})

    async def report_model(request: Request) -> Response:
        check_name(request, model)
        described = {"inputs": [(part, "BYTES", [-1]) for part in model.parts], "outputs": describe_outputs(model)}
        tensors = {
            side: [{"name": name, "datatype": kind, "shape": shape} for name, kind, shape in values]
            for side, values in described.items()
        }
        return JSONResponse({"name": model.name, "versions": ["1"], "platform": "jax", **tensors})

    async def report_model_ready(request: Request) -> Response:
        check_name(request, model)
        return JSONResponse({"name": model.name, "ready": True})

    async def infer(request: Request) -> Response:
        check_name(request, model)
        content = await read_json_body(request, service.limits)
        options = content.get("parameters") or {}
        if not isinstance(options, dict) or "inputs" in options:
            raise RequestError(422, "parameters is no object of options")
        columns = read_tensors(content.get("inputs"), model.parts, service.limits)
        if model.predicts:
            rows = [list(row) if len(row) > 1 else row[0] for row in zip(*columns)]
            outputs = write_predictions(await service.predict_inputs({**options, "inputs": rows}))
        else:
            work = model.read_embedding(options.get("prompt_name"), options.get("dimensions"))
            results = await service.compute(work, columns[0])
            numbers = [number for vector, _ in results for number in vector.tolist()]
            outputs = [tensor("embedding", "FP32", [len(results), len(results[0][0])], numbers)]
        number = content.get("id")
        identified = {"id": number} if isinstance(number, str) else {}
        return JSONResponse({"model_name": model.name, "model_version": "1", **identified, "outputs": outputs})

    return [
        ("/v2", "GET", report_server),
        ("/v2/health/live", "GET", report_ready),
        ("/v2/health/ready", "GET", report_ready),
        ("/v2/models/{name}", "GET", report_model),
        ("/v2/models/{name}/ready", "GET", report_model_ready),
        ("/v2/models/{name}/infer", "POST", infer),
    ]


def check_name(request: Request, model: ServedModel) -> None:
    """Raise unless the path names the model of this server, and its inputs are single texts in tensors."""
    if request.path_params["name"] != model.name:
        raise RequestError(404, f"there is no model {shorten(request.path_params['name'])}; there is {model.name!r}")
    if model.kind == "choice":
        raise RequestError(404, "the choices of an input are no tensor of texts: use /predict")


def read_tensors(tensors: Any, parts: tuple[str, ...], limits: Any) -> list[list[str]]:
    """Return the texts of each tensor, the first part of an input first.

    >>> from bert_elmo_jax.serve.limits import Limits
    >>> text = {"name": "text", "datatype": "BYTES", "shape": [2], "data": ["good", "bad"]}
    >>> read_tensors([text], ("text", "pair"), Limits())
    [['good', 'bad']]
    """
    if not isinstance(tensors, list) or not 1 <= len(tensors) <= len(parts):
        raise RequestError(422, f"inputs is no list of the tensors {', '.join(parts)}")
    columns = {}
    for number, entry in enumerate(tensors):
        if not isinstance(entry, dict):
            raise RequestError(422, f"tensor {number} is {shorten(entry)}; expected an object")
        name = parts[0] if len(tensors) == 1 else entry.get("name")
        if name not in parts or name in columns:
            raise RequestError(422, f"tensor {number} is called {shorten(name)}; the names are {', '.join(parts)}")
        if entry.get("datatype") != "BYTES":
            raise RequestError(422, f"tensor {number}: datatype is {shorten(entry.get('datatype'))}; expected BYTES")
        texts = check_texts(entry.get("data"), limits, f"tensor {name}")
        if entry.get("shape") not in ([len(texts)], [len(texts), 1]):
            raise RequestError(422, f"tensor {number}: shape is {shorten(entry.get('shape'))}; expected [{len(texts)}]")
        columns[name] = texts
    if len({len(texts) for texts in columns.values()}) > 1:
        raise RequestError(422, "the tensors have different lengths")
    return [columns[part] for part in parts if part in columns]


def describe_outputs(model: ServedModel) -> list[tuple[str, str, list[int]]]:
    """Return the name, type and shape of each output."""
    if not model.predicts:
        return [("embedding", "FP32", [-1, model.default_width])]
    outputs = [("prediction", "BYTES", [-1])]
    if model.kind == "classification" and not model.task.multi_label:
        return [("label", "BYTES", [-1]), *outputs]
    if model.kind == "sentences" or (model.kind == "regression" and len(model.task.labels) < 2):
        return [("value", "FP32", [-1]), *outputs]
    return outputs


def write_predictions(predictions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the output tensors: `label` or `value` where there is one, and all of each prediction as JSON."""
    count = len(predictions)
    outputs = [
        tensor(name, kind, [count], [prediction[name] for prediction in predictions])
        for name, kind in (("label", "BYTES"), ("value", "FP32"))
        if name in predictions[0]
    ]
    texts = [json.dumps(prediction, ensure_ascii=False, allow_nan=False) for prediction in predictions]
    return [*outputs, tensor("prediction", "BYTES", [count], texts)]


def tensor(name: str, kind: str, shape: list[int], values: list[Any]) -> dict[str, Any]:
    """Return a tensor of the protocol.

    >>> tensor("value", "FP32", [1], [0.5])
    {'name': 'value', 'datatype': 'FP32', 'shape': [1], 'data': [0.5]}
    """
    return {"name": name, "datatype": kind, "shape": shape, "data": values}
