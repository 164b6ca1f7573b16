"""The optimiser and the schedule that a config names."""

from collections.abc import Mapping
from typing import Any

import optax
from ml_collections import ConfigDict

from bert_elmo_jax import optim
from bert_elmo_jax.did_you_mean import did_you_mean

# Those that leave a row without gradient as it is: a step may then look at the touched rows of a table alone. The
# others move it on by what they remember of it, and need the whole table.
ROW_SPARSE = ("adagrad",)


def learning_rate(o: ConfigDict, steps: int, long: int = 0) -> optim.Schedule:
    """The schedule that a config's `optimizer` names; the last `long` steps may have one of their own."""
    if long and o.long_learning_rate:
        first = one_rate(o.schedule, o.learning_rate, o.warmup, steps - long)
        return optim.phases(
            (first, steps - long), (one_rate(o.schedule, o.long_learning_rate, o.long_warmup, long), long)
        )
    return one_rate(o.schedule, o.learning_rate, o.warmup, steps)


def one_rate(name: str, peak: float, warmup: float, steps: int) -> optim.Schedule:
    """A schedule over some steps; a warm-up below 1 is a share of them."""
    warm = round(warmup * steps) if warmup < 1 else int(warmup)
    named = {
        "linear_from_start": lambda: optim.linear_from_start(peak, warm, steps),
        "linear_after_warmup": lambda: optim.linear_after_warmup(peak, warm, steps),
        "cosine": lambda: optim.cosine(peak, warm, steps),
        "inverse_square_root": lambda: optim.inverse_square_root(peak, warm),
        "constant": lambda: optim.constant(peak, warm),
    }
    return choose("optimizer.schedule", name, named)()


def optimizer(o: ConfigDict, rate: optim.Schedule) -> optax.GradientTransformation:
    """The optimiser that a config's `optimizer` names."""
    named = {
        "bert_adam": lambda: optim.bert_adam(rate, decay=o.decay, clip=o.clip),
        "adamw": lambda: optim.adamw(rate, decay=o.decay, clip=o.clip),
        "lamb": lambda: optim.lamb(rate, decay=o.decay),
        "adagrad": lambda: optim.adagrad(rate, clip=o.clip),
    }
    method = choose("optimizer.name", o.name, named)()
    return method if o.gradient_scale == 1 else optax.chain(optax.scale(o.gradient_scale), method)


def choose(field: str, name: str, named: Mapping[str, Any]) -> Any:
    """What the value of a field names."""
    if name not in named:
        hint = did_you_mean(name, named)
        raise ValueError(f"config.{field}={name!r} is not known; it is one of {', '.join(named)}{hint}")
    return named[name]
