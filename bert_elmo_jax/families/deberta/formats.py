"""The weight formats of DeBERTa."""

from bert_elmo_jax.families.huggingface_format import huggingface_format
from bert_elmo_jax.lazy_imports import lazy_function

MODULE = "bert_elmo_jax.families.deberta.huggingface"
FORMATS = {
    "huggingface": huggingface_format(MODULE, "deberta-v2", "deberta")._replace(
        names=lazy_function(MODULE, "weight_file")
    )
}
