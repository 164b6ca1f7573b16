"""Layers: the mathematics as plain functions, a thin Linen module around each."""

from bert_elmo_jax.nn.activations import ACTIVATIONS, activation, gelu, gelu_new
from bert_elmo_jax.nn.attention import SelfAttention, attention_maps, fused, reference
from bert_elmo_jax.nn.dense import Dense, dense, truncated_normal
from bert_elmo_jax.nn.dropout import dropout
from bert_elmo_jax.nn.embedding import embed
from bert_elmo_jax.nn.layer_norm import LayerNorm, layer_norm

__all__ = [
    "ACTIVATIONS",
    "Dense",
    "LayerNorm",
    "SelfAttention",
    "activation",
    "attention_maps",
    "dense",
    "dropout",
    "embed",
    "fused",
    "gelu",
    "gelu_new",
    "layer_norm",
    "reference",
    "truncated_normal",
]
