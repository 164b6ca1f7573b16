"""The result of the modules of families fed with pieces."""

from typing import no_type_check

from flax import struct
from jaxtyping import Array, Float, Float32


@no_type_check  # tree operations put other values than arrays of these shapes into it
@struct.dataclass
class Output:
    """Hidden states of a batch; fields that were not requested are None.

    `layers` are in the order of the request, and layer 0 is the embeddings. `pooled` is one vector per row, or one per
    entry of `nsp_positions`.
    """

    last: Float[Array, "B T D"]
    layers: Float[Array, "N B T D"] | None = None
    attentions: Float32[Array, "L B A T T"] | None = None
    pooled: Float[Array, "B D"] | Float[Array, "B S D"] | None = None
