"""The files of a WordPiece tokenizer: its vocabulary, and the options that normalise text.

Released BERTs have one switch: lower-casing also decomposes the text (NFD) and strips accents, which splits Hangul
into jamo. Vocabularies trained here compose text (NFC) and keep accents by default.
"""

import logging
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import read_json, read_text
from bert_elmo_jax.json_values import SMALL
from bert_elmo_jax.text.encoding import Frame
from bert_elmo_jax.text.tokenizer import CLS, PROJECT_KEY, SEP, SPECIALS, UNK, list_pieces, project_settings
from bert_elmo_jax.text.tokenizer_checks import (
    leaves_out_types,
    names_class,
    read_added,
    read_spec,
    read_tokenizer_config,
)
from bert_elmo_jax.text.tokenizer_specs import (
    KINDS,
    SPEC_CLASSES,
    Spec,
    cleaning_spec,
    find_added,
    find_frame,
    has_frame,
    name_of,
    read_settings,
    warn_unframed,
)

LONGEST_PIECE = 1000  # characters; the library takes minutes for pieces of millions
# The tokenizers and models for which transformers makes BERT's frame, whatever frame tokenizer.json has.
OWN_FRAME_CLASSES = (
    "BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "DistilBertTokenizerFast", "ElectraTokenizer",
    "ElectraTokenizerFast",
)  # fmt: skip
OWN_FRAME_TYPES = ("bert", "distilbert", "electra")
FRAMED = ("<pad>", UNK, "<s>", "</s>", "<mask>")  # special pieces of a WordPiece with RoBERTa's frame, by `KINDS`


@dataclass(frozen=True)
class WordPieceOptions:
    """The settings that change ids, apart from the vocabulary."""

    lowercase: bool = False
    strip_accents: bool = False
    split_chinese: bool = True
    compose: bool = False
    # A longer word is one [UNK], as in released tokenizers, because matching takes quadratic time.
    longest_word: int = 100

    def spec(self, pieces: Sequence[str]) -> Spec:
        """Return the contents of a `tokenizer.json` for a vocabulary with these options.

        >>> WordPieceOptions(lowercase=True).spec(["[UNK]"])["normalizer"]["lowercase"]
        True
        """
        clean = cleaning_spec(
            split_chinese=self.split_chinese, strip_accents=self.strip_accents, lowercase=self.lowercase
        )
        # Composition comes last, because lower-casing and stripping accents can decompose text.
        composed = {"type": "Sequence", "normalizers": [clean, {"type": "NFC"}]}
        return {
            "normalizer": composed if self.compose else clean,
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": UNK, "continuing_subword_prefix": "##"}
            | {"max_input_chars_per_word": self.longest_word}
            | {"vocab": {piece: number for number, piece in enumerate(pieces)}},
        }

    def config(self) -> dict[str, Any]:
        """Return the options as entries of `tokenizer_config.json`; all but this project's are Hugging Face's."""
        return {
            "do_lower_case": self.lowercase,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.split_chinese,
            PROJECT_KEY: {"normalization": "NFC" if self.compose else None, "longest_word": self.longest_word},
        }


def read_options(folder: Path, pieces: Sequence[str], lowercase: bool | None = None) -> WordPieceOptions:
    """Read the options of a vocabulary from its configuration files, or guess them from its pieces.

    `lowercase` overrides `tokenizer_config.json`, which overrides `tokenizer.json` unless it names a class that reads
    only the latter. Lower-casing strips accents, as in released BERTs, unless a file disagrees or, without a file, a
    piece has an accent.

    A folder of transformers (one with `config.json`) that does not say its case is lower-cased, as transformers does,
    and one line says so if the pieces look cased. In other folders the pieces decide: Google's programs, too, refuse to
    lower-case a cased checkpoint.
    """
    config = _read_config(folder / "tokenizer_config.json")
    file_options = _read_file_options(folder / "tokenizer.json")
    project = project_settings(config, str(folder))
    overrides = {} if file_options and config.get("tokenizer_class") in SPEC_CLASSES else config
    merged = {
        name: overrides.get(name) if overrides.get(name) is not None else file_options.get(name)
        for name in ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
    }
    wrong = [f"{name} is {value!r}" for name, value in merged.items() if not (value is None or isinstance(value, bool))]
    if wrong:
        raise ValueError(f"{folder / 'tokenizer_config.json'}: {', '.join(wrong)}; expected true, false or null")
    configured = merged["do_lower_case"]
    if configured is None and lowercase is None and (folder / "config.json").is_file():
        configured = _choose_case(folder, guess_options(pieces))
    if lowercase is None:
        lowercase = guess_options(pieces).lowercase if configured is None else configured
    strip = merged["strip_accents"]
    if strip is None:
        strip = lowercase and (configured is not None or not _keeps_accents(pieces))
    longest = project.get("longest_word", file_options.get("longest_word", 100))
    if type(longest) is not int or not 1 <= longest < 1 << 31:
        raise ValueError(f"{folder}: the longest word of its tokenizer has {longest!r} characters; expected 1 or more")
    return WordPieceOptions(
        lowercase=lowercase,
        strip_accents=strip,
        split_chinese=merged["tokenize_chinese_chars"] is not False,
        compose=project.get("normalization") == "NFC",
        longest_word=longest,
    )


def _choose_case(folder: Path, guess: WordPieceOptions) -> bool:
    """Return True, the case of a folder of transformers that does not say its own; log it if the pieces disagree."""
    if not (guess.lowercase and guess.strip_accents):
        logging.getLogger(__name__).warning(
            "%s does not say its case: its texts are lower-cased and lose their accents (Hangul is split into jamo), "
            "as in transformers, although its pieces look %s. Write do_lower_case (true or false) into its "
            "tokenizer_config.json, or give lowercase=.",
            folder,
            "accented" if guess.lowercase else "cased",
        )
    return True


def _read_config(file: Path) -> dict[str, Any]:
    config = read_tokenizer_config(file.parent)
    for key, honoured in {"word_tokenizer_type": "basic", "do_word_tokenize": True, "do_basic_tokenize": True}.items():
        if config.get(key, honoured) != honoured:
            raise ValueError(
                f"{file}: {key} is {config[key]!r}; only {honoured!r}, BERT's own word splitting, is supported. "
                "Split the text with that tool first and use encode_words."
            )
    return config


def is_wordpiece(file: Path) -> bool:
    """Return True if a `tokenizer.json` is a WordPiece with BERT's own rules, which `WordPiece` reads."""
    text = read_text(file)
    if len(text) > SMALL and "WordPiece" not in text:  # parsing a large file a second time takes a second
        return False
    spec = read_spec(file)
    return not spec or not _find_misfits(spec, file)


def _find_misfits(spec: Spec, file: Path) -> list[str]:
    model, splitter, normalizer = spec.get("model") or {}, spec.get("pre_tokenizer") or {}, _find_cleaning(spec, file)
    expected = {
        "model type": (model.get("type"), "WordPiece"),
        "unknown piece": (model.get("unk_token"), UNK),
        "continuation prefix": (model.get("continuing_subword_prefix"), "##"),
        "normalizer": (normalizer.get("type"), "BertNormalizer"),
        "clean_text": (normalizer.get("clean_text", True), True),
        "pre_tokenizer": (splitter.get("type"), "BertPreTokenizer"),
        "frame": ("another" if _has_own_frame(spec, file) else "BERT's", "BERT's"),
    }
    # Those classes put the special pieces that a folder names into BERT's frame.
    if not names_class(file.parent, OWN_FRAME_CLASSES, OWN_FRAME_TYPES):
        expected |= {f"{KINDS[number]}_token": (name, SPECIALS[number])
                     for number, name in enumerate(name_specials(file.parent))}  # fmt: skip
    return [f"{part} is {value!r} (expected {usual!r})" for part, (value, usual) in expected.items() if value != usual]


def _find_cleaning(spec: Spec, file: Path) -> dict[str, Any]:
    """Return the normalizer of a file; without the composition (NFC) that a tokenizer saved here adds."""
    normalizer: dict[str, Any] = spec.get("normalizer") or {}
    if project_settings(read_tokenizer_config(file.parent), str(file)).get("normalization") != "NFC":
        return normalizer
    cleaning, *others = normalizer.get("normalizers") or [normalizer]
    return cleaning if others == [{"type": "NFC"}] else normalizer


def _has_own_frame(spec: Spec, file: Path) -> bool:
    """Return True if a file puts other special pieces around texts than BERT, or other types, and is followed."""
    if (spec.get("post_processor") or {}).get("type") == "RobertaProcessing":
        return True
    vocabulary = (spec.get("model") or {}).get("vocab")
    if (
        not has_frame(spec)
        or not isinstance(vocabulary, dict)
        or names_class(file.parent, OWN_FRAME_CLASSES, OWN_FRAME_TYPES)
    ):
        return False
    cls, sep = (vocabulary.get(piece, -1) for piece in (CLS, SEP))
    saved_here = project_settings(read_tokenizer_config(file.parent), str(file))
    types = (0, 0) if saved_here.get("types") == 1 else (0, 1)
    return find_frame(spec, {}, str(file)) != Frame((cls,), (sep,), (sep,), types)


def _read_file_options(file: Path) -> dict[str, Any]:
    """Return the options in a `tokenizer.json` by their names in `tokenizer_config.json`."""
    spec = read_spec(file)
    if not spec:
        return {}
    model, normalizer = spec.get("model") or {}, _find_cleaning(spec, file)
    wrong = _find_misfits(spec, file)
    if wrong:
        raise ValueError(
            f"{file} is not a BERT tokenizer: {', '.join(wrong)}. Use load_tokenizer with the folder; or, if vocab.txt "
            f"is complete, remove {file.name} from a copy of it."
        )
    warn_unframed(spec, read_tokenizer_config(file.parent), str(file))
    return {
        "do_lower_case": normalizer.get("lowercase"),
        "strip_accents": normalizer.get("strip_accents"),
        "tokenize_chinese_chars": normalizer.get("handle_chinese_chars"),
        "longest_word": model.get("max_input_chars_per_word", 100),
    }


def guess_options(pieces: Sequence[str]) -> WordPieceOptions:
    """Guess the options of a `vocab.txt` that has no configuration file.

    Text is lower-cased if the pieces hold cased letters and none is upper-case. Accents, too, are then stripped if no
    piece would change by it (composed Hangul would).
    """
    plain = [piece for piece in pieces if not (piece.startswith("[") and piece.endswith("]"))]
    lowercase = all(piece == piece.lower() for piece in plain) and any(piece != piece.upper() for piece in plain)
    return WordPieceOptions(lowercase=lowercase, strip_accents=lowercase and not _keeps_accents(pieces))


def _keeps_accents(pieces: Sequence[str]) -> bool:
    return any(
        not unicodedata.is_normalized("NFD", piece) or any(unicodedata.category(c) == "Mn" for c in piece)
        for piece in pieces
        if not piece.isascii()
    )


def has_one_type(folder: Path, config: dict[str, Any]) -> bool:
    """Return True if the network of a folder tells the texts of a pair apart by no types."""
    types = read_json(folder / "config.json", default={}).get("type_vocab_size")
    return types in (0, 1) or leaves_out_types(config) or project_settings(config, str(folder)).get("types") == 1


def read_vocabulary(path: Path) -> list[str]:
    r"""Return the pieces of a `vocab.txt` or `tokenizer.json` by id.

    Only \n or \r\n ends a line of `vocab.txt`: released vocabularies hold pieces such as U+2028, where
    `str.splitlines` would split, and pieces that `str.strip` would empty. Blank lines at the end are ignored.
    """
    if path.suffix == ".json":
        vocabulary = (read_spec(path).get("model") or {}).get("vocab")
        if not isinstance(vocabulary, dict):
            raise ValueError(
                f"{path} holds no WordPiece vocabulary; expected model.vocab to be an object that maps pieces to ids"
            )
        return list(list_pieces(vocabulary, str(path)))
    pieces = [line.removesuffix("\r") for line in read_text(path).split("\n")]
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces


def name_specials(folder: Path) -> tuple[str, ...]:
    """Return the special pieces of a folder by `KINDS`: those that its settings name, else BERT's."""
    settings = read_settings(folder)
    return tuple(name_of(settings.get(f"{kind}_token")) or usual for kind, usual in zip(KINDS, SPECIALS))


def is_framed(file: Path) -> bool:
    """Return True if a `vocab.txt` has the special pieces of RoBERTa, whose frame its texts then get.

    A folder that names a tokenizer or a model of BERT has BERT's frame, even with RoBERTa's pieces in its vocabulary.

    >>> is_framed(Path("tests/goldens/mpnet_tiny/vocab.txt")), is_framed(Path("tests/goldens/bert_tiny/vocab.txt"))
    (True, False)
    """
    has_own = names_class(file.parent, OWN_FRAME_CLASSES, OWN_FRAME_TYPES)
    return not has_own and set(FRAMED) <= set(read_vocabulary(file))


def spec_of_framed_vocabulary(file: Path, settings: Mapping[str, Any]) -> tuple[Spec, dict[str, Any]]:
    """Return a `vocab.txt` with the special pieces of RoBERTa as the contents of a `tokenizer.json`, and settings.

    The pieces have RoBERTa's names unless the settings name others; BERT's names may be in the vocabulary, too.
    """
    pieces = read_vocabulary(file)
    settings = {**{f"{kind}_token": piece for kind, piece in zip(KINDS, FRAMED)}, **settings}
    names = [str(name_of(settings[f"{kind}_token"])) for kind in KINDS]
    if missing := [name for name in names if name not in pieces]:
        raise ValueError(f"{file} has no piece {', '.join(missing)}: copy the vocabulary of this model again")
    _, _, cls, sep, _ = ([name, pieces.index(name)] for name in names)
    frame = {"type": "RobertaProcessing", "cls": cls, "sep": sep, "trim_offsets": True, "add_prefix_space": False}
    return read_options(file.parent, pieces).spec(pieces) | {"post_processor": frame}, settings


def check_vocabulary(pieces: Sequence[str], source: str, specials: Sequence[str] = SPECIALS) -> None:
    """Raise on repeated pieces, pieces with a line break and missing special pieces; the error lists all of them."""
    different, joined = set(pieces), "\0".join([*pieces, ""])
    one_line = "\n" not in joined and "\r\0" not in joined and max(map(len, pieces), default=0) <= LONGEST_PIECE
    if len(different) == len(pieces) and different.issuperset(specials) and one_line:
        return
    lines: dict[str, list[int]] = {}
    for number, piece in enumerate(pieces, start=1):
        lines.setdefault(piece, []).append(number)
    missing = [piece for piece in specials if piece not in lines]
    problems = [f"it lacks {', '.join(missing)}"] if missing else []
    problems += [
        f"{piece!r} is on lines {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
        for piece, numbers in lines.items()
        if len(numbers) > 1
    ]
    problems += [
        f"{piece!r} on line {numbers[0]} holds a line break, which no vocab.txt can"
        for piece, numbers in lines.items()
        if "\n" in piece or piece.endswith("\r")
    ]
    problems += [
        f"{piece[:20]!r}… on line {numbers[0]} has {len(piece):,} characters; at most {LONGEST_PIECE:,} are possible"
        for piece, numbers in lines.items()
        if len(piece) > LONGEST_PIECE
    ]
    if problems:
        raise ValueError(
            f"{source} cannot be used as a vocabulary ({len(pieces)} pieces): {'; '.join(problems)}. "
            "Add missing pieces and remove repeated ones, one piece per line, keeping the ids that the weights were "
            "trained with."
        )


def read_appended(folder: Path, pieces: Sequence[str]) -> dict[str, int]:
    """Return the pieces that other files of a folder append to its vocabulary, with their ids.

    Raise if a file gives a piece of the vocabulary another id, or appends pieces whose ids do not follow.
    """
    config = read_tokenizer_config(folder).get("added_tokens_decoder") or {}
    added = {(int(number), entry["content"]) for number, entry in config.items()}
    spec = read_spec(folder / "tokenizer.json")
    added |= {(entry["id"], entry["content"]) for entry in spec.get("added_tokens") or []}
    added |= {(number, piece) for piece, number in read_added(folder).items()}
    unknown = sorted((number, piece) for number, piece in added if pieces[number : number + 1] != [piece])
    names = [piece for _, piece in unknown]
    follow = [number for number, _ in unknown] == list(range(len(pieces), len(pieces) + len(unknown)))
    if not follow or len({*names, *pieces}) < len(names) + len(pieces):
        raise ValueError(
            f"{folder} adds pieces at ids that do not follow the {len(pieces):,} pieces of its vocabulary: "
            f"{', '.join(f'{piece!r} ({number})' for number, piece in unknown)}. Copy the files of one model again."
        )
    return {piece: number for number, piece in unknown}


def read_added_pieces(folder: Path, pieces: Sequence[str]) -> list[dict[str, Any]]:
    """Return the pieces that the files of a folder add in its vocabulary or behind it."""
    index = {piece: number for number, piece in enumerate(pieces)} | read_appended(folder, pieces)
    return find_added(read_spec(folder / "tokenizer.json"), read_settings(folder), read_added(folder), index)


def warn_of_difference(lines: Sequence[str], written: Sequence[str], folder: Path) -> None:
    """Log the first line of a `vocab.txt` that differs from the pieces of the `tokenizer.json` beside it."""
    pairs = zip_longest(lines, written)
    different = next(((number, pair) for number, pair in enumerate(pairs, start=1) if pair[0] != pair[1]), None)
    if different:
        number, (old, new) = different
        logging.getLogger(__name__).warning(
            "%s: line %d of vocab.txt is %r, but tokenizer.json has %r there. tokenizer.json is followed, as in "
            "transformers: delete it to follow vocab.txt.",
            folder,
            number,
            old,
            new,
        )
