"""Build the arrays of a language-model batch from word ids, with a table of its distinct words."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int32, Int64

from bert_elmo_jax.data.corpora.store import Forms
from bert_elmo_jax.data.rows.stream import LanguageModelExamples, Marks, Steps
from bert_elmo_jax.text.characters import BOW_CHARACTER, EOW_CHARACTER, PAD_CHARACTER, boundary_characters

Numbers = Int64[np.ndarray, "_"]
ROUND = 16  # widths of the character table are multiples of this, so that there are few different ones


def batch_of(
    parts: Sequence[Steps],
    forms: Sequence[Forms],
    examples: LanguageModelExamples,
    marks: Marks,
    *,
    shards: int,
    process: int,
    processes: int,
) -> dict[str, np.ndarray]:
    """Return this process's part of the batch of one step, with the rows of each corpus one after the other.

    The size of the table depends on all rows, because it must be the same in all processes.
    """
    rows = sum(len(part.lengths) for part in parts)
    length = max(part.forward.shape[1] for part in parts)
    first, end = rows * process // processes, rows * (process + 1) // processes

    def joined(name: str) -> Int64[np.ndarray, "B T"]:
        arrays = [getattr(part, name) for part in parts]
        return np.concatenate([np.pad(array, ((0, 0), (0, length - array.shape[1]))) for array in arrays])

    lengths = np.concatenate([part.lengths for part in parts])
    real = np.arange(length) < lengths[:, None]
    fresh = np.concatenate([np.full(len(part.lengths), part.fresh) for part in parts])
    batch = {"lengths": lengths.astype(np.int32), "fresh": fresh}
    for name in ("forward_targets", "backward_targets"):
        batch[name] = _in_vocabulary(joined(name), marks)
        batch[name.replace("targets", "weights")] = real.astype(np.float32)
    forward, backward = joined("forward"), joined("backward")
    if examples.input == "words":
        batch |= {"words_forward": _in_vocabulary(forward, marks), "words_backward": _in_vocabulary(backward, marks)}
        return {name: array[first:end] for name, array in batch.items()}
    batch = {name: array[first:end] for name, array in batch.items()}
    # Number the words of all corpora; the vocabulary has the same numbers in each.
    base = np.cumsum([0, *(len(form) for form in forms)])[:-1]
    owner = np.repeat(base, [len(part.lengths) for part in parts])[:, None]
    read = np.stack([np.where(part < marks.size, part, part + owner) for part in (forward, backward)], axis=1)
    tables, indices = [], []
    for shard in read.reshape(shards, -1):
        distinct, index = np.unique(shard, return_inverse=True)
        tables.append(distinct)
        indices.append(index)
    index = np.stack(indices).reshape(read.shape)[first:end].astype(np.int32)
    size = examples.table_size(max(map(len, tables)))
    width = _width(tables, forms, base, examples)
    local_tables = tables[shards * process // processes : shards * (process + 1) // processes]
    characters = np.zeros((len(local_tables), size, width), np.int32)
    for place, distinct in enumerate(local_tables):
        characters[place, : len(distinct)] = form_characters(distinct, forms, base, marks, width)
    return batch | {
        "characters": characters,
        "words_forward": np.ascontiguousarray(index[:, 0]),
        "words_backward": np.ascontiguousarray(index[:, 1]),
    }


def _in_vocabulary(ids: Int64[np.ndarray, "B T"], marks: Marks) -> Int32[np.ndarray, "B T"]:
    """Replace words outside the vocabulary by `<UNK>`."""
    return np.where(ids < marks.size, ids, marks.unk).astype(np.int32)


def _spelling(ids: Numbers, forms: Sequence[Forms], base: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the corpus of each word, and the start and number of its bytes there."""
    corpus = np.searchsorted(base, ids, side="right") - 1
    begin, size = np.empty((2, len(ids)), np.int64)
    for number, form in enumerate(forms):
        words = np.flatnonzero(corpus == number)
        local = ids[words] - base[number]
        begin[words] = form.ends[local]
        size[words] = form.ends[local + 1] - begin[words]
    return corpus, begin, size


def _width(tables: Sequence[Numbers], forms: Sequence[Forms], base: Numbers, examples: LanguageModelExamples) -> int:
    """Return the width of the character table.

    The padding after the longest word need not be wider than the widest filter: more padding does not change the
    maximum over time of a convolution.
    """
    if not examples.widest_filter:
        return examples.max_characters
    longest = max(int(_spelling(table, forms, base)[2].max(initial=1)) for table in tables) + 2
    needed = -(-(max(longest, 3) + examples.widest_filter) // ROUND) * ROUND
    return min(examples.max_characters, needed)


def form_characters(
    ids: Numbers, forms: Sequence[Forms], base: Numbers, marks: Marks, width: int
) -> Int32[np.ndarray, "U {width}"]:
    """Return the characters of words by their numbers, as `character_table` does for strings."""
    corpus, begin, size = _spelling(ids, forms, base)
    size = np.minimum(size, width - 2)
    table = np.full((len(ids), width), PAD_CHARACTER, np.int32)
    table[:, 0] = BOW_CHARACTER
    for number, form in enumerate(forms):
        words = np.flatnonzero(corpus == number)
        sizes = size[words]
        counter = np.arange(sizes.sum())
        starts = np.cumsum(sizes) - sizes
        letters = form.characters[np.repeat(begin[words] - starts, sizes) + counter]
        table.ravel()[np.repeat(words * width + 1 - starts, sizes) + counter] = letters.astype(np.int32) + 1
    table[np.arange(len(ids)), size + 1] = EOW_CHARACTER
    for mark, row in zip((marks.bos, marks.eos), boundary_characters(width)):
        table[ids == mark] = row
    return table
