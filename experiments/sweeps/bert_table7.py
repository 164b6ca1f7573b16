r"""BERT, table 7: frozen layers as features for named entities, compared with fine-tuning.

Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 5.3, table 7, BERT-base on the
dev data of CoNLL-2003: the concatenation of the last four layers is within 0.3 F1 of fine-tuning the whole model.
Scales: toy (minutes on two cores; a model of four layers, so two rows are the same runs), one_gpu (BERT-small, 100,000
steps; also four layers), paper. Cost: toy, 200 seconds of processor time in 13 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=bert_table7 --jobs=2 --workdir=runs/sweeps
With a limit of nine minutes on a GPU, again as long as the exit status is 75:
  timeout --preserve-status 540 python -m experiments.sweep --sweep=bert_table7 \
      --scale=one_gpu --data=data --devices=0 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import BERT

SCALES = ("toy", "one_gpu", "paper")
PAPER = Paper(
    source="Devlin et al. 2018, table 7, dev",
    columns=("NER",),
    rows={
        "fine-tuned": (96.4,),
        "embeddings": (91.0,),
        "second-to-last layer": (95.6,),
        "last layer": (94.9,),
        "weighted sum of the last four": (95.9,),
        "the last four, side by side": (96.1,),
        "weighted sum of all layers": (95.5,),
    },
    reference="fine-tuned",
)
NOTES = {
    "toy": "Rows in another order than the paper's differ by less than two points. The model has four layers, so the "
    "weighted sums of the last four and of all are the same runs."
}
LAST_FOUR = "-4,-3,-2,-1"


def sweep(add: Add) -> None:
    """Add one pretraining, fine-tuned as a whole and used layer by layer."""
    s = BERT[add.scale]
    size, layers = ({"model.num_layers": 4}, 4) if add.scale == "toy" else ({}, s.layers)
    bert = s.pretrain(add, f"BERT, {layers} layers", **size)
    s.cell(add, "fine-tuned", "NER", "finetune:entities", s.entities, init=bert, **s.tuning)
    every = ",".join(map(str, range(1, layers + 1)))
    for row, read, combine in (
        ("embeddings", "0", "concat"),
        ("second-to-last layer", "-2", "concat"),
        ("last layer", "-1", "concat"),
        ("weighted sum of the last four", LAST_FOUR if layers > 4 else every, "mix"),
        ("the last four, side by side", LAST_FOUR, "concat"),
        ("weighted sum of all layers", every, "mix"),
    ):
        how = {**s.features, "features.layers": read, "features.combine": combine}
        s.cell(add, row, "NER", "finetune:entities_features", s.entities, init=bert, **how)
