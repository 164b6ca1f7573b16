"""Reads sentences of words as pieces, in the runners of exported models."""

from typing import Any


def read_words(tokenizer: Any, sentences: Any, unknown: str) -> tuple[Any, list[list[Any]]]:
    """Return the encoded sentences, and of each word the place of its first piece; None for a word that was cut.

    A space comes before each word but the first, because pieces may begin with it. A word without pieces (a zero-width
    space, say) is read as the piece `unknown`.
    """
    has_pieces = {w: bool(tokenizer.encode(w, add_special_tokens=False).ids) for words in sentences for w in words}
    sentences = [[word if has_pieces[word] else unknown for word in words] for words in sentences]
    read = tokenizer.encode_batch([" ".join(words) for words in sentences])
    places: list[list[Any]] = []
    for words, row in zip(sentences, read):
        pieces = [(n, row.offsets[n][1]) for n, part in enumerate(row.sequence_ids) if part == 0]
        places.append([])
        start = 0
        for word in words:
            # A piece that is only the space before a word ends where the word starts, and belongs to it.
            places[-1].append(next((n for n, end in pieces if start <= end <= start + len(word)), None))
            start += len(word) + 1
    return read, places
