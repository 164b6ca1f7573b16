"""What the modules of families fed with pieces return."""

from typing import no_type_check

from flax import struct
from jaxtyping import Array, Float, Float32


@no_type_check  # JAX rebuilds it around whatever a tree operation returns, not only around arrays of these shapes
@struct.dataclass
class Output:
    """Hidden states of a batch; fields that were not asked for are None.

    `layers` are in the order asked for, layer 0 being the embeddings; `pooled` is one vector per row, or one for each
    of `nsp_positions`.
    """

    last: Float[Array, "B T D"]
    layers: Float[Array, "N B T D"] | None = None
    attentions: Float32[Array, "L B A T T"] | None = None
    pooled: Float[Array, "B D"] | Float[Array, "B S D"] | None = None
