"""Access to any stretch of the rows of one corpus, across windows and epochs."""

from collections.abc import Callable, Sized
from typing import Generic, NamedTuple, TypeVar

from bert_elmo_jax.data.corpora.store import Store
from bert_elmo_jax.data.pipeline.windows import Block, Text, plan_windows, read_window


class Place(NamedTuple):
    """The position of the next row, which is all that a run needs to resume."""

    epoch: int = 0
    window: int = 0
    row: int = 0


Rows = TypeVar("Rows", bound=Sized)  # a window's rows or steps; only their number is used here
Key = tuple[int, ...]


class Track(Generic[Rows]):
    """Plan each window when it is reached, and keep the current one.

    `plan(text, key)` returns a window's rows; its key consists of `key`, the epoch and the window. With `copies`,
    epochs repeat after this number.
    """

    def __init__(self, store: Store, plan: Callable[[Text, Key], Rows], key: Key, window: int, copies: int = 0):
        if not len(store):
            remedy = "a higher" if store.part == "heldout" else "a lower"
            raise ValueError(
                f"{store.folder} has no document in its part {store.part!r}; prepare it with {remedy} --heldout"
            )
        self.store, self._plan, self._key, self._size, self._copies = store, plan, key, window, copies
        self._windows: tuple[int, list[list[Block]]] | None = None
        self._rows: tuple[tuple[int, int], Rows] | None = None

    def windows(self, epoch: int) -> list[list[Block]]:
        """Return the windows of an epoch."""
        epoch = epoch % self._copies if self._copies else epoch
        if self._windows is None or self._windows[0] != epoch:
            self._windows = epoch, plan_windows(self.store, (*self._key, epoch), self._size)
        return self._windows[1]

    def rows(self, epoch: int, window: int) -> Rows:
        """Return the rows of a window."""
        epoch = epoch % self._copies if self._copies else epoch
        if self._rows is None or self._rows[0] != (epoch, window):
            self._rows = None  # free the window before the next is read
            text = read_window(self.store, self.windows(epoch)[window])
            self._rows = (epoch, window), self._plan(text, (*self._key, epoch, window))
        return self._rows[1]

    def stretch(self, place: Place, count: int, last: int | None = None) -> tuple[list[tuple[Rows, int, int]], Place]:
        """Return the next `count` rows as pieces (window's rows, first, end), and the place after them.

        Rows may continue into the next epoch, but not beyond epoch `last`; there may be fewer at its end.
        """
        pieces = []
        while count and (last is None or place.epoch <= last):
            rows = self.rows(place.epoch, place.window)
            end = min(place.row + count, len(rows))
            if end > place.row:
                pieces.append((rows, place.row, end))
            count -= end - place.row
            place = place._replace(row=end)
            if end == len(rows):
                more = place.window + 1 < len(self.windows(place.epoch))
                place = Place(place.epoch, place.window + 1) if more else Place(place.epoch + 1)
        return pieces, place

    def passed(self, place: Place) -> float:
        """Return the number of epochs that have passed at a place; all windows of an epoch count equally."""
        share = place.row / len(self.rows(place.epoch, place.window)) if place.row else 0
        return place.epoch + (place.window + share) / len(self.windows(place.epoch))

    def size(self, epoch: int) -> int:
        """Return the exact number of rows of an epoch; plans all of its windows."""
        return sum(len(self.rows(epoch, window)) for window in range(len(self.windows(epoch))))
