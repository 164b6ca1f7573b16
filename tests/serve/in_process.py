"""Requests to the application without a network, and a model whose answers are known."""

import asyncio
import dataclasses
import json
import threading

from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.inference.predictions import Label
from bert_elmo_jax.serve.app import Service
from bert_elmo_jax.serve.limits import Limits
from bert_elmo_jax.serve.served_model import ServedModel

SECRET = "/secret/folder"


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


async def ask(app, method, path, body=b"", headers=()):
    """Send one request to an ASGI application; the body comes in parts of 1,000 bytes."""
    parts = [body[at : at + 1000] for at in range(0, len(body), 1000)] or [b""]
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers], "scheme": "http",
        "http_version": "1.1", "server": ("test", 80), "client": ("test", 1), "asgi": {"version": "3.0"},
    }  # fmt: skip
    answer = Answer(0, {}, b"")

    async def receive():
        part = parts.pop(0) if parts else b""
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message):
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    await app(scope, receive, send)
    return answer


def post(app, path, content, **more):
    """Return the answer to a JSON value."""
    return asyncio.run(ask(app, "POST", path, json.dumps(content).encode(), **more))


def get(app, path):
    return asyncio.run(ask(app, "GET", path))


def post_all(app, path, contents):
    """Return the answers to requests that are sent at the same time."""

    async def send_all():
        return await asyncio.gather(*(ask(app, "POST", path, json.dumps(content).encode()) for content in contents))

    return asyncio.run(send_all())


class Counter:
    """A classifier that answers with the length of a text, and waits until it may."""

    source, text_rows = SECRET, None

    def __init__(self):
        self.task = dataclasses.replace(task_named("classification"), labels=("short", "long"))
        self.labels = self.task.labels
        self.may_go = threading.Event()
        self.may_go.set()
        self.batches = []

    def predict(self, inputs, batch_size=32, progress=None):
        self.batches.append(list(inputs))
        assert self.may_go.wait(30)
        if "crash" in inputs:
            raise RuntimeError(f"{SECRET}/weights cannot be read")
        if "refuse" in inputs:
            raise ValueError(f"{SECRET}: no")
        return [Label("short", float("nan") if text == "nan" else float(len(text)), {}) for text in inputs]


def count_characters(limits=None, batch_size=64):
    """Return a model of known answers, its service and application."""
    model = Counter()
    service = Service(ServedModel(model), limits or Limits(), batch_size)
    return model, service, service.build_app()
