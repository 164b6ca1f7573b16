"""Encoders, one file a family: a configuration and a module."""

from bert_elmo_jax.models.bert import Bert, BertConfig, Output, check_batch

__all__ = ["Bert", "BertConfig", "Output", "check_batch"]
