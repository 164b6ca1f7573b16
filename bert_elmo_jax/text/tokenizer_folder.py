"""Find and load the tokenizer in a folder, of any kind."""

from pathlib import Path

from bert_elmo_jax.files import check_links
from bert_elmo_jax.text.tokenizer import Tokenizer

VOCABULARY_FILES = ("vocab.txt", "tokenizer.json")  # newer versions of Hugging Face's libraries write only the second
BPE_FILES = ("vocab.json", "merges.txt")
# The same two files as transformers and as OpenAI name them, for GPT-2 and GPT-1.
BPE_PAIRS = (BPE_FILES, ("encoder.json", "vocab.bpe"), ("encoder_bpe_40000.json", "vocab_40000.bpe"))
MARIAN_FILES = ("source.spm", "target.spm", "vocab.json")
MODEL_FILES = ("sentencepiece.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")


def find_vocabulary(folder: Path) -> Path | None:
    """Return the WordPiece vocabulary of a folder, or None."""
    return next((folder / name for name in VOCABULARY_FILES if (folder / name).is_file()), None)


def find_bpe(folder: Path) -> tuple[str, str]:
    """Return the names of the vocabulary and merges of a BPE in a folder, by the first of either that is there.

    >>> find_bpe(Path("tests/goldens/gpt2_tiny"))
    ('vocab.json', 'merges.txt')
    """
    there = [pair for pair in BPE_PAIRS if any((folder / name).is_file() for name in pair)]
    return there[0] if there else BPE_FILES


def find_model(folder: Path) -> Path | None:
    """Return the SentencePiece model of a folder: a usual name, else its only `.model` file."""
    usual = next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)
    others = list(folder.glob("*.model"))
    return usual or (others[0] if len(others) == 1 else None)


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
    kind = _find_kind(path)
    if kind == "wordpiece":
        from bert_elmo_jax.text.wordpiece import load_wordpiece

        return load_wordpiece(path, lowercase=lowercase)
    if kind == "marian" and lowercase is None:
        from bert_elmo_jax.text.marian import load_marian

        return load_marian(path)
    if lowercase is not None:
        raise ValueError(
            f"lowercase={lowercase} was given, but a {'SentencePiece model' if kind == 'sentencepiece' else kind} "
            f"({path}) carries its own normalisation: leave lowercase out"
        )
    if kind == "sentencepiece":
        from bert_elmo_jax.text.sentencepiece import load_sentencepiece

        return load_sentencepiece(path)
    from bert_elmo_jax.text.tokenizer_file import load_tokenizer_file

    return load_tokenizer_file(path)


def _find_kind(path: Path) -> str:
    """Return the kind at a path: "wordpiece", "sentencepiece", "marian", "tokenizer.json" or "byte-level BPE"."""
    if path.is_file():
        from bert_elmo_jax.text.wordpiece_files import is_wordpiece

        if path.suffix == ".model":
            return "sentencepiece"
        if any(path.name in pair for pair in BPE_PAIRS):
            return "byte-level BPE"
        return "wordpiece" if path.suffix != ".json" or is_wordpiece(path) else "tokenizer.json"
    return _find_kind_in(path)


def _find_kind_in(folder: Path) -> str:
    from bert_elmo_jax.text.shifted_pieces import prefers_file
    from bert_elmo_jax.text.wordpiece_files import is_wordpiece

    if any((folder / name).is_file() for name in MARIAN_FILES[:2]):
        return "marian"
    whole, lines, model = folder / "tokenizer.json", folder / "vocab.txt", find_model(folder)
    pairs = [name for pair in BPE_PAIRS for name in pair if (folder / name).is_file()]
    if lines.is_file() and (model or pairs):
        one = f"both vocab.txt and {model or ' and '.join(pairs)}"
        raise ValueError(f"{folder} holds {one}: choose one with load_wordpiece or load_sentencepiece")
    if model:
        # A tokenizer.json usually repeats the model; where its ids differ, it is the one to read.
        return "tokenizer.json" if prefers_file(folder) else "sentencepiece"
    if whole.is_file():
        return "wordpiece" if is_wordpiece(whole) else "tokenizer.json"
    if lines.is_file():
        return "wordpiece"
    if pairs:
        return "byte-level BPE"
    if not folder.is_dir():
        raise FileNotFoundError(f"no tokenizer at {folder}: there is no such file or folder")
    here = ", ".join(sorted(entry.name for entry in folder.iterdir())) or "nothing"
    hint = " (words.txt is a word vocabulary: use WordVocabulary.load)" if (folder / "words.txt").is_file() else ""
    raise FileNotFoundError(
        f"no tokenizer in {folder}: expected {' or '.join(VOCABULARY_FILES)} (WordPiece), {' with '.join(BPE_FILES)} "
        f"(BPE), {', '.join(MODEL_FILES)} or a single *.model (SentencePiece); there is {here}{hint}"
    )
