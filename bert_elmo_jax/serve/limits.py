"""Limits of the server, and the error that an HTTP client sees."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds for one request, and for all requests that wait.

    >>> Limits(inputs=8).queue
    1024
    """

    body: int = 1 << 20  # bytes of a request
    inputs: int = 128  # of a request
    characters: int = 20_000  # of an input, all its texts together
    pieces: int = 4096  # of an input that the model computes
    queue: int = 1024  # inputs that wait for the model
    seconds: float = 30.0  # until a request is answered
    connections: int = 256


class RequestError(Exception):
    """A request that is refused: the HTTP status, and a message for the client."""

    def __init__(self, status: int, message: str, retry_after: int | None = None):
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


def stopping_error() -> RequestError:
    """Return the error of a server that stops."""
    return RequestError(503, "the server is stopping", retry_after=5)
