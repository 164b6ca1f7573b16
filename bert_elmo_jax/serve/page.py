"""The page to try a model in the browser: one file without links to others, in English and Korean."""

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).with_name("page.html")
SCRIPT = re.compile(r"<script>(.*?)</script>", re.S)


@functools.cache
def _read_template() -> str:
    return TEMPLATE.read_text(encoding="utf-8")


def render_page(model: Mapping[str, Any]) -> str:
    """Return the page of a model, which `ServedModel.describe` describes.

    >>> "<b>" in render_page({"name": "<b>", "kind": "encoder"})
    False
    """
    description = json.dumps(model, ensure_ascii=True).replace("<", "\\u003c")
    return _read_template().replace("{{name}}", html.escape(str(model["name"]))).replace("{{model}}", description)


def page_headers() -> dict[str, str]:
    """Return the headers of the page: its own script alone runs, and only this server is asked.

    >>> page_headers()["x-frame-options"]
    'DENY'
    """
    [script] = SCRIPT.findall(_read_template())
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "content-security-policy": policy, "x-frame-options": "DENY", "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer", "cache-control": "no-store",
    }  # fmt: skip
