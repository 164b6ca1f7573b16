"""Reading and checking the pieces of a WordPiece vocabulary."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from bert_elmo_jax.files import read_json, read_text
from bert_elmo_jax.text.special import SPECIALS

# Newer versions of Hugging Face's libraries write only the second.
VOCABULARY_FILES = ("vocab.txt", "tokenizer.json")


def find_vocabulary(folder: Path) -> Path | None:
    """Return the vocabulary file of a folder, or None."""
    return next((folder / name for name in VOCABULARY_FILES if (folder / name).is_file()), None)


def read_vocabulary(path: Path) -> list[str]:
    r"""Return the pieces of a `vocab.txt` or `tokenizer.json` by id.

    Only \n or \r\n ends a line of `vocab.txt`: released vocabularies hold pieces such as U+2028, where
    `str.splitlines` would split, and pieces that `str.strip` would empty. Blank lines at the end are ignored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "vocab.txt"
    ...     _ = path.write_bytes("[PAD]\r\n\u2028\r\n배\r\n\r\n".encode())
    ...     read_vocabulary(path)
    ['[PAD]', '\u2028', '배']
    """
    if path.suffix == ".json":
        return _read_whole(path)
    pieces = [line.removesuffix("\r") for line in read_text(path).split("\n")]
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces


def check_vocabulary(pieces: Sequence[str], source: str, specials: Iterable[str] = SPECIALS) -> None:
    """Raise on repeated pieces, pieces with a line break and missing special pieces; the error lists all of them."""
    lines: dict[str, list[int]] = {}
    for number, piece in enumerate(pieces, start=1):
        lines.setdefault(piece, []).append(number)
    missing = [piece for piece in specials if piece not in lines]
    problems = [f"it lacks {', '.join(missing)}"] if missing else []
    if len(lines) < len(pieces):
        problems += [
            f"{piece!r} is on lines {', '.join(map(str, where[:-1]))} and {where[-1]}"
            for piece, where in lines.items()
            if len(where) > 1
        ]
    problems += [
        f"{piece!r} on line {where[0]} holds a line break, which no vocab.txt can"
        for piece, where in lines.items()
        if "\n" in piece or piece.endswith("\r")
    ]
    if problems:
        raise ValueError(
            f"{source} cannot be used as a vocabulary ({len(pieces)} pieces): {'; '.join(problems)}. "
            "Add missing pieces and remove repeated ones, one piece per line, keeping the ids that the weights were "
            "trained with."
        )


def check_added(folder: Path, pieces: Sequence[str]) -> None:
    """Raise if another file of the folder adds pieces to the vocabulary: their ids would be lost silently."""
    config = read_json(folder / "tokenizer_config.json", default={}).get("added_tokens_decoder") or {}
    added = [(entry["content"], int(number)) for number, entry in config.items()]
    whole = read_json(folder / "tokenizer.json", default={})
    added += [(entry["content"], entry["id"]) for entry in whole.get("added_tokens") or []]
    added += list(read_json(folder / "added_tokens.json", default={}).items())
    unknown = sorted({(number, piece) for piece, number in added if pieces[number : number + 1] != [piece]})
    if unknown:
        raise ValueError(
            f"{folder} adds pieces that are not in its vocabulary at these ids: "
            f"{', '.join(f'{piece!r} ({number})' for number, piece in unknown)}. Such pieces are not supported: remove "
            "them from the .json files of a copy of the folder, or rename [unused…] lines of vocab.txt."
        )


def _read_whole(path: Path) -> list[str]:
    vocabulary = read_json(path).get("model", {}).get("vocab")
    if not isinstance(vocabulary, dict):
        raise ValueError(
            f"{path} holds no WordPiece vocabulary; expected model.vocab to be an object that maps pieces to ids"
        )
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError(
            f"{path}: the ids of its {len(vocabulary)} pieces are not 0 to {len(vocabulary) - 1}, each once"
        )
    return sorted(vocabulary, key=vocabulary.__getitem__)
