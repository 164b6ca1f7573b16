"""ELMo's character ids: the UTF-8 bytes of a word between a begin-word and an end-word mark.

All ids are shifted by one (a byte b is b + 1), because 0 marks the characters of padding words.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int32

from bert_elmo_jax.text.tokenizer import reject_text

BOS_CHARACTER, EOS_CHARACTER, BOW_CHARACTER, EOW_CHARACTER, PAD_CHARACTER = 257, 258, 259, 260, 261
NUM_CHARACTERS = 262


def character_table(words: Sequence[str], max_characters: int = 50) -> Int32[np.ndarray, "N C"]:
    """Return the ids of each word: begin-word, its bytes + 1 (cut to `max_characters` - 2), end-word, padding.

    >>> character_table(["a", "배"], max_characters=6).tolist()
    [[259, 98, 260, 261, 261, 261], [259, 236, 177, 177, 260, 261]]
    """
    words = list(words)
    most_bytes = max_characters - 2
    try:
        encoded = [word.encode()[:most_bytes] for word in words]
    except (UnicodeEncodeError, AttributeError) as error:
        reject_text(words, error)
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    table = np.full((len(words), max_characters), PAD_CHARACTER, np.int32)
    table[:, 0] = BOW_CHARACTER
    # The position of each byte in the flattened table, behind the begin-word mark of its row.
    starts = np.cumsum(lengths) - lengths
    place = np.repeat(np.arange(len(words)) * max_characters + 1 - starts, lengths)
    place += np.arange(len(place))
    table.reshape(-1)[place] = np.frombuffer(b"".join(encoded), np.uint8).astype(np.int32) + 1
    table[np.arange(len(words)), lengths + 1] = EOW_CHARACTER
    return table


def boundary_characters(max_characters: int = 50) -> Int32[np.ndarray, "2 C"]:
    """Return the ids of the begin-sentence and end-sentence words.

    >>> boundary_characters(5).tolist()
    [[259, 257, 260, 261, 261], [259, 258, 260, 261, 261]]
    """
    table = np.full((2, max_characters), PAD_CHARACTER, np.int32)
    table[:, 0], table[:, 2] = BOW_CHARACTER, EOW_CHARACTER
    table[:, 1] = BOS_CHARACTER, EOS_CHARACTER
    return table
