"""The words that a task's network knows, and their pretrained vectors, as the config asks."""

from collections import Counter
from collections.abc import Iterable, Sequence

from ml_collections import ConfigDict

from bert_elmo_jax.runs.starting_weights import say
from bert_elmo_jax.text import Lexicon, WordVectors, read_vectors, width_of
from bert_elmo_jax.text.lexicon import KEPT, places_of


def words_of(config: ConfigDict, texts: Iterable[Sequence[str]]) -> tuple[Lexicon, WordVectors | None]:
    """The words of the training data, whose texts are given, and the pretrained vectors of those that have one."""
    counts = Counter(word for words in texts for word in words)
    size = config.word_size or 100
    known = later = None
    if config.unknown == "vectors" and not config.vectors:
        raise ValueError("config.unknown=vectors needs a file of them: give --config.vectors=…, or choose another way")
    if config.vectors:
        size = width_of(config.vectors)
        if config.word_size and config.word_size != size:
            raise ValueError(
                f"config.word_size={config.word_size}, and {config.vectors} has vectors of {size} numbers: leave "
                "word_size out, or give a file of that width"
            )
        known = read_vectors(config.vectors, {*counts, *(word.lower() for word in counts)})
        there = int((places_of(list(counts), known) >= 0).sum())
        twice = f" ({known.repeated:,} stand there more than once)" if known.repeated else ""
        say(f"{config.vectors}: vectors of {there:,} of the {len(counts):,} words of the training data{twice}")
        if not there:
            raise ValueError(f"{config.vectors} has no vector for any word of {config.train}; give one of its language")
        later = read_vectors(config.vectors, None, most=KEPT) if config.unknown == "vectors" else None
    lexicon = Lexicon.build(
        counts, config.unknown, size, known=known, tuned=config.tune_words, seed=config.seed, later=later
    )
    return lexicon, known
