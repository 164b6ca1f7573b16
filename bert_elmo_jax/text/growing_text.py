"""A text that grows piece by piece: the part that can be shown, and the texts that stop it."""

from collections.abc import Callable, Sequence

from bert_elmo_jax.text.tokenizer import Tokenizer
from bert_elmo_jax.text.words import WordVocabulary

UNFINISHED = "\ufffd"  # decoding writes it for the bytes of an incomplete character
CONTEXT = 8  # pieces before a continuation that decide how it begins


def find_stop(text: str, stops: Sequence[str]) -> int | None:
    """Return the place of the stop text that is complete first, None if there is none.

    >>> find_stop("one two three", ["three", "two"]), find_stop("one", ["two"])
    (4, None)
    """
    places = [(place + len(stop), place) for stop in stops if (place := text.find(stop)) >= 0]
    return min(places)[1] if places else None


def count_settled(text: str, stops: Sequence[str] = ()) -> int:
    """Return how many characters of a growing text can be shown.

    The rest is an incomplete character, a Hangul syllable written in letters that may get another one, or the beginning
    of a stop text.

    >>> count_settled("강\ufffd"), count_settled("the en", ["end"]), count_settled("the", ["end"])
    (1, 4, 2)
    """
    end = len(text.rstrip(UNFINISHED))
    while end and "\u1100" <= text[end - 1] < "\u11a8":  # a first consonant or a vowel
        end -= 1
    for stop in stops:
        size = next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)
        end = min(end, len(text) - size)
    return end


def continuation(tokenizer: Tokenizer | WordVocabulary, before: Sequence[int] = ()) -> Callable[[Sequence[int]], str]:
    """Return the function that decodes pieces which continue others, with the space before them if there is one.

    Ids that the tokenizer does not have are left out.

    >>> from bert_elmo_jax.text import train_byte_bpe
    >>> tokenizer = train_byte_bpe(["the sea the ship"] * 9, vocab_size=300)
    >>> the, ship = tokenizer.encode("the ship", specials=False).ids.tolist()
    >>> continuation(tokenizer, [the])([ship]), continuation(tokenizer)([ship])
    (' ship', 'ship')
    """

    def drop_unknown(ids: Sequence[int]) -> list[int]:
        return [int(number) for number in ids if 0 <= number < len(tokenizer.target_tokens)]

    first = drop_unknown(before)[-CONTEXT:]
    start = tokenizer.decode(first).rstrip(UNFINISHED)

    def decode(ids: Sequence[int]) -> str:
        text = tokenizer.decode([*first, *drop_unknown(ids)])
        return text[len(start) :] if text.startswith(start) else tokenizer.decode(drop_unknown(ids))

    return decode


class GrowingText:
    """Gives out a text as it grows; the parts joined are the decoded text, up to the first stop text.

    >>> text = GrowingText(lambda ids: bytes(ids).decode(errors="replace"), stops=["!"])
    >>> [text.add([byte]) for byte in "강!".encode()], text.stopped, text.finish()
    (['', '', '강', ''], True, '')
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], stops: Sequence[str] = ()):
        self.decode, self.stops = decode, stops
        self.ids: list[int] = []
        self.text, self.stopped = "", False
        self._shown = 0

    def add(self, ids: Sequence[int]) -> str:
        """Add pieces, and return the new part of the text that can be shown."""
        if self.stopped:
            return ""
        self.ids += ids
        self.text = self.decode(self.ids)
        if (place := find_stop(self.text, self.stops)) is not None:
            self.text, self.stopped = self.text[:place], True
        return self._show(len(self.text) if self.stopped else count_settled(self.text, self.stops))

    def finish(self) -> str:
        """Return the rest of the text."""
        return self._show(len(self.text))

    def _show(self, end: int) -> str:
        part = self.text[self._shown : end]
        self._shown = max(self._shown, end)
        return part
