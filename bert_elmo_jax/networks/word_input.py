"""Word vectors without context: from a table, from the caller, and from characters."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int

from bert_elmo_jax.nn import CharCNN, embed
from bert_elmo_jax.nn.any_array import AnyArray

NEW = -1  # the id of a word whose vector is in `brought`
CHARACTER_SIZE = 16
FILTERS = ((3, 128),)  # Peters et al. 2018: 128 filters over three characters, max-pooled


class WordInput(nn.Module):
    """Word ids -> vectors; with `characters` followed by the output of a character CNN.

    The first ids are rows of `specials`, for words without a row of their own. It is a separate parameter, so that it
    is trained while the table is frozen.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.networks import WordInput
    >>> ids, brought = jnp.array([[0, 3, -1]]), jnp.full((1, 3, 4), 7.0)
    >>> vectors, variables = WordInput(1, 5, 4).init_with_output(jax.random.key(0), ids, None, brought)
    >>> vectors[0, 2].tolist(), jax.tree.map(jnp.shape, variables["params"])
    ([7.0, 7.0, 7.0, 7.0], {'specials': (1, 4), 'table': (5, 4)})
    """

    num_specials: int
    num_words: int
    size: int
    characters: bool = False

    @nn.compact
    def __call__(
        self,
        ids: Int[AnyArray, "B T"],
        characters: Int[AnyArray, "B T C"] | None = None,
        brought: Float32[AnyArray, "B T D"] | None = None,
    ) -> Float32[Array, "B T E"]:
        """Return one vector per word, NaN for an invalid id."""
        if self.characters != (characters is not None):
            raise ValueError(
                "this network reads the characters of words: pass them"
                if self.characters
                else "characters were given to a network that does not read them: leave them out"
            )
        ids = jnp.asarray(ids)
        normal = nn.initializers.normal(self.size**-0.5)
        specials = self.param("specials", normal, (self.num_specials, self.size))
        # Two look-ups: concatenating the tables would copy them and their gradients in every step.
        own = (ids >= self.num_specials) & (self.num_words > 0)
        x = embed(specials, jnp.where(own, 0, ids if brought is None else jnp.maximum(ids, 0)))
        if self.num_words:  # checkpoints cannot hold an empty parameter
            table = self.param("table", normal, (self.num_words, self.size))
            x = jnp.where(own[..., None], embed(table, jnp.where(own, ids - self.num_specials, 0)), x)
        if brought is not None:
            x = jnp.where((ids == NEW)[..., None], jnp.asarray(brought), x)
        if characters is None:
            return x
        cnn = CharCNN(CHARACTER_SIZE, FILTERS, 0, None, name="characters")
        return jnp.concatenate([x, cnn(characters)], axis=-1)
