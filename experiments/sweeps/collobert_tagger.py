r"""The table of 2012: taggers with hand-made features, and with a network on a window of 11 words.

A linear conditional random field reads words, suffixes, capitals and, for entities, a gazetteer of the training part.
The network begins with random vectors or pretrained ones, learns by the likelihood of sentences or of single words,
and may read features, too: suffixes and capitals for parts of speech, capitals and the gazetteer for entities.

Paper and expected score: Collobert et al. 2011, https://arxiv.org/abs/1103.0398, as lectures quote it: parts of speech
of WSJ (accuracy), entities of CoNLL-2003 (F1), both on test data. The first row there is the best system of the time.
Scales: toy (minutes on two cores; words with several senses as entities, our own vectors of the toy world's text),
laptop (UD and UNER English EWT, GloVe). Cost: laptop, about two minutes of processor time for a run
(docs/results/small_models.md); toy, five minutes of processor time in 16 runs.
Command: python -m experiments.sweep --sweep=collobert_tagger --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import GLOVE, TOY_DATA, TOY_DOCUMENTS, TOY_SENSES, UNER, UPOS, ScaleTask

SCALES = ("toy", "laptop")
NOTES = {
    "toy": "The order is reversed: the entities here are words of two senses. The features, capitals and a "
    "gazetteer that lists most of these words under both senses, cannot tell them apart."
}
PAPER = Paper(
    source="Collobert et al. 2011, as quoted in Manning's tutorial of 2012, test",
    columns=("POS", "NER"),
    rows={
        "features, no network": (97.24, 89.31),
        "network, word likelihood": (None, None),
        "network": (96.37, 81.47),
        "network, pretrained vectors": (97.20, 88.87),
        "network, pretrained vectors, features": (97.29, 89.59),
    },
    reference="network",
)
_ONCE: dict[str, Any] = {"eval_every": 100_000, "patience": 0}
_TOY: dict[str, Any] = {"epochs": 40.0, "batch_size": 16, "min_count": 2, "optimizer.learning_rate": 5e-3, **_ONCE}
_LAPTOP: dict[str, Any] = {"epochs": 4.0, "batch_size": 32, **_ONCE}
SIZES: dict[str, dict[str, Any]] = {"toy": {"lstm_size": 32}, "laptop": {}}  # of the network
FEATURES: dict[str, dict[str, Any]] = {
    "POS": {"suffix": 2, "capitals": True}, "NER": {"capitals": True, "gazetteer": True}
}  # fmt: skip
TASKS: dict[str, tuple[dict[str, Any], dict[str, ScaleTask]]] = {
    "toy": (_TOY, {"NER": ScaleTask("words of several senses as entities (toy world), F1", TOY_SENSES)}),
    "laptop": (
        _LAPTOP,
        {
            "POS": ScaleTask("parts of speech (UD English EWT), accuracy", UPOS),
            "NER": ScaleTask("entities (UNER English EWT), F1", UNER),
        },
    ),
}


def sweep(add: Add) -> None:
    """Add a linear tagger and four networks for each task."""
    vectors: Any = GLOVE["vectors"]
    if add.scale == "toy":
        text = TOY_DATA.corpus("words", 8_192, TOY_DOCUMENTS)
        vectors = add.pretrain("vectors", "static:toy", data=text, steps=1_000, eval_every=1_000, checkpoint_every=500)
    shared, tasks = TASKS[add.scale]
    for column, task in tasks.items():
        rows: dict[str, tuple[str, dict[str, Any]]] = {
            "features, no network": ("window:linear", FEATURES[column]),
            "network, word likelihood": ("window", {"output": "softmax"}),
            "network": ("window", {}),
            "network, pretrained vectors": ("window", {"vectors": vectors}),
            "network, pretrained vectors, features": ("window", {"vectors": vectors, **FEATURES[column]}),
        }
        for row, (config, how) in rows.items():
            size = {} if config == "window:linear" else SIZES[add.scale]
            add.transfer(row, column, config, of=task.of, seeds=(0, 1, 2), **{**shared, **size, **task.settings, **how})
