"""Pretraining objectives for families fed with pieces: masked or next pieces, with or without sentence pairs."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray
from ml_collections import ConfigDict

from bert_elmo_jax.data.rows.masking import Masking
from bert_elmo_jax.data.rows.pieces import PieceExamples
from bert_elmo_jax.families.family import Family, Objective, Phase
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.losses import accuracy, cross_entropy, perplexity

Sums = dict[str, tuple[Any, Any]]
Loss = Callable[[Any, Mapping[str, Any], PRNGKeyArray | None, Any], tuple[Sums, Sums, Any]]


def piece_loss(family: Family, config: Any, pairs: bool = False, packed: bool = True) -> Loss:
    """Return `loss(params, batch, key, carry)` with the term `mlm`, and `nsp` for batches of sentence pairs.

    With `packed=False`, no row holds more than one sequence: attention gets lengths, and a GPU needs no mask for them.
    The batch decides what `mlm` predicts: masked pieces, or for a causal model and `Masking("next")` the next piece.
    Without a key there is no dropout. The carry is passed on.
    """
    module = family.build(config, pooler=pairs)

    def loss(params: Any, batch: Mapping[str, Any], key: PRNGKeyArray | None, carry: Any) -> tuple[Sums, Sums, Any]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        segments = batch["segments"]
        rows = {"segments": segments} if packed else {"lengths": (segments > 0).sum(axis=1, dtype=jnp.int32)}
        output: Any = module.apply(
            {"params": params["encoder"]}, batch["tokens"], batch["types"], batch["positions"], **rows,
            deterministic=key is None, rngs={} if key is None else {"dropout": key},
            **({"nsp_positions": batch["nsp_positions"]} if pairs else {}),
        )  # fmt: skip
        table = params["encoder"]["embeddings"]["word"]
        logits: Any = family.head("mlm", config).apply(
            {"params": params["mlm"]}, output.last, table, batch["mlm_positions"]
        )
        pieces = (logits, batch["mlm_targets"], batch["mlm_weights"])
        terms, metrics = {"mlm": cross_entropy(*pieces)}, {"mlm_accuracy": accuracy(*pieces)}
        if pairs:
            follows: Any = family.head("nsp", config).apply({"params": params["nsp"]}, output.pooled)
            order = (follows, batch["nsp_targets"], batch["nsp_weights"])
            terms["nsp"], metrics["nsp_accuracy"] = cross_entropy(*order), accuracy(*order)
        return terms, metrics, carry

    return loss


def piece_objective(family: Family, config: ConfigDict, model: Any, pairs: bool = False) -> Objective:
    """Return the objective of a run's config: masked pieces, with pairs if asked, in one phase or two."""
    heads = ("mlm", "nsp") if pairs else ("mlm",)
    m = config.masking
    masking = Masking(m.kind, m.rate, m.predictions, tuple(m.split))

    def phase(steps: int, rows: int, length: int) -> Phase:
        how = (config.short_share, config.short_per, masking, config.sequences, config.copies)
        return Phase(steps, rows, PieceExamples(length, config.objective, *how))

    def work(params: Any, length: int) -> float:
        layers = [part for name, part in params["encoder"].items() if name.startswith("layer_")]
        head = count_weights(params["mlm"]) + params["encoder"]["embeddings"]["word"].size
        share = masking.places(length) / length  # of the positions that the head sees
        maps = 2 * model.num_layers * model.hidden_size * length
        return 6.0 * (count_weights(layers) + share * head + maps)

    long = round(config.steps * config.long_share)
    phases = [phase(config.steps - long, config.batch_size, config.length)]
    phases += [phase(long, config.long_batch_size or config.batch_size, config.long_length)] if long else []
    loss = piece_loss(family, model, pairs, packed=config.sequences > 1)
    return Objective(
        init=lambda key: init_params(family, model, key, heads, pooler=pairs),
        loss=loss,
        held_out_loss=loss,
        coefficients=dict.fromkeys(heads, 1.0),
        phases=tuple(phases),
        work=work,
        figures=name_figures,
        score="held_out/mlm_accuracy",
        size=lambda batch: int((batch["segments"] > 0).sum()),
    )


def name_figures(means: Mapping[str, float]) -> dict[str, float]:
    """Return the held-out figures of the means of a loss: perplexity for the term `mlm`."""
    named = {f"held_out/{name}": value for name, value in means.items() if name != "mlm"}
    return {"held_out/mlm_perplexity": perplexity(means["mlm"], 1), **named}


def count_weights(tree: Any) -> int:
    """Return the number of entries of a tree's matrices; each costs six operations per token, forward and back."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree) if leaf.ndim >= 2)
