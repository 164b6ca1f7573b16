"""Training vocabularies deterministically: the order of texts, the process and the threads make no difference.

WordPiece: the library breaks ties between merges by id, and numbers the continuation pieces (`##x`) in the order of a
hash map, which differs between processes. We therefore pass the whole alphabet, in both forms, as special tokens with
fixed ids. The library also counts words slowly, so we count them and feed each distinct word as often as it occurs.

SentencePiece: the library normalises by NFKC, which replaces compatibility jamo (ㅋㅋ, ㅠㅠ). We store NFC as the
model's own rules instead, so that the `.model` file behaves the same in every program. The library gets counted words
in a fixed order and one thread, because several threads sum in varying order and find other pieces.

Byte-level BPE: the library's merges depend only on the counts of the words, with ties broken by id, and the bytes get
their ids in a fixed order. We count the words ourselves here, too.
"""

import io
import json
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import permutations
from typing import Literal

import sentencepiece
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bert_elmo_jax.text.tokenizer import CLS, MASK, PAD, SEP, SPACE_MARK, SPECIALS, UNK, reject_text

COVERAGE = 0.9995  # the share of a corpus's characters that must have a piece; rarer ones may become [UNK]
RESERVED = "▅"  # the library reserves this character and refuses it in an alphabet; in a text it is unknown
MOST_WORDS = 400_000  # the library trains on this many distinct words in about a minute


def count_strings(texts: Iterable[str]) -> Counter[str]:
    """Count the strings between spaces and newlines, so that each distinct string is normalised only once.

    Other whitespace is left to the libraries, which define it differently from Python.
    """
    if isinstance(texts, str):
        raise TypeError(f"expected several texts; found one, {texts!r:.60}. Put it in a list: [text]")
    counts: Counter[str] = Counter()
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"expected texts, each a str; found {text!r:.60}, a {type(text).__name__}")
        counts.update(text.replace("\n", " ").split(" "))
    del counts[""]
    return counts


def _count_parts(texts: Iterable[str], split: Callable[[str], Iterable[str]], longest: int) -> Counter[str]:
    """Count the parts of at most `longest` characters into which `split` cuts each distinct string."""
    words: Counter[str] = Counter()
    for string, count in count_strings(texts).items():
        try:
            parts = split(string)
        except (TypeError, RuntimeError, UnicodeError) as error:
            reject_text([string], error)
        for word in parts:
            if 0 < len(word) <= longest:
                words[word] += count
    return words


def choose_alphabet(words: Counter[str], vocab_size: int, forms: Callable[[str], list[str]]) -> list[str]:
    """Return the sorted single-character pieces; `forms(character)` lists the pieces that a character needs.

    Takes the most frequent characters until they cover 99.95 % of the corpus, then rare ones while all pieces fit into
    a third of the vocabulary.
    """
    if not words:
        raise ValueError("the texts hold no words (or only too long ones), so there is nothing to learn from")
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    most_pieces = vocab_size - len(SPECIALS)
    needed = COVERAGE * counts.total()
    covered = 0
    pieces: list[str] = []
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        more = forms(character)
        if covered >= needed and len(pieces) + len(more) > most_pieces // 3:
            break
        covered += count
        pieces += more
    if len(pieces) > most_pieces:
        raise ValueError(
            f"vocab_size={vocab_size} is too small: the {len(SPECIALS)} special pieces and the characters of these "
            f"texts alone take {len(SPECIALS) + len(pieces)}; add a few thousand (8192 suits English novels, 16000 "
            "Korean)"
        )
    return sorted(pieces)


def count_words(texts: Iterable[str], rules: Tokenizer, longest: int = 1000) -> Counter[str]:
    """Count the words of at most `longest` characters of texts, normalised and split by a tokenizer's rules."""
    normalize, split = rules.normalizer.normalize_str, rules.pre_tokenizer.pre_tokenize_str
    return _count_parts(texts, lambda string: [word for word, _ in split(normalize(string))], longest)


def learn_pieces(words: Counter[str], vocab_size: int) -> list[str]:
    """Return a vocabulary: special pieces, the alphabet by code point, then longer pieces in order of merging.

    A character that never joins others (punctuation, a Chinese character) is one piece. Any other gets both `x` and
    `##x`, seen or not, so that a new word of known characters is never `[UNK]`. Words with a character outside the
    alphabet are left out.
    """
    joining = {character for word in words if len(word) > 1 for character in word}
    alphabet = choose_alphabet(words, vocab_size, lambda x: [x, f"##{x}"] if x in joining else [x])
    characters = {piece[-1] for piece in alphabet}

    library = Tokenizer(models.WordPiece({UNK: 0}, unk_token=UNK))
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, min_frequency=2, show_progress=False, special_tokens=[*SPECIALS, *alphabet]
    )
    library.train_from_iterator(_repeat_words(words, characters), trainer)
    vocabulary = library.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _repeat_words(words: Counter[str], characters: set[str]) -> Iterator[str]:
    """Yield lines with each word of these characters as often as it occurs."""
    for word, count in words.items():
        if characters.issuperset(word):
            for start in range(0, count, 1000):
                yield f"{word} " * min(1000, count - start)


def learn_merges(
    words: Counter[str], vocab_size: int, alphabet: Sequence[str]
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return a vocabulary (special pieces, the alphabet, merged pieces in order of merging) and its merges."""
    if not words:
        raise ValueError("the texts hold no words (or only too long ones), so there is nothing to learn from")
    least = len(SPECIALS) + len(alphabet)
    if vocab_size < least:
        raise ValueError(
            f"vocab_size={vocab_size} is too small: the {len(SPECIALS)} special pieces and the {len(alphabet)} bytes "
            f"alone take {least}; add a few thousand (8192 suits English novels, 16000 Korean)"
        )
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=2, show_progress=False, special_tokens=[*SPECIALS, *sorted(alphabet)]
    )
    library.train_from_iterator(_repeat_words(words, set(alphabet)), trainer)
    model = json.loads(library.to_str())["model"]
    return model["vocab"], [(left, right) for left, right in model["merges"]]


@cache
def nfc_rules() -> tuple[tuple[str, str], ...]:
    """Return rules (from, to) for NFC and BERT's cleaning: whitespace to a space, control characters to "".

    A composite character has a rule for each equivalent spelling: decomposed, partly composed, and with its marks in
    another order. Other marks in non-canonical order stay unchanged. NUL cannot be a key, so `SentencePiece` removes
    it.
    """
    rules = {}
    for code in range(1, 0x110000):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Zs", "Zl", "Zp") or character in f"\t\n\r{SPACE_MARK}":
            rules[character] = " "
            continue
        # U+134xx (hieroglyph layout) counts as text; Python versions disagree on which of these characters exist.
        if (category in ("Cc", "Cf") and code >> 8 != 0x134) or character == "\ufffd":
            rules[character] = ""
            continue
        if unicodedata.is_normalized("NFD", character):
            continue
        composed = unicodedata.normalize("NFC", character)
        decomposed = unicodedata.normalize("NFD", character)
        rules[character] = composed
        for order in permutations(decomposed[1:]):
            spelling = decomposed[0] + "".join(order)
            if unicodedata.normalize("NFC", spelling) == composed:
                for end in range(1, len(spelling) + 1):
                    rules[unicodedata.normalize("NFC", spelling[:end]) + spelling[end:]] = composed
    return tuple(sorted((source, target) for source, target in rules.items() if source != target))


def learn_model(texts: Iterable[str], vocab_size: int, model: Literal["unigram", "bpe"] = "unigram") -> bytes:
    """Return the bytes of a `.model` file whose first pieces are the five special ones."""
    if model not in ("unigram", "bpe"):
        raise ValueError(f"model is {model!r}; SentencePiece models trained here are 'unigram' or 'bpe'")
    sentencepiece.set_min_log_level(2)  # errors only
    rules = list(nfc_rules())
    normalizer = sentencepiece.SentencePieceNormalizer(
        norm_map=rules, add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=True
    )

    def split(string: str) -> list[str]:
        return normalizer.normalize(string.replace("\0", "")).replace(RESERVED, " ").split(" ")

    words = _count_parts(texts, split, 1000)  # the library skips longer words
    # The model puts the mark in front of each word, so the mark is part of the alphabet.
    marked = Counter({SPACE_MARK + word: count for word, count in words.items()})
    alphabet = choose_alphabet(marked, vocab_size, lambda character: [character])
    # As in WordPiece, words with a character outside the alphabet are left out.
    characters = set(alphabet)
    writable = [(word, count) for word, count in words.items() if characters.issuperset(word)]
    # Checksums break ties, so that the cut through the words that occur once favours no letter.
    ordered = sorted(writable, key=lambda item: (-item[1], zlib.crc32(item[0].encode()), item[0]))[:MOST_WORDS]
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=(f"{word}\t{count}" for word, count in ordered),
        input_format="tsv",
        model_writer=written,
        model_type=model,
        vocab_size=vocab_size,
        hard_vocab_limit=False,  # a small corpus gives fewer pieces
        normalizer=sentencepiece.SentencePieceNormalizer(
            norm_map=rules, add_dummy_prefix=True, escape_whitespaces=True, remove_extra_whitespaces=True
        ),
        required_chars="".join(alphabet),
        character_coverage=1.0,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        pad_piece=PAD,
        unk_piece=UNK,
        unk_surface=UNK,
        control_symbols=[CLS, SEP, MASK],
        num_threads=1,
        input_sentence_size=0,
        shuffle_input_sentence=False,
        minloglevel=2,
    )
    return written.getvalue()
