"""Layers as plain functions, some with a thin Linen module around them."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names
from bert_elmo_jax.nn.dropout import dropout, variational_dropout
from bert_elmo_jax.nn.gru import bigru, gru, init_bigru
from bert_elmo_jax.nn.lstm import bilstm, init_bilstm, lstm, product, recurrence
from bert_elmo_jax.nn.scalar_mix import normalise_layer, scalar_mix

if TYPE_CHECKING:
    from bert_elmo_jax.nn.activations import ACTIVATIONS as ACTIVATIONS
    from bert_elmo_jax.nn.activations import activation as activation
    from bert_elmo_jax.nn.activations import gelu as gelu
    from bert_elmo_jax.nn.activations import gelu_new as gelu_new
    from bert_elmo_jax.nn.attention import SelfAttention as SelfAttention
    from bert_elmo_jax.nn.attention import attention_maps as attention_maps
    from bert_elmo_jax.nn.attention import fused as fused
    from bert_elmo_jax.nn.attention import reference as reference
    from bert_elmo_jax.nn.char_cnn import CharCNN as CharCNN
    from bert_elmo_jax.nn.char_rnn import CharRNN as CharRNN
    from bert_elmo_jax.nn.gated import GatedFeedForward as GatedFeedForward
    from bert_elmo_jax.nn.gated import gated_unit as gated_unit
    from bert_elmo_jax.nn.layers import Dense as Dense
    from bert_elmo_jax.nn.layers import LayerNorm as LayerNorm
    from bert_elmo_jax.nn.layers import dense as dense
    from bert_elmo_jax.nn.layers import embed as embed
    from bert_elmo_jax.nn.layers import layer_norm as layer_norm
    from bert_elmo_jax.nn.layers import look_up as look_up
    from bert_elmo_jax.nn.layers import truncated_normal as truncated_normal
    from bert_elmo_jax.nn.pooling import align as align
    from bert_elmo_jax.nn.pooling import attention_flow as attention_flow
    from bert_elmo_jax.nn.pooling import init_similarity as init_similarity
    from bert_elmo_jax.nn.pooling import self_attention_flow as self_attention_flow
    from bert_elmo_jax.nn.rotary import rotary_angles as rotary_angles
    from bert_elmo_jax.nn.rotary import rotate as rotate

__all__, __getattr__ = lazy_names(__name__, __file__)
