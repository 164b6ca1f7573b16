"""Training WordPiece vocabularies deterministically: order of texts, process and threads make no difference.

The library breaks ties between merges by id, and numbers the continuation pieces (`##x`) in the order of a hash map,
which differs between processes. We therefore pass the whole alphabet, in both forms, as special tokens with fixed
ids. The library also counts words slowly, so we count them and feed each distinct word as often as it occurs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bert_elmo_jax.text.counting import choose_alphabet, count_strings
from bert_elmo_jax.text.special import SPECIALS, UNK, reject_text
from bert_elmo_jax.text.wordpiece_options import WordPieceOptions


def count_words(texts: Iterable[str], options: WordPieceOptions) -> Counter[str]:
    """Count the words of texts after normalising them and splitting off punctuation."""
    normalizer = options.normalizer()
    splitter = pre_tokenizers.BertPreTokenizer()
    words: Counter[str] = Counter()
    for string, count in count_strings(texts).items():
        try:
            normal = normalizer.normalize_str(string)
        except UnicodeError as error:
            reject_text([string], error)
        for word, _ in splitter.pre_tokenize_str(normal):
            if len(word) <= options.longest_word:
                words[word] += count
    return words


def learn_pieces(words: Counter[str], vocab_size: int) -> list[str]:
    """Return a vocabulary: special pieces, the alphabet by code point, then longer pieces in order of merging.

    A character that never joins others (punctuation, a Chinese character) is one piece. Any other gets both `x` and
    `##x`, seen or not, so that a new word of known characters is never `[UNK]`. Words with a character outside the
    alphabet are left out.
    """
    joining = {character for word in words if len(word) > 1 for character in word}
    alphabet = choose_alphabet(words, vocab_size, lambda x: [x, f"##{x}"] if x in joining else [x])
    characters = {piece[-1] for piece in alphabet}

    def lines() -> Iterator[str]:
        for word, count in words.items():
            if characters.issuperset(word):
                for start in range(0, count, 1000):
                    yield f"{word} " * min(1000, count - start)

    library = Tokenizer(models.WordPiece({UNK: 0}, unk_token=UNK))
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, min_frequency=2, show_progress=False, special_tokens=[*SPECIALS, *alphabet]
    )
    library.train_from_iterator(lines(), trainer)
    vocabulary = library.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)
