"""Load the tokenizer in a folder, of any kind; the code of a kind is imported when a folder has it."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import check_links, read_bytes
from bert_elmo_jax.text.encoding import Frame
from bert_elmo_jax.text.tokenizer import PROJECT_KEY, Tokenizer, check_fingerprint
from bert_elmo_jax.text.tokenizer_checks import read_added, read_spec
from bert_elmo_jax.text.tokenizer_file import TokenizerFile
from bert_elmo_jax.text.tokenizer_folder import (
    BPE_PAIRS,
    find_added_names,
    find_bpe,
    find_kind,
    find_model,
    is_shifted,
    is_unframed,
    refuse_split_punctuation,
)
from bert_elmo_jax.text.tokenizer_specs import (
    UNFRAMED_CLASSES,
    Spec,
    find_added,
    find_parts,
    has_frame,
    index_pieces,
    make_template,
    read_settings,
    warn_unframed,
)
from bert_elmo_jax.text.wordpiece import load_wordpiece
from bert_elmo_jax.text.wordpiece_files import has_one_type, spec_of_framed_vocabulary


def load_tokenizer(folder: str | Path, *, lowercase: bool | None = None) -> Tokenizer:
    """Load the tokenizer in a folder, or from its vocabulary, `tokenizer.json` or `.model` file.

    A folder holds one of: `vocab.txt` (WordPiece), `vocab.json` with `merges.txt` (BPE, byte-level or with `</w>`), a
    SentencePiece model, `source.spm` with `target.spm` and `vocab.json` (Marian), or a `tokenizer.json`; the rules of
    normalisation and splitting in that file are followed.

    >>> import tempfile
    >>> from bert_elmo_jax.text import train_wordpiece
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_wordpiece(["배를 타고"], vocab_size=20).save(folder)
    ...     load_tokenizer(folder).kind
    'wordpiece'
    """
    path = Path(folder)
    check_links(path)
    tokenizer = _load_of_kind(path, find_kind(path), lowercase)
    settings = read_settings(path if path.is_dir() else path.parent)
    tokenizer.cuts_start = settings.get("truncation_side") == "left"
    return tokenizer


def _load_of_kind(path: Path, kind: str, lowercase: bool | None) -> Tokenizer:
    if kind == "wordpiece":
        return load_wordpiece(path, lowercase=lowercase)
    if lowercase is not None:
        raise ValueError(
            f"lowercase={lowercase} was given, but a {'SentencePiece model' if kind == 'sentencepiece' else kind} "
            f"({path}) carries its own normalisation: leave lowercase out"
        )
    if kind == "marian":
        from bert_elmo_jax.text.marian import load_marian

        return load_marian(path)
    if kind == "sentencepiece":
        from bert_elmo_jax.text.sentencepiece import load_sentencepiece

        return load_sentencepiece(path)
    return load_tokenizer_file(path)


def load_tokenizer_file(path: str | Path) -> TokenizerFile:
    """Load a `tokenizer.json`, a `vocab.json` with `merges.txt`, a `vocab.txt` or a shifted SentencePiece model.

    `path` is a folder, where `tokenizer.json` comes first, or one of the files.

    >>> import tempfile
    >>> from bert_elmo_jax.text import train_byte_bpe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_byte_bpe(["배를 타고"], vocab_size=280).save(folder)
    ...     load_tokenizer_file(folder).kind
    'byte_bpe'
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    settings = read_settings(folder)
    unframed = is_unframed(folder)
    if unframed:  # a config.json may be the only file that says so
        settings = {**settings, "tokenizer_class": UNFRAMED_CLASSES[0]}
    refuse_split_punctuation(folder)
    model = find_model(folder)
    names = {name for pair in BPE_PAIRS for name in pair}
    if (path / "tokenizer.json").is_file() or (path.suffix == ".json" and path.name not in names):
        file = path / "tokenizer.json" if path.is_dir() else path
        spec = read_spec(file)
    elif model is not None and is_shifted(folder):
        from bert_elmo_jax.text.shifted_pieces import spec_of_shifted_model

        file, spec = model, spec_of_shifted_model(read_bytes(model), str(model))
    elif model is not None:
        file, spec = model, _spec_of_model(folder)
    elif (folder / "vocab.txt").is_file():
        file = folder / "vocab.txt"
        spec, settings = spec_of_framed_vocabulary(file, settings)
    else:
        from bert_elmo_jax.text.bpe import read_vocabulary_and_merges

        file, spec = folder / find_bpe(folder)[0], read_vocabulary_and_merges(folder, settings)
    if unframed and PROJECT_KEY not in settings:
        spec = _add_empty_frame(spec)
    spec = _add_pieces(_apply_settings(spec, settings), folder, settings)
    tokenizer = TokenizerFile(spec, settings, str(file))
    check_fingerprint(settings, tokenizer.fingerprint, file)
    if tokenizer.frame != Frame() and has_one_type(folder, settings):
        tokenizer.frame = dataclasses.replace(tokenizer.frame, types=(0, 0))
    if tokenizer.frame != Frame():
        warn_unframed(spec, settings, str(file))
    return tokenizer


def _spec_of_model(folder: Path) -> Spec:
    """Return the SentencePiece model of a folder, which adds pieces to it, as the contents of a `tokenizer.json`."""
    from bert_elmo_jax.text.sentencepiece import load_sentencepiece
    from bert_elmo_jax.text.tokenizer_json import tokenizer_json

    content = tokenizer_json(load_sentencepiece(folder))
    if content is None:
        raise ValueError(
            f"{folder} adds pieces ({', '.join(sorted(find_added_names(folder)))}) to a SentencePiece model that is no "
            "unigram model: this needs its tokenizer.json, which transformers writes with save_pretrained"
        )
    spec: Spec = json.loads(content)
    return spec


def _add_empty_frame(spec: Spec) -> Spec:
    """Return the spec with a frame of no pieces, unless it has a frame."""
    if has_frame(spec):
        return spec
    processor = spec.get("post_processor")
    empty = make_template("A", "A B", {})
    return spec | {"post_processor": {"type": "Sequence", "processors": [processor, empty]} if processor else empty}


def _apply_settings(spec: Spec, settings: Mapping[str, Any]) -> Spec:
    """Apply the settings of `tokenizer_config.json` that overrule a `tokenizer.json`."""
    spec = json.loads(json.dumps(spec))
    options = {
        name: settings[name] for name in ("add_prefix_space", "trim_offsets") if isinstance(settings.get(name), bool)
    }
    for part in find_parts(spec.get("pre_tokenizer"), "ByteLevel"):
        part |= options
    for part in find_parts(spec.get("post_processor"), "RobertaProcessing"):
        part |= options
    return spec


def _add_pieces(spec: Spec, folder: Path, settings: Mapping[str, Any]) -> Spec:
    """Add the pieces that other files of the folder mark in the vocabulary or append to it."""
    vocabulary = (spec.get("model") or {}).get("vocab") or {}
    index = dict(vocabulary) if isinstance(vocabulary, dict) else index_pieces(spec, str(folder))
    index |= {entry["content"]: entry["id"] for entry in spec.get("added_tokens") or []}
    names = read_added(folder)
    listed = {int(number): entry["content"] for number, entry in (settings.get("added_tokens_decoder") or {}).items()}
    listed = {number: piece for piece, number in names.items()} | listed
    size = max([len(vocabulary) - 1, *(entry["id"] for entry in spec.get("added_tokens") or [])]) + 1
    appended = {listed[number]: number for number in sorted(listed) if number >= size}
    for place, (piece, number) in enumerate(appended.items(), start=size):
        if number != place:
            raise ValueError(
                f"{folder} adds the piece {piece!r} with the id {number}, but the ids before it end at {place - 1}: "
                "copy the folder again"
            )
    added = find_added(spec, settings, names, index | appended)
    found = {entry["id"] for entry in added}
    added += [{"id": number, "content": piece} for piece, number in appended.items() if number not in found]
    return spec | {"added_tokens": sorted(added, key=lambda entry: entry["id"])}
