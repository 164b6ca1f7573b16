"""Learning WordPiece vocabularies, the same one whatever the order of the texts, the process or the threads.

The library's trainer merges the most frequent pair of pieces and breaks ties by their ids, and it hands out the ids of
the alphabet's continuation pieces (`##x`) in the order of a hash map, which differs from process to process. So it is
given the whole alphabet, in both forms, as fixed entries: then nothing is left to chance. It counts words by itself,
hence it is fed distinct words repeated as often as they occur, from counts that Python makes in a fraction of the time.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bert_elmo_jax.text.counting import choose_alphabet, count_strings
from bert_elmo_jax.text.special import SPECIALS, UNK, reject_text
from bert_elmo_jax.text.wordpiece_options import WordPieceOptions


def count_words(texts: Iterable[str], options: WordPieceOptions) -> Counter[str]:
    """How often each word, normalised and split from its punctuation, occurs.

    >>> sorted(count_words(["A ship, a sea."], WordPieceOptions(lowercase=True)).items())
    [(',', 1), ('.', 1), ('a', 2), ('sea', 1), ('ship', 1)]
    """
    normalizer = options.normalizer()
    splitter = pre_tokenizers.BertPreTokenizer()
    words: Counter[str] = Counter()
    for string, count in count_strings(texts).items():
        try:
            normal = normalizer.normalize_str(string)
        except UnicodeError as error:
            reject_text([string], error)
        for word, _ in splitter.pre_tokenize_str(normal):
            # A longer word is one [UNK], whatever its pieces.
            if len(word) <= options.longest_word:
                words[word] += count
    return words


def learn_pieces(words: Counter[str], vocab_size: int) -> list[str]:
    """A vocabulary: the special pieces, the alphabet by code point, then longer pieces, the most useful first.

    A character that never joins others (punctuation, a Chinese character) is one piece. Every other one is two, `x` and
    `##x`, seen or not, so that a new word of known characters is never unknown. Words with a character outside the
    alphabet are left out, as they will be unknown.

    >>> learn_pieces(Counter({"sea": 3, "seas": 2, ".": 9}), 15)[5:]
    ['##a', '##e', '##s', '.', 'a', 'e', 's', '##ea', 'sea', 'seas']
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
