"""GPT's pretraining: every piece from those before it, with the texts of a packed row kept apart."""

from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.family import Objective
from bert_elmo_jax.families.piece_objective import piece_objective
from bert_elmo_jax.losses import perplexity


def make_objective(config: ConfigDict, model: Any) -> Objective:
    """Return the objective of a run's config; BERT's runs with `masking.kind=next` have the same loss."""
    kind = config.masking.kind
    if kind != "next":
        raise ValueError(
            f"config.masking.kind={kind!r} masks pieces, but a GPT predicts each piece from those before it: use "
            "masking.kind=next"
        )
    objective = piece_objective(get_family("gpt"), config, model)
    return objective._replace(figures=name_figures, score="held_out/score")


def name_figures(means: Mapping[str, float]) -> dict[str, float]:
    """Return the held-out figures of the means of a loss: perplexity per piece, accuracy, and the score of the run."""
    of_pieces = perplexity(means["lm"], 1)
    return {"held_out/perplexity": of_pieces, "held_out/accuracy": means["lm_accuracy"], "held_out/score": -of_pieces}
