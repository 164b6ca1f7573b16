"""The training of static vectors: skip-gram and CBOW with negatives, fastText, and GloVe.

Words of a row are compared with each other by one product, and with the row's negatives by another; a mask chooses the
pairs of neighbours. A step touches only the rows of the tables that its batch names.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray
from ml_collections import ConfigDict

from bert_elmo_jax.data.rows.word_windows import CountExamples, WindowExamples
from bert_elmo_jax.families.family import Objective, Phase
from bert_elmo_jax.families.static.config import StaticConfig
from bert_elmo_jax.families.static.model import init_static_params
from bert_elmo_jax.losses.loss_types import Batch, Loss, Terms
from bert_elmo_jax.optim import places, values

WORD, CONTEXT = "encoder/embeddings/word", "context/embedding"
MOST, POWER = 100.0, 0.75  # GloVe's weight of a count is (count / MOST)^POWER, at most 1


def static_objective(config: ConfigDict, model: StaticConfig) -> Objective:
    """Return the training of a run's config by the model's method."""
    glove = model.method == "glove"
    examples: Any = CountExamples(config.length, config.window, config.min_count)
    if not glove:
        examples = WindowExamples(
            config.length, config.window, config.row_negatives, config.sample, config.min_count, model.gram_rows,
            model.shortest, model.longest,
        )  # fmt: skip
    compared = 1 if glove else config.length + config.row_negatives
    make: Callable[[int | None], Loss] = (
        (lambda rows: glove_loss(rows)) if glove else (lambda rows: window_loss(model, config.negatives, rows))
    )
    return Objective(
        init=lambda key: init_static_params(model, key, ("context",)),
        loss=make(config.batch_size),
        held_out_loss=make(None),
        coefficients={model.method: 1.0},
        phases=(Phase(config.steps, config.batch_size, examples),),
        work=lambda params, length: 6.0 * model.hidden_size * compared,
        figures=lambda means: {"held_out/loss": means[model.method], "held_out/score": -means[model.method]},
        score="held_out/score",
        size=lambda batch: int((batch["counts" if glove else "reach"] > 0).sum()),
        step={
            "touched": touched_by_counts if glove else touched_by_windows(model.method),
            "shared": ("subwords", "owners"),
        },
    )


def window_loss(config: StaticConfig, negatives: int, rows: int | None) -> Loss:
    """Return `loss(params, batch, key, carry)` of rows of words, with `negatives` for each pair of neighbours.

    word2vec adds the gradients of all pairs, so the term is the sum over a batch of `rows` rows; if None, the mean per
    pair. The metric `per_pair` is always the mean.
    """

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Terms, Terms, Any]:
        del key
        batch = {name: jnp.asarray(array) for name, array in batch.items()}
        words, negative_words, context = batch["words"], batch["negatives"], params["context"]["embedding"]
        centres, cbow = centres_of(batch), config.method == "cbow"
        read = look_up_words(params["encoder"]["embeddings"]["word"], batch, words if cbow else centres)
        labels, predicted = find_neighbours(batch["segments"], batch["reach"]), words
        if cbow:
            counts = labels.sum(axis=1)[..., None]
            read = mean_with_full_gradient(jnp.einsum("rst,rsd->rtd", labels, read), counts)
            labels, predicted = jnp.eye(centres.shape[1])[None] * (counts > 0).astype(jnp.float32), centres
        # Words and negatives side by side: one look-up and one product, whose rows are the compared words. With the
        # words that are read as its rows, the product and its gradients take twice the time.
        compared = values(context)[places(context, jnp.concatenate([predicted, negative_words], axis=1))]
        scores = jnp.einsum("rsd,rtd->rst", compared, read)
        of_pairs, of_negatives = jnp.split(scores, [predicted.shape[1]], axis=1)
        # A word that is drawn as a negative of itself does not count, as in word2vec.
        itself = (negative_words[:, :, None] == predicted[:, None, :]).astype(jnp.float32)
        times = labels.sum(axis=1, keepdims=True) - itself @ labels
        share = negatives / negative_words.shape[1]  # every pair would have negatives of its own
        total = (jax.nn.softplus(-of_pairs) * labels).sum() + share * (jax.nn.softplus(of_negatives) * times).sum()
        pairs = labels.sum()
        weight = pairs if rows is None else len(words) / rows
        return {config.method: (total, weight)}, {"per_pair": (total, pairs)}, carry

    return loss


def centres_of(batch: Mapping[str, Array]) -> Int[Array, "R T"]:
    """Return the words of rows without those on their sides."""
    length = batch["reach"].shape[1]
    margin = (batch["words"].shape[1] - length) // 2
    return batch["words"][:, margin : margin + length]


def look_up_words(table: Any, batch: Mapping[str, Array], words: Int[Array, "R S"]) -> Float[Array, "R S D"]:
    """Return the vectors of words of rows: of fastText, the means of the rows that a batch lists for its centres."""
    if "subwords" not in batch:
        return values(table)[places(table, words)]
    shards, size = batch["subwords"].shape
    rows = values(table)[places(table, batch["subwords"])]
    first = size * jnp.arange(shards, dtype=jnp.int32)[:, None]
    owners = batch["owners"] + first
    options: dict[str, Any] = {"num_segments": size * shards, "indices_are_sorted": True}
    sums = jax.ops.segment_sum(rows.reshape(shards * size, -1), owners.ravel(), **options)
    sizes = jax.ops.segment_sum(jnp.ones(shards * size), owners.ravel(), **options)
    means = mean_with_full_gradient(sums, jnp.maximum(sizes, 1.0)[:, None])
    return means[(batch["places"].reshape(shards, -1) + first).reshape(words.shape)]


def mean_with_full_gradient(sums: Float[Array, "*N D"], counts: Float[Array, "*N 1"]) -> Float[Array, "*N D"]:
    """Return means with the gradient of the sums: word2vec and fastText add it to each part undivided.

    >>> jax.grad(lambda x: mean_with_full_gradient(x[None], jnp.full((1, 1), 4.0)).sum())(jnp.ones(1)).tolist()
    [1.0]
    """
    means = sums / jnp.maximum(counts, 1.0)
    return sums + jax.lax.stop_gradient(means - sums)


def find_neighbours(segments: Int[Array, "R S"], reach: Int[Array, "R T"]) -> Float[Array, "R S T"]:
    """Return 1 where the first word is a neighbour of the second: of its sentence and within its distance.

    Of the S words of a row, the T in the middle have neighbours.

    >>> find_neighbours(jnp.array([[1, 1, 1, 1, 2]]), jnp.array([[1, 2, 1]]))[0, :, 1].tolist()
    [1.0, 1.0, 0.0, 1.0, 0.0]
    """
    length, size = reach.shape[1], segments.shape[1]
    margin = (size - length) // 2
    place = jnp.arange(size, dtype=jnp.int32)
    distance = jnp.abs(place[:, None] - place[None, margin : margin + length])[None]
    near = (distance > 0) & (distance <= reach[:, None, :])
    same = segments[:, :, None] == segments[:, None, margin : margin + length]
    return (near & same).astype(jnp.float32)


def glove_loss(rows: int | None) -> Loss:
    """Return `loss(params, batch, key, carry)` of counts of neighbours; `rows` and the metric as in `window_loss`."""

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Terms, Terms, Any]:
        del key
        table, context = params["encoder"]["embeddings"]["word"], params["context"]
        words, neighbours, counts = (jnp.asarray(batch[name]) for name in ("words", "neighbours", "counts"))

        def take(part: Any, ids: Array) -> Array:
            return values(part)[places(part, ids)]

        products = (take(table, words) * take(context["embedding"], neighbours)).sum(axis=-1)
        biases = take(context["word_bias"], words) + take(context["bias"], neighbours)
        real = counts > 0
        error = products + biases - jnp.log(jnp.where(real, counts, 1.0))
        weights = jnp.where(real, jnp.minimum(1.0, (counts / MOST) ** POWER), 0.0)
        total, pairs = (0.5 * weights * error**2).sum(), real.sum().astype(jnp.float32)
        weight = pairs if rows is None else len(words) / rows
        return {"glove": (total, weight)}, {"per_pair": (total, pairs)}, carry

    return loss


def touched_by_windows(method: str) -> Callable[[Batch], dict[str, Int[Array, " K"]]]:
    """Return the function that names the rows of each table that a batch of words uses."""

    def touched(batch: Batch) -> dict[str, Int[Array, " K"]]:
        batch = {name: jnp.asarray(array) for name, array in batch.items()}
        words, centres = batch["words"].ravel(), centres_of(batch).ravel()
        if method == "cbow":
            words, centres = centres, words
        read = batch["subwords"].ravel() if method == "fasttext" else centres
        return {WORD: read, CONTEXT: jnp.concatenate([words, batch["negatives"].ravel()])}

    return touched


def touched_by_counts(batch: Batch) -> dict[str, Int[Array, " K"]]:
    """Return the rows of each table that a batch of counts uses."""
    words, neighbours = (jnp.asarray(batch[name]).ravel() for name in ("words", "neighbours"))
    return {WORD: words, "context/word_bias": words, CONTEXT: neighbours, "context/bias": neighbours}
