"""The weight formats of ELECTRA."""

from bert_elmo_jax.families.huggingface_format import huggingface_format

FORMATS = {"huggingface": huggingface_format("bert_elmo_jax.families.electra.huggingface", "electra")}
