"""Ways of transfer: which parameters of an encoder and its task's parts are trained, and from which step."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import optax
from ml_collections import ConfigDict

from bert_elmo_jax import optim
from bert_elmo_jax.optim.paths import path_name
from bert_elmo_jax.runs.initial_state import build_optimizer, build_schedule, choose
from bert_elmo_jax.runs.task_data import Length

WAYS = ("all", "frozen", "head_first", "top_down")  # values of `config.transfer`
DepthOf = Callable[[str], int | None]


class Transfer(NamedTuple):
    """The learning rate, the optimizer, and the patterns of the parameters that are never trained."""

    rate: optim.Schedule
    method: optax.GradientTransformation
    frozen: tuple[str, ...]


def build_transfer(
    config: ConfigDict,
    depth_of: DepthOf | None,
    params: Mapping[str, Any],
    length: Length,
    fresh: Sequence[str] = (),
    frozen: Sequence[str] = (),
) -> Transfer:
    """Return the training of `config.transfer` and `config.layer_decay`.

    `params["encoder"]` is the pretrained encoder, with the layers of `depth_of`; everything else is new. Without an
    `encoder`, everything is trained. `fresh` are patterns of the paths of new parameters inside the encoder, such as
    `encoder/pooler/.*`; `frozen` are patterns of further parameters that are never trained. `hold` a loss by the
    patterns of the result, so that no gradient of a frozen parameter is computed.
    """
    choose("transfer", config.transfer, dict.fromkeys(WAYS))
    o = config.optimizer
    rate = build_schedule(o, length.steps)
    if "encoder" not in params or depth_of is None:
        check_no_encoder(config)
        method = build_optimizer(o, rate)
        return Transfer(rate, optim.freeze(method, frozen) if frozen else method, tuple(frozen))
    if config.transfer in ("head_first", "top_down"):
        unclipped = ConfigDict({**o, "clip": float("inf")})
        starts = plan_unfreezing(config, depth_of, params, length.epoch, fresh)
        method = optim.join_later(starts, rate, lambda later: build_optimizer(unclipped, later), o.clip)
    else:
        method = build_optimizer(o, rate)
    patterns = (*frozen, *(list_old(params, fresh) if config.transfer == "frozen" else ()))
    if patterns:
        method = optim.freeze(method, patterns)
    if config.layer_decay != 1:
        method = optax.chain(method, optim.scale_by_depth(config.layer_decay, depth_of))
    return Transfer(rate, method, patterns)


def hold(loss: Callable[..., Any], frozen: Sequence[str]) -> Callable[..., Any]:
    """Return a loss without gradients of the parameters that a pattern matches, which are then not computed."""
    if not frozen:
        return loss

    def held(params: Any, *rest: Any) -> Any:
        still = optim.matches(params, frozen)
        return loss(jax.tree.map(lambda x, stop: jax.lax.stop_gradient(x) if stop else x, params, still), *rest)

    return held


def check_no_encoder(config: ConfigDict) -> None:
    """Raise ValueError for a field that needs a fine-tuned encoder."""
    why = "is for the layers of a fine-tuned encoder: add --config.tune_encoder=true, or leave it out"
    if config.layer_decay != 1:
        raise ValueError(f"config.layer_decay={config.layer_decay} {why}")
    if config.transfer != "all":
        raise ValueError(f"config.transfer={config.transfer} {why}")


def list_old(params: Mapping[str, Any], fresh: Sequence[str]) -> list[str]:
    """Return patterns of the pretrained parameters: the paths of the encoder that no pattern of `fresh` matches."""
    new = jax.tree_util.tree_leaves_with_path(optim.matches(dict(params), fresh))
    names = (path_name(path) for path, is_new in new if not is_new)
    return [re.escape(name) for name in names if name.startswith("encoder/")]


def plan_unfreezing(
    config: ConfigDict, depth_of: DepthOf, params: Mapping[str, Any], epoch: int, fresh: Sequence[str] = ()
) -> Any:
    """Return the step from which each parameter is trained: 0 for new parts, last layer for what is above it."""
    depths = optim.depths(dict(params), depth_of)
    top = max(jax.tree.leaves(depths))
    first = round(config.head_epochs * epoch)
    if first < 1:
        raise ValueError(f"config.head_epochs={config.head_epochs} is less than a step; use more, or transfer=all")

    wait = epoch if config.transfer == "top_down" else 0  # steps from one layer to the next lower one
    starts = jax.tree.map(lambda depth: 0, depths)
    starts["encoder"] = jax.tree.map(lambda depth: first + max(0, top - 1 - depth) * wait, depths["encoder"])
    return jax.tree.map(lambda start, new: 0 if new else start, starts, optim.matches(dict(params), fresh))
