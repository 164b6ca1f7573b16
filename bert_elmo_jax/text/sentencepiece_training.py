"""Training SentencePiece models deterministically, without changing Korean jamo.

The library normalises by NFKC, which replaces compatibility jamo (ㅋㅋ, ㅠㅠ). We store NFC as the model's own rules
instead, so that the `.model` file behaves the same in every program. The library gets counted words in a fixed order
and one thread, because several threads sum in varying order and find other pieces.
"""

import io
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import permutations
from typing import Literal

import sentencepiece

from bert_elmo_jax.text.counting import choose_alphabet, count_strings
from bert_elmo_jax.text.special import CLS, MASK, PAD, SEP, UNK, reject_text

# SentencePiece writes a space as this mark, and reads a literal one as a space.
SPACE_MARK = "▁"

# The library reserves this character and refuses it in an alphabet; in a text it is unknown.
RESERVED = "▅"

# The library trains on this many distinct words in about a minute.
MOST_WORDS = 400_000


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
    words = _count_words(
        texts,
        sentencepiece.SentencePieceNormalizer(
            norm_map=rules, add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=True
        ),
    )
    # The model puts the mark in front of each word, so the mark is part of the alphabet.
    marked = Counter({SPACE_MARK + word: count for word, count in words.items()})
    alphabet = choose_alphabet(marked, vocab_size, lambda character: [character])
    # As in WordPiece, words with a character outside the alphabet are left out.
    wanted = set(alphabet)
    known = [(word, count) for word, count in words.items() if wanted.issuperset(word)]
    # Checksums break ties, so that the cut through the words that occur once favours no letter.
    ordered = sorted(known, key=lambda item: (-item[1], zlib.crc32(item[0].encode()), item[0]))[:MOST_WORDS]
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


def _count_words(texts: Iterable[str], normalizer: sentencepiece.SentencePieceNormalizer) -> Counter[str]:
    words: Counter[str] = Counter()
    for string, count in count_strings(texts).items():
        try:
            normal = normalizer.normalize(string.replace("\0", ""))
        except (TypeError, RuntimeError, UnicodeError) as error:
            reject_text([string], error)
        for word in normal.replace(RESERVED, " ").split(" "):
            if 0 < len(word) <= 1000:  # the library skips longer words
                words[word] += count
    return words
