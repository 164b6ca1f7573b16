"""Malformed requests from a seeded generator: each is one that a server must refuse with a 4xx."""

import json
import random

PATHS = ("/predict", "/v1/embeddings", "/rank", "/v2/models/model/infer")
FIELDS = ("inputs", "input", "texts", "query", "model", "top_k", "aggregation", "parameters", "encoding_format", "id")
ODD_TEXTS = ("", " ", "\t\n", "../../etc/passwd", "\x00", "﷽" * 30_000, "𝕏" * 20_001)
NUMBERS = (0, -1, 1.5, 10**30, -(10**99), 1e308, True, False, None)
RAW = (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"9" * 400, b'"\\ud800"', b'"\\u12"', b"'a'", b"{1: 2}")
METHODS = ("GET", "PUT", "DELETE", "PATCH", "OPTIONS")


def draw_value(draw, depth=0):
    """Return a JSON value that is no good input."""
    kinds = ["number", "text", "empty"] + ["list", "object"] * (depth < 4)
    match draw.choice(kinds):
        case "number":
            return draw.choice(NUMBERS)
        case "text":
            return draw.choice(ODD_TEXTS)
        case "list":
            return [draw_value(draw, depth + 1) for _ in range(draw.randrange(4))]
        case "object":
            return {draw.choice(FIELDS): draw_value(draw, depth + 1) for _ in range(draw.randrange(3))}
    return draw.choice(([], {}, "", [[]], [None]))


def draw_request(seed):
    """Return (method, path, body, headers) of a malformed request."""
    draw = random.Random(seed)
    path, headers = draw.choice(PATHS), []
    body = json.dumps({draw.choice(FIELDS): draw_value(draw) for _ in range(draw.randrange(1, 4))}).encode()
    match draw.randrange(9):
        case 0:  # bytes that are no text
            body = draw.randbytes(draw.randrange(400))
        case 1:  # cut within
            body = body[: draw.randrange(len(body))]
        case 2:  # a byte is another
            place = draw.randrange(len(body))
            body = body[:place] + draw.randbytes(1) + body[place + 1 :]
        case 3:  # deep
            depth = draw.randrange(64, 100_000)
            opened, closed = draw.choice(((b"[", b"]"), (b'{"a":', b"}")))
            body = b'{"inputs":' + opened * depth + b"1" + closed * depth + b"}"
        case 4:  # a value that JSON does not have, or no number can hold
            body = b'{"inputs": [' + draw.choice(RAW) + b'], "input": ' + draw.choice(RAW) + b"}"
        case 5:  # another path or method
            method = draw.choice(METHODS)
            return method, draw.choice((path, path + "/..", "//", "/predict/" + "a" * 3000, "/%00")), body, headers
        case 6:  # too many inputs, or too long ones
            text = draw.choice((["a"] * 129, ["a" * 20_001], ["a", ""] * 3))
            body = json.dumps({"inputs": text, "input": text, "texts": text, "query": "a"}).encode()
        case 7:  # headers that lie
            headers = [draw.choice((("content-length", "9" * 40), ("content-encoding", "gzip")))]
    return "POST", path, body, headers
