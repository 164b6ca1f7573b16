"""BERT: what later papers changed, one field at a time, and all of them together.

Every row is the classic BERT without a second objective and with one change; the last row has all changes but the
causal steps. "Dropout switched" has none where the classic row has it, and at toy scale the reverse.

Papers, expected score: the rows come from papers with other data, models and tables, so there are no figures to
compare with cell by cell. Ankner et al. 2023, https://arxiv.org/abs/2305.15096: GLUE +0.46 on average for BERT-base
when the mask rate falls from 30 to 15 percent. Wettig et al. 2023, https://arxiv.org/abs/2202.08005: 40 percent better
than 15 for BERT-large on GLUE and SQuAD (see bert_mask_rate). Portes et al. 2023 (MosaicBERT),
https://arxiv.org/abs/2312.17482: gated units, 30 percent masked and other changes have 79.6 on GLUE after
1.13 hours on eight A100. Geiping and Goldstein 2022 (Cramming), https://arxiv.org/abs/2212.14034: pre-norm, gated
units, no biases and no dropout for a day on one GPU. Hägele et al. 2024,
https://arxiv.org/abs/2405.18392: a stable rate with a decay of 1 - √ equals a cosine. Gisserot-Boukhlef et al. 2025,
https://arxiv.org/abs/2507.00994: causal steps first, masked ones after, beat masked ones alone at equal cost.
Scales: toy (minutes on two cores), one_gpu (BERT-small, 100,000 steps per row), paper (BERT-base).
Cost: toy, 11 pretrainings and 44 fine-tunings, about 15 minutes of one core; the others are not measured.
Command: python -m experiments.sweep --sweep=bert_modern --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import BERT, TUNED

SCALES = ("toy", "one_gpu", "paper")
Settings = dict[str, Any]

DROPOUT = ("model.dropout", "model.attention_dropout")
# The widths at which gated layers have as many weights, and the rows of the first steps.
GATED: dict[str, Settings] = {
    scale: {"model.feed_forward": "gated", "model.feed_forward_size": size}
    for scale, size in {"toy": 170, "one_gpu": 1365, "paper": 2048}.items()
}
FEWER_ROWS: dict[str, Settings] = {
    scale: {"batch_warmup.rows": rows, "batch_warmup.share": 0.1}
    for scale, rows in {"toy": (16, 32), "one_gpu": (64, 128), "paper": (64, 128)}.items()
}
ROWS = (
    "classic", "dropout switched", "30% to 15% masked", "pre-norm", "gated units", "rotary positions", "no biases",
    "fewer rows first", "stable rate, then decay", "causal first", "all but causal",
)  # fmt: skip
PAPER = Paper.without_figures(TUNED, ROWS, "classic", "several papers, see above")
NOTES = {
    "toy": "The classic row has no dropout here, like every pretraining at this scale, and no second objective, "
    "because causal steps cannot have one."
}


def changes(scale: str) -> dict[str, Settings]:
    """Return the settings of each row at a scale."""
    single: dict[str, Settings] = {
        "dropout switched": dict.fromkeys(DROPOUT, 0.1 if scale == "toy" else 0.0),
        "30% to 15% masked": {"masking.rate": 0.3, "masking.end_rate": 0.15},
        "pre-norm": {"model.norm": "pre"},
        "gated units": GATED[scale],
        "rotary positions": {"model.position": "rotary"},
        "no biases": {"model.layer_bias": False},
        "fewer rows first": FEWER_ROWS[scale],
        "stable rate, then decay": {"optimizer.schedule": "warmup_stable_decay", "optimizer.cooldown": 0.2},
    }
    together = {name: value for settings in single.values() for name, value in settings.items()}
    together |= dict.fromkeys(DROPOUT, 0.0)
    return {"classic": {}, **single, "causal first": {"causal_share": 0.25}, "all but causal": together}


def sweep(add: Add) -> None:
    """Add a pretraining and two tasks for each change."""
    s = BERT[add.scale]
    for row, settings in changes(add.scale).items():
        s.tune(add, row, init=s.pretrain(add, f"BERT, {row}", objective="documents", **settings))
