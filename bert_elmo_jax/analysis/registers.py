"""Texts of several registers as sentences for probes: each word has the register of its text.

A register is the file that a text is from (novels, reviews), or the speech level of a Korean sentence. Words that give
a speech level away, those from the last verb on, have no label, so a probe must find it in the other words.
"""

import re
import warnings
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from bert_elmo_jax.analysis.texts import read_texts
from bert_elmo_jax.data.tasks.annotated import ParsedSentence
from bert_elmo_jax.text.words import split_line

TASK = "register"
PARTS = {"train": 0.7, "dev": 0.1, "test": 0.2}  # of the texts
BIEUP = "".join(chr(code) for code in range(ord("가") + 17, ord("힣") + 1, 28))  # the syllables that end in ㅂ
LEVELS = {
    "formal": re.compile(f"([{BIEUP}]니[다까]|시오)$"), "polite": re.compile("[요죠]$"), "plain": re.compile("다$"),
}  # fmt: skip
LETTERS = re.compile("[ㄱ-ㅎㅏ-ㅣ]+$")  # single letters, such as ㅋㅋ and ㅠㅠ


def find_speech_level(words: Sequence[str]) -> tuple[str | None, int]:
    """Return the speech level of a Korean sentence, by its ending, and the place of the word that shows it.

    The level is None without one of the endings -ㅂ니다, -ㅂ니까, 시오 (formal), 요, 죠 (polite) and 다 (plain). Single
    letters and numbers behind the verb are passed over.

    >>> [find_speech_level(words.split()) for words in ("집에 갑니다 .", "집에 가요", "집에 간다 !", "집")]
    [('formal', 1), ('polite', 1), ('plain', 1), (None, 0)]
    >>> [find_speech_level([word])[0] for word in ("합니까", "아니다", "가니까")]
    ['formal', 'plain', None]
    >>> [find_speech_level(words.split()) for words in ("정말 재미있어요ㅋㅋ", "정말 별로다 ㅠㅠ 1점")]
    [('polite', 1), ('plain', 1)]
    """
    plain = [LETTERS.sub("", word) for word in words]
    last = max((n for n, word in enumerate(plain) if word[-1:].isalnum() and not word[0].isdigit()), default=0)
    return next((name for name, ending in LEVELS.items() if words and ending.search(plain[last])), None), last


def read_registers(
    paths: Sequence[str], encoding: str, limit: int | None, seed: int
) -> dict[str, list[ParsedSentence]]:
    """Return the texts of files as parts for probes of the task `register`.

    With several files, a text has the register of its file, and equally many texts of each are taken; with one file, it
    has its speech level. `limit` is of each file.
    """
    texts = {path: _read_texts(path, encoding, limit) for path in paths}
    labelled: list[tuple[list[str], str, int]] = []
    if len(paths) > 1:
        names = {path: Path(path).name.partition(".")[0] for path in paths}
        if len(set(names.values())) < len(paths):
            raise ValueError(f"--train={','.join(paths)}: the files' names are the registers, so they must differ")
        fewest = min(map(len, texts.values()))
        labelled = [(words, names[path], len(words)) for path in paths for words in texts[path][:fewest]]
    else:
        levels = [(words, *find_speech_level(words)) for words in texts[paths[0]]]
        labelled = [(words, level, last) for words, level, last in levels if level is not None and last]
        if labelled and len(labelled) < len(levels):
            left = f"{len(levels) - len(labelled):,} of {len(levels):,} texts are left out"
            warnings.warn(f"{paths[0]}: {left}: their end shows no speech level, or is all they have", stacklevel=2)
    sentences = [_label(n, words, label, end) for n, (words, label, end) in enumerate(labelled)]
    if len({label for _, label, _ in labelled}) < 2 or len(sentences) < 10:
        expected = "expected ten texts of two registers or more: give two files, or Korean sentences that end in a verb"
        raise ValueError(f"--train={','.join(paths)}: {len(sentences)} texts with a register; {expected}")
    order = np.random.default_rng(seed).permutation(len(sentences))
    ends = np.cumsum([round(share * len(sentences)) for share in PARTS.values()])[:-1]
    return {part: [sentences[n] for n in rows] for part, rows in zip(PARTS, np.split(order, ends))}


def _read_texts(path: str, encoding: str, limit: int | None) -> list[list[str]]:
    texts = dict.fromkeys(tuple(split_line(text, "punctuation")) for text in read_texts(path, encoding))
    return [list(words) for words in islice(texts, limit)]


def _label(number: int, words: Sequence[str], label: str, end: int) -> ParsedSentence:
    """Return a sentence whose first words, up to `end`, have a label."""
    features = tuple({TASK: label} if n < end else {} for n in range(len(words)))
    none = (None,) * len(words)
    return ParsedSentence(tuple(words), none, features, none, none, TASK, (number + 1,) * len(words))
