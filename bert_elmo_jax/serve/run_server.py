"""Load a model and serve it until a signal stops the server."""

import math
import os
import socket
import sys
import time
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import Any

from bert_elmo_jax.serve.limits import Limits

SECONDS = 20.0  # for the headers of a request to arrive
IN_USE = {98, 48, 10048}  # EADDRINUSE on Linux, macOS and Windows


def serve(
    path: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    name: str | None = None,
    batch_size: int = 64,
    limits: Limits | None = None,
    warm_length: int = 64,
    warm_rows: int = 64,
    show: Callable[[str], object] = print,
    **load_options: Any,
) -> None:
    """Serve the model of a folder, a run or a hub name until SIGTERM or Ctrl-C.

    `name` is the model's name for clients, by default the folder's. `load` gets the `load_options`. `show` gets one
    line when the server is ready. Before that, the shapes of up to `warm_rows` inputs of up to `warm_length` pieces
    are compiled. At a signal, requests in progress are answered and new ones refused; a computation that then takes
    longer than a request may, or a second signal, ends the process.
    """
    check_installed()
    listener = bind(host, port)
    with listener:
        from bert_elmo_jax.inference.load_model import load
        from bert_elmo_jax.serve.app import Service
        from bert_elmo_jax.serve.served_model import ServedModel

        model = ServedModel(load(path, **load_options), name)
        if warm_rows:
            model.warm_up(warm_length, warm_rows)
        service = Service(model, limits, batch_size)
        address = _show_address(listener)
        labels = f", {', '.join(model.model.labels)}" if model.predicts and model.model.labels else ""
        ready = f"serving {model.name} ({model.kind}{labels:.200}) at {address}; Ctrl-C stops"
        if not _is_loopback(host):
            ready += (
                "\nOther machines can reach it, without a password: put a proxy with TLS and access rules before it"
            )
        _build_server(service, lambda: show(ready)).run([listener])
        if not service.batcher.ended:  # it computes, and such a thread aborts the process at the interpreter's end
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def check_installed() -> None:
    """Raise unless the extra is installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ImportError("the server needs Starlette and uvicorn: pip install 'bert_elmo_jax[serve]'") from None


def bind(host: str, port: int) -> socket.socket:
    """Return a socket for an address; raise with a clear message if it is taken. It does not listen yet."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:  # UnicodeError: a part of the name is too long, or no text
        raise ValueError(f"--host={host:.100} is not an address of this machine: {error}") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno in IN_USE:
            raise ValueError(
                f"port {port} of {host} is in use: stop the program that has it, or give another, --port={port + 1}"
            ) from None
        raise ValueError(f"--host={host} --port={port} cannot be used: {error.strerror}") from None
    return listener


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _show_address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _build_server(service: Any, started: Callable[[], object]) -> Any:
    """Return the HTTP server: at a signal it answers what it has accepted, refuses the rest with 503, and ends."""
    import uvicorn
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    parent: Any = AutoHTTPProtocol

    class Connection(parent):
        """Closes a connection whose client sends no complete headers; uvicorn would wait for them without end."""

        request: Any = None  # the latest one

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(SECONDS, self.close_if_idle)

        def close_if_idle(self) -> None:
            if self.transport.is_closing():
                return
            if self.request is self.cycle and (self.cycle is None or self.cycle.response_complete):
                self.transport.close()
                return
            self.request = self.cycle
            self.loop.call_later(SECONDS, self.close_if_idle)

    class Server(uvicorn.Server):
        deadline = math.inf

        def run(self, sockets: list[socket.socket] | None = None) -> None:
            super().run(sockets)
            # The clients of a computation that goes on have their answers.
            service.batcher.stop(max(0.1, min(self.deadline - time.monotonic(), service.limits.seconds)))

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            seconds = service.limits.seconds
            if service.stopping:  # a second signal
                self.should_exit = self.force_exit = True
                self.config.timeout_graceful_shutdown = seconds = 0
            service.stopping = True
            self.deadline = time.monotonic() + seconds

        async def on_tick(self, counter: int) -> bool:
            if service.stopping and (not service.active or time.monotonic() > self.deadline):
                self.should_exit = True
            return await super().on_tick(counter)

    return Server(
        uvicorn.Config(
            service.build_app(), http=Connection, log_config=None, access_log=False, server_header=False,
            lifespan="off", ws="none",
            proxy_headers=False, limit_concurrency=service.limits.connections,
            timeout_graceful_shutdown=math.ceil(service.limits.seconds),
        )
    )  # fmt: skip
