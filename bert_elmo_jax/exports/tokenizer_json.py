"""`tokenizer.json` with the special pieces that this package puts around texts, for the library `tokenizers`."""

import json
from typing import Any

from bert_elmo_jax.text import Tokenizer
from bert_elmo_jax.text.tokenizer_file import TokenizerFile
from bert_elmo_jax.text.tokenizer_specs import find_parts


def tokenizer_json(tokenizer: Tokenizer) -> bytes | None:
    """Return the file, or None for a tokenizer that is no `TokenizerFile`: a SentencePiece model.

    >>> from bert_elmo_jax.text import load_tokenizer
    >>> tokenizer_json(load_tokenizer("tests/goldens/bert_tiny"))[:20]
    b'{"version": "1.0", "'
    """
    if not isinstance(tokenizer, TokenizerFile):
        return None
    spec: dict[str, Any] = json.loads(TokenizerFile.files(tokenizer)["tokenizer.json"])
    frame = tokenizer.frame
    if frame.count(pair=False):
        first, second = ({"Sequence": {"id": name, "type_id": n}} for name, n in zip("AB", frame.types))

        def specials(ids: tuple[int, ...], of_type: int) -> list[dict[str, Any]]:
            return [{"SpecialToken": {"id": tokenizer.tokens[number], "type_id": of_type}} for number in ids]

        before, end = specials(frame.before, frame.types[0]), specials(frame.after, frame.types[0])
        between, end_of_pair = specials(frame.between, frame.types[0]), specials(frame.after, frame.types[1])
        pieces = {tokenizer.tokens[number]: number for number in (*frame.before, *frame.between, *frame.after)}
        template = {
            "type": "TemplateProcessing",
            "single": [*before, first, *end],
            "pair": [*before, first, *between, second, *end_of_pair],
            "special_tokens": {piece: {"id": piece, "ids": [n], "tokens": [piece]} for piece, n in pieces.items()},
        }
        trims = find_parts(spec.get("post_processor"), "ByteLevel")  # a byte-level part trims offsets
        spec["post_processor"] = {"type": "Sequence", "processors": [*trims, template]} if trims else template
    return json.dumps(spec, ensure_ascii=False).encode()
