"""Ways of transfer: the parameters of an encoder and its task's parts that are trained, and when.

Four are ways of the papers: `all` (Devlin et al. 2018), `frozen` (features), `top_down` (gradual unfreezing, Howard and
Ruder 2018, https://arxiv.org/abs/1801.06146) and `chain_thaw` (Felbo et al. 2017, https://arxiv.org/abs/1708.00524).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import optax
from ml_collections import ConfigDict

from bert_elmo_jax import optim
from bert_elmo_jax.runs.initial_state import build_optimizer, build_schedule, choose
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.task_data import Length

# Values of `config.transfer`; `gradual` is another name of `top_down`.
WAYS = ("all", "frozen", "head_first", "top_down", "gradual", "chain_thaw", "upper", "lora")
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
    report: bool = True,
) -> Transfer:
    """Return the training of `config.transfer`, `config.upper_layers` and `config.layer_decay`.

    `params["encoder"]` is the pretrained encoder, with the layers of `depth_of`; everything else is new. Without an
    `encoder`, everything is trained. `fresh` are patterns of the paths of new parameters inside the encoder, such as
    `encoder/pooler/.*`; `frozen` are patterns of further parameters that are never trained. `hold` a loss by the
    patterns of the result, so that no gradient of a frozen parameter is computed. `report` whether the run ends before
    the last stage.
    """
    choose("transfer", config.transfer, dict.fromkeys(WAYS))
    if config.transfer == "lora":
        raise ValueError(
            "config.transfer=lora is for a head on an encoder of pieces (experiments/configs/finetune.py): use another "
            f"value, such as {WAYS[0]}"
        )
    o = config.optimizer
    rate = build_schedule(o, length.steps)
    if "encoder" not in params or depth_of is None:
        check_no_encoder(config, depth_of is not None)
        spans = jax.tree.map(lambda _: optim.Spans(), dict(params))
    else:
        spans = plan_unfreezing(config, depth_of, params, length.epoch, fresh)
    spans = jax.tree.map(lambda span, off: NEVER if off else span, spans, optim.matches(spans, frozen))
    leaves = jax.tree.leaves(spans)
    if all(span.never for span in leaves):
        raise ValueError(f"config.transfer={config.transfer} leaves nothing to train")
    still = tuple(list_frozen(spans))
    if all(span.always or span.never for span in leaves):
        method = build_optimizer(o, rate)
        method = optim.freeze(method, still) if still else method
    else:
        if report:
            report_late(config, leaves, length)
        unclipped = ConfigDict({**o, "clip": float("inf")})
        # Gradients are clipped here, before each group's optimizer scales them.
        clip = o.clip / o.gradient_scale if o.gradient_scale > 0 else o.clip
        method = optim.train_during(spans, rate, lambda now: build_optimizer(unclipped, now), clip)
    if config.layer_decay != 1 and depth_of is not None:
        method = optax.chain(method, optim.scale_by_depth(config.layer_decay, depth_of))
    return Transfer(rate, method, still)


def hold(loss: Callable[..., Any], frozen: Sequence[str]) -> Callable[..., Any]:
    """Return a loss without gradients of the parameters that a pattern matches, which are then not computed.

    >>> held = hold(lambda params: (params["encoder"] * params["head"]).sum(), ["encoder"])
    >>> {name: float(x) for name, x in jax.grad(held)({"encoder": 2.0, "head": 3.0}).items()}
    {'encoder': 0.0, 'head': 2.0}
    """
    if not frozen:
        return loss

    def stopped_loss(params: Any, *inputs: Any) -> Any:
        still = optim.matches(params, frozen)
        return loss(jax.tree.map(lambda x, stop: jax.lax.stop_gradient(x) if stop else x, params, still), *inputs)

    return stopped_loss


NEVER = optim.Spans(())


def plan_unfreezing(
    config: ConfigDict, depth_of: DepthOf, params: Mapping[str, Any], epoch: int, fresh: Sequence[str] = ()
) -> Any:
    """Return a tree of the `optim.Spans` that train each parameter; an `epoch` is a number of steps.

    New parts are everything outside the encoder, and what `fresh` matches. A part above the last layer, such as a
    pretrained pooler, is trained with the last layer.
    """
    way = choose("transfer", config.transfer, {name: name for name in WAYS} | {"gradual": "top_down"})
    if config.get("upper_layers") is not None and way != "upper":
        why = "is for transfer=upper: give both, or leave it out"
        raise ValueError(f"config.upper_layers={config.upper_layers} with transfer={config.transfer} {why}")
    depths = optim.depths(dict(params), depth_of)
    top = max(jax.tree.leaves(depths))
    layers = sorted({depth for depth in jax.tree.leaves(depths["encoder"]) if depth < top})  # 0 are embeddings
    first = round(config.head_epochs * epoch)
    if first < 1 and way in ("head_first", "top_down", "chain_thaw"):
        raise ValueError(f"config.head_epochs={config.head_epochs} is less than a step; use more, or transfer=all")
    head = optim.Spans()
    if way == "all":
        plan = dict.fromkeys(layers, optim.Spans())
    elif way == "frozen":
        plan = dict.fromkeys(layers, NEVER)
    elif way == "upper":
        lower = layers[: -count_upper(config, layers)]
        plan = {depth: NEVER if depth in lower else optim.Spans() for depth in layers}
    elif way == "chain_thaw":
        head = optim.Spans(((0, first), (first * (1 + len(layers)), None)))
        plan = {
            depth: optim.Spans(((first * n, first * (n + 1)), (first * (1 + len(layers)), None)))
            for n, depth in enumerate(layers, start=1)
        }
    else:
        wait = epoch if way == "top_down" else 0  # steps from one layer to the next lower one
        plan = {depth: optim.Spans(((first + wait * n, None),)) for n, depth in enumerate(reversed(layers))}
    plan[top] = plan[layers[-1]]

    new = optim.matches(dict(params), fresh)
    spans = {name: jax.tree.map(lambda _: head, part) for name, part in depths.items()}
    spans["encoder"] = jax.tree.map(
        lambda depth, is_new: head if is_new else plan[depth], depths["encoder"], new["encoder"]
    )
    return spans


def count_upper(config: ConfigDict, layers: Sequence[int]) -> int:
    """Return `config.upper_layers`, checked against the layers of an encoder; the embeddings are not one of them."""
    most = sum(depth > 0 for depth in layers)
    if config.get("upper_layers") is None:
        raise ValueError(f"config.transfer=upper needs config.upper_layers=…, from 1 to {most}")
    if not 1 <= config.upper_layers <= most:
        raise ValueError(
            f"config.upper_layers={config.upper_layers}: expected 1 to {most}, the layers of this encoder without its "
            "embeddings; transfer=all trains these, too, and transfer=frozen only the head"
        )
    return int(config.upper_layers)


def check_no_encoder(config: ConfigDict, has_encoder: bool) -> None:
    """Raise ValueError for a field that needs a fine-tuned encoder; a `given` encoder is frozen."""
    why = "is for the layers of a fine-tuned encoder: add --config.tune_encoder=true, or leave it out"
    if config.layer_decay != 1:
        raise ValueError(f"config.layer_decay={config.layer_decay} {why}")
    if config.transfer not in ("all", *(["frozen"] if has_encoder else [])):
        raise ValueError(f"config.transfer={config.transfer} {why}")
    if config.get("upper_layers") is not None:
        raise ValueError(f"config.upper_layers={config.upper_layers} {why}")


def list_frozen(spans: Any, path: str = "") -> list[str]:
    """Return patterns of the parameters that are never trained, each for as many as possible.

    >>> list_frozen({"encoder": {"layer_0": {"kernel": NEVER, "bias": NEVER}}, "tag": {"kernel": optim.Spans()}})
    ['encoder(/.*)?']
    """
    leaves = jax.tree.leaves(spans)
    if leaves and all(leaf.never for leaf in leaves):
        return [f"{re.escape(path)}(/.*)?"]
    parts = spans.items() if isinstance(spans, Mapping) else ()
    return [pattern for name, part in parts for pattern in list_frozen(part, f"{path}/{name}" if path else name)]


def report_late(config: ConfigDict, spans: Sequence[optim.Spans], length: Length) -> None:
    """Say when a run ends before the last stage of its way of transfer."""
    last = max(span.steps[-1][0] for span in spans if span.steps)
    if last >= length.steps:
        say(
            f"transfer={config.transfer}: this run of {length.steps:,} steps ends before its last stage, which begins "
            f"after {last:,}; config.epochs of more than {last / length.epoch:g} reach it"
        )
