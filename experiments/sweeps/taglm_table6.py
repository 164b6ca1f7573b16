"""TagLM, table 6: the size of the language model, its directions, and one of the task's own text alone.

Paper and expected score: Peters et al. 2017, https://arxiv.org/abs/1705.00108, table 6, test F1. Perplexities of its
models, forward and backward: own text 106.9 and 104.2 (on that text), small 47.7 and 47.3, large 30.0. Its best row has
the large model forward and the small one backward; here both directions are of the large one.
Scales: toy (minutes on two cores, words with several senses as entities), one_gpu (the large model is ELMo-medium),
paper (the paper's sizes). At toy and one_gpu scale the large model is shared with elmo_table2. The model of the task's
own text is new, after one step, and reads the training sentences (`adapt`). Cost: toy, 470 seconds of processor time in
17 runs, 5 of them shared with taglm_table5 or elmo_table2; the others are not measured yet.
Command: python -m experiments.sweep --sweep=taglm_table6 --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import ELMO
from ._taglm import COLUMN, OWN_TEXT, ROWS, SMALL, tag

SCALES = ("toy", "one_gpu", "paper")
MODELS: dict[str, tuple[str, str, float | None]] = {
    "own text, both": ("own text", "both", 90.79),
    "small, forward": ("small", "forward", 91.40),
    "small, backward": ("small", "backward", None),
    "small, both": ("small", "both", 91.62),
    "large, forward": ("large", "forward", 91.66),
    "large, both": ("large", "both", 91.93),
}
PAPER = Paper(
    source="Peters et al. 2017, table 6, test",
    columns=(COLUMN,),
    rows={row: (figure,) for row, figure in (ROWS | {row: published[2] for row, published in MODELS.items()}).items()},
    reference="no language model",
)
NOTES = {
    "toy": "As in the paper, the large model (perplexity 4.3) helps more than the small one (5.5), and both directions "
    "more than one. The model of the task's own text (21 on that text) helps as much as the small one, in the paper "
    "not at all; its two seeds differ by 15 points, so this is within chance."
}


def sweep(add: Add) -> None:
    """Add three biLMs, and the tagger with one direction of each or with both."""
    large: dict[str, Any] = {"model.cell_size": 8_192, "model.projection_size": 1_024} if add.scale == "paper" else {}
    new, adapted = OWN_TEXT[add.scale]
    changes = {"own text": new, "small": SMALL[add.scale], "large": large}
    s = ELMO[add.scale]
    models = {name: s.pretrain(add, f"biLM, {name}", **fields) for name, fields in changes.items()}
    tag(add, "no language model", None)
    for row, (name, directions, _) in MODELS.items():
        tag(add, row, models[name], directions=directions, **(adapted if name == "own text" else {}))
