"""The weight formats of ModernBERT."""

from bert_elmo_jax.families.huggingface_format import huggingface_format

CLASSIFIERS = ("classify", "choice", "tag", "span")  # all four are called `classifier` in the file

FORMATS = {
    "huggingface": huggingface_format(
        "bert_elmo_jax.families.modernbert.huggingface", "modernbert", classifiers=CLASSIFIERS
    )
}
