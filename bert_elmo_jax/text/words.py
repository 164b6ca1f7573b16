"""Word splitting, with offsets into the text, and the frequency-sorted vocabulary of a language model over words."""

import functools
import hashlib
import io
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from jaxtyping import Int32, Integer

from bert_elmo_jax.files import read_array, read_json, read_text, write_bytes, write_json
from bert_elmo_jax.text.composition import compose, find_original
from bert_elmo_jax.text.encoding import Encoding, Frame
from bert_elmo_jax.text.tokenizer import reject_text

BOS_WORD, EOS_WORD, UNK_WORD = WORD_SPECIALS = ("<S>", "</S>", "<UNK>")
NO_WORD = "!!!MAXTERMID"  # a line of vocabularies for bilm-tf, which skips it

# BERT, too, splits these ideographs one by one, because Chinese has no spaces between words.
IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"


def _punctuation_class() -> str:
    """Return Unicode's punctuation and ASCII's symbols ($, +) as ranges for a regular expression."""
    codes = [
        code
        for code in range(33, 0x20000)
        if (code < 127 and not chr(code).isalnum()) or unicodedata.category(chr(code))[0] == "P"
    ]
    first = [code for code, before in zip(codes, [0, *codes]) if code != before + 1]
    last = [code for code, after in zip(codes, [*codes[1:], 0]) if code != after - 1]
    return "".join(f"{re.escape(chr(start))}-{re.escape(chr(end))}" for start, end in zip(first, last))


WORD_RULES = ("whitespace", "punctuation")


def split_words(text: str, rule: str = "punctuation") -> list[str]:
    """Return the words of a text; `punctuation` also splits off punctuation marks and Chinese characters, as BERT does.

    >>> split_words("배를 탔다. It's 漢字!")
    ['배를', '탔다', '.', 'It', "'", 's', '漢', '字', '!']
    >>> split_words("배를 탔다. It's", rule="whitespace")
    ['배를', '탔다.', "It's"]
    """
    return pattern_of(rule).findall(text)


@functools.cache
def pattern_of(rule: str) -> re.Pattern[str]:
    """Return the regular expression that matches the words."""
    if rule not in WORD_RULES:
        raise ValueError(f"there is no rule {rule!r} for splitting words; expected one of {', '.join(WORD_RULES)}")
    if rule == "whitespace":
        return re.compile(r"\S+")
    apart = _punctuation_class() + IDEOGRAPHS
    # The first alternative only makes it three times faster: most words begin with characters from a small class.
    return re.compile(rf"[0-9A-Za-z가-힣]++(?:[^\s{apart}]++)?|[^\s{apart}]++|\S")


class WordSpans(NamedTuple):
    """The words of a text and their (start, end) offsets."""

    words: tuple[str, ...]
    spans: Int32[np.ndarray, "T 2"]


def word_spans(text: str, rule: str = "punctuation") -> WordSpans:
    r"""Return the words that `split_words` finds and their offsets: each word is `text[start:end]`.

    >>> words, spans = word_spans("배를\r\n탔다. 😀!")
    >>> words, spans.tolist()
    (('배를', '탔다', '.', '😀', '!'), [[0, 2], [4, 6], [6, 7], [8, 9], [9, 10]])
    """
    matches = list(pattern_of(rule).finditer(text))
    spans = np.array([match.span() for match in matches], np.int32).reshape(-1, 2)
    return WordSpans(tuple(match.group() for match in matches), spans)


def choose_word_rule(encoders: Mapping[str, Any]) -> str:
    """Return the word rule of encoders that were pretrained here on words, otherwise "punctuation"."""
    rules = {name: encoder.word_rule for name, encoder in encoders.items() if getattr(encoder, "word_rule", None)}
    if len(set(rules.values())) > 1:
        each = ", ".join(f"{name} by {rule}" for name, rule in rules.items())
        raise ValueError(f"the texts of these encoders were split differently ({each}): use one encoder at a time")
    return next(iter(rules.values()), "punctuation")


def split_line(text: str | list[str], rule: str) -> list[str]:
    """Return the words of a line, normalised as in `prepare_data`; a list of words stays as it was given."""
    return split_words(unicodedata.normalize("NFC", text), rule) if isinstance(text, str) else text


def split_texts(
    rule: str | None, texts: Callable[[], Iterable[tuple[int, str | list[str]]]]
) -> Iterator[tuple[int, str | list[str]]]:
    """Yield numbered texts, split into words if there is a rule."""
    return ((number, text if rule is None else split_line(text, rule)) for number, text in texts())


class WordVocabulary:
    """The words of a language model: `<S>`, `</S>` and `<UNK>`, then the others by frequency.

    The order matters, because the sampled softmax derives a word's frequency from its rank. `counts` and `rule` (of
    `split_words`) are None where unknown, as for released vocabularies.

    >>> WordVocabulary.build({"sea": 2, "배": 5, "ship": 2, "rare": 1}, size=6).words
    ('<S>', '</S>', '<UNK>', '배', 'sea', 'ship')
    """

    frame = Frame()  # a text has no special words around it

    def __init__(
        self,
        words: Sequence[str],
        counts: Integer[np.ndarray, "V"] | None = None,
        source: str = "this list",
        rule: str | None = None,
    ):
        _check_words(words, source)
        if rule is not None:
            pattern_of(rule)
        if counts is not None and len(counts) != len(words):
            raise ValueError(f"{source} has {len(words)} words but {len(counts)} counts; expected one count per word")
        if counts is not None and (np.diff(counts[3:]) > 0).any():
            line = int(np.argmax(np.diff(counts[3:]) > 0)) + 5
            raise ValueError(
                f"{source} is not sorted by frequency: the word on line {line} ({words[line - 1]!r}) is more frequent "
                "than the one before it. Sort the words, most frequent first."
            )
        self.words: tuple[str, ...] = tuple(words)
        self.tokens = self.target_tokens = self.words  # as a tokenizer calls its pieces
        self.rule = rule
        self.counts = None if counts is None else np.asarray(counts, np.int64)
        self.vocab_size = len(self.words)
        self.bos_id, self.eos_id, self.unk_id = (self.words.index(word) for word in WORD_SPECIALS)
        self.fingerprint = hashlib.sha256(_file_of(self.words)).hexdigest()
        # A literal "<S>" in a text is not a sentence boundary, so special words are not looked up.
        self._index = {word: number for number, word in enumerate(self.words) if number > 2}
        self._index = find_decomposed(self._index) | self._index

    @classmethod
    def build(
        cls, counts: Mapping[str, int] | Iterable[tuple[str, int]], *, size: int | None = None, min_count: int = 1
    ) -> "WordVocabulary":
        """Keep the most frequent words, ties in code-point order, and count the others as `<UNK>`.

        `size` includes the three special words. A repeated word is an error.
        """
        pairs = list(counts.items() if isinstance(counts, Mapping) else counts)
        if size is not None and size < len(WORD_SPECIALS):
            raise ValueError(f"size={size} has no room for {', '.join(WORD_SPECIALS)}")
        usable = [pair for pair in pairs if pair[1] >= min_count and pair[0] not in WORD_SPECIALS]
        usable.sort(key=lambda pair: (-pair[1], pair[0]))
        if size is not None:
            del usable[size - len(WORD_SPECIALS) :]
        left_out = sum(count for _, count in pairs) - sum(count for _, count in usable)
        return cls(
            [*WORD_SPECIALS, *(word for word, _ in usable)],
            np.array([0, 0, left_out, *(count for _, count in usable)], np.int64),
        )

    @classmethod
    def load(cls, path: str | Path) -> "WordVocabulary":
        """Load a folder with `words.txt` (and perhaps `counts.npy`, `words.json`), or a file with one word per line.

        The three special words may come in any order, as in released vocabularies.
        """
        path = Path(path)
        file = path / "words.txt" if path.is_dir() else path
        if not file.is_file():
            raise FileNotFoundError(f"no word vocabulary at {path}: expected a words.txt, or a folder that holds one")
        words = [line.removesuffix("\r") for line in read_text(file).removesuffix("\n").split("\n")]
        if file.name != "words.txt":
            return cls([word for word in words if word != NO_WORD], source=str(file))
        counts, numbers = None, file.with_name("counts.npy")
        try:
            if numbers.is_file():
                counts = read_array(numbers).astype(np.int64, casting="safe").reshape(-1)
        except (ValueError, EOFError, TypeError) as error:
            raise ValueError(f"{numbers} is not a complete array of counts ({error}); copy or build it again") from None
        return cls(words, counts, str(file), read_json(file.with_name("words.json"), default={}).get("rule"))

    def save(self, folder: str | Path) -> None:
        """Write `words.json`, `counts.npy` and then `words.txt`, each atomically."""
        folder = Path(folder)
        if self.rule is None:
            (folder / "words.json").unlink(missing_ok=True)
        else:
            write_json(folder / "words.json", {"rule": self.rule}, indent=2)
        if self.counts is None:
            (folder / "counts.npy").unlink(missing_ok=True)
        else:
            data = io.BytesIO()
            np.save(data, self.counts)
            write_bytes(folder / "counts.npy", data.getvalue())
        write_bytes(folder / "words.txt", _file_of(self.words))

    def ids(self, words: Sequence[str]) -> Int32[np.ndarray, "N"]:
        r"""Return the id of each word, found also composed (NFC); unknown and literal special words are `<UNK>`.

        >>> WordVocabulary.build({"가": 5}).ids(["가", "\u1100\u1161", "나"]).tolist()
        [3, 3, 2]
        """
        words = list(words)
        ids = np.fromiter(map(self._index.get, words, repeat(self.unk_id)), np.int32, len(words))
        for n in np.flatnonzero(ids == self.unk_id).tolist():
            ids[n] = self._index.get(unicodedata.normalize("NFC", words[n]), self.unk_id)
        return ids

    def encode(self, text: str, *, specials: bool = True) -> Encoding:
        """Return the words of a text as a tokenizer returns pieces; `rule` splits the text (at whitespace if unknown).

        `specials` is ignored: there are no special words around a text. With a `rule`, the text is composed (NFC) as
        in `prepare_data`.

        >>> WordVocabulary.build({"sea": 2, "배": 5}).encode("배 sea ship").ids.tolist()
        [3, 4, 2]
        """
        del specials
        if self.rule is None or unicodedata.is_normalized("NFC", text):
            words, spans = word_spans(text, self.rule or "whitespace")
        else:
            composed, places_of = compose(text)
            words, spans = word_spans(composed, self.rule)
            original = [find_original(places_of, start, end) for start, end in spans.tolist()]
            spans = np.array(original, np.int32).reshape(-1, 2)
        places = np.arange(len(words), dtype=np.int32)
        return Encoding(self.ids(words), np.zeros_like(places), spans, places, words)

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """Return the words of ids with spaces between, without the marks of begin and end.

        >>> WordVocabulary.build({"sea": 2, "배": 5}).decode([0, 3, 4, 2, 1])
        '배 sea <UNK>'
        """
        numbers = [int(number) for number in ids if number not in (self.bos_id, self.eos_id)]
        # A prepared corpus has ids of words outside of the vocabulary, too.
        return " ".join(self.words[number] if number < self.vocab_size else UNK_WORD for number in numbers)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return bool(self.ids([word])[0] != self.unk_id)


def find_decomposed(places: Mapping[str, int]) -> dict[str, int]:
    r"""Return the composed form (NFC) of each word that has another one, with the word's place.

    >>> find_decomposed({"가": 0, "\u1102\u1161": 1})
    {'나': 1}
    """
    normal = unicodedata.normalize
    return {normal("NFC", word): place for word, place in places.items() if not unicodedata.is_normalized("NFC", word)}


def _file_of(words: Sequence[str]) -> bytes:
    return ("\n".join(words) + "\n").encode()


def _check_words(words: Sequence[str], source: str) -> None:
    """Raise if the words cannot be a vocabulary; the error names all wrong lines, counted from 1."""
    problems = []
    if sorted(words[:3]) != sorted(WORD_SPECIALS):
        problems.append(
            f"the first three lines should be {', '.join(WORD_SPECIALS)}; they are {', '.join(map(repr, words[:3]))}"
        )
    lines: dict[str, list[int]] = {}
    for number, word in enumerate(words, start=1):
        lines.setdefault(word, []).append(number)
    blank = sorted(number for word, where in lines.items() if not word.strip() for number in where)
    if blank:
        problems.append(f"blank: line {', '.join(map(str, blank))}")
    # Other programs strip each line and would read a different word.
    edged = [f"{where[0]} ({word!r})" for word, where in lines.items() if word.strip() and word != word.strip()]
    edged += [f"{where[0]} ({word!r})" for word, where in lines.items() if "\n" in word.strip()]
    if edged:
        problems.append(f"whitespace at an end, or a line break, in: line {', '.join(edged)}")
    problems += [
        f"{word!r} is on lines {', '.join(map(str, where[:-1]))} and {where[-1]}"
        for word, where in lines.items()
        if len(where) > 1 and word.strip()
    ]
    if problems:
        raise ValueError(
            f"{source} cannot be used as a word vocabulary ({len(words)} words): {'; '.join(problems)}. Expected one "
            f"word per line, each once: {', '.join(WORD_SPECIALS)}, then the most frequent words first."
        )
    try:
        _file_of(words)
    except UnicodeEncodeError as error:
        reject_text(words, error)
