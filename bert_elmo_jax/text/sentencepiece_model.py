"""What a `.model` file is called, what its special pieces are called, and how it treats them in a text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from bert_elmo_jax.text.special import CLS, MASK, PAD, SEP

# The names that released models use for the five special pieces, ours first. The unknown piece needs no name.
USUAL_NAMES = {
    "pad": (PAD, "<pad>"),
    "cls": (CLS, "<cls>", "<s>"),
    "sep": (SEP, "<sep>", "</s>"),
    "mask": (MASK, "<mask>"),
}
MODEL_FILES = ("sentencepiece.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")


def find_model(folder: Path) -> Path | None:
    """The SentencePiece model of a folder: a usual name, else the only `.model` file there.

    >>> find_model(Path("no/such/folder")) is None
    True
    """
    usual = [folder / name for name in MODEL_FILES if (folder / name).is_file()]
    others = sorted(folder.glob("*.model"))
    if usual:
        return usual[0]
    return others[0] if len(others) == 1 else None


def find_specials(tokens: Sequence[str], library: Any, source: str) -> tuple[int, ...]:
    """The ids of the pad, unknown, cls, sep and mask pieces, by their usual names.

    >>> find_specials(["<unk>", "<s>", "</s>"], None, "x.model")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: x.model has no piece for: pad ([PAD] or <pad>), mask ([MASK] or <mask>). ...
    """
    index = {piece: number for number, piece in enumerate(tokens)}
    found = {kind: next((index[name] for name in names if name in index), None) for kind, names in USUAL_NAMES.items()}
    missing = [f"{kind} ({' or '.join(USUAL_NAMES[kind])})" for kind, number in found.items() if number is None]
    if missing:
        raise ValueError(
            f"{source} has no piece for: {', '.join(missing)}. A BERT needs all of them; use a model made for BERT, or "
            " train one with train_sentencepiece."
        )
    pad, cls, sep, mask = (number for number in found.values() if number is not None)
    return pad, library.unk_id(), cls, sep, mask


def without_literals(library: Any, model: bytes, specials: Sequence[int]) -> Any:
    """The model for corpus text: special pieces that a release lets match literal text are made not to."""
    literal = [number for number in specials if not (library.is_control(number) or library.is_unknown(number))]
    if not literal:
        return library
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    for number in literal:
        proto.pieces[number].type = proto.SentencePiece.CONTROL
    return sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
