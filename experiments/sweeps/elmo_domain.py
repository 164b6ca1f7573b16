"""ELMo, domain adaptation: the biLM reads the task's texts, without labels, before a network uses its layers.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 3.4 and table 7 of the appendix:
one epoch on SNLI's texts lowers the perplexity from 72.1 to 16.8, and the task gains.
Scales: toy (minutes on two cores; the biLM knows a toy world of four topics, the task has eight), laptop (novels,
SNLI), one_gpu, paper. The biLM is shared with elmo_table2. The perplexity is measured on held-out texts of the task.
Cost: toy, 190 seconds of processor time in 5 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=elmo_domain --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import ELMO, TOY_ELSEWHERE

SCALES = ("toy", "laptop", "one_gpu", "paper")
PERPLEXITY = "perplexity of SNLI's texts (lower is better)"
PAPER = Paper(
    source="Peters et al. 2018, table 7",
    columns=(PERPLEXITY, "SNLI"),
    rows={"as pretrained": (72.1, None), "adapted": (16.8, None)},
    reference="as pretrained",
)

NOTES = {
    "toy": "The perplexity falls as in the paper. The task does not gain: three epochs over 128 sentences teach the "
    "biLM the words of a world that it does not know, but not how they are related."
}


def sweep(add: Add) -> None:
    """Add one biLM, and a network on its layers before and after it has read the task's texts."""
    s = ELMO[add.scale]
    toy = add.scale == "toy"
    same: dict[str, Any] = {"encoder": s.pretrain(add), **(TOY_ELSEWHERE if toy else {})}
    s.cell(add, "as pretrained", "SNLI", **same)
    adapted = s.cell(add, "adapted", "SNLI", **{**same, "adapt.epochs": 3.0 if toy else 1.0})
    for row, when in (("as pretrained", "before/"), ("adapted", "")):
        shown = f"adapted/{when}held_out/perplexity"
        add.figure(row, PERPLEXITY, adapted, of="of texts held out, the mean of both directions", score=shown)
