r"""CoVe: word vectors alone, with characters, with CoVe, and with both.

A biattentive classification network reads frozen word vectors, and also convolutions over a word's characters, the last
layer of a frozen CoVe, or both. CoVe is pretrained by translation.

Paper and expected score: McCann et al. 2017, https://arxiv.org/abs/1708.00107, table 2 and, for the figures shown here,
the test scores of its best models, which have characters and CoVe: CoVe helps more than characters, and both together
most. The rows without published figures here were compared on dev data only.
Scales: toy (minutes on two cores; topics of sentences and words with several senses, English-Korean pairs, random word
vectors), one_gpu (200,000 updates of pretraining, a fifth of SNLI), paper.
Cost: toy, 420 seconds of processor time in 17 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=cove_table2 --jobs=2 --workdir=runs/sweeps
"""

from collections.abc import Mapping
from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from bert_elmo_jax.sweeps.points import File

from ._scales import ELMO, GLOVE, SNLI, SST2, ScaleTask

SCALES = ("toy", "one_gpu", "paper")
PAPER = Paper(
    source="McCann et al. 2017, test",
    columns=("SST-2", "SNLI"),
    rows={
        "GloVe": (None, None),
        "GloVe + characters": (None, None),
        "GloVe + CoVe": (None, None),
        "GloVe + characters + CoVe": (90.3, 88.1),
    },
    reference="GloVe",
)
NOTES = {
    "toy": "There are no GloVe vectors of the toy world's words: all rows begin with random vectors, which are "
    "trained. CoVe helps more than characters, as in the paper. Both together are not better than CoVe alone: the "
    "difference, two to four points, is smaller than that between the two seeds."
}
TOY: dict[str, Any] = {"data": "toyworld", "steps": 1_500, "eval_every": 1_500, "checkpoint_every": 500}
WMT: dict[str, Any] = {"data": File("corpora/wmt_words"), "vectors": GLOVE["vectors"]}
SIZES: dict[str, Any] = {"lstm_size": 300, "feed_size": 300, **GLOVE}
SEEDS = {"toy": (0, 1), "one_gpu": (0, 1, 2), "paper": (0, 1, 2, 3, 4)}
TASKS: dict[str, dict[str, tuple[str, ScaleTask, Mapping[str, Any]]]] = {
    # The toy task for SNLI needs context: words with several senses.
    "toy": {column: ELMO["toy"].tasks[name] for column, name in (("SST-2", "SNLI"), ("SNLI", "SRL"))},
    "one_gpu": {
        "SST-2": ("bcn", ScaleTask("SST-2, accuracy", SST2), SIZES),
        "SNLI": ("bcn", ScaleTask("SNLI, a fifth of its pairs, accuracy", SNLI), {**SIZES, "share": 0.2}),
    },
    "paper": {
        "SST-2": ("bcn", ScaleTask("SST-2, accuracy", SST2), SIZES),
        "SNLI": ("bcn", ScaleTask("SNLI, accuracy", SNLI), SIZES),
    },
}


def sweep(add: Add) -> None:
    """Add one CoVe, and each task with and without it."""
    fewer = {"steps": 200_000} if add.scale == "one_gpu" else {}
    name, settings = ("toy", TOY) if add.scale == "toy" else ("original", {**WMT, **fewer})
    cove = add.pretrain("CoVe", f"cove:{name}", **settings)
    # Only the last layer, so there is no mixture to learn.
    with_cove = {"encoder": cove, "layers": "-1", "mix_l2": 0.0, "mix_dropout": 0.0}
    for column, (network, task, how) in TASKS[add.scale].items():
        for row in PAPER.rows:
            settings = {**how, "unknown": "characters" if "characters" in row else "unk", **task.settings}
            settings |= with_cove if "CoVe" in row else {}
            add.transfer(row, column, network, of=task.of, seeds=SEEDS[add.scale], **settings)
