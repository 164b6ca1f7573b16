"""Find the vocabulary of an AWD-LSTM: fastai's list of words (`itos`), pickled or as JSON, read without fastai."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import read_text
from bert_elmo_jax.text import FastaiVocabulary, WordVocabulary
from bert_elmo_jax.text.fastai_words import LEGACY, UNK

FILES = ("words.txt", "vocab*.txt", "*itos*.pkl", "*itos*.json", "*itos*.txt", "*vocab*.pkl", "vocab*.json")
Vocabulary = WordVocabulary | FastaiVocabulary


def find_vocabulary(folder: Path) -> Vocabulary | None:
    """Return the vocabulary of a folder: fastai's, or one of words that was made here; None if there is none."""
    files = sorted(set(chain.from_iterable(folder.glob(name) for name in FILES))) if folder.is_dir() else []
    if not files:
        return None
    if len(files) > 1 and (folder / "words.txt") not in files:
        listed = ", ".join(file.name for file in files)
        raise ValueError(f"{folder} holds {len(files)} vocabularies: {listed}. Leave the one of this model there.")
    file = folder / "words.txt" if (folder / "words.txt") in files else files[0]
    words = read_list(file)
    if {UNK, *LEGACY} & set(words):
        return FastaiVocabulary(words, str(file))
    return WordVocabulary.load(file) if file.suffix == ".txt" else FastaiVocabulary(words, str(file))


def read_list(file: Path) -> list[str]:
    """Return the words of a file: a pickled list, a JSON list, or one word per line. Nothing is executed."""
    if file.suffix == ".txt":
        return [line.removesuffix("\r") for line in read_text(file).removesuffix("\n").split("\n")]
    if file.suffix == ".pkl":
        from bert_elmo_jax.weights.pickle_machine import read_plain_pickle

        content: Any = read_plain_pickle(file)
    else:
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{file} is not JSON ({error}); expected a list of words") from None
    if isinstance(content, dict) and len(content) == 1:  # {"itos": [...]}
        [content] = content.values()
    if not isinstance(content, list | tuple) or not all(isinstance(word, str) for word in content):
        raise ValueError(f"{file} holds a {type(content).__name__}, not a list of words as fastai's `itos`")
    return list(content)
