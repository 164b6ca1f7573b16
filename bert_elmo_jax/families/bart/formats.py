"""The weight formats of BART."""

from bert_elmo_jax.families.huggingface_format import huggingface_format
from bert_elmo_jax.lazy_imports import lazy_function

MODULE = "bert_elmo_jax.families.bart.huggingface"
FORMATS = {
    "huggingface": huggingface_format(MODULE, "bart", classifiers=())._replace(
        names=lazy_function(MODULE, "weight_file")
    )
}
