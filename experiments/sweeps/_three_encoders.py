"""ELMo, GPT and BERT at equal budgets: at each scale three pretrainings, the tasks, and how these are learned.

`Objective.work` of each family counts the operations of a token: six per weight of a matrix product. It leaves out
ELMo's convolutions, which are computed once for each different word. The steps are chosen so that operations times
tokens are equal; `one_gpu` and `paper` assume 32,000 pieces. tests/sweeps/test_equal_budgets.py counts them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_elmo_jax.sweeps.points import File

from ._scales import BERT, CONLL, ELMO, GPT, SST2, TOY_SENSES, TOY_TOPICS, UNER, ScaleTask, Settings

BUDGETS = {"toy": 2e12, "laptop": 1.2e13, "one_gpu": 1.06e17, "paper": 3.87e18}  # operations of each pretraining


class TaskScale(NamedTuple):
    """A task: its network for frozen layers, and its head for fine-tuning, each with its config and settings."""

    task: ScaleTask
    network: tuple[str, Settings]
    head: tuple[str, Settings]


class Scale(NamedTuple):
    """The three pretrainings by name, each a config and its settings, and the tasks by column."""

    pretrainings: Mapping[str, tuple[str, Settings]]
    tasks: Mapping[str, TaskScale]
    seeds: tuple[int, ...]


def _last(steps: int) -> dict[str, Any]:
    """Return the steps of a pretraining that is evaluated once, at its end."""
    return {"steps": steps, "eval_every": steps}


# No run chooses a model on dev: it ends after its epochs and is scored once.
_ONCE = {"eval_every": 100_000, "patience": 0}
_TOY_HEAD = {"epochs": 60.0, "batch_size": 64, "dropout": 0.0, "optimizer.learning_rate": 5e-4, **_ONCE}
_WORDS = {"mix_l2": 0.001, "unknown": "classes"}  # no word vectors: their text would be part of the budget
_LAPTOP_NETWORK: dict[str, Any] = {
    "lstm_size": 64, "word_size": 50, "dropout": 0.2, "mix_dropout": 0.2, "batch_size": 32,
    "optimizer.learning_rate": 2e-3, **_WORDS, **_ONCE,
}  # fmt: skip
_LAPTOP_HEAD: dict[str, Any] = {"dropout": 0.1, "optimizer.learning_rate": 5e-4, **_ONCE}
# The sizes of BERT's tables at this scale. Short rows and few of them, so that a small budget has many updates.
_LAPTOP_PIECES: dict[str, Any] = {
    **BERT["laptop"].pretraining, "batch_size": 64, "long_batch_size": 32, "checkpoint_every": 200,
}  # fmt: skip
_LAPTOP_WORDS: dict[str, Any] = {
    "data": File("corpora/novels_words"), "batch_size": 64, "model.cell_size": 256, "model.projection_size": 64,
    "model.filters": ((1, 16), (2, 16), (3, 32), (4, 64)), "eval_batches": 50,
}  # fmt: skip
_REAL_TASKS = {
    "SST-2": TaskScale(ScaleTask("SST-2, accuracy", SST2), ("bcn", _WORDS), ("finetune", {})),
    "NER": TaskScale(ScaleTask("CoNLL-2003, dev, F1", CONLL), ("tagger", _WORDS), ("finetune:entities", {})),
}
_ONE_GPU_BERT = {**BERT["one_gpu"].pretraining, "checkpoint_every": 2_500, "keep": 3}

SCALES = {
    "toy": Scale(
        {
            "ELMo": ("elmo:toy", {**ELMO["toy"].pretraining, **_last(2_700)}),
            "GPT": ("gpt:toy", {**GPT["toy"].pretraining, **_last(1_431)}),
            "BERT": ("bert:toy", {**BERT["toy"].pretraining, **_last(1_915)}),
        },
        {
            "SST-2": TaskScale(
                ScaleTask("topic of a sentence (toy world), accuracy", TOY_TOPICS),
                ("bcn", {**ELMO["toy"].tasks["SNLI"][2], **_WORDS}), ("finetune", _TOY_HEAD),
            ),
            "NER": TaskScale(
                ScaleTask("words of several senses as entities (toy world), F1", TOY_SENSES),
                ("tagger", {**ELMO["toy"].tasks["SRL"][2], **_WORDS}),
                ("finetune:entities", {**_TOY_HEAD, "context": False}),
            ),
        },
        (0, 1),
    ),
    "laptop": Scale(
        {
            "ELMo": ("elmo:novels", {**_LAPTOP_WORDS, **_last(1_834)}),
            "GPT": ("gpt:novels", {**_LAPTOP_PIECES, **_last(684)}),
            "BERT": ("bert:novels", {**_LAPTOP_PIECES, **_last(1_690)}),
        },
        {
            "SST-2": TaskScale(
                ScaleTask("SST-2 (a tenth of its phrases), accuracy", {**SST2, "share": 0.1}),
                ("bcn", {**_LAPTOP_NETWORK, "feed_size": 64, "epochs": 3.0}),
                ("finetune", {**_LAPTOP_HEAD, "epochs": 3.0}),
            ),
            "NER": TaskScale(
                ScaleTask("UNER English EWT (a quarter of its sentences), F1", {**UNER, "share": 0.25}),
                ("tagger", {**_LAPTOP_NETWORK, "lstm_layers": 1, "epochs": 6.0}),
                # Single sentences, as the network reads them.
                ("finetune:entities", {**_LAPTOP_HEAD, "context": False, "epochs": 6.0}),
            ),
        },
        (0, 1, 2),
    ),
    "one_gpu": Scale(
        {
            "ELMo": ("elmo:medium", {"data": File("corpora/wiki_words"), "steps": 300_000,
                                     "model.dtype": "bfloat16"}),
            "GPT": ("gpt:gpt1", {**GPT["one_gpu"].pretraining, "steps": 14_150}),
            "BERT": ("bert:small", {**_ONE_GPU_BERT, "steps": 34_400}),
        },
        _REAL_TASKS,
        (0, 1, 2),
    ),
    "paper": Scale(
        {
            "ELMo": ("elmo:original", {"data": File("corpora/wiki_words")}),
            "GPT": ("gpt:gpt1", {"data": File("corpora/wiki"), "steps": 165_500}),
            "BERT": ("bert:base", {"data": File("corpora/wiki"), "steps": 162_100}),
        },
        _REAL_TASKS,
        (0, 1, 2, 3, 4),
    ),
}  # fmt: skip
