"""Special pieces around the texts of a tokenizer that has none, such as a GPT's."""

import json
from typing import Any

from bert_elmo_jax.text.encoding import Frame
from bert_elmo_jax.text.tokenizer import Tokenizer
from bert_elmo_jax.text.tokenizer_file import TokenizerFile
from bert_elmo_jax.text.tokenizer_specs import TEXT_FLAGS, find_parts, make_template

START, DELIMITER, EXTRACT = NEW_PIECES = ("<|start|>", "<|delimiter|>", "<|extract|>")


def has_frame(tokenizer: Tokenizer) -> bool:
    """Return False for a tokenizer that puts no special pieces around texts.

    >>> from bert_elmo_jax.text import load_tokenizer
    >>> has_frame(load_tokenizer("tests/goldens/gpt2_tiny"))
    False
    """
    return tokenizer.frame.count(pair=True) > 0


def add_frame(tokenizer: TokenizerFile) -> TokenizerFile:
    """Return a tokenizer with three more pieces, for `start a extract` and `start a delimiter b extract`.

    >>> from bert_elmo_jax.text import load_tokenizer
    >>> framed = add_frame(load_tokenizer("tests/goldens/gpt2_tiny"))
    >>> framed.encode("a", "b").tokens, framed.vocab_size
    (('<|start|>', 'a', '<|delimiter|>', 'b', '<|extract|>'), 403)
    """
    present = [piece for piece in NEW_PIECES if piece in tokenizer.tokens]
    if has_frame(tokenizer) or present:
        raise ValueError(f"the tokenizer already has {', '.join(present) or f'the frame {tokenizer.frame}'}")
    files = tokenizer.files()
    spec: dict[str, Any] = json.loads(files["tokenizer.json"])
    ids = {piece: tokenizer.vocab_size + number for number, piece in enumerate(NEW_PIECES)}
    flags = TEXT_FLAGS | {"special": True}
    spec["added_tokens"] += [{"id": number, "content": piece, **flags} for piece, number in ids.items()]
    frame = make_template(f"{START} A {EXTRACT}", f"{START} A {DELIMITER} B {EXTRACT}", ids)
    # A byte-level part trims offsets; an empty template would hide the new one.
    trims = find_parts(spec.get("post_processor"), "ByteLevel")
    spec["post_processor"] = {"type": "Sequence", "processors": [*trims, frame]} if trims else frame
    end = tokenizer.tokens[tokenizer.sep_id]
    names = {"pad": tokenizer.tokens[tokenizer.pad_id], "unk": tokenizer.tokens[tokenizer.unk_id], "eos": end}
    names |= {"cls": START, "sep": EXTRACT, "mask": tokenizer.tokens[tokenizer.mask_id]}
    framed = TokenizerFile(spec, {f"{kind}_token": name for kind, name in names.items()}, "the framed tokenizer")
    assert framed.frame == Frame((ids[START],), (ids[DELIMITER],), (ids[EXTRACT],), (0, 0))
    return framed
