"""Layers that read a window of words around each word: Collobert et al. 2011, https://jmlr.org/papers/v12/."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray


def init_window(key: PRNGKeyArray, input_size: int, size: int, *, window: int) -> dict[str, Array]:
    """Return the parameters of `window_layer`; `padding` is the vector of the places outside of a sentence.

    >>> jax.tree.map(jnp.shape, init_window(jax.random.key(0), 4, 7, window=3))
    {'bias': (7,), 'kernel': (3, 4, 7), 'padding': (4,)}
    """
    bound = (3 / (window * input_size)) ** 0.5
    kernel = jax.random.uniform(key, (window, input_size, size), jnp.float32, -bound, bound)
    return {"kernel": kernel, "bias": jnp.zeros(size), "padding": jnp.zeros(input_size)}


def window_layer(
    x: Float[AnyArray, "B T D"], params: dict[str, Array], lengths: Int[AnyArray, " B"]
) -> Float32[Array, "B T H"]:
    """Return the hard tanh of a linear layer on the words of the window around each word.

    >>> params = {"kernel": jnp.full((3, 1, 1), 0.25), "bias": jnp.zeros(1), "padding": jnp.zeros(1)}
    >>> window_layer(jnp.ones((1, 4, 1)), params, jnp.array([3]))[0, :3, 0].tolist()
    [0.5, 0.75, 0.5]
    """
    window, size = params["kernel"].shape[0], params["kernel"].shape[2]
    padded, width = pad_words(x, lengths, params["padding"], window // 2), x.shape[1]
    windows = jnp.concatenate([padded[:, n : n + width] for n in range(window)], axis=-1)
    return jax.nn.hard_tanh(windows @ params["kernel"].reshape(-1, size) + params["bias"][None, None])


def pad_words(
    x: Float[AnyArray, "B T *D"], lengths: Int[AnyArray, " B"], padding: Float[AnyArray, "*D"], side: int
) -> Float32[Array, "B U *D"]:
    """Return rows with `side` more places at both ends, and `padding` wherever there is no word.

    >>> pad_words(jnp.ones((1, 3)), jnp.array([2]), jnp.array(9.0), 1).tolist()
    [[9.0, 1.0, 1.0, 9.0, 9.0]]
    """
    x, padding = jnp.asarray(x), jnp.asarray(padding)
    real = jnp.arange(x.shape[1])[None, :] < jnp.asarray(lengths)[:, None]
    x = jnp.where(real.reshape(*real.shape, *(1,) * padding.ndim), x, padding[None, None])
    ends = jnp.broadcast_to(padding, (len(x), side, *padding.shape))
    return jnp.concatenate([ends, x, ends], axis=1)
