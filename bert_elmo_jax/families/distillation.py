"""Distillation: a teacher's logits and hidden states as further terms of an objective of masked pieces.

After DistilBERT: Sanh et al. 2019, https://arxiv.org/abs/1910.01108. The term `soft` compares the logits at the masked
positions, `cosine` the last hidden states at all real positions. The teacher's parameters are constants of the step:
they are in every batch as `teacher`, have no gradient, and are in no checkpoint.
"""

import dataclasses
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp

from bert_elmo_jax.families.family import Family, Objective, Params
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.families.piece_objective import count_work, encode_rows, score_pieces
from bert_elmo_jax.losses import cosine_distance, soft_cross_entropy
from bert_elmo_jax.losses.loss_types import Batch, Terms
from bert_elmo_jax.weights.parameter_tree import flatten, nest

TERMS = ("soft", "cosine")


class Teacher(NamedTuple):
    """A model with a head for masked pieces; `source` is its name in messages."""

    family: Family
    config: Any
    params: Mapping[str, Any]
    source: str


def distil(
    objective: Objective,
    student: Family,
    model: Any,
    teacher: Teacher,
    *,
    temperature: float,
    terms: Collection[str] = TERMS,
    init_from_teacher: bool = False,
) -> Objective:
    """Return the objective of a student's `model` with terms that compare it with its teacher on the same rows.

    The teacher has no dropout, and computes with the model's dtype and kind of attention. `init_from_teacher` starts
    the model from `adopt_layers`. Raise ValueError if the two do not fit together.
    """
    if objective.extend is None:
        raise ValueError("only an objective of masked pieces learns from a teacher: leave config.teacher out")
    check_teacher(objective, student, model, teacher, terms)
    config, family = _compute_alike(teacher.config, model), teacher.family
    module, examples = family.build(config, pooler=False), objective.phases[0].examples
    # Without a pooler and other heads, which the comparison does not read.
    read = param_shapes(family, config, ("mlm",), pooler=False)
    params = nest({path: value for path, value in flatten(teacher.params).items() if path in read})

    def compare(batch: Batch, hidden: Any, logits: Any) -> Terms:
        theirs = encode_rows(module, batch["teacher"], batch, packed=examples.sequences > 1).last
        scores = score_pieces(family, config, batch["teacher"], theirs, batch)
        # A teacher's table may have more rows than the tokenizer has pieces.
        scores = scores[..., : logits.shape[-1]]
        losses = {"soft": soft_cross_entropy(logits, scores, batch["mlm_weights"], temperature)}
        if "cosine" in terms:
            losses["cosine"] = cosine_distance(hidden, theirs, (batch["segments"] > 0).astype(jnp.int32))
        return {name: losses[name] for name in terms}

    def init(key: Any) -> Params:
        fresh = objective.init(key)
        return adopt_layers(fresh, params)[0] if init_from_teacher else fresh

    loss = objective.extend(compare)
    return objective._replace(
        init=init,
        loss=loss,
        held_out_loss=loss,
        coefficients={**objective.coefficients, **dict.fromkeys(terms, 1.0)},
        work=lambda params_or_shapes, length: (
            objective.work(params_or_shapes, length)
            + count_work(params, config, examples.masking, length, per_weight=2.0)
        ),
        step={**objective.step, "shared": (*objective.step.get("shared", ()), "teacher")},
        constants={**objective.constants, "teacher": params},
    )


def check_teacher(objective: Objective, student: Family, model: Any, teacher: Teacher, terms: Collection[str]) -> None:
    """Raise ValueError if a model cannot learn from a teacher."""
    causal = student.causal(model)
    family, config, title = teacher.family, teacher.config, f"the teacher {teacher.source}"
    if "mlm" not in teacher.params:
        has = ", ".join(name for name in teacher.params if name != "encoder") or "none"
        raise ValueError(
            f"{title} has no head `mlm` for masked pieces (its heads: {has}): use a pretrained model that reads pieces"
        )
    if config.vocab_size < model.vocab_size:
        raise ValueError(f"{title} has {config.vocab_size} pieces, and the model {model.vocab_size}: they must agree")
    longest = max(phase.examples.length for phase in objective.phases)
    if longest > config.max_positions:
        raise ValueError(
            f"{title} has {config.max_positions} positions, and the rows {longest}: lower config.length "
            "(and config.long_length)"
        )
    if objective.phases[0].examples.sequences > 1 and not family.inputs.packs:
        raise ValueError(f"{title} cannot read packed rows: use --config.sequences=1")
    if family.causal(config) != causal:
        sees = {True: "only the pieces before it", False: "all pieces"}
        raise ValueError(
            f"a piece of {title} sees {sees[not causal]}, and one of the model {sees[causal]}: use models of one kind"
        )
    if not causal and any(phase.examples.masking.kind == "next" for phase in objective.phases):
        raise ValueError(f"{title} sees all pieces, but config.causal_share has steps that do not: set it to 0")
    if "cosine" in terms and config.hidden_size != model.hidden_size:
        raise ValueError(
            f"{title} has hidden states of {config.hidden_size} numbers, and the model of {model.hidden_size}: the "
            "term `cosine` needs equal widths; use --config.coefficients.cosine=0"
        )


def choose_layers(teacher: int, student: int) -> list[int]:
    """Return the teacher's layer for each layer of a student, evenly spaced from its first to its last."""
    if student == 1:
        return [0]
    return [(2 * layer * (teacher - 1) + student - 1) // (2 * (student - 1)) for layer in range(student)]


def adopt_layers(fresh: Params, teacher: Mapping[str, Any]) -> tuple[Params, list[str]]:
    """Return parameters with the teacher's numbers where path and shape agree, and the paths that stay fresh.

    `choose_layers` says which layers are copied; embeddings and heads keep their paths.
    """
    theirs, ours = flatten(teacher), flatten(fresh)
    chosen = choose_layers(count_layers(teacher), count_layers(fresh))
    layers: dict[str, Any] = {}
    for path, value in ours.items():
        layer = re.match(r"encoder/layer_(\d+)/", path)
        source = path if layer is None else f"encoder/layer_{chosen[int(layer[1])]}/{path[layer.end() :]}"
        if source in theirs and theirs[source].shape == value.shape:
            layers[path] = theirs[source]
    return nest({**ours, **layers}), [path for path in ours if path not in layers]


def count_layers(params: Mapping[str, Any]) -> int:
    """Return the number of layers of a model's parameters."""
    return sum(name.startswith("layer_") for name in params["encoder"])


def _compute_alike(config: Any, model: Any) -> Any:
    """Return the teacher's configuration with the dtype and the attention of the model."""
    fields: dict[str, Any] = {"dtype": model.dtype}
    if hasattr(config, "attention") and hasattr(model, "attention"):
        from bert_elmo_jax.nn.attention import BUILT_IN

        equal = model.attention in BUILT_IN and config.attention in BUILT_IN  # another function changes the numbers
        fields["attention"] = model.attention if equal else config.attention
    return dataclasses.replace(config, **fields)
