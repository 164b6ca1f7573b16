"""BLEU and chrF of translations, computed by sacrebleu (Post 2018, https://arxiv.org/abs/1804.08771)."""

from collections.abc import Sequence

from bert_elmo_jax.did_you_mean import did_you_mean

# sacrebleu's other tokenizers download a model or need another package.
TOKENIZERS = ("13a", "intl", "zh", "char", "none")


def score(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a") -> dict[str, float]:
    """Return corpus `bleu`, `chrf` and `chrf++` (0 to 100) of translations, each with one reference.

    `tokenize` splits the texts into BLEU's words: `13a` (WMT's), `intl`, `zh`, `char` (each character is a word) or
    `none` (the texts are tokenized already). It does not change chrF, which compares characters. BLEU smooths a
    precision of zero exponentially, as sacrebleu does by default. Published figures of Korean are often computed on
    other words, so name the tokenizer with the figure.

    >>> scores = score(["The cat sat on the mat ."], ["The cat sat on a mat ."])
    >>> {name: round(value, 2) for name, value in scores.items()}
    {'bleu': 48.89, 'chrf': 71.42, 'chrf++': 72.66}
    """
    if tokenize not in TOKENIZERS:
        hint = did_you_mean(tokenize, TOKENIZERS)
        raise ValueError(f"tokenize={tokenize!r} is not known; it is one of {', '.join(TOKENIZERS)}{hint}")
    for name, texts in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(texts, str):
            raise TypeError(f"{name} is one text: give a list, one translation per sentence")
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"{name}[{number}] is {type(text).__name__}, not text: give one translation each")
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses):,} hypotheses but {len(references):,} references: give one reference per hypothesis"
        )
    if not hypotheses:
        raise ValueError("there are no translations to score: give at least one hypothesis with its reference")
    from sacrebleu.metrics import BLEU, CHRF

    translations, reference_lists = list(hypotheses), [list(references)]
    return {
        # `force` silences a warning about texts that look tokenized, as the toy world's do.
        "bleu": float(BLEU(tokenize=tokenize, force=True).corpus_score(translations, reference_lists).score),
        "chrf": float(CHRF().corpus_score(translations, reference_lists).score),
        "chrf++": float(CHRF(word_order=2).corpus_score(translations, reference_lists).score),
    }
