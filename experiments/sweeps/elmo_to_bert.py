r"""From ELMo to BERT by single changes, each pretraining with the same number of operations.

Each row changes one thing in the row above; its gain is shown next to it. Rows and what else changes with them:

- ELMo: characters, LSTMs, both directions apart, frozen layers in a tagger.
- words: `model.input=words`. In the toy world nearly every word is one piece; at `laptop` these are 30,000 words.
- attention: `model.reader=attention`, a causal Transformer in each direction. It has fewer weights of the same width,
  so it takes more steps.
- masks: a BERT without pairs of sentences. It reads pieces with [CLS] and [SEP], is twice as wide as one direction,
  learns its positions, and predicts 15% of the pieces, so it takes other steps.
- tuned: `tune_encoder=true`, with lower rates for lower layers. The network stays.
- one layer: a linear layer instead of the tagger's network, with BERT's rate.
- next sentences: the pretraining also predicts whether the second of two passages follows.

Operations are `Objective.work` times positions, as in own_three_encoders; tests/sweeps/test_equal_budgets.py counts
them. All biLMs read single sentences, because attention carries no state. No run chooses a model on dev.
Paper and expected score: none; the papers change several of these at once. Scales: toy (words of several senses in the
toy world; one pretraining per row, three seeds of the task), laptop (novels, a quarter of UNER English EWT; each seed
has a pretraining of its own).
Cost: toy, 14 minutes of processor time in 26 runs; laptop is not measured yet.
Command: python -m experiments.sweep --sweep=elmo_to_bert --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._elmo_to_bert import list_pretrainings
from ._scales import Settings
from ._three_encoders import SCALES as SIZES

SCALES = ("toy", "laptop")
PATH = True
COLUMN = "NER"
ROWS = ("ELMo", "words", "attention", "masks", "tuned", "one layer", "next sentences")
PAPER = Paper.without_figures((COLUMN,), ROWS, "ELMo")
SEEDS = (0, 1, 2)
_TUNED: Settings = {"tune_encoder": True, "layer_decay": 0.3}


def sweep(add: Add) -> None:
    """Add the pretrainings, and for each seed of the task a run per row."""
    task, (network, frozen), (head, tuned) = SIZES[add.scale].tasks["NER"]
    runs: dict[str, list[Any]] = {row: [] for row in ROWS}
    seeds = SEEDS[:1] if add.scale == "toy" else SEEDS  # of the pretrainings
    for seed in seeds:
        models = {
            row: add.pretrain(f"{row}, seed {seed}", config, **settings, seed=seed)
            for row, (config, settings) in list_pretrainings(add.scale).items()
        }
        steps: dict[str, tuple[str, Settings]] = {
            row: (network, {**frozen, "encoder": models[row]}) for row in ("ELMo", "words", "attention", "masks")
        }
        steps["tuned"] = network, {**frozen, **_TUNED, "encoder": models["masks"]}
        steps["one layer"] = head, {**tuned, "init": models["masks"]}
        steps["next sentences"] = head, {**tuned, "init": models["next sentences"]}
        for row, (config, settings) in steps.items():
            name = f"{row}, {COLUMN}, pretraining {seed}"
            runs[row] += add.runs(
                name, config, seeds=SEEDS if add.scale == "toy" else (seed,), **task.settings, **settings
            )
    for row in ROWS:
        add.figure(row, COLUMN, runs[row], of=task.of, score="", percent=True)
