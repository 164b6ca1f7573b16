"""Pretraining objectives for families fed with pieces: masked or next pieces, with or without sentence pairs."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from ml_collections import ConfigDict

from bert_elmo_jax.data.rows.masking import Masking
from bert_elmo_jax.families.family import Family, Objective
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.piece_embeddings import word_table
from bert_elmo_jax.families.piece_phases import check_positions, held_out_examples, plan_phases
from bert_elmo_jax.gpu_switches import uses
from bert_elmo_jax.losses import accuracy, cross_entropy, perplexity
from bert_elmo_jax.losses.loss_types import Batch, Loss, Terms
from bert_elmo_jax.nn.dropout import dropout_options

Compare = Callable[[Batch, Any, Any], Terms]  # (batch, last hidden states, logits) -> further terms


FULL = "full"  # the entry of a batch without padding; its presence says that attention needs no mask


def mark_full(batch: Batch) -> Batch:
    """Return a batch on the host, marked if no row has padding and this spares the kernels on a GPU a mask.

    A step is compiled once with the mark and once without. Processes compile alike, so there is no mark for several.
    """
    if not uses("full_rows") or jax.process_count() > 1 or "segments" not in batch or not batch["segments"].all():
        return batch
    return {**batch, FULL: np.ones((len(batch["segments"]), 1), np.int32)}


def piece_loss(
    family: Family, config: Any, pairs: bool = False, packed: bool = True, compare: Compare | None = None
) -> Loss:
    """Return `loss(params, batch, key, carry)` with the term of `piece_head`, and `nsp` for batches of sentence pairs.

    With `packed=False`, no row holds more than one sequence: attention gets lengths, and a GPU needs no mask for them.
    The batch decides what the head predicts: masked pieces, or the next piece. A batch of `Masking("next")` has the
    entry `causal`: a piece sees only those before it, also if the model is bidirectional otherwise.
    Without a key there is no dropout. The carry is passed on. `compare` returns further terms, such as a teacher's.
    """
    from bert_elmo_jax.nn.gpu.row_losses import cross_entropy_and_accuracy  # nothing else needs its kernels

    name = piece_head(family)

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Terms, Terms, Any]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        module = family.build(as_causal(family, config) if "causal" in batch else config, pooler=pairs)
        output = encode_rows(module, params, batch, packed, pairs, key)
        even = uses("even_vocabulary") and uses("row_losses")
        logits = score_pieces(family, config, params, output.last, batch, even)
        pieces = (logits, batch["mlm_targets"], batch["mlm_weights"])
        loss_sums, hits = cross_entropy_and_accuracy(*pieces, config.vocab_size)
        terms, metrics = {name: loss_sums}, {f"{name}_accuracy": hits}
        if pairs:
            follows: Any = family.head("nsp", config).apply({"params": params["nsp"]}, output.pooled)
            order = (follows, batch["nsp_targets"], batch["nsp_weights"])
            terms["nsp"], metrics["nsp_accuracy"] = cross_entropy(*order), accuracy(*order)
        if compare is not None:
            terms |= compare(batch, output.last, logits[..., : config.vocab_size])
        return terms, metrics, carry

    return loss


def piece_head(family: Family) -> str:
    """Return the pretraining head that scores pieces: `mlm`, or else the family's first.

    >>> from bert_elmo_jax.families import get_family
    >>> piece_head(get_family("bert")), piece_head(get_family("gpt"))
    ('mlm', 'lm')
    """
    return "mlm" if "mlm" in family.heads else next(iter(family.heads))


def encode_rows(
    module: nn.Module, params: Any, batch: Batch, packed: bool, pairs: bool = False,
    key: PRNGKeyArray | None = None,
) -> Any:  # fmt: skip
    """Return the module's output for a batch of pieces.

    With `packed=False` attention gets the lengths of the rows, or nothing if the batch is marked as full.
    """
    segments = batch["segments"]
    rows: dict[str, Any] = {"segments": segments}
    if not packed:
        rows = {} if FULL in batch else {"lengths": (segments > 0).sum(axis=1, dtype=jnp.int32)}
    return module.apply(
        {"params": params["encoder"]}, batch["tokens"], batch["types"], batch["positions"], **rows,
        **dropout_options(key), **({"nsp_positions": batch["nsp_positions"]} if pairs else {}),
    )  # fmt: skip


def score_pieces(family: Family, config: Any, params: Any, hidden: Any, batch: Batch, even: bool = False) -> Any:
    """Return the logits of `piece_head` at the positions that a batch predicts; with `even`, with columns added."""
    name, table = piece_head(family), word_table(params["encoder"]["embeddings"])
    head = params.get(name, {})
    if even:
        from bert_elmo_jax.nn.gpu.row_losses import add_columns  # nothing else needs its kernels

        table, head = add_columns(table, head)
    return family.head(name, config).apply({"params": head}, hidden, table, batch["mlm_positions"])


def piece_objective(family: Family, config: ConfigDict, model: Any, pairs: bool = False) -> Objective:
    """Return the objective of a run's config: masked or next pieces, with pairs if asked, in one phase or more."""
    name = piece_head(family)
    heads = (name, "nsp") if pairs else (name,)
    phases, held_out = plan_phases(config), held_out_examples(config)
    check_positions(phases, model.max_positions)
    if config.masking.kind == "next" and not family.causal(model):
        raise ValueError(
            "config.masking.kind='next' predicts each piece from those before it, but the model sees all: use "
            "model.causal=true, or masking.kind=token, word or span"
        )
    if any(phase.examples.masking.kind == "next" for phase in phases):
        as_causal(family, model)  # raises for a family without causal attention

    masking = phases[-1].examples.masking
    loss = piece_loss(family, model, pairs, packed=config.sequences > 1)
    return Objective(
        init=lambda key: init_params(family, model, key, heads, pooler=pairs),
        loss=loss,
        held_out_loss=loss,
        coefficients=dict.fromkeys(heads, 1.0),
        phases=phases,
        long_steps=round(config.steps * config.long_share),
        width=model.hidden_size,
        held_out=held_out,
        work=lambda params, length: count_work(params, model, masking, length),
        figures=lambda means: name_figures(means, name),
        score=f"held_out/{name}_accuracy",
        size=lambda batch: int((batch["segments"] > 0).sum()),
        extend=lambda compare: piece_loss(family, model, pairs, config.sequences > 1, compare),
    )


def count_work(params: Any, model: Any, masking: Masking, length: int, per_weight: float = 6.0) -> float:
    """Return the operations per token, with six per weight for a step and two for a forward pass."""
    layers = [part for name, part in params["encoder"].items() if name.startswith("layer_")]
    project = count_weights(params["encoder"].get("project", {}))  # of embeddings that are narrower than the layers
    head, words = count_weights(params.get("mlm", {})), params["encoder"]["embeddings"]["word"].size
    head += words if head < words else 0  # of a head that is tied to them
    share = masking.places(length) / length  # of the positions that the head sees
    pieces_seen = model.pieces_seen(length) if hasattr(model, "pieces_seen") else model.num_layers * length
    maps = 2 * model.hidden_size * pieces_seen
    uses = model.num_layers / len(layers)  # of each layer, if layers share parameters
    return per_weight * (project + uses * count_weights(layers) + share * head + maps)


def as_causal(family: Family, config: Any) -> Any:
    """Return a configuration with causal attention, which has the same parameters."""
    if family.causal(config):
        return config
    if "causal" not in {field.name for field in dataclasses.fields(config)}:
        raise ValueError(
            f"config.masking.kind='next' and config.causal_share need causal attention, which {family.called} does not "
            "have: use masking.kind=token, word or span, and no causal_share"
        )
    return dataclasses.replace(config, causal=True)


def name_figures(means: Mapping[str, float], head: str = "mlm") -> dict[str, float]:
    """Return the held-out figures of the means of a loss: perplexity for the term of `head`."""
    named = {f"held_out/{name}": value for name, value in means.items() if name != head}
    return {f"held_out/{head}_perplexity": perplexity(means[head], 1), **named}


def count_weights(tree: Any) -> int:
    """Return the number of entries of a tree's matrices; each costs six operations per token, forward and back."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree) if leaf.ndim >= 2)
