"""Numbers of the layers of an encoder: 0 for the embeddings, -1 for the last."""

from collections.abc import Sequence


def layer_numbers(layers: str | Sequence[int] | None, num_layers: int) -> list[int]:
    """The layers asked for, counted from the embeddings (0) to the last (`num_layers`, or -1)."""
    if layers is None:
        return []
    if isinstance(layers, str):
        if layers != "all":
            raise ValueError(f"layers={layers!r} was given; it is 'all' or a list of numbers such as [0, -1]")
        return list(range(num_layers + 1))
    outside = [i for i in layers if not -num_layers - 1 <= i <= num_layers]
    if outside:
        raise ValueError(
            f"there is no layer {outside[0]}: the layers of this model are 0 (the embeddings) to {num_layers}, "
            f"or, from the end, -1 to {-num_layers - 1}"
        )
    return [i % (num_layers + 1) for i in layers]
