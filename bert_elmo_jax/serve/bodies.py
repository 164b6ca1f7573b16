"""Read the bodies of requests: bounded in bytes, time and depth, with finite numbers only."""

import asyncio
import math
import re
from typing import Any

from starlette.requests import ClientDisconnect, Request

from bert_elmo_jax.json_values import parse_json
from bert_elmo_jax.serve.limits import Limits, RequestError

SECONDS = 20.0  # for a body to arrive
IGNORED = 16  # times the limit: bytes of a body that is too large and still read, so that its client gets the answer


async def read_json_body(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the JSON object of a request."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise RequestError(415, "compressed bodies are not read")
    content = parse_body(await _read_bytes(request, limits.body))
    if not isinstance(content, dict):
        raise RequestError(422, "the body is no JSON object")
    return content


def parse_body(body: bytes) -> Any:
    """Return the value of a JSON text with finite numbers.

    >>> parse_body(b'{"inputs": ["so good"]}')
    {'inputs': ['so good']}
    >>> parse_body(b'{"top_k": NaN}')
    Traceback (most recent call last):
    bert_elmo_jax.serve.limits.RequestError: the body holds a number that is not finite
    """
    try:
        content = parse_json(body.decode("utf-8"), "the body")
    except UnicodeDecodeError:
        raise RequestError(400, "the body is not UTF-8") from None
    except ValueError as error:
        raise RequestError(400, re.sub(r": copy .*", "", str(error))) from None
    _check_finite(content)
    return content


def _check_finite(content: Any) -> None:
    values = [content]
    while values:
        value = values.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise RequestError(400, "the body holds a number that is not finite")
        if isinstance(value, list | dict):
            values += value.values() if isinstance(value, dict) else value


async def _read_bytes(request: Request, most: int) -> bytes:
    length = request.headers.get("content-length", "")
    size, chunks = 0, list[bytes]()
    if length.isdigit() and int(length[:20]) > most * IGNORED:
        raise _too_large(most)
    try:
        async with asyncio.timeout(SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size > most * IGNORED:
                    break
                if size <= most:
                    chunks.append(chunk)
    except TimeoutError:
        raise RequestError(408, f"the body did not arrive within {SECONDS:.0f} seconds") from None
    except ClientDisconnect:
        raise RequestError(400, "the connection ended within the body") from None
    if size > most:
        raise _too_large(most)
    return b"".join(chunks)


def _too_large(most: int) -> RequestError:
    return RequestError(413, f"the body has more than {most:,} bytes")
