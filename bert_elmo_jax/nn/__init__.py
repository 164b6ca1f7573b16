"""Layers as plain functions, some with a thin Linen module around them."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names
from bert_elmo_jax.nn.dropout import dropout, variational_dropout
from bert_elmo_jax.nn.gru import bigru, gru, init_bigru
from bert_elmo_jax.nn.lstm import bilstm, init_bilstm, lstm, product, recurrence
from bert_elmo_jax.nn.scalar_mix import normalise_layer, scalar_mix

if TYPE_CHECKING:
    from bert_elmo_jax.nn.activations import ACTIVATIONS, activation, gelu, gelu_new
    from bert_elmo_jax.nn.attention import SelfAttention, attention_maps, fused, reference
    from bert_elmo_jax.nn.char_cnn import CharCNN
    from bert_elmo_jax.nn.char_rnn import CharRNN
    from bert_elmo_jax.nn.gated import GatedFeedForward, gated_unit
    from bert_elmo_jax.nn.layers import Dense, LayerNorm, dense, embed, layer_norm, look_up, truncated_normal
    from bert_elmo_jax.nn.pooling import align, attention_flow, init_similarity, self_attention_flow
    from bert_elmo_jax.nn.rotary import rotary_angles, rotate

__all__, __getattr__ = lazy_names(__name__, __file__)
