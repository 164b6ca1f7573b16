"""The weight formats of RoBERTa."""

from bert_elmo_jax.families.huggingface_format import huggingface_format

FORMATS = {
    "huggingface": huggingface_format(
        "bert_elmo_jax.families.roberta.huggingface", "roberta", "xlm-roberta", "camembert"
    )
}
