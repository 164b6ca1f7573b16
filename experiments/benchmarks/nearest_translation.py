r"""A baseline for few pairs, compared with a run: the translation of the nearest training sentence.

  python -m experiments.benchmarks.nearest_translation --run=runs/sts

The nearest sentence is the one that shares most words: the number of words that both have, divided by the number that
either has. The held-out pairs are those that the run translated at its end (`--config.translations`). The second
line has the pairs whose nearest sentence shares less than half of the words, the third line the others: where a corpus
has near copies of its sentences, only the former say how well a model translates.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.evals.translation import TOKENIZERS, score
from bert_elmo_jax.families import get_family
from bert_elmo_jax.inference.load_model import load
from bert_elmo_jax.runs.pretraining import load_corpora
from bert_elmo_jax.runs.translation_scores import translate_held_out

from ..command_line.start import start
from ..studies.ceilings.held_out import read_asked

FLAGS = flags.FLAGS
NEAR = 0.5


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("run", None, "A run directory of pretrain that translates.", required=True)
    flags.DEFINE_enum("tokenize", "13a", list(TOKENIZERS), "The words of BLEU: char for Korean.")


def find_nearest(texts: Sequence[str], sources: Sequence[str]) -> list[tuple[int, float]]:
    """Return for each text the number of the known text that shares most words, the first of equals, and the share.

    >>> find_nearest(["a man is riding a horse", "no"], ["a man runs", "a woman is riding a horse"])
    [(1, 0.6666666666666666), (0, 0.0)]
    """
    sizes = [len(set(text.lower().split())) for text in sources]
    where = defaultdict(list)
    for number, text in enumerate(sources):
        for word in set(text.lower().split()):
            where[word].append(number)
    nearest = []
    for text in texts:
        words = set(text.lower().split())
        common: dict[int, int] = defaultdict(int)
        for word in words:
            for number in where.get(word, ()):
                common[number] += 1
        shares = ((number, count / (len(words) + sizes[number] - count)) for number, count in common.items())
        nearest.append(max(shares, key=lambda each: (each[1], -each[0]), default=(0, 0.0)))
    return nearest


def main() -> None:
    """Print the table."""
    config = read_asked(Path(FLAGS.run))
    corpora = load_corpora(config, Path(FLAGS.run), get_family(config.family).inputs)
    texts = translate_held_out(FLAGS.run, config, next(iter(corpora)))
    if texts is None:
        raise ValueError(f"{FLAGS.run}: expected a run that learned to translate, with held-out pairs")
    decode = load(FLAGS.run).reads.decode
    pairs = [(decode(one), decode(two)) for one, two in open_store(next(iter(corpora)))]
    sources, targets = zip(*((two, one) if config.reverse else (one, two) for one, two in pairs))
    nearest = find_nearest(texts.sources, sources)
    groups = {
        "all": range(len(nearest)),
        f"nearest shares < {NEAR:.0%}": [n for n, (_, share) in enumerate(nearest) if share < NEAR],
        f"nearest shares ≥ {NEAR:.0%}": [n for n, (_, share) in enumerate(nearest) if share >= NEAR],
    }
    print(f"{'pairs':24}{'number':>8}{'BLEU':>8}{'chrF':>8}{'same':>8}   nearest: {'BLEU':>6}{'chrF':>8}{'same':>8}")
    for name, group in groups.items():
        if group:
            references = [texts.references[n] for n in group]
            columns = ([texts.translations[n] for n in group], [targets[nearest[n][0]] for n in group])
            cells = []
            for translations in columns:
                figures = score(translations, references, FLAGS.tokenize)
                same = sum(one == other for one, other in zip(translations, references)) / len(references)
                cells.append(f"{figures['bleu']:8.1f}{figures['chrf']:8.1f}{same:8.1%}")
            print(f"{name:24}{len(references):>8,}{'           '.join(cells)}")


if __name__ == "__main__":
    start("benchmarks.nearest_translation", define, main, stopped="stopped")
