"""WordPiece tokenizers with BERT's rules, released or trained here."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.text.encoding import Frame
from bert_elmo_jax.text.tokenizer import PROJECT_KEY, SPECIALS, check_fingerprint, encode_json
from bert_elmo_jax.text.tokenizer_checks import read_tokenizer_config
from bert_elmo_jax.text.tokenizer_file import TokenizerFile
from bert_elmo_jax.text.tokenizer_folder import VOCABULARY_FILES, find_vocabulary
from bert_elmo_jax.text.tokenizer_specs import KINDS, Spec, compile_spec, index_pieces, read_settings
from bert_elmo_jax.text.wordpiece_files import (
    WordPieceOptions,
    check_vocabulary,
    has_one_type,
    name_specials,
    read_added_pieces,
    read_options,
    read_vocabulary,
    warn_of_difference,
)


class WordPiece(TokenizerFile):
    """A WordPiece tokenizer: a list of pieces and the options that normalise text.

    `added` are pieces of the list, or behind it, with their ids and flags as in a `tokenizer.json`: each is one piece
    wherever it stands.

    `encode` and `encode_words` read a literal `[MASK]` (or another special piece) in the text as that piece, as
    released tokenizers do. `encode_lines` reads it as ordinary text.

    >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "배", "##를", "the", "ship", "play", "##ing"]
    >>> tokenizer = WordPiece(pieces)
    >>> tokenizer.encode("the [MASK]", "배를 playing").tokens
    ('[CLS]', 'the', '[MASK]', '[SEP]', '배', '##를', 'play', '##ing', '[SEP]')
    """

    def __init__(
        self,
        pieces: Sequence[str],
        options: WordPieceOptions | None = None,
        *,
        one_type: bool = False,
        added: Sequence[Mapping[str, Any]] = (),
    ):
        check_vocabulary(pieces, "this list of pieces")
        self.options, self.added = WordPieceOptions() if options is None else options, [dict(entry) for entry in added]
        self.added.sort(key=lambda entry: entry["id"])  # the library numbers those behind the list in this order
        self._lines = len(pieces)
        spec = self.options.spec(pieces) | {"added_tokens": self.added}
        super().__init__(spec, self.options.config(), "this list of pieces")
        if one_type:  # the network has no types, or one
            self.frame = Frame((self.cls_id,), (self.sep_id,), (self.sep_id,), (0, 0))

    def files(self) -> dict[str, bytes]:
        """Return `tokenizer_config.json` and `vocab.txt`, which Hugging Face's libraries read too."""
        config = self.options.config()
        config[PROJECT_KEY]["fingerprint"] = self.fingerprint
        if self.frame.types == (0, 0):
            config[PROJECT_KEY]["types"] = 1
        if self.added:
            config["added_tokens_decoder"] = {
                str(entry["id"]): {name: value for name, value in entry.items() if name != "id"} for entry in self.added
            }
        names = {f"{kind}_token": piece for kind, piece in zip(KINDS, SPECIALS)}
        return {
            "tokenizer_config.json": encode_json({"tokenizer_class": "BertTokenizer", **names, **config}),
            "vocab.txt": ("\n".join(self.tokens[: self._lines]) + "\n").encode(),
        }

    def files_for_transformers(self, *, max_positions: int, types: bool = True) -> dict[str, bytes]:
        """Return `files` for a model; a tokenizer that composes text (NFC) also gets `tokenizer.json`, which says so.

        >>> files = train_wordpiece(["배를 타고"], vocab_size=20).files_for_transformers(max_positions=48)
        >>> sorted(files)
        ['tokenizer.json', 'tokenizer_config.json', 'vocab.txt']
        """
        from bert_elmo_jax.text.tokenizer_json import tokenizer_json  # which imports this package

        files = super().files_for_transformers(max_positions=max_positions, types=types)
        if not self.options.compose:
            return files
        # BERT's class would make rules of its own, without the composition, in transformers 5.
        config = json.loads(files["tokenizer_config.json"])
        config |= {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
        return files | {"tokenizer_config.json": encode_json(config), "tokenizer.json": tokenizer_json(self) or b""}

    def _identity(self) -> list[Any]:
        return [self.kind, dataclasses.asdict(self.options), self.tokens, *([self.added] if self.added else [])]


def load_wordpiece(path: str | Path, *, lowercase: bool | None = None) -> TokenizerFile:
    """Load a released or saved tokenizer from a vocabulary file or its folder.

    The options come from `tokenizer_config.json` or `tokenizer.json` in the same folder, else from the pieces;
    `lowercase` overrides. A `tokenizer.json` that disagrees with the `vocab.txt` of its folder is followed, and one
    line says so. A folder that names other special pieces than BERT's gives a `TokenizerFile` with BERT's rules and
    those pieces.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_wordpiece(["배를 타고"], vocab_size=20).save(folder)
    ...     load_wordpiece(folder).normalize("배를  타고")
    '배를 타고'
    """
    path = Path(path)
    file = find_vocabulary(path) if path.is_dir() else path
    if file is None or not file.is_file():
        raise FileNotFoundError(
            f"no WordPiece vocabulary at {path}: expected a vocab.txt, or a folder with {' or '.join(VOCABULARY_FILES)}"
        )
    pieces = read_vocabulary(file)
    if path.is_dir() and file != (lines := path / "vocab.txt") and lines.is_file():
        warn_of_difference(read_vocabulary(lines), pieces, path)
    specials = name_specials(file.parent)
    check_vocabulary(pieces, str(file), SPECIALS if specials == SPECIALS else ())
    config = read_tokenizer_config(file.parent)
    options = read_options(file.parent, pieces, lowercase)
    added = read_added_pieces(file.parent, pieces)
    if specials != SPECIALS:
        return _use_specials(specials, options.spec(pieces) | {"added_tokens": added}, file)
    added = [entry for entry in added if entry["content"] not in SPECIALS]
    tokenizer = WordPiece(pieces, options, one_type=has_one_type(file.parent, config), added=added)
    if PROJECT_KEY in config:
        saved = tokenizer if lowercase is None else WordPiece(pieces, read_options(file.parent, pieces), added=added)
        check_fingerprint(config, saved.fingerprint, file)
    return tokenizer


def _use_specials(specials: Sequence[str], spec: Spec, file: Path) -> TokenizerFile:
    """Return the tokenizer of a spec with these special pieces, by `KINDS`, in BERT's frame."""
    settings = {f"{kind}_token": piece for kind, piece in zip(KINDS, specials)} | read_settings(file.parent)
    _, unknown, cls, sep, _ = specials
    index = index_pieces(spec, str(file))  # where a piece is missing, `TokenizerFile` says so
    spec["post_processor"] = {"type": "BertProcessing"} | {
        name: [piece, index.get(piece, 0)] for name, piece in (("cls", cls), ("sep", sep))
    }
    tokenizer = TokenizerFile(spec | {"model": spec["model"] | {"unk_token": unknown}}, settings, str(file))
    if has_one_type(file.parent, settings):
        tokenizer.frame = dataclasses.replace(tokenizer.frame, types=(0, 0))
    return tokenizer


def train_wordpiece(
    texts: Iterable[str], vocab_size: int, *, lowercase: bool = False, strip_accents: bool = False
) -> WordPiece:
    """Train a tokenizer on texts; the result does not depend on their order or the number of threads.

    Text is composed (NFC). `vocab_size` includes the five special pieces, which get the ids 0 to 4; a small corpus may
    give fewer pieces. The distinct words are held in memory, so pass a sample of a large corpus.

    >>> train_wordpiece(["the sea the ship"] * 9, vocab_size=40).encode("the shape", specials=False).tokens
    ('the', 's', '##h', '##a', '##p', '##e')
    """
    from bert_elmo_jax.text.training import count_words, learn_pieces

    options = WordPieceOptions(lowercase=lowercase, strip_accents=strip_accents, compose=True)
    rules = compile_spec(options.spec(SPECIALS), "the rules")
    return WordPiece(learn_pieces(count_words(texts, rules, options.longest_word), vocab_size), options)
