"""The interface of all families that write: steps that write pieces and keep keys and values in a memory."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Decoder(NamedTuple):
    """The functions that write text with one configuration; `generation.generate` calls them, in compiled code.

    A memory is a tree of arrays whose first axis is the row, so that a beam takes over another one's memory by
    indexing. It has a number of slots, all rows fill the same slot in the same step, and a row with a shorter prompt
    leaves its first slots empty. An entry `source` of a memory that is a dict holds what all beams of a row share, such
    as the keys and values of a source text; it is repeated for the beams, but never reordered.

    `start(params, prompt [B, T], mask [B, T], slots)` returns an empty memory; a model that translates encodes `prompt`
    there, whose rows are padded on the right. `step(params, memory, tokens [B, T], positions [B, T], at, visible
    [B, slots])` writes the keys and values of T pieces into the slots `at, at + 1, …` and returns the logits
    `[B, T, V]` in float32, with the memory. A piece in slot s sees the slots up to s that `visible` marks. The outputs
    of an empty slot, which sees nothing, are never read, but must be finite.
    """

    start: Callable[..., Any]
    step: Callable[..., Any]
    ends: tuple[int, ...]  # the pieces that end a text
    pad: int  # the piece that fills a finished row
    most: int | None  # the largest number of positions; None: no limit
    # The piece that comes before the first one that is written. None: the model continues the prompt itself.
    first: int | None = None
    forbidden: tuple[int, ...] = ()  # pieces that are never written
    # Returns the parameters that `start` and `step` read, such as kernels in the type of the computation; it is called
    # once for each model. None: the model's own parameters.
    prepare: Callable[[Any], Any] | None = None
    # The piece that is written in the last place of a text that has not ended; its score is 0, as in transformers.
    forced_end: int | None = None
    # The piece that is written in the first place, with the score 0, too.
    forced_first: int | None = None
    defaults: Mapping[str, Any] = {}  # the model's own values of options of `generate`
    vocab_size: int | None = None  # of the pieces that are written; None: the configuration's
    # True: forbidden pieces have no share of the probability, as with `renormalize_logits` of transformers.
    renormalises: bool = False

    def __hash__(self) -> int:
        return hash((self.start, self.step))  # `defaults` may be a dict, which has no hash
