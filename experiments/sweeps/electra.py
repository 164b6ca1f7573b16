r"""ELECTRA: replaced-token detection or masked words, and tasks between the two.

A generator fills the masked places. "ELECTRA" then tells for every piece whether it was replaced, "ELECTRA 15%" only
for the masked places. "Replace MLM" predicts the original pieces there, "All-Tokens MLM" everywhere, with a gate that
copies the input. "BERT" predicts masked pieces without a generator, and takes more steps, so that its compute is
ELECTRA's.

Paper and expected score: Clark et al. 2020, https://arxiv.org/abs/2003.10555, section 3.4, GLUE, dev, base size: most
of the gain comes from learning from every piece, a little from never seeing [MASK] in pretraining.
Scales: toy (minutes on two cores; the topic of a sentence and words with several senses replace GLUE), one_gpu
(ELECTRA-small, 100,000 steps per row, MNLI), paper (ELECTRA-base, MNLI). At toy scale telling replaced pieces teaches
less than predicting pieces: see docs/results/toy_tables.md. Cost: toy, 12 minutes of one core.
Command: python -m experiments.sweep --sweep=electra --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import BERT

SCALES = ("toy", "one_gpu", "paper")
PAPER = Paper(
    source="Clark et al. 2020, section 3.4, GLUE on average, dev",
    columns=("GLUE", "NER fine-tuned"),
    rows={
        "ELECTRA": (85.0, None),
        "All-Tokens MLM": (84.3, None),
        "Replace MLM": (82.4, None),
        "ELECTRA 15%": (82.4, None),
        "BERT": (82.2, None),
    },
    reference="BERT",
)
ROWS: dict[str, dict[str, Any]] = {
    "ELECTRA": {},
    "All-Tokens MLM": {"predict": "all"},
    "Replace MLM": {"predict": "masked"},
    "ELECTRA 15%": {"predict": "replaced_masked"},
    "BERT": {"masking.split": (0.8, 0.1, 0.1)},
}
# The steps of a row, and BERT's objective and steps: ELECTRA's cost by `Objective.work` is 1.31, 1.08 and 1.14 of it.
STEPS = {"toy": 2_250, "one_gpu": 100_000, "paper": 766_000}
MASKED_WORDS: dict[str, dict[str, Any]] = {
    "toy": {"objective": "documents", "steps": 2_950, "eval_every": 2_950},
    "one_gpu": {"objective": "sentences", "steps": 108_000},
    "paper": {"objective": "sentences", "steps": 870_000},
}
CONFIGS = {"toy": "electra:toy", "one_gpu": "electra:small", "paper": "electra:base"}


def sweep(add: Add) -> None:
    """Add five pretrainings and two tasks."""
    s = BERT[add.scale]
    sizes = {"model.embedding_size": 64} if add.scale == "toy" else {}
    s = s._replace(config=CONFIGS[add.scale], pretraining={**s.pretraining, **sizes, "steps": STEPS[add.scale]})
    for row, how in ROWS.items():
        init = s.pretrain(add, row, **how, **(MASKED_WORDS[add.scale] if row == "BERT" else {}))
        s.cell(add, row, "GLUE", "finetune", s.pairs, **s.tuning, init=init)
        s.tune(add, row, init=init)
