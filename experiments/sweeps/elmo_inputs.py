r"""The input and the softmax of ELMo's language model: characters, words, or words that share the softmax's vectors.

A biLM reads words by their characters, or has a vector for each. With words, softmax and input can share their vectors.
The columns are perplexity, all parameters, and the F1 of a tagger on the layers.

Paper and expected score: none for these rows; Józefowicz et al. 2016, https://arxiv.org/abs/1602.02410, table 1:
characters in place of word vectors cost no perplexity (30.0 and 30.6) at 1.04 and 1.8 billion parameters.
Scales: toy (minutes on two cores) and laptop (novels, entities; not measured).
Cost: toy, six minutes of processor time in 9 runs.
Command: python -m experiments.sweep --sweep=elmo_inputs --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add

from ._scales import ELMO

SCALES = ("toy", "laptop")
ROWS: dict[str, dict[str, Any]] = {
    "characters": {},
    "words": {"model.input": "words"},
    "words, tied": {"model.input": "words", "model.tie_softmax": True},
}


def sweep(add: Add) -> None:
    """Add three pretrainings, what they cost, and a tagger on each."""
    s = ELMO[add.scale]
    for row, how in ROWS.items():
        elmo = s.pretrain(add, "ELMo" if row == "characters" else f"ELMo, {row}", **how)
        add.figure(row, "perplexity", elmo, of="of held-out words, both directions", score="held_out/perplexity")
        add.figure(row, "parameters", elmo, of="all that are trained, in millions", score="all parameters")
        s.cell(add, row, "tagger", "SRL", encoder=elmo)
