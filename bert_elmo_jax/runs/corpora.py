"""The corpora that a config names: folders of `prepare_data`, or the toy world, made on the fly."""

from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.text import WordVocabulary, load_tokenizer


def load_corpora(config: ConfigDict, workdir: Path, inputs: str) -> dict[str, float]:
    """Return folders and their weights in the mixture; `toyworld` is first made in the run directory.

    `inputs` are those of the family: "pieces" or "words".
    """
    if config.data == "toyworld":
        tokenizer = "words" if inputs == "words" else "wordpiece"
        return {str(toy_corpus(workdir / "toyworld", tokenizer=tokenizer, **config.toyworld)): 1.0}
    if not config.data:
        raise ValueError("--config.data=… is needed: a folder of prepare_data, several as a=3,b=1, or toyworld")
    pairs = [part.rpartition("=") if "=" in part else (part, "=", "1") for part in str(config.data).split(",")]
    try:
        return {folder: float(weight) for folder, _, weight in pairs}
    except ValueError:
        raise ValueError(f"config.data={config.data!r}: expected folders with weights, such as wiki=3,news=1") from None


def load_tokenizer_of(corpora: dict[str, float], inputs: str) -> Any:
    """Return the tokenizer or word vocabulary that the first of the corpora was made with."""
    store = open_store(next(iter(corpora)))
    folder, kind = store.folder / "tokenizer", store.manifest["tokenizer"]["kind"]
    if (inputs == "words") != (kind == "words"):
        asked = "words" if inputs == "words" else "wordpiece or sentencepiece"
        raise ValueError(
            f"{store.folder} was made with {kind}, and this model reads {inputs}: prepare it with --tokenizer={asked}"
        )
    return WordVocabulary.load(folder) if inputs == "words" else load_tokenizer(folder)
