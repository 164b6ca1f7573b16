"""Find the vocabulary of an AWD-LSTM: fastai's list of words (`itos`), pickled or as JSON, read without fastai."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int32

from bert_elmo_jax.files import check_regular, read_json_value, read_text
from bert_elmo_jax.text import FastaiVocabulary, Tokenizer, WordVocabulary, load_tokenizer
from bert_elmo_jax.text.fastai_words import BOS, LEGACY, PAD, UNK
from bert_elmo_jax.text.words import BOS_WORD, EOS_WORD, UNK_WORD

FILES = ("words.txt", "vocab*.txt", "*itos*.pkl", "*itos*.json", "*itos*.txt", "*vocab*.pkl", "vocab*.json")
Vocabulary = WordVocabulary | FastaiVocabulary | Tokenizer


def find_vocabulary(folder: Path) -> Vocabulary | None:
    """Return the vocabulary of a folder: fastai's, words or a tokenizer of this project; None if there is none."""
    if (folder / "tokenizer_config.json").is_file():
        return load_tokenizer(folder)
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


def marks_of(vocabulary: Vocabulary) -> tuple[int | None, int | None]:
    """Return the ids of the marks of begin and end; None for one that the vocabulary has not."""
    if isinstance(vocabulary, Tokenizer):
        return vocabulary.cls_id, vocabulary.sep_id
    return vocabulary.bos_id, vocabulary.eos_id


def begin_of(vocabulary: Vocabulary, backward: bool) -> int | None:
    """Return the id of the mark that is read before a text, or None.

    To read a text backwards, models trained here start with its end mark, fastai's models with its begin mark.
    """
    bos, eos = marks_of(vocabulary)
    return eos if backward and not isinstance(vocabulary, FastaiVocabulary) else bos


def as_word_vocabulary(vocabulary: Vocabulary) -> Vocabulary:
    """Return fastai's words as a vocabulary of this project with the same ids; return any other vocabulary unchanged.

    `xxunk`, `xxbos` and `xxpad` become the marks of unknown words, of begin and of end. Words that cannot be lines of a
    file, such as spaces, get names that no text has.

    >>> as_word_vocabulary(FastaiVocabulary(["xxunk", "xxpad", "xxbos", "the", " "])).words
    ('<UNK>', '</S>', '<S>', 'the', '<unused 4>')
    """
    if not isinstance(vocabulary, FastaiVocabulary):
        return vocabulary
    marks = {UNK: UNK_WORD, PAD: EOS_WORD, BOS: BOS_WORD}
    first = vocabulary.words[:3]
    if sorted(first) != sorted(marks):
        raise ValueError(
            f"a corpus can be prepared with a vocabulary of fastai that begins with {', '.join(marks)}; this one "
            f"begins with {', '.join(map(repr, first))}: do not train the language model further (config.lm.epochs=0)"
        )
    words = [marks[word] for word in first]
    names = {*words}
    for number, word in enumerate(vocabulary.words[3:], start=3):
        fine = word == word.strip() and word and "\n" not in word and word not in names
        words.append(word if fine else f"<unused {number}>")
        names.add(words[-1])
    return WordVocabulary(words, rule="punctuation")


def read_words(
    vocabulary: Vocabulary, words: Sequence[str], backward: bool = False
) -> tuple[Int32[np.ndarray, "N"], Int32[np.ndarray, "W"]]:
    """Return the ids of words in reading order, and the place of each word: its piece that is read last.

    >>> words = FastaiVocabulary(["xxunk", "the", "bank"])
    >>> [array.tolist() for array in read_words(words, ["the", "bank", "of"], backward=True)]
    [[0, 2, 1], [2, 1, 0]]
    """
    numbers = np.arange(len(words), dtype=np.int32)
    if isinstance(vocabulary, Tokenizer):
        encoding = vocabulary.encode_words(words, specials=False)
        ids, owners = encoding.ids, encoding.word_ids
    else:
        ids, owners = vocabulary.ids(words), numbers
    if backward:
        return ids[::-1].astype(np.int32), (len(ids) - 1 - np.searchsorted(owners, numbers)).astype(np.int32)
    return ids.astype(np.int32), (np.searchsorted(owners, numbers, side="right") - 1).astype(np.int32)


def read_list(file: Path) -> list[str]:
    """Return the words of a file: a pickled list, a JSON list, or one word per line. No code is executed."""
    if file.suffix == ".txt":
        return [line.removesuffix("\r") for line in read_text(file).removesuffix("\n").split("\n")]
    if file.suffix == ".pkl":
        from bert_elmo_jax.weights.pickle_machine import read_plain_pickle

        check_regular(file)
        content: Any = read_plain_pickle(file)
    else:
        content = read_json_value(file)
    if isinstance(content, dict) and len(content) == 1:  # {"itos": [...]}
        [content] = content.values()
    if not isinstance(content, list | tuple) or not all(isinstance(word, str) for word in content):
        raise ValueError(f"{file} holds a {type(content).__name__}, not a list of words as fastai's `itos`")
    return list(content)


def add_words(vocabulary: Any, params: Mapping[str, Any], words: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """Return vocabulary and parameters with more words at the end, whose embeddings are the mean of the others."""

    def longer(rows: Any) -> np.ndarray:
        rows = np.asarray(rows, np.float32)
        return np.concatenate([rows, np.repeat(rows.mean(axis=0, keepdims=True), len(words), axis=0)])

    all_words = [*vocabulary.words, *words]
    longer_vocabulary: Any
    if isinstance(vocabulary, FastaiVocabulary):
        longer_vocabulary = FastaiVocabulary(all_words)
    else:
        longer_vocabulary = WordVocabulary(all_words, rule=vocabulary.rule)
    embeddings = {**params["encoder"]["embeddings"], "word": longer(params["encoder"]["embeddings"]["word"])}
    new = {**params, "encoder": {**params["encoder"], "embeddings": embeddings}}
    if "lm" in params:
        new["lm"] = {name: longer(rows) for name, rows in params["lm"].items()}
    return longer_vocabulary, new
