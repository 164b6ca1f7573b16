"""`tokenizer.json` with the special pieces that this package puts around texts, for the library `tokenizers`."""

import base64
import json
from typing import Any

from bert_elmo_jax.text import Tokenizer
from bert_elmo_jax.text.sentencepiece import SentencePiece
from bert_elmo_jax.text.tokenizer_file import TokenizerFile
from bert_elmo_jax.text.tokenizer_specs import find_parts


def tokenizer_json(tokenizer: Tokenizer) -> bytes | None:
    """Return the file, or None for a SentencePiece model of another type than unigram.

    >>> from bert_elmo_jax.text import load_tokenizer
    >>> tokenizer_json(load_tokenizer("tests/goldens/bert_tiny"))[:20]
    b'{"version": "1.0", "'
    """
    spec: dict[str, Any] | None = None
    if isinstance(tokenizer, TokenizerFile):
        spec = json.loads(TokenizerFile.files(tokenizer)["tokenizer.json"])
    elif isinstance(tokenizer, SentencePiece):
        spec = unigram_spec(tokenizer)
    if spec is None:
        return None
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
        for part in find_parts(spec.get("post_processor"), "RobertaProcessing"):  # which trims them, too
            fields = {name: part[name] for name in ("add_prefix_space", "trim_offsets")}
            trims = [*trims, {"type": "ByteLevel", "use_regex": True, **fields}]
        spec["post_processor"] = {"type": "Sequence", "processors": [*trims, template]} if trims else template
    return json.dumps(spec, ensure_ascii=False).encode()


def unigram_spec(tokenizer: SentencePiece) -> dict[str, Any] | None:
    """Return the spec of a SentencePiece model without frame, or None if it is no unigram model."""
    from sentencepiece import sentencepiece_model_pb2

    proto: Any = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(next(content for name, content in tokenizer.files().items() if name.endswith(".model")))
    if proto.trainer_spec.model_type != proto.trainer_spec.UNIGRAM:
        return None
    cleaning, rules = tokenizer.cleaning, proto.normalizer_spec
    steps: list[dict[str, Any]] = []
    if cleaning.tidy_spaces:
        quotes = [_replace({"String": old}, '"') for old in ("``", "''")]
        steps = [_replace({"Regex": r"[\s\x1c-\x1f]+"}, " "), *quotes]
    steps += [{"type": kind} for kind in ("NFKD", "StripAccents", "NFC")] if cleaning.strip_accents else []
    steps += [{"type": "Lowercase"}] if cleaning.lowercase else []
    if rules.precompiled_charsmap:
        # The library `tokenizers` does not compose the letters of decomposed Hangul by this table.
        steps += [{"type": "NFC"}] if tokenizer.normalize("\u1112\u1161\u11ab") == "\ud55c" else []
        charsmap = base64.b64encode(rules.precompiled_charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if rules.remove_extra_whitespaces:
        steps += [{"type": "Strip", "strip_left": True, "strip_right": True}, _replace({"Regex": " {2,}"}, " ")]
    prefix = {"type": "Metaspace", "replacement": "\u2581", "split": True}
    prefix["prepend_scheme"] = "always" if rules.add_dummy_prefix else "never"
    ids = sorted({tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id})
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, "content": tokenizer.tokens[number], **flags} for number in ids],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": prefix,
        "post_processor": None,
        "decoder": prefix,
        "model": {
            "type": "Unigram",
            "unk_id": proto.trainer_spec.unk_id,
            "vocab": [[piece.piece, piece.score] for piece in proto.pieces],
            "byte_fallback": proto.trainer_spec.byte_fallback,
        },
    }


def _replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}
