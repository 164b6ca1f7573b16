"""Find the files of a tokenizer in a folder, and its kind."""

from pathlib import Path

from bert_elmo_jax.text.tokenizer_checks import CONFIG, names_class, read_added, read_spec, read_tokenizer_config
from bert_elmo_jax.text.tokenizer_specs import (
    KINDS,
    SPEC_CLASSES,
    UNFRAMED_CLASSES,
    USUAL_NAMES,
    name_of,
    read_settings,
)
from bert_elmo_jax.text.wordpiece_files import is_framed, is_wordpiece

VOCABULARY_FILES = ("vocab.txt", "tokenizer.json")  # newer versions of Hugging Face's libraries write only the second
BPE_FILES = ("vocab.json", "merges.txt")
# The same two files as transformers and as OpenAI name them, for GPT-2 and GPT-1.
BPE_PAIRS = (BPE_FILES, ("encoder.json", "vocab.bpe"), ("encoder_bpe_40000.json", "vocab_40000.bpe"))
MARIAN_FILES = ("source.spm", "target.spm", "vocab.json")
MODEL_FILES = ("sentencepiece.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model")
MASK_LAST_CLASSES = ("DebertaV2Tokenizer", "DebertaV2TokenizerFast")  # the mask piece comes after the model's last
MASK_LAST_TYPES = ("deberta-v2",)
SHIFTED_CLASSES = ("XLMRobertaTokenizer", "XLMRobertaTokenizerFast")  # see shifted_pieces.py
SHIFTED_TYPES = ("xlm-roberta", "xlm-roberta-xl")
UNFRAMED_TYPES = ("gpt2",)


def find_vocabulary(folder: Path) -> Path | None:
    """Return the WordPiece vocabulary of a folder, or None; of two files, the one that transformers follows."""
    return next((folder / name for name in reversed(VOCABULARY_FILES) if (folder / name).is_file()), None)


def find_bpe(folder: Path) -> tuple[str, str]:
    """Return the names of the vocabulary and merges of a BPE in a folder, by the first of either that is there.

    >>> find_bpe(Path("tests/goldens/gpt2_tiny"))
    ('vocab.json', 'merges.txt')
    """
    present = [pair for pair in BPE_PAIRS if any((folder / name).is_file() for name in pair)]
    return present[0] if present else BPE_FILES


def find_model(folder: Path) -> Path | None:
    """Return the SentencePiece model of a folder: a usual name, else its only `.model` file."""
    usual = next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)
    models = list(folder.glob("*.model"))
    return usual or (models[0] if len(models) == 1 else None)


def is_shifted(folder: Path) -> bool:
    """Return True if a folder says that its SentencePiece model has shifted ids."""
    return names_class(folder, SHIFTED_CLASSES, SHIFTED_TYPES)


def has_mask_last(folder: Path) -> bool:
    """Return True if a folder says that the mask piece comes after the last piece of its SentencePiece model."""
    return names_class(folder, MASK_LAST_CLASSES, MASK_LAST_TYPES)


def refuse_split_punctuation(folder: Path) -> None:
    """Raise if a folder of DeBERTa asks for pieces without punctuation, which no released one does."""
    if read_tokenizer_config(folder).get("split_by_punct") and has_mask_last(folder):
        raise ValueError(
            f"{folder / CONFIG}: split_by_punct is true; only false, DeBERTa's own rules, is supported. Split the "
            "texts before and after each punctuation mark first, write false, and use encode_words."
        )


def is_unframed(folder: Path) -> bool:
    """Return True if a folder says that its byte-level BPE is GPT-2's, which adds no piece to a text."""
    return names_class(folder, UNFRAMED_CLASSES, UNFRAMED_TYPES)


def find_added_names(folder: Path) -> set[str]:
    """Return the pieces that a folder adds to its SentencePiece model, apart from the usual special ones."""
    settings = read_settings(folder)
    listed = [*(read_spec(folder / "tokenizer.json").get("added_tokens") or [])]
    listed += (settings.get("added_tokens_decoder") or {}).values()
    names = {entry["content"] for entry in listed} | set(read_added(folder))
    usual = {name for kind in KINDS for name in USUAL_NAMES[kind]}
    return names - usual - {name_of(settings.get(f"{kind}_token")) for kind in (*KINDS, "bos", "eos")}


def prefers_file(folder: Path) -> bool:
    """Return True if the model of a folder is read through a `tokenizer.json`, real or made from the model."""
    named = read_tokenizer_config(folder).get("tokenizer_class")
    written = named in SPEC_CLASSES and (folder / "tokenizer.json").is_file()
    return is_shifted(folder) or written or bool(find_added_names(folder))


def find_kind(path: Path) -> str:
    """Return the kind at a path: "wordpiece", "sentencepiece", "marian", "tokenizer.json" or "byte-level BPE"."""
    if path.is_file():
        if path.suffix == ".model":
            return "sentencepiece"
        if any(path.name in pair for pair in BPE_PAIRS):
            return "byte-level BPE"
        return "wordpiece" if path.suffix != ".json" or is_wordpiece(path) else "tokenizer.json"
    folder = path
    if any((folder / name).is_file() for name in MARIAN_FILES[:2]):
        return "marian"
    spec_file, lines, model = folder / "tokenizer.json", folder / "vocab.txt", find_model(folder)
    pairs = [name for pair in BPE_PAIRS for name in pair if (folder / name).is_file()]
    if lines.is_file() and (model or pairs):
        both = f"both vocab.txt and {model or ' and '.join(pairs)}"
        raise ValueError(f"{folder} holds {both}: choose one with load_wordpiece or load_sentencepiece")
    if model:
        # A tokenizer.json usually repeats the model; where its ids differ, it is the one to read.
        return "tokenizer.json" if prefers_file(folder) else "sentencepiece"
    if spec_file.is_file():
        return "wordpiece" if is_wordpiece(spec_file) else "tokenizer.json"
    if lines.is_file():
        return "tokenizer.json" if is_framed(lines) else "wordpiece"
    if pairs:
        return "byte-level BPE"
    if not folder.is_dir():
        raise FileNotFoundError(f"no tokenizer at {folder}: there is no such file or folder")
    names = ", ".join(sorted(entry.name for entry in folder.iterdir())) or "nothing"
    hint = " (words.txt is a word vocabulary: use WordVocabulary.load)" if (folder / "words.txt").is_file() else ""
    raise FileNotFoundError(
        f"no tokenizer in {folder}: expected {' or '.join(VOCABULARY_FILES)} (WordPiece), {' with '.join(BPE_FILES)} "
        f"(BPE), {', '.join(MODEL_FILES)} or a single *.model (SentencePiece); there is {names}{hint}"
    )
