"""Finding a SentencePiece `.model` file and its special pieces."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.text.special import CLS, MASK, PAD, SEP

# Names of the special pieces in released models, ours first. The library knows the unknown piece.
USUAL_NAMES = {
    "pad": (PAD, "<pad>"),
    "cls": (CLS, "<cls>", "<s>"),
    "sep": (SEP, "<sep>", "</s>"),
    "mask": (MASK, "<mask>"),
}
MODEL_FILES = ("sentencepiece.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")


def find_model(folder: Path) -> Path | None:
    """Return the SentencePiece model of a folder: a usual name, else its only `.model` file."""
    for name in MODEL_FILES:
        if (folder / name).is_file():
            return folder / name
    others = list(folder.glob("*.model"))
    return others[0] if len(others) == 1 else None


def find_specials(tokens: Sequence[str], library: Any, source: str) -> tuple[int, ...]:
    """Return the ids of the pad, unknown, cls, sep and mask pieces."""
    index = {piece: number for number, piece in enumerate(tokens)}
    found = {kind: next((index[name] for name in names if name in index), None) for kind, names in USUAL_NAMES.items()}
    missing = [f"{kind} ({' or '.join(USUAL_NAMES[kind])})" for kind, number in found.items() if number is None]
    if missing:
        raise ValueError(
            f"{source} has no piece for: {', '.join(missing)}. BERT needs all of them: use a model made for BERT, or "
            "train one with train_sentencepiece."
        )
    pad, cls, sep, mask = (number for number in found.values() if number is not None)
    return pad, library.unk_id(), cls, sep, mask


def without_literals(library: Any, model: bytes, specials: Sequence[int]) -> Any:
    """Return a model whose special pieces never match literal text, as corpus text needs."""
    literal = [number for number in specials if not (library.is_control(number) or library.is_unknown(number))]
    if not literal:
        return library
    from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    for number in literal:
        proto.pieces[number].type = proto.SentencePiece.CONTROL
    return SentencePieceProcessor(model_proto=proto.SerializeToString())
