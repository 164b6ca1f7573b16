"""A text that a model has written."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Written:
    """A text that a model has written.

    `ids` are the new pieces, with the one that ended the text, if any. `score` is the sum of their log-probabilities
    divided by length^penalty. `text` leaves out special pieces, the end and a stop text; it is None without a
    tokenizer. `finished` is False if the text only ended because it had `max_new` pieces: also if the model's rules
    force an end into the last place, where one of its own cannot be told apart.

    >>> Written([5, 2], -0.25, "ship", True).text
    'ship'
    """

    ids: list[int]
    score: float
    text: str | None
    finished: bool
