"""Learning-rate schedules for optax. The first update is step 0, as in the original BERT, whose first rate is 0."""

import itertools
import math
from collections.abc import Callable

import jax.numpy as jnp
import optax
from jax.typing import ArrayLike
from jaxtyping import Array

Schedule = Callable[[ArrayLike], Array]
LOWEST = 32  # the first and last rate of a slanted triangle is this much below the peak


def linear_from_start(peak: float, warmup: int, steps: int) -> Schedule:
    """Return BERT's schedule: `peak · step / warmup`, then `peak · (1 - step / steps)`.

    The rate never reaches the peak: after 10,000 of 1,000,000 steps of warm-up, it drops to 0.99 · peak.

    >>> schedule = linear_from_start(1.0, warmup=10, steps=100)
    >>> [round(float(schedule(step)), 3) for step in (0, 5, 9, 10, 50, 100, 101)]
    [0.0, 0.5, 0.9, 0.9, 0.5, 0.0, 0.0]
    """
    return after_warmup(peak, warmup, lambda step: jnp.maximum(0.0, 1.0 - step / steps))


def linear_after_warmup(peak: float, warmup: int, steps: int) -> Schedule:
    """Warm up to the peak, then decay linearly to 0 at `steps`.

    >>> schedule = linear_after_warmup(1.0, warmup=10, steps=110)
    >>> [round(float(schedule(step)), 3) for step in (0, 5, 10, 60, 110, 111)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """
    decay = max(1, steps - warmup)
    return after_warmup(peak, warmup, lambda step: jnp.maximum(0.0, (steps - step) / decay))


def cosine(peak: float, warmup: int, steps: int) -> Schedule:
    """Warm up to the peak, then decay to 0 at `steps` along half a cosine.

    >>> schedule = cosine(1.0, warmup=10, steps=110)
    >>> [round(float(schedule(step)), 3) for step in (0, 5, 10, 60, 110, 111)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """

    def decayed(step: Array) -> Array:
        part = jnp.clip((step - warmup) / max(1, steps - warmup), 0.0, 1.0)
        return 0.5 * (1.0 + jnp.cos(jnp.pi * part))

    return after_warmup(peak, warmup, decayed)


def warmup_stable_decay(peak: float, warmup: int, steps: int, cooldown: int) -> Schedule:
    """Warm up to the peak, stay there, and in the last `cooldown` steps decay to 0 as 1 - √(share of them).

    Hägele et al. 2024, https://arxiv.org/abs/2405.18392: a run can be prolonged from any checkpoint before the decay.

    >>> schedule = warmup_stable_decay(1.0, warmup=10, steps=200, cooldown=100)
    >>> [round(float(schedule(step)), 3) for step in (0, 5, 10, 100, 101, 125, 164, 200, 201)]
    [0.0, 0.5, 1.0, 1.0, 0.9, 0.5, 0.2, 0.0, 0.0]
    """
    if not 1 <= cooldown <= steps - warmup:
        raise ValueError(
            f"a cooldown of {cooldown} steps in a schedule of {steps} with a warm-up of {warmup}: expected 1 to "
            f"{steps - warmup}"
        )

    def decayed(step: Array) -> Array:
        return 1.0 - jnp.sqrt(jnp.clip((step - (steps - cooldown)) / cooldown, 0.0, 1.0))

    return after_warmup(peak, warmup, decayed)


def inverse_square_root(peak: float, warmup: int) -> Schedule:
    """Warm up to the peak, then decay as `peak · √(warmup / step)` without end.

    >>> schedule = inverse_square_root(1.0, warmup=100)
    >>> [round(float(schedule(step)), 3) for step in (0, 50, 100, 400)]
    [0.0, 0.5, 1.0, 0.5]
    """
    begin = max(1, warmup)
    return after_warmup(peak, warmup, lambda step: jnp.sqrt(begin / jnp.maximum(step, begin)))


def noam(width: int, warmup: int, factor: float = 1.0) -> Schedule:
    """Return the Transformer's schedule: `factor · width^-0.5 · min(n^-0.5, n · warmup^-1.5)` for update n.

    Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, equation 3. The first update is n = 1, so no rate is 0; it
    is `inverse_square_root` with the peak `factor / √(width · warmup)`, one step ahead.

    >>> schedule = noam(512, warmup=4000)
    >>> [f"{float(schedule(step)):.2e}" for step in (0, 1999, 3999, 99_999)]
    ['1.75e-07', '3.49e-04', '6.99e-04', '1.40e-04']
    """
    if warmup < 1:
        raise ValueError(f"a warm-up of {warmup} steps: this schedule needs at least 1")
    after = inverse_square_root(factor * (width * warmup) ** -0.5, warmup)
    return lambda step: after(jnp.asarray(step) + 1)


def slanted_triangular(steps: int, peak: float, cut: float = 0.1) -> Schedule:
    """Return ULMFiT's schedule: up to the peak in the first `cut · steps` steps, then down, from and to `peak / 32`.

    Howard and Ruder 2018, https://arxiv.org/abs/1801.06146, equation 3. The number of steps up is rounded down, but at
    least 1, and the rate is never below `peak / 32`.

    >>> schedule = slanted_triangular(100, 0.32)
    >>> [round(float(schedule(step)), 3) for step in (0, 5, 10, 55, 100, 101)]
    [0.01, 0.165, 0.32, 0.165, 0.01, 0.01]
    """
    if not 0 < cut < 1:
        raise ValueError(f"cut={cut}: expected the share of the steps with a rising rate, above 0 and below 1")
    up = max(1, math.floor(steps * cut))
    down = up * (1 / cut - 1)

    def share(step: Array) -> Array:
        return jnp.maximum(0.0, jnp.where(step < up, step / up, 1.0 - (step - up) / down))

    return after_warmup(peak, 0, lambda step: (1.0 + share(step) * (LOWEST - 1.0)) / LOWEST)


def constant(peak: float, warmup: int = 0) -> Schedule:
    """Warm up to the peak and stay there.

    >>> [round(float(constant(0.2)(step)), 3) for step in (0, 1_000_000)]
    [0.2, 0.2]
    """
    return after_warmup(peak, warmup, jnp.ones_like)


def phases(*parts: tuple[Schedule, int]) -> Schedule:
    """Join (schedule, number of steps) pairs; each schedule starts at step 0, and the last one never ends.

    BERT trained with LAMB has two phases with a warm-up each:

    >>> at_128 = linear_after_warmup(6e-3, warmup=2000, steps=7038)
    >>> schedule = phases((at_128, 7038), (linear_after_warmup(4e-3, warmup=200, steps=1563), 1563))
    >>> [f"{float(schedule(step)):.0e}" for step in (0, 2000, 7038, 7038 + 200, 7038 + 1563)]
    ['0e+00', '6e-03', '0e+00', '4e-03', '0e+00']
    """
    ends = list(itertools.accumulate(steps for _, steps in parts))
    return optax.join_schedules([schedule for schedule, _ in parts], ends[:-1])


def after_warmup(peak: float, warmup: int, then: Callable[[Array], Array]) -> Schedule:
    """Return a schedule of `peak · step / warmup` before step `warmup`, and `peak · then(step)` afterwards."""

    def schedule(step: ArrayLike) -> Array:
        step = jnp.asarray(step, jnp.float32)  # exact up to 16 million
        return peak * jnp.where(step < warmup, step / max(1, warmup), then(step))

    return schedule
