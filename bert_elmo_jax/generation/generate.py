"""Texts from the encoder of a family that writes: its methods `generate` and `stream`."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, Literal, SupportsFloat

from bert_elmo_jax.generation.written import Written

Prompts = str | Sequence[str | Sequence[int]]


def generate(
    encoder: Any,
    prompts: Prompts | None = None,
    *,
    tokens: Any = None,
    source: Any = None,
    max_new: int | None = None,
    min_new: int | None = None,
    beams: int | None = None,
    n_best: int = 1,
    length_penalty: SupportsFloat | None = None,
    length_rule: Literal["power", "gnmt"] = "power",
    early_stopping: Literal["never"] | bool | None = None,
    temperature: SupportsFloat | None = None,
    top_k: int | None = None,
    top_p: SupportsFloat | None = None,
    repetition_penalty: SupportsFloat = 1.0,
    no_repeat_ngram_size: int | None = None,
    ends: Any = None,
    stop: str | Sequence[str] = (),
    seed: int = 0,
    batch_size: int = 32,
) -> list[list[Written]]:
    """Return `n_best` texts for each prompt, best first: what comes after it, or its translation.

    A prompt is a text or a list of ids; `tokens=` takes lists of ids to continue, `source=` lists of ids to translate.

    Options that are None have the values of the model's `generation_config.json` if it is read, or else 32 (`max_new`),
    0, 1 beam, 1.0, False and 0.

    - With 1 beam each piece is the likeliest one. More `beams` search for the likeliest text, by the rules of
      transformers: the sum of log-probabilities is divided by length^`length_penalty`, or with `length_rule="gnmt"` by
      ((5 + length) / 6)^`length_penalty`. `early_stopping` is True to stop when there are as many texts as beams, False
      to stop when no beam is better now, or "never" to stop when none can become better.
    - `temperature`, `top_k` or `top_p` draw instead. The same `seed` and prompt give the same texts with any other
      prompts; equal prompts in one call get different texts, and the `n_best` texts of a prompt differ, too.
    - `ends` are pieces (ids or names) that end a text instead of the model's own; `stop` are texts that do. `min_new`
      pieces come before an end piece; a stop text ends a text anywhere. No sequence of `no_repeat_ngram_size` pieces
      comes twice. The penalty for pieces that were used is `repetition_penalty`: Keskar et al. 2019.

    Prompts of similar lengths are computed together, `batch_size` at a time.
    """
    from bert_elmo_jax.generation.calls import write_texts

    arguments = dict(locals())
    return write_texts(encoder, prompts, tokens, source, batch_size, {name: arguments[name] for name in DEFAULT})


DEFAULT = {
    name: value.default
    for name, value in inspect.signature(generate).parameters.items()
    if name not in ("encoder", "prompts", "tokens", "source", "batch_size")
}  # of the options, None for the model's own


def stream_text(
    encoder: Any,
    prompt: str | Sequence[int],
    *,
    max_new: int | None = None,
    min_new: int | None = None,
    temperature: SupportsFloat | None = None,
    top_k: int | None = None,
    top_p: SupportsFloat | None = None,
    repetition_penalty: SupportsFloat = 1.0,
    no_repeat_ngram_size: int | None = None,
    ends: Any = None,
    stop: str | Sequence[str] = (),
    seed: int = 0,
    every: int = 1,
) -> Iterator[str]:
    """Yield the text of `generate` for one prompt while it is written, `every` pieces at a time.

    The parts joined are the text of `generate` with the same options and `beams=1`, also for a model with beams of its
    own. No character is cut in half, nor a Hangul syllable that is written in letters.
    """
    from bert_elmo_jax.generation.calls import stream_parts

    options = DEFAULT | {
        "max_new": max_new, "min_new": min_new, "temperature": temperature, "top_k": top_k, "top_p": top_p,
        "repetition_penalty": repetition_penalty, "no_repeat_ngram_size": no_repeat_ngram_size, "ends": ends,
        "stop": stop, "seed": seed, "beams": 1,
    }  # fmt: skip
    return stream_parts(encoder, prompt, every, options)
