"""Replaced-token pretraining: a generator fills masked places, and a discriminator finds its replacements.

Both networks are in one tree, see `replaced.py`. The generator reads the discriminator's embeddings (Clark et al. 2020,
section 3.2), so these get both gradients; with a second table, `difference`, the discriminator trains only that (He et
al. 2023, https://arxiv.org/abs/2111.09543, section 3.3). No gradient passes through the sampled pieces.
"""

import zlib
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int, Int32, PRNGKeyArray
from ml_collections import ConfigDict

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families.family import Family, Objective
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.piece_embeddings import word_table
from bert_elmo_jax.families.piece_objective import count_weights, encode_rows, name_figures
from bert_elmo_jax.families.piece_phases import check_positions, held_out_examples, plan_phases
from bert_elmo_jax.families.replaced import take_generator
from bert_elmo_jax.losses import accuracy, binary_cross_entropy, cross_entropy
from bert_elmo_jax.losses.loss_types import Batch, Loss, Terms
from bert_elmo_jax.nn.any_array import AnyArray

# The tasks of the second network (Clark et al. 2020, section 3.4), with its heads: tell replaced pieces from original
# ones, everywhere or at the masked places; predict the original pieces there, or everywhere with a gate that copies.
PREDICTS = {"replaced": ("replaced",), "replaced_masked": ("replaced",), "masked": ("mlm",), "all": ("mlm", "replaced")}
SAMPLING = "sampling"  # the batch's entry for the key of the sampled pieces


def replaced_loss(family: Family, config: Any, predict: str = "replaced", packed: bool = True) -> Loss:
    """Return `loss(params, batch, key, carry)` with the generator's term `mlm` and the second network's term.

    The second term is `replaced`, or `original` if the network predicts pieces (see `PREDICTS`). The batch may hold a
    key for sampling, the same on all devices and in all parts (`draw_sampling_key`); else it comes from `key`. Without
    `key` there is no dropout, and the samples are always the same. `packed` means the same as in `piece_loss`.
    """
    if predict not in PREDICTS:
        hint = did_you_mean(predict, PREDICTS)
        raise ValueError(f"config.predict={predict!r} is not known; it is one of {', '.join(PREDICTS)}{hint}")

    def encode(config: Any, encoder: Any, tokens: Any, batch: Batch, key: PRNGKeyArray | None) -> Any:
        rows = {**batch, "tokens": tokens}
        return encode_rows(family.build(config), {"encoder": encoder}, rows, packed, key=key).last

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Terms, Terms, Any]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        keys = {name: None if key is None else fold_name(key, name) for name in ("encoder", "generator", SAMPLING)}
        words, positions = params["encoder"]["embeddings"]["word"], batch["mlm_positions"]
        targets, weights = batch["mlm_targets"], batch["mlm_weights"]

        small, generator = take_generator(config, params)
        hidden = encode(small, generator["encoder"], batch["tokens"], batch, keys["generator"])
        logits: Any = family.head("mlm", small).apply({"params": generator["mlm"]}, hidden, words, positions)
        terms: Terms = {"mlm": cross_entropy(logits, targets, weights)}
        metrics: Terms = {"mlm_accuracy": accuracy(logits, targets, weights)}

        source = batch.get(SAMPLING, keys[SAMPLING])
        sampled = sample(logits, batch["tokens"], jax.random.key(0) if source is None else source)
        tokens, original = (fill(batch["tokens"], positions, ids, weights) for ids in (sampled, targets))
        hidden = encode(config, keep_tables(params["encoder"]), tokens, batch, keys["encoder"])
        real, picked = batch["segments"] > 0, fill(jnp.zeros_like(tokens), positions, jnp.ones_like(targets), weights)

        def head(name: str, *where: Any) -> Any:
            table = word_table(params["encoder"]["embeddings"])
            return family.head(name, config).apply({"params": params[name]}, hidden, table, *where)

        if predict == "masked":
            logits = head("mlm", positions)
            terms["original"] = cross_entropy(logits, targets, weights)
            metrics["original_accuracy"] = accuracy(logits, targets, weights)
            return terms, metrics, carry
        changed, scores = tokens != original, head("replaced")
        if predict == "all":
            terms["original"] = copied_cross_entropy(head("mlm"), scores, original, changed, real)
        else:
            terms["replaced"] = binary_cross_entropy(scores, changed, real if predict == "replaced" else picked)
        right = ((scores > 0) == changed).astype(jnp.float32)
        for name, counted in (("replaced_accuracy", real), ("replaced_accuracy_masked", picked)):
            counts = counted.astype(jnp.float32)
            metrics[name] = ((right * counts).sum(), counts.sum())
        return terms, metrics, carry

    return loss


def keep_tables(encoder: Any) -> Any:
    """Return an encoder whose tables of embeddings get no gradient if it has a second table of words."""
    tables = encoder["embeddings"]
    if "difference" not in tables:
        return encoder
    kept = {name: jax.lax.stop_gradient(tables[name]) for name in ("word", "position", "type") if name in tables}
    return {**encoder, "embeddings": {**tables, **kept}}


def fold_name(key: PRNGKeyArray, name: str) -> PRNGKeyArray:
    """Return the key of a named part, which does not depend on the other parts."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


def draw_sampling_key(batch: Batch, key: PRNGKeyArray) -> dict[str, PRNGKeyArray]:
    """Return the batch's entry for sampling: one key per step, for all parts and devices."""
    return {SAMPLING: fold_name(key, SAMPLING)}


def sample(logits: Float[Array, "B K V"], tokens: Int[Array, "B T"], key: PRNGKeyArray) -> Int32[Array, "B K"]:
    """Draw a piece from each softmax, without a gradient.

    The draws of a row depend on the key and the row's pieces, not on its place: so a batch has the same replacements
    whole, in parts and on several devices.
    """
    # A polynomial of the row's pieces modulo 2³², with an odd factor, in the order of the row.
    powers = jnp.cumprod(jnp.full(tokens.shape[1], 2_654_435_761, jnp.uint32), dtype=jnp.uint32)
    rows = (tokens.astype(jnp.uint32) * powers[None, :]).sum(axis=1, dtype=jnp.uint32)
    keys = jax.vmap(lambda row: jax.random.fold_in(key, row))(rows)
    logits = jax.lax.stop_gradient(logits).astype(jnp.float32)
    return jax.vmap(jax.random.categorical)(keys, logits).astype(jnp.int32)


def fill(
    tokens: Int[Array, "B T"], positions: Int[Array, "B K"], ids: Int[Array, "B K"], weights: Float[AnyArray, "B K"]
) -> Int[Array, "B T"]:
    """Return the rows with `ids` written to the positions whose weight is not zero."""
    places = jnp.where(weights != 0, positions, tokens.shape[1])  # outside the row, and so dropped
    rows = jnp.arange(len(tokens))[:, None]
    return tokens.at[rows, places].set(ids.astype(tokens.dtype), mode="drop")


def copied_cross_entropy(
    logits: Float[Array, "B T V"],
    gate: Float[Array, "B T"],
    targets: Int[Array, "B T"],
    changed: Bool[Array, "B T"],
    weights: Bool[Array, "B T"],
) -> tuple[Float32[Array, ""], Float32[Array, ""]]:
    """Return Σ −log p(target) over the pieces that count, and their number.

    p mixes two distributions: with the sigmoid of `gate`, the softmax of `logits`; else the input piece, which is the
    target unless it was `changed`.
    """
    logits = jnp.where(weights[..., None], logits.astype(jnp.float32), jnp.float32(0))
    gate = jnp.where(weights, gate.astype(jnp.float32), jnp.float32(0))
    places = jnp.where(weights, targets, 0)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), places[..., None], axis=-1, mode="fill")[..., 0]
    read = chosen + jax.nn.log_sigmoid(gate)
    score = jnp.where(changed, read, jnp.logaddexp(read, jax.nn.log_sigmoid(-gate)))
    counts = weights.astype(jnp.float32)
    return -(score * counts).sum(), counts.sum()


def replaced_objective(family: Family, config: ConfigDict, model: Any) -> Objective:
    """Return the replaced-token objective of a run's config, in one phase or more."""
    loss = replaced_loss(family, model, config.predict, packed=config.sequences > 1)
    heads = PREDICTS[config.predict]
    phases = plan_phases(config)
    check_positions(phases, model.max_positions)
    masking = phases[-1].examples.masking
    if any(phase.examples.masking.kind == "next" for phase in phases):
        raise ValueError(
            "predicting the next piece masks nothing to replace: use config.masking.kind=token, word or span, and no "
            "config.causal_share"
        )

    def work(params: Any, length: int) -> float:
        share = masking.places(length) / length  # of the positions that the generator's head sees
        words = params["encoder"]["embeddings"]["word"].size
        generator = params["generator"]
        narrow = cost_of_layers(generator["encoder"], model.generator, length)
        head_share = share if config.predict == "masked" else 1.0
        head_weights = sum(count_weights(params[head]) + (words if head == "mlm" else 0) for head in heads)
        second = cost_of_layers(params["encoder"], model, length) + head_share * head_weights
        return 6.0 * (narrow + share * (count_weights(generator["mlm"]) + words) + second)

    second = "replaced" if heads == ("replaced",) else "original"
    return Objective(
        init=lambda key: init_params(family, model, key, ("generator", *heads), pooler=False),
        loss=loss,
        held_out_loss=loss,
        coefficients={"mlm": 1.0, second: 50.0 if second == "replaced" else 1.0},
        phases=phases,
        long_steps=round(config.steps * config.long_share),
        held_out=held_out_examples(config),
        work=work,
        figures=name_figures,
        score="held_out/original_accuracy" if config.predict == "masked" else "held_out/replaced_accuracy",
        size=lambda batch: int((batch["segments"] > 0).sum()),
        step={"draw": draw_sampling_key},
    )


def cost_of_layers(encoder: Any, model: Any, length: int) -> float:
    """Return the multiplications per piece of an encoder without its tables: matrices and attention maps."""
    matrices = [part for name, part in encoder.items() if name.startswith("layer_") or name == "project"]
    return float(count_weights(matrices)) + 2 * model.num_layers * model.hidden_size * length
