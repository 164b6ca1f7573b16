"""Argument checks for `generate` and `stream`, and their prompts."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from bert_elmo_jax.encoders.arguments import check_whole
from bert_elmo_jax.encoders.rows import shorten
from bert_elmo_jax.generation.decoder import Decoder

# What options are if neither the caller nor the model says it.
DEFAULTS = {"max_new": 32, "min_new": 0, "beams": 1, "length_penalty": 1.0, "early_stopping": False}
DEFAULTS |= {"no_repeat_ngram_size": 0}
LENGTH_RULES = ("power", "gnmt")
MOST_TEXTS = 10_000
COLDEST = 1e-6  # below, the scores of pieces overflow
LARGEST_EXPONENT = 60.0  # of e: a length to the power of its penalty, and a sum divided by it, are numbers of float32


class Prompt(NamedTuple):
    """The pieces of a prompt, and its number in the list."""

    ids: list[int]
    number: int


@dataclass(frozen=True)
class Options:
    """The checked options of a call; made by `check_options`."""

    max_new: int
    min_new: int
    beams: int
    n_best: int
    length_penalty: float
    length_rule: Any
    early_stopping: Any
    draws: bool
    temperature: float
    top_k: int | None
    top_p: float | None
    repetition_penalty: float
    no_repeat_ngram_size: int
    ends: tuple[int, ...]
    stop: tuple[str, ...]
    seed: int


def count_pieces(encoder: Any, decoder: Decoder) -> int:
    """Return the size of the vocabulary of the written text, which may differ from the encoder's."""
    size: int = encoder.config.vocab_size if decoder.vocab_size is None else decoder.vocab_size
    return size


def check_number(name: str, value: Any, expected: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a number that is above `low` and at most `high`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={shorten(value)}: use {expected}")
    number = float(value)
    if not (math.isfinite(number) and low < number <= high):
        raise ValueError(f"{name}={shorten(value)}: use {expected}")
    return number


def check_options(encoder: Any, decoder: Decoder, settings: Mapping[str, Any]) -> Options:
    """Return the options of a call; raise on values that are wrong or contradict each other."""
    vocab_size = count_pieces(encoder, decoder)
    settings = _fill_in(settings, decoder)
    max_new = check_whole("max_new", settings["max_new"], 1)
    min_new = check_whole("min_new", settings["min_new"], 0, max_new, "at most max_new")
    beams, pieces = check_whole("beams", settings["beams"], 1), vocab_size - len(set(decoder.forbidden))
    if beams > pieces:
        raise ValueError(
            f"beams={beams} is larger than the vocabulary: the model writes {pieces} pieces, and each beam begins with "
            f"another one, so use {pieces} or fewer"
        )
    draws = _draws(settings)
    if draws and beams > 1:
        raise ValueError(
            f"beams={beams} searches for the best text, and temperature, top_k and top_p draw one: choose one of both"
        )
    n_best = check_whole("n_best", settings["n_best"], 1, MOST_TEXTS, "the texts that are kept for a prompt")
    if n_best > beams and not draws:
        how = "use as many beams, or draw with temperature=1.0"
        raise ValueError(f"n_best={n_best}, but beams={beams}: a search finds as many texts as it has beams; {how}")
    temperature = 1.0 if settings["temperature"] is None else settings["temperature"]
    expected = f"a number above {COLDEST:g}; leave it out for the likeliest piece"
    temperature = check_number("temperature", temperature, expected, COLDEST)
    penalty = check_number("length_penalty", settings["length_penalty"], "a number, such as 0.6")
    if abs(penalty) * math.log(max(max_new, 2)) > LARGEST_EXPONENT:
        raise ValueError(
            f"length_penalty={penalty:g} for max_new={max_new}: {max_new}^{penalty:g} is too large or too small to be "
            "computed with; use a number such as 0.6"
        )
    top_k = settings["top_k"] if settings["top_k"] is None else check_whole("top_k", settings["top_k"], 1)
    top_p = settings["top_p"]
    if top_p is not None:
        top_p = check_number("top_p", top_p, "a number above 0, up to 1", 0.0, 1.0)
    stop = _check_stop(encoder, settings["stop"])
    if stop and beams > 1:
        raise ValueError(f"stop={list(stop)} is a text, which a beam search does not follow: use ends=, or beams=1")
    rule, early = settings["length_rule"], settings["early_stopping"]
    if rule not in LENGTH_RULES:
        raise ValueError(f"length_rule={shorten(rule)} is not known; use 'power' or 'gnmt'")
    if not (isinstance(early, bool) or early == "never"):
        raise ValueError(f"early_stopping={shorten(early)} is not known; use True, False or 'never'")
    return Options(
        max_new=max_new,
        min_new=min_new,
        beams=beams,
        n_best=n_best,
        length_penalty=penalty,
        length_rule=rule,
        early_stopping=early,
        draws=draws,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        repetition_penalty=check_number(
            "repetition_penalty", settings["repetition_penalty"], "a number above 0; 1 is no penalty", 0.0
        ),
        no_repeat_ngram_size=check_whole("no_repeat_ngram_size", settings["no_repeat_ngram_size"], 0),
        ends=_check_ends(encoder, decoder, settings["ends"]),
        stop=stop,
        seed=check_whole("seed", settings["seed"], 0, 2**32 - 1),
    )


def _draws(settings: Mapping[str, Any]) -> bool:
    return any(settings[name] is not None for name in ("temperature", "top_k", "top_p"))


def _fill_in(settings: Mapping[str, Any], decoder: Decoder) -> dict[str, Any]:
    """Return the settings with the model's own values for those that are None."""
    filled = dict(settings)
    defaults = {**DEFAULTS, **decoder.defaults, **({"beams": 1} if _draws(settings) else {})}
    for name, value in defaults.items():
        if settings[name] is None:
            filled[name] = value
    if settings["min_new"] is None:  # a shorter text was requested
        filled["min_new"] = min(filled["min_new"], check_whole("max_new", filled["max_new"], 1))
    return filled


def _check_ends(encoder: Any, decoder: Decoder, ends: Any) -> tuple[int, ...]:
    """Return the ids of the pieces that end a text."""
    if ends is None:
        return tuple(dict.fromkeys(decoder.ends))
    if isinstance(ends, int | np.integer | str):
        ends = [ends]
    if not isinstance(ends, Iterable):
        raise TypeError(f"ends={shorten(ends)}: use a list of ids or pieces; [] lets no piece end a text")
    ids = []
    for end in ends:
        if isinstance(end, str):
            tokens = _tokenizer_of(encoder, "pieces in ends= are names").target_tokens
            if end not in tokens:
                raise ValueError(f"ends holds {end!r}, which is no piece of this vocabulary; a text is for stop=")
            end = tokens.index(end)
        ids.append(check_whole("an id in ends", end, 0, count_pieces(encoder, decoder) - 1, "the vocabulary"))
    return tuple(dict.fromkeys(ids))


def _check_stop(encoder: Any, stop: Any) -> tuple[str, ...]:
    """Return the texts that stop a text."""
    stop = [stop] if isinstance(stop, str) else stop
    if not isinstance(stop, Sequence) or not all(isinstance(text, str) for text in stop):
        raise TypeError(f"stop={shorten(stop)}: use a text or a list of texts; ids are for ends=")
    if "" in stop:
        raise ValueError('stop holds "", which every text contains: leave it out')
    if stop:
        _tokenizer_of(encoder, "stop= is a text")
    return tuple(stop)


def _tokenizer_of(encoder: Any, why: str) -> Any:
    if encoder.reads is None:
        raise ValueError(f"{encoder.source} has no tokenizer, and {why}: copy one there, or give ids")
    return encoder.reads


def choose_prompts(decoder: Decoder, prompts: Any, tokens: Any, source: Any) -> Any:
    """Return the one of the three arguments that was given, as a list."""
    values_of = {"prompts": prompts, "tokens": tokens, "source": source}
    [name, *further] = [name for name, value in values_of.items() if value is not None] or [""]
    if further or not name:
        problem = f"{name} and {further[0]} were given" if further else "there is no prompt"
        ids = "tokens=" if decoder.first is None else "source="
        raise TypeError(f"{problem}: give a list of texts, or lists of ids with {ids}")
    if name == "source" and decoder.first is None:
        raise TypeError("source= is for a model that translates; this one continues a prompt: write tokens=")
    if name == "tokens" and decoder.first is not None:
        raise TypeError("tokens= is for a model that continues a prompt; this one translates: write source=")
    values = values_of[name]
    if isinstance(values, str):
        return [values]
    if isinstance(values, Mapping | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is {shorten(values)}; expected a list of texts, or of lists of ids")
    return list(values)


def read_prompts(encoder: Any, decoder: Decoder, prompts: Sequence[Any], max_new: int, first: int = 0) -> list[Prompt]:
    """Return the pieces of prompts: texts, or lists of ids; raise if one does not fit into the model.

    Errors name a prompt by its number, which counts from `first`.
    """
    if not prompts:
        raise ValueError("no prompts were given: the list is empty")
    read = []
    for number, prompt in enumerate(prompts, first):
        ids = _encode(encoder, decoder, prompt) if isinstance(prompt, str) else _to_ids(prompt, number)
        outside = [piece for piece in ids if not 0 <= piece < encoder.config.vocab_size]
        if outside:
            raise ValueError(
                f"prompt {number} holds the id {outside[0]}, which is outside of the vocabulary: its ids are 0 to "
                f"{encoder.config.vocab_size - 1}"
            )
        _check_length(decoder, ids, number, max_new)
        read.append(Prompt(ids, number))
    return read


def _encode(encoder: Any, decoder: Decoder, text: str) -> list[int]:
    """Return the pieces of a text; one that is continued has none of the special pieces that end it."""
    tokenizer = _tokenizer_of(encoder, "a prompt is a text")
    if decoder.first is not None:
        ids: list[int] = tokenizer.encode(text).ids.tolist()
        return ids
    return [*tokenizer.frame.before, *tokenizer.encode(text, specials=False).ids.tolist()]


def _to_ids(prompt: Any, number: int) -> list[int]:
    expected = "expected a text or a list of ids, such as [[5, 7, 2]] for one prompt"
    problem = f"prompt {number} is {shorten(prompt)}; {expected}"
    try:
        array = np.asarray(prompt)
    except ValueError:
        raise TypeError(problem) from None
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise TypeError(problem)
    ids: list[int] = array.astype(np.int64).tolist()
    return ids


def _check_length(decoder: Decoder, ids: Sequence[int], number: int, max_new: int) -> None:
    """Raise if a prompt is empty, or if the prompt and the new pieces need more positions than there are."""
    if not ids:
        hint = "give at least one piece" if decoder.first is None else "there is nothing to translate"
        raise ValueError(f"prompt {number} is empty: {hint}")
    most = decoder.most
    if most is None:
        return
    if len(ids) > most:
        raise ValueError(f"prompt {number} has {len(ids)} pieces, but the model has {most} positions: cut it")
    # The last piece that is written needs no position.
    most_new = most - (len(ids) if decoder.first is None else 1) + 1
    if max_new > most_new:
        before = f"prompt {number} has {len(ids)} pieces, and " if decoder.first is None else ""
        raise ValueError(
            f"{before}the model has {most} positions, so max_new={max_new} is too many: use {most_new} or fewer"
            + (", or cut the prompt" if decoder.first is None else "")
        )
