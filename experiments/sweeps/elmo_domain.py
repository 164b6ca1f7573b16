r"""ELMo, domain adaptation: the biLM reads the task's own texts, without labels, before its layers go into a network.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 3.4 and the appendix's table 7:
on SNLI's texts an epoch takes the perplexity from 72.1 to 16.8, and the task gains by it.
Scales: toy (minutes of two cores: the biLM knows a toy world of four topics, the task speaks of eight), laptop (novels,
SNLI), one_gpu, paper. The biLM is that of elmo_table2. The perplexity is that of texts of the task that were held out
of the reading. What lies below --data: experiments/sweeps/_scales.py. Cost: toy, 190 seconds of processor time in 5
runs; the others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/elmo_domain.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from experiments.sweeps._scales import ELMO, TOY_ELSEWHERE

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
    "biLM the words of a world that it does not know, not what these have to do with one another."
}


def sweep(add: Add) -> None:
    """One biLM, and a task's network on its layers before and after it has read the task's texts."""
    s = ELMO[add.scale]
    elmo = add.pretrain("ELMo", s.config, **s.pretraining)
    network, task, how = s.tasks["SNLI"]
    settings = TOY_ELSEWHERE if add.scale == "toy" else task.settings
    same: dict[str, Any] = {"of": task.of, "seeds": s.seeds, "encoder": elmo, **settings, **how}
    add.transfer("as pretrained", "SNLI", network, **same)
    adapted = add.transfer("adapted", "SNLI", network, **{**same, "adapt.epochs": 3.0 if add.scale == "toy" else 1.0})
    for row, when in (("as pretrained", "before/"), ("adapted", "")):
        shown = f"adapted/{when}held_out/perplexity"
        add.figure(row, PERPLEXITY, adapted, of="of texts held out, the mean of both directions", score=shown)
