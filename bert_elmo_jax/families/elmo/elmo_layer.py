"""ELMo in the network of a task: learned mixtures of the layers."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32

from bert_elmo_jax.nn import dropout, normalise_layer, scalar_mix
from bert_elmo_jax.nn.any_array import AnyArray


class ElmoLayer(nn.Module):
    """`num_outputs` mixtures γ · Σⱼ softmax(w)ⱼ · layerⱼ, for example for a task RNN's input and output.

    The weights w start at 0 and γ at 1. With `layer_norm`, each layer is normalised first, over all real positions of
    the batch. `l2` is the paper's λ: the penalty λ·‖w‖² of all mixtures is returned, to be added to the task's loss.
    With `deterministic=False` it needs `rngs={"dropout": key}`.

    >>> import jax
    >>> layers, mask = jnp.ones((3, 2, 5, 8)), jnp.ones((2, 5), bool)
    >>> layer = ElmoLayer(num_outputs=2, l2=0.001)
    >>> params = layer.init(jax.random.key(0), layers, mask)["params"]
    >>> (at_input, at_output), penalty = layer.apply({"params": params}, layers, mask)
    >>> at_input.shape, float(penalty), sorted(params)
    ((2, 5, 8), 0.0, ['mix_0', 'mix_1'])
    """

    num_outputs: int = 1
    layer_norm: bool = False
    dropout: float = 0.5
    l2: float = 0.0

    @nn.compact
    def __call__(
        self, layers: Float[AnyArray, "L B T D"], mask: Bool[AnyArray, "B T"], *, deterministic: bool = True
    ) -> tuple[tuple[Float[Array, "B T D"], ...], Float32[Array, ""]]:
        """Return the mixtures (zeros where the mask is False), and their penalty."""
        if self.num_outputs < 1:
            raise ValueError(f"num_outputs is {self.num_outputs}; it must be at least 1")
        layers, mask = jnp.asarray(layers), jnp.asarray(mask)
        if mask.shape != layers.shape[1:3]:
            raise ValueError(
                f"layers of shape {layers.shape} were given with a mask of shape {mask.shape}; expected "
                f"{layers.shape[1:3]}"
            )
        # Masked values, even NaN, must not change the gradients of w and γ.
        layers = jnp.where(mask[None, :, :, None], layers, jnp.zeros_like(layers))
        if self.layer_norm:
            layers = jnp.stack([normalise_layer(layer, mask) for layer in layers])
        outputs, penalty = [], jnp.zeros(())
        for k in range(self.num_outputs):
            mix = self.param(f"mix_{k}", lambda key: {"weights": jnp.zeros(len(layers)), "gamma": jnp.ones(())})
            mixed = scalar_mix(layers, mix["weights"], mix["gamma"])
            mixed = dropout(mixed, self.dropout, None if deterministic else self.make_rng("dropout"))
            outputs.append(jnp.where(mask[:, :, None], mixed, jnp.zeros_like(mixed)))
            penalty = penalty + self.l2 * jnp.square(mix["weights"]).sum()
        return tuple(outputs), penalty
