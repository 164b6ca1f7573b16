r"""A small BERT from Korean reviews of films (half a million of them, about eleven words each), for a laptop.

The size of `bert_novels`; several reviews share a row, each seeing itself alone. Prepared from the unlabelled part of
NSMC (https://github.com/e9t/nsmc), one review a document:
  cut -f4 rest_unlabelled.tsv | tail -n +2 | sed G > reviews.txt
  python -m experiments.prepare_data --input=reviews.txt --on_bad=skip --vocab_size=16000 --output=corpora/reviews

Expected score: masked tokens 0.295 of 14,015 held-out predictions (perplexity 97), where the most frequent token has
0.179 right and the token most often seen between the two neighbours 0.294: half a million reviews of eleven words are a
little text. At the places that show [MASK] 0.225, 0.099 and 0.243 (`experiments.benchmarks.masked_baselines
--run=runs/bert_reviews`). What it is worth: the README's table of fine-tuned models. Cost: 67 minutes of processor
time.

Command:
  python -m experiments.pretrain_bert --config=experiments/configs/bert_reviews.py --config.data=corpora/reviews \
      --workdir=runs/bert_reviews
"""

from ml_collections import ConfigDict

from experiments.configs import bert_novels


def get_config() -> ConfigDict:
    """The configuration."""
    c = bert_novels.get_config()
    c.long_share = 0.0
    c.objective = "documents"
    c.sequences = 8
    return c
