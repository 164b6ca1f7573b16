"""The routes of the server: requests in, the batcher's results out."""

import asyncio
import base64
import functools
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from jaxtyping import Float32
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bert_elmo_jax.encoders.rows import shorten
from bert_elmo_jax.inference.rerank import RankedText
from bert_elmo_jax.serve.batcher import Batcher
from bert_elmo_jax.serve.bodies import read_json_body
from bert_elmo_jax.serve.limits import Limits, RequestError, stopping_error
from bert_elmo_jax.serve.metrics import Metrics
from bert_elmo_jax.serve.open_inference import open_inference_routes
from bert_elmo_jax.serve.page import page_headers, render_page
from bert_elmo_jax.serve.served_model import Rank, ServedModel, check_texts

log = logging.getLogger(__name__)
Handler = Callable[[Request], Awaitable[Response]]


class Service:
    """One model, its batcher, limits and figures, and the answers to requests."""

    def __init__(self, model: ServedModel, limits: Limits | None = None, batch_size: int = 64):
        self.model, self.limits, self.metrics = model, limits or Limits(), Metrics()
        compute = functools.partial(model.compute, most_pieces=self.limits.pieces)
        self.batcher = Batcher(
            compute, queue_size=self.limits.queue, batch_size=batch_size, observe=self.metrics.count_batch
        )
        self.stopping = False  # True: requests in progress are answered, others are refused
        self.active = 0  # requests in progress

    def build_app(self) -> Starlette:
        """Return the ASGI application."""
        routes = [
            ("/", "GET", self.show_page),
            ("/health", "GET", self.report_health),
            ("/metrics", "GET", self.report_metrics),
            ("/predict", "POST", self.predict),
            ("/rank", "POST", self.rank),
            ("/v1/embeddings", "POST", self.embed),
            ("/v1/models", "GET", self.list_models),
            *open_inference_routes(self),
        ]
        app = Starlette(
            routes=[Route(path, self._guarded(path, handler), methods=[method]) for path, method, handler in routes],
            exception_handlers={HTTPException: self._refuse_route},
        )
        app.router.redirect_slashes = False
        return app

    async def compute(self, work: Any, inputs: list[Any]) -> list[Any]:
        """Return the results of inputs from the batcher; raise if they take too long or cannot be computed."""
        results = asyncio.wrap_future(self.batcher.submit(work, inputs))
        try:
            return await asyncio.wait_for(results, self.limits.seconds)
        except TimeoutError:
            raise RequestError(504, f"no result within {self.limits.seconds:g} seconds", retry_after=5) from None
        except (ValueError, TypeError) as error:
            # Show the model's message about an input, but not one about its own files.
            message = str(error)
            about_input = (
                message.startswith(("input ", "text ", "pair ")) and str(self.model.model.source) not in message
            )
            raise RequestError(422, message if about_input else "the model cannot read these inputs") from None

    async def predict(self, request: Request) -> Response:
        """Answer `POST /predict {"inputs": […]}`."""
        content = await read_json_body(request, self.limits)
        return JSONResponse({"model": self.model.name, "predictions": await self.predict_inputs(content)})

    async def predict_inputs(self, content: dict[str, Any]) -> list[Any]:
        """Return the predictions for the field `inputs`; all other fields are options."""
        if not self.model.predicts:
            raise RequestError(404, "this model has no predict, because it has no head of a task: use /v1/embeddings")
        if "inputs" not in content:
            raise RequestError(422, 'the field inputs is missing: send {"inputs": […]}')
        work = self.model.read_options({name: value for name, value in content.items() if name != "inputs"})
        return await self.compute(work, self.model.read_inputs(content["inputs"], self.limits, work))

    async def rank(self, request: Request) -> Response:
        """Answer `POST /rank {"query": …, "texts": […]}`, best first."""
        if not self.model.ranks:
            raise RequestError(404, "this model has not one score for a pair of texts, so it does not rank")
        content = await read_json_body(request, self.limits)
        if unknown := content.keys() - {"query", "texts", "top_k"}:
            raise RequestError(422, f"there is no field {shorten(min(unknown))}; there are query, texts and top_k")
        [query] = check_texts([content.get("query")], self.limits, "query")
        texts = check_texts(content.get("texts"), self.limits, "texts")
        top_k = content.get("top_k")
        if top_k is not None and (type(top_k) is not int or top_k < 1):
            raise RequestError(422, f"top_k is {shorten(top_k)}; expected a whole number of at least 1")
        scores = await self.compute(Rank(), [(query, text) for text in texts])
        best = np.argsort(-np.array(scores), kind="stable")[:top_k].tolist()
        results = [vars(RankedText(number, scores[number], texts[number])) for number in best]
        return JSONResponse({"model": self.model.name, "results": results})

    async def embed(self, request: Request) -> Response:
        """Answer `POST /v1/embeddings {"input": …}` as OpenAI's interface; its other fields are ignored."""
        if not self.model.embeds:
            raise RequestError(404, "this model has no vectors of texts: use /predict")
        content = await read_json_body(request, self.limits)
        texts = content.get("input")
        texts = check_texts([texts] if isinstance(texts, str) else texts, self.limits, "input")
        if not isinstance(content.get("model", ""), str):
            raise RequestError(422, f"model is {shorten(content['model'])}; expected a text")
        form = content.get("encoding_format") or "float"
        if form not in ("float", "base64"):
            raise RequestError(422, f"encoding_format is {shorten(form)}; it is float or base64")
        work = self.model.read_embedding(content.get("prompt_name"), content.get("dimensions"))
        results = await self.compute(work, list(texts))
        data = [
            {"object": "embedding", "index": number, "embedding": _encode_vector(vector, form)}
            for number, (vector, _) in enumerate(results)
        ]
        pieces = sum(count for _, count in results)
        usage = {"prompt_tokens": pieces, "total_tokens": pieces}
        return JSONResponse({"object": "list", "data": data, "model": self.model.name, "usage": usage})

    async def list_models(self, request: Request) -> Response:
        """Answer `GET /v1/models`."""
        return JSONResponse({"object": "list", "data": [{"id": self.model.name, "object": "model"}]})

    async def report_health(self, request: Request) -> Response:
        """Answer `GET /health`."""
        return JSONResponse({"status": "ok", "model": self.model.name})

    async def report_metrics(self, request: Request) -> Response:
        """Answer `GET /metrics`."""
        text = self.metrics.render(self.batcher.waiting)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def show_page(self, request: Request) -> Response:
        """Answer `GET /` with a page to try the model."""
        return HTMLResponse(render_page(self.model.describe()), headers=page_headers())

    def _guarded(self, path: str, handler: Handler) -> Handler:
        """Return a handler that counts its answers, and answers every error as JSON."""

        async def answer(request: Request) -> Response:
            started = time.perf_counter()
            self.active += 1
            try:
                if self.stopping and path != "/metrics":
                    raise stopping_error()
                response = await handler(request)
            except RequestError as error:
                response = error_response(path, error)
            except asyncio.CancelledError:  # the server ends before the result
                response = error_response(path, stopping_error())
            except Exception:
                log.exception("%s failed", path)
                response = error_response(path, RequestError(500, "the server failed; its log has the reason"))
            finally:
                self.active -= 1
            if self.stopping:
                response.headers["connection"] = "close"
            self.metrics.count_request(path, response.status_code, time.perf_counter() - started)
            return response

        return answer

    async def _refuse_route(self, request: Request, error: Exception) -> Response:
        """Answer a path or method that is not served."""
        assert isinstance(error, HTTPException)
        self.metrics.count_request("other", error.status_code, 0.0)
        response = error_response(request.url.path, RequestError(error.status_code, error.detail))
        response.headers.update(error.headers or {})
        return response


def error_response(path: str, error: RequestError) -> Response:
    """Return an error as JSON, below /v1 in the form of OpenAI's interface."""
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    message: Any = {"message": str(error), "type": kind} if path.startswith("/v1/") else str(error)
    headers = {"retry-after": str(error.retry_after)} if error.retry_after else {}
    return JSONResponse({"error": message}, error.status, headers)


def _encode_vector(vector: Float32[np.ndarray, "E"], form: str) -> Any:
    array = np.asarray(vector, "<f4")
    return base64.b64encode(array.tobytes()).decode() if form == "base64" else array.tolist()
