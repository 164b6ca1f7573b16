"""Fine-tuning with low-rank adapters, `config.transfer=lora`: a checkpoint holds these and the new parts alone.

The encoder, which no step changes, is in `base/` of the run directory, itself a run directory; `load` adds the adapters
to it. When the run has ended, `adapter/` has them in the format of peft, unless the original model would predict
otherwise with them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import optax
from ml_collections import ConfigDict

from bert_elmo_jax import optim
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families import find_family
from bert_elmo_jax.families.peft_files import write_adapter
from bert_elmo_jax.inference.adapter_files import join_trained, write_base
from bert_elmo_jax.inference.run_directory import best_step
from bert_elmo_jax.optim.adapters import count_params, lora
from bert_elmo_jax.runs.initial_state import build_optimizer, build_schedule
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.task_data import Length
from bert_elmo_jax.train.checkpoint import load_params

BASE = "base"  # the entry of a batch with the parameters that no step changes


class Adapted(NamedTuple):
    """The parameters that are trained, `{"adapters": …, head: …}`, those that are not, and how they are joined.

    `stored` is written in a run directory: `base` with the first values of parts that are trained in full, because a
    model without them, except for a pooler, is not complete.
    """

    trained: dict[str, Any]
    base: dict[str, Any]
    merge: optim.Merge
    stored: dict[str, Any]


def adapt(config: ConfigDict, params: Mapping[str, Any], new_pooler: bool, report: bool = True) -> Adapted:
    """Return the parameters of a model in two parts; new ones, of a head or a pooler, are trained in full."""
    for field, value, usual in (
        ("layer_decay", config.layer_decay, 1),
        ("upper_layers", config.get("upper_layers"), None),
    ):
        if value != usual:
            raise ValueError(f"config.{field}={value} is for layers that are trained, and transfer=lora has none")
    targets = _split(config.lora.targets)
    encoder = dict(params["encoder"])
    trained: dict[str, Any] = {name: part for name, part in params.items() if name != "encoder"}
    in_full = _split(config.lora.in_full)
    if new_pooler and "pooler" in encoder:
        in_full.append("pooler")
    if unknown := [name for name in in_full if name not in encoder]:
        raise ValueError(
            f"config.lora.in_full names {unknown[0]!r}, and the encoder's parts are {', '.join(encoder)}"
            f"{did_you_mean(unknown[0], list(encoder))}"
        )
    stored = {name: part for name, part in encoder.items() if name != "pooler" or name not in in_full}
    if in_full:
        trained["encoder"] = {name: encoder.pop(name) for name in dict.fromkeys(in_full)}
    try:
        adapters, merge = lora(
            {"encoder": encoder}, config.lora.rank, targets, alpha=config.lora.alpha, rslora=config.lora.rslora,
            key=jax.random.fold_in(jax.random.key(config.seed), len(BASE)),
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"config.lora: {error}") from None
    trained["adapters"] = adapters
    if report:
        count, every = count_params(trained), count_params(params)
        say(f"adapters of rank {config.lora.rank}: {count:,} numbers are trained, {count / every:.2%} of {every:,}")
    return Adapted(trained, {"encoder": encoder}, merge, {"encoder": stored})


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def train_adapters(config: ConfigDict, length: Length) -> tuple[optim.Schedule, optax.GradientTransformation]:
    """Return the learning rate and the optimiser."""
    rate = build_schedule(config.optimizer, length.steps)
    return rate, build_optimizer(config.optimizer, rate)


def join_loss(loss: Callable[..., Any], merge: optim.Merge) -> Callable[..., Any]:
    """Return a loss of the trained parameters, for batches that have the others as an entry."""

    def joined_loss(trained: Any, batch: Mapping[str, Any], *inputs: Any) -> Any:
        params, rows = join_batch(trained, batch, merge)
        return loss(params, rows, *inputs)

    return joined_loss


def join_outputs(outputs: Callable[[Any, Any], Any], merge: optim.Merge) -> Callable[[Any, Any], Any]:
    """Return a function of the trained parameters and a batch, from one of all parameters and a batch."""
    return lambda trained, batch: outputs(*join_batch(trained, batch, merge))


def join_batch(trained: Any, batch: Mapping[str, Any], merge: optim.Merge) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all parameters, and the batch without those that it had."""
    rows = {name: values for name, values in batch.items() if name != BASE}
    return join_trained(batch[BASE], trained, merge), rows


def describe_adapters(workdir: Path, model: Any, adapted: Adapted, tokenizer: Any) -> dict[str, Any]:
    """Write the encoder of a run, unless it is there, and return the field of `model.json`; refuse another encoder."""
    write_base(workdir, model, adapted.stored, tokenizer)
    return {"rank": adapted.merge.rank, "alpha": adapted.merge.alpha, "rslora": adapted.merge.rslora}


def export_adapters(workdir: Path, model: Any, adapted: Adapted, obstacle: str = "") -> None:
    """Write the best adapters of a run in the format of peft, if the model's family has files of transformers.

    An `obstacle`, the reason why they would be wrong on the original model, is reported instead.
    """
    if obstacle:
        say(f"the adapters are not written in the format of peft: {obstacle}")
        return
    trained = load_params(workdir, best_step(workdir))[1]
    parts = {name: part for name, part in trained.items() if name != "adapters"}
    try:
        params = join_trained(adapted.base, trained, adapted.merge)
        write_adapter(workdir / "adapter", find_family(model), model, trained["adapters"], adapted.merge, parts, params)
    except ValueError as error:
        say(f"the adapters are not written in the format of peft: {error}")
