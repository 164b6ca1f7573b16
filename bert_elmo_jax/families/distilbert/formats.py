"""The weight formats of DistilBERT."""

from bert_elmo_jax.families.huggingface_format import huggingface_format

FORMATS = {"huggingface": huggingface_format("bert_elmo_jax.families.distilbert.huggingface", "distilbert")}
