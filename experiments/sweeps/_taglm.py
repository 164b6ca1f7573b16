"""TagLM at the scales of its sweeps: the tagger, its task, and language models of three sizes."""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add
from bert_elmo_jax.sweeps.points import Point

from ._scales import CONLL, ELMO, GLOVE, UNER, ScaleTask

COLUMN = "CoNLL-2003"  # the paper's task
ROWS = {"no language model": 90.87}  # of both tables
_TOY: dict[str, Any] = {
    "lstm_size": 24, "word_size": 24, "dropout": 0.1, "batch_size": 64, "epochs": 100.0, "patience": 0,
    "eval_every": 100_000, "character_size": 8, "character_embedding_size": 8, "character_layers": 1,
    "optimizer.learning_rate": 5e-3,
}  # fmt: skip
_LAPTOP: dict[str, Any] = {
    "lstm_size": 100, "character_size": 25, "character_layers": 1, "epochs": 8.0, "share": 0.25, "batch_size": 16,
    "patience": 0, "vectors": GLOVE["vectors"],
}  # fmt: skip
_VECTORS = {"vectors": GLOVE["vectors"]}
TASKS: dict[str, tuple[ScaleTask, dict[str, Any], tuple[int, ...]]] = {
    "toy": (ELMO["toy"].tasks["SRL"][1], _TOY, (0, 1)),
    "laptop": (ScaleTask("UNER English EWT, a quarter of its sentences, F1", UNER), _LAPTOP, (0, 1, 2)),
    "one_gpu": (ScaleTask("CoNLL-2003, dev, F1", CONLL), _VECTORS, (0, 1, 2)),
    "paper": (ScaleTask("CoNLL-2003, dev, F1", CONLL), _VECTORS, tuple(range(10))),
}
# What differs from the biLM of ELMo's sweeps, for a smaller one and for one of the task's own text.
SMALL: dict[str, dict[str, Any]] = {
    "toy": {"model.cell_size": 16, "model.projection_size": 8},
    "one_gpu": {"model.cell_size": 1_024, "model.projection_size": 128},
    "paper": {"model.num_layers": 1, "model.cell_size": 2_048},
}
# One step, so that it knows nothing but the task's text, which it then reads as a language model.
_ONE_STEP: dict[str, Any] = {"steps": 1, "eval_every": 1, "checkpoint_every": 1}
_OWN_SIZES: dict[str, Any] = {"model.num_layers": 1, "model.cell_size": 512, "model.projection_size": 256}
OWN_TEXT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "toy": ({**_ONE_STEP, **SMALL["toy"]}, {"adapt.epochs": 30.0, "adapt.learning_rate": 5e-3}),
    "one_gpu": ({**_ONE_STEP, **_OWN_SIZES}, {"adapt.epochs": 10.0}),
    "paper": ({**_ONE_STEP, **_OWN_SIZES}, {"adapt.epochs": 10.0}),
}


def tag(add: Add, row: str, encoder: Point | None, **settings: Any) -> None:
    """Add the cell of a row: the tagger on a language model, or without one."""
    task, how, seeds = TASKS[add.scale]
    encoder_settings = {} if encoder is None else {"encoder": encoder, **settings}
    add.transfer(row, COLUMN, "taglm", of=task.of, seeds=seeds, **{**task.settings, **how, **encoder_settings})
