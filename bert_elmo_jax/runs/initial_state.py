"""The initial state of a run: its model's configuration, its parameters, its learning rate and its optimizer."""

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import optax
from ml_collections import ConfigDict

from bert_elmo_jax import optim
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.earlier_names import rename_group
from bert_elmo_jax.nn.matrix_product import fast_bfloat16
from bert_elmo_jax.report.language import Phrase
from bert_elmo_jax.runs.start_run import say

# Optimizers that do not change a row without a gradient, so that a step may update the touched rows of a table only.
# The others also move a row by its moments, and need the whole table.
ROW_SPARSE = ("adagrad", "row_sgd")
# The fields that suit a device. Fused attention stores no attention maps, so it has no dropout on them.
_FAST = {"dtype": "bfloat16", "attention": "fused", "attention_dropout": 0.0}
COMPUTE = {"cpu": {"dtype": "float32", "attention": "reference"}, "gpu": _FAST, "tpu": _FAST}
COOLDOWN = 0.2  # the default share of the steps for the decay of warm-up–stable–decay
# What `auto` chooses on a CPU whose matrix products are faster in bfloat16.
FAST_CPU = {"dtype": "bfloat16", "attention": "reference"}


def apply_compute(config: ConfigDict, platform: str | None = None) -> ConfigDict:
    """Return a config with the fields that suit the device `config.compute`, and say which they are.

    `auto` is the kind of `platform`, by default of the devices that JAX has; on a CPU it chooses bfloat16 where that is
    faster (with AMX or AVX-512's bfloat16, and JAX 0.12). A config for a TPU may ask for splash attention in place of
    fused attention, and keeps it. The result has no field `compute`: `run.json` names the fields themselves, so a run
    does not silently continue with other values on another device.

    >>> config = ConfigDict({"compute": "gpu", "model": {"dtype": "float32", "attention_dropout": 0.1}})
    >>> model = apply_compute(config).model
    >>> (model.dtype, model.attention_dropout)
    ('bfloat16', 0.0)
    """
    config = copy.deepcopy(config)
    with config.unlocked():
        for group in (config, config.get("model")):
            if isinstance(group, ConfigDict):
                rename_group(group)
    compute = config.get("compute")
    if "compute" in config:
        with config.unlocked():
            del config.compute
    if not compute:
        return config
    device = kind = (platform or jax.default_backend()) if compute == "auto" else compute
    if compute == "auto" and kind not in COMPUTE:
        kind = "cpu"
    part = config.get("model", config)
    choices = {**COMPUTE, "auto": {}}
    chosen = FAST_CPU if (compute, device) == ("auto", "cpu") and fast_bfloat16() else choose("compute", kind, choices)
    fields = {name: value for name, value in chosen.items() if name in part}
    if kind == "tpu" and part.get("attention") == "splash":
        fields["attention"] = "splash"
    part.update(fields)
    shown = ", ".join(f"{name}={value}" for name, value in fields.items())
    say(f"compute={compute}: {shown or 'a task network computes in float32 on every device'}")
    return config


def adopt_config(stored: Any, requested: Mapping[str, Any]) -> Any:
    """Return a stored model's configuration with the fields that a run may choose: how it computes, not its sizes."""
    names = {field.name for field in dataclasses.fields(stored)}
    free = {"dropout", "attention_dropout", "dtype", "attention", "remat", "scan", "vocab_size"} & names
    free |= set(getattr(stored, "TRAINING_ONLY", ()))
    fields = {name: value for name, value in requested.items() if name in free}
    if "attention" in fields:
        from bert_elmo_jax.nn.attention import choose_attention  # runs of families without attention do not import it

        fields["attention"] = choose_attention(stored.attention, fields["attention"])
    return dataclasses.replace(stored, **fields)


def fill_missing(fresh: Mapping[str, Any], stored: Mapping[str, Any], report: bool = True) -> dict[str, Any]:
    """Return the stored parameters; heads and parts that they lack are taken from `fresh`, and reported."""
    lacking = [name for name in fresh if name not in stored]
    parts = {name: fresh[name] if name in lacking else stored[name] for name in fresh}
    missing = [name for name in fresh["encoder"] if name not in parts["encoder"]]
    parts["encoder"] = {name: parts["encoder"].get(name, fresh["encoder"][name]) for name in fresh["encoder"]}
    if report and (new := [*lacking, *(f"encoder/{name}" for name in missing)]):
        say(f"new, and untrained at the start, because the weights have none: {', '.join(new)}")
    return parts


def build_schedule(o: ConfigDict, steps: int, long: int = 0, width: int | None = None) -> optim.Schedule:
    """Return the schedule of `config.optimizer`; the last `long` steps may have their own.

    `noam` depends on the model's `width`, and its `learning_rate` is a factor.
    """
    if long and o.long_learning_rate:
        first = _build_phase(o, o.learning_rate, o.warmup, steps - long, width)
        second = _build_phase(o, o.long_learning_rate, o.long_warmup, long, width)
        return optim.phases((first, steps - long), (second, long))
    return _build_phase(o, o.learning_rate, o.warmup, steps, width)


def _build_phase(o: ConfigDict, peak: float, warmup: float, steps: int, width: int | None) -> optim.Schedule:
    if o.schedule == "noam" and width is None:
        raise ValueError(
            "config.optimizer.schedule='noam' scales with the width of the model, which this run does not give: use "
            "inverse_square_root, with the highest rate as learning_rate"
        )
    warm = round(warmup * steps) if warmup < 1 else int(warmup)
    decay = COOLDOWN if o.get("cooldown") is None else o.cooldown
    cooldown = round(decay * steps) if decay < 1 else int(decay)
    named = {
        "linear_from_start": lambda: optim.linear_from_start(peak, warm, steps),
        "linear_after_warmup": lambda: optim.linear_after_warmup(peak, warm, steps),
        "cosine": lambda: optim.cosine(peak, warm, steps),
        "warmup_stable_decay": lambda: optim.warmup_stable_decay(peak, warm, steps, cooldown),
        "inverse_square_root": lambda: optim.inverse_square_root(peak, warm),
        "noam": lambda: optim.noam(width or 1, warm, peak),
        "slanted_triangular": lambda: _build_triangle(peak, warmup, steps),
        "constant": lambda: optim.constant(peak, warm),
    }
    return choose("optimizer.schedule", o.schedule, named)()


def _build_triangle(peak: float, warmup: float, steps: int) -> optim.Schedule:
    cut = warmup if warmup < 1 else warmup / steps
    if not 0 < cut < 1:
        raise ValueError(
            f"config.optimizer.warmup={warmup:g} in a run of {steps:,} steps: slanted_triangular needs steps with a "
            "rising rate and steps with a falling one; give a share of the steps, such as 0.1"
        )
    return optim.slanted_triangular(steps, peak, cut)


def remark_warmup(o: ConfigDict, steps: int) -> list[str]:
    """Return a remark if the rate rises until the run ends.

    >>> remark_warmup(ConfigDict({"warmup": 100.0}), 60)
    ['The warm-up, 100 steps, is not shorter than the run of 60: the learning rate rises to its end.']
    """
    if o.warmup < max(steps, 2):
        return []
    remark = "The warm-up, {warmup} steps, is not shorter than the run of {steps}: the learning rate rises to its end."
    return [Phrase(remark, warmup=f"{o.warmup:,.0f}", steps=f"{steps:,}")]


def build_optimizer(o: ConfigDict, rate: optim.Schedule) -> optax.GradientTransformation:
    """Return the optimizer of `config.optimizer`; empty fields of Adam have the defaults of `optim`."""
    adam = {name: o[name] for name in ("b1", "b2", "eps") if o.get(name) is not None}
    if adam and o.name in ROW_SPARSE:
        raise ValueError(f"config.optimizer has {', '.join(adam)}, which {o.name} does not have: leave them empty")
    # The fields of other optimizers may have the values that all recipes begin with, or values that mean nothing.
    if o.name in ROW_SPARSE and o.get("decay", 0.0) not in (0.0, 0.01):
        raise ValueError(f"config.optimizer.decay={o.decay:g}: {o.name} decays no weights; set it to 0")
    if o.name == "lamb" and o.get("clip", 1.0) != 1.0 and o.clip < 1e9:
        raise ValueError(f"config.optimizer.clip={o.clip:g}: lamb divides gradients by their norm; set it to 1e9")
    named = {
        "bert_adam": lambda: optim.bert_adam(rate, decay=o.decay, clip=o.clip, **adam),
        "adamw": lambda: optim.adamw(rate, decay=o.decay, clip=o.clip, **adam),
        "lamb": lambda: optim.lamb(rate, decay=o.decay, **adam),
        "adagrad": lambda: optim.adagrad(rate, clip=o.clip),
        "row_sgd": lambda: optim.row_sgd(rate, longest=o.clip),
    }
    method = choose("optimizer.name", o.name, named)()
    return method if o.gradient_scale == 1 else optax.chain(optax.scale(o.gradient_scale), method)


def choose(field: str, name: str, named: Mapping[str, Any]) -> Any:
    """Return the entry `name`, the value of a config's field; raise ValueError if there is none."""
    if name not in named:
        hint = did_you_mean(name, named)
        raise ValueError(f"config.{field}={name!r} is not known; it is one of {', '.join(named)}{hint}")
    return named[name]
