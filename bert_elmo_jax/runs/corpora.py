"""The corpora that a config names: folders of `prepare_data`, or the toy world, made on the fly."""

from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.text import WordVocabulary, load_tokenizer


def corpora_of(config: ConfigDict, workdir: Path, tokenizer: str) -> dict[str, float]:
    """Folders and their weights in the mixture; `toyworld` is made in the run directory first."""
    if config.data == "toyworld":
        made = toy_corpus(workdir / "toyworld", tokenizer=tokenizer, **config.toyworld)
        return {str(made): 1.0}
    if not config.data:
        raise ValueError("--config.data=… is needed: a folder of prepare_data, several as a=3,b=1, or toyworld")
    pairs = [part.rpartition("=") if "=" in part else (part, "=", "1") for part in str(config.data).split(",")]
    try:
        return {folder: float(weight) for folder, _, weight in pairs}
    except ValueError:
        raise ValueError(f"config.data={config.data!r}: expected folders with weights, such as wiki=3,news=1") from None


def tokenizer_of(corpora: dict[str, float], words: bool = False) -> Any:
    """The tokenizer, or for a language model the word vocabulary, that the first of the corpora was made with."""
    store = open_store(next(iter(corpora)))
    folder, kind = store.folder / "tokenizer", store.manifest["tokenizer"]["kind"]
    if words != (kind == "words"):
        wanted, asked = ("words", "words") if words else ("pieces", "wordpiece or sentencepiece")
        raise ValueError(
            f"{store.folder} was made with {kind}, and this model reads {wanted}: prepare it with --tokenizer={asked}"
        )
    return WordVocabulary.load(folder) if words else load_tokenizer(folder)
