"""Compile a model for the requests of a service before the first one: the method `warm_up` of models."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

# Sizes that rows are padded to are among these, or between two that are padded to the same one.
LENGTHS = (8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192)
WORD = "a"
MIXES = 24  # requests of mixed lengths that are planned for each length and number of texts
CALLS = ("predict", "encode", "sentences", "score")


def warm_up(
    model: Any, lengths: int | Sequence[int] = 64, rows: int | Sequence[int] = 1, *, call: str = "", **options: Any
) -> None:
    """Compile what requests of up to `rows` texts of up to `lengths` pieces need; of a list, the largest number counts.

    Such a request then takes as long as any later one, instead of some seconds more. `call` is the method that is
    warmed up: predict (the default of a model with a task), encode, sentences or score; `options` are its arguments,
    such as `batch_size`, and should be the same as in the requests. Models of words count words instead of pieces.
    Longer texts than the model reads are left out. Texts of mixed lengths may share rows of other shapes than those of
    equal length, so hundreds of mixed requests are planned, and those computed that need a new shape.

    >>> from bert_elmo_jax import load
    >>> encoder = load("tests/goldens/bert_tiny")
    >>> encoder.warm_up(lengths=16, rows=2, call="sentences")
    >>> encoder.sentences(["[MASK] [MASK]", "[MASK]"]).shape
    (2, 64)
    """
    call = call or next(name for name in CALLS if hasattr(model, name))
    if call not in CALLS or not hasattr(model, call):
        raise ValueError(
            f"call={call!r} cannot be warmed up; use one of {', '.join(n for n in CALLS if hasattr(model, n))}"
        )
    longest = min(_largest("lengths", lengths), _most_pieces(model))
    most = _largest("rows", rows)
    work, warns = getattr(model, "work", None), getattr(model, "warns_of_texts", None)
    if work is not None:
        model.work = type(work)()
    if warns is not None:
        model.warns_of_texts = False
    try:
        for lengths_of_texts in _list_requests(model, call, longest, most, options.get("batch_size", 32)):
            texts = [_make_request(model, call, length) for length in lengths_of_texts]
            getattr(model, call)(texts, **{"progress": False, **options})
    finally:
        if work is not None:  # it counts the texts of requests
            model.work = work
        if warns is not None:
            model.warns_of_texts = warns


def _largest(name: str, sizes: int | Sequence[int]) -> int:
    """Return a number, or the largest of a list."""
    from bert_elmo_jax.encoders.arguments import check_whole  # pretraining does not import it

    listed = [sizes] if not isinstance(sizes, Sequence | range) else sizes
    if not len(listed) or isinstance(sizes, str):
        raise ValueError(f"{name}={sizes!r}: use a whole number, or a list of some")
    return max(check_whole(name, size, 1) for size in listed)


def _sizes(largest: int, steps: Sequence[int]) -> Iterator[int]:
    """Yield the steps below the largest number, and that.

    >>> list(_sizes(20, LENGTHS)), list(_sizes(4, [1, 2, 4]))
    ([8, 12, 16, 20], [1, 2, 4])
    """
    yield from (step for step in steps if step < largest)
    yield largest


def _list_requests(model: Any, call: str, longest: int, most: int, batch_size: int) -> Iterator[list[int]]:
    """Yield the lengths of the texts of requests: equal ones, and mixed ones that need a new shape."""
    sizes = [(length, n) for length in _sizes(longest, LENGTHS) for n in _sizes(most, [1 << p for p in range(20)])]
    yield from ([length] * count for length, count in sizes)
    if not hasattr(model, "plan_shapes"):  # a model of words
        return
    draw, shapes = np.random.default_rng(0), set[tuple[int, int]]()
    for length, count in sizes:
        shapes |= model.plan_shapes(call, [length] * count, batch_size)
    for length, count in sizes:
        for n in range(MIXES if count > 1 else 0):
            texts, short = draw.integers(count // 2 + 1, count + 1), min(length, 3)
            of_any_length = draw.integers(length * 2 // 3 if n % 3 == 0 else short, length + 1, texts)
            few_are_long = np.where(draw.random(texts) < 0.2, length, np.maximum(of_any_length // 3, short))
            mixed = (few_are_long if n % 3 == 1 else of_any_length).tolist()
            if new := model.plan_shapes(call, mixed, batch_size) - shapes:
                yield mixed
                shapes |= new


def _most_pieces(model: Any) -> int:
    """Return the largest number of pieces that the model reads at once, or of words that are warmed up."""
    task = getattr(model, "task", None)
    limits = [getattr(task, "max_length", None), getattr(model.config, "max_positions", None)]
    return min([size for size in limits if size is not None], default=LENGTHS[-1])


def _make_request(model: Any, call: str, length: int) -> Any:
    """Return an input of so many pieces, or words."""
    task = getattr(model, "task", None) if call == "predict" else None
    kind = "" if task is None else task.kind
    pair = call == "score" or (task is not None and (task.pairs or kind in ("questions", "choice", "sentences")))
    frame = getattr(getattr(model, "family", None) and getattr(model, "tokenizer", None), "frame", None)
    specials = 0 if frame is None else frame.count(pair=pair)
    words = max(2 if pair else 1, length - specials)
    first, second = [WORD] * (1 if kind in ("questions", "choice") else words // 2), [WORD] * (words - words // 2)
    if kind == "tags":
        return [WORD] * words
    if task is not None and kind == "trees" and task.tag_column:
        return [WORD] * words, [WORD] * words
    if not pair:
        return " ".join([WORD] * words)
    if kind == "choice":
        return " ".join(first), [" ".join(second)] * 2
    return " ".join(first), " ".join(second)
