"""TagLM, table 5: where the language model's top layer enters a tagger of two BiGRUs.

Paper and expected score: Peters et al. 2017, https://arxiv.org/abs/1705.00108, table 5, test F1: after the first BiGRU
91.93 ± 0.19, after the second 91.72 ± 0.13, at the input 91.55 ± 0.21; without a language model 90.87 ± 0.13 (table 6).
Tables 1 to 4 compare TagLM (91.93; chunks 96.37) with systems of others, some with more labelled data or lists of
names.
Scales: toy (minutes on two cores, words with several senses as entities), laptop (novels, UNER), one_gpu, paper. The
biLM is shared with elmo_table2. Cost: toy, 250 seconds of processor time in 9 runs; laptop, 91 minutes, 49 of them for
the biLM; the others are not measured yet.
Command: python -m experiments.sweep --sweep=taglm_table5 --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import ELMO
from ._taglm import COLUMN, ROWS, tag

SCALES = ("toy", "laptop", "one_gpu", "paper")
PLACES = {
    "at the input": ("input", 91.55),
    "after the first BiGRU": ("between", 91.93),
    "after the second BiGRU": ("output", 91.72),
}
PAPER = Paper(
    source="Peters et al. 2017, table 5 (without a language model: table 6), test",
    columns=(COLUMN,),
    rows={row: (figure,) for row, figure in (ROWS | {row: figure for row, (_, figure) in PLACES.items()}).items()},
    reference="no language model",
)
NOTES = {
    "toy": "The language model helps at every place. At the input and after the first BiGRU it helps equally within "
    "chance; after the second it helps least, in the paper at the input."
}


def sweep(add: Add) -> None:
    """Add one biLM, and the tagger with its top layer at each place."""
    elmo = ELMO[add.scale].pretrain(add)
    tag(add, "no language model", None)
    for row, (place, _) in PLACES.items():
        tag(add, row, elmo, places=place)
