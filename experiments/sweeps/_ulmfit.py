"""The scales of ULMFiT's tables: language models, tasks, sizes and seeds; `_scales.py` lists their files."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_elmo_jax.sweeps.definition import Add
from bert_elmo_jax.sweeps.points import File, Point
from bert_elmo_jax.sweeps.toy_tasks import ToyData

from ._scales import SST2, TOY_DATA, TOY_DOCUMENTS, ScaleTask, Settings, files, toy

IMDB, TREC, AG = COLUMNS = ("IMDb", "TREC-6", "AG")
NO_DROPOUT: dict[str, Any] = {
    f"model.{name}": 0.0
    for name in ("output_dropout", "hidden_dropout", "input_dropout", "embedding_dropout", "weight_dropout")
}


# For the toy model, whose recipe has none.
TOY_DROPOUT: dict[str, Any] = {
    "model.output_dropout": 0.1,
    "model.hidden_dropout": 0.1,
    "model.input_dropout": 0.1,
    "model.embedding_dropout": 0.02,
    "model.weight_dropout": 0.1,
}


class Scale(NamedTuple):
    """ULMFiT at a scale: the general language model, the tasks by the papers' names, and how they are trained."""

    config: str
    pretraining: Settings
    tasks: Mapping[str, ScaleTask]
    tuning: Settings  # of the second and the third stage
    seeds: tuple[int, ...]
    few: tuple[str, ...] = ()  # the tasks of long tables; by default all

    def pretrain(self, add: Add, name: str = "language model", **more: Any) -> Point:
        """Add the general language model with some settings changed."""
        return add.pretrain(name, self.config, **{**self.pretraining, **more})

    def row(self, add: Add, row: str, *, long: bool = False, **more: Any) -> None:
        """Add a row: the full ULMFiT with some settings changed, on all tasks; in a `long` table on few tasks."""
        for column in self.few if long and self.few else self.tasks:
            self.cell(add, row, column, column, **more)

    def cell(self, add: Add, row: str, column: str, task: str, **more: Any) -> None:
        """Add a cell of a task."""
        settings = {**self.tuning, **self.tasks[task].settings, **more}
        add.transfer(row, column, "ulmfit", of=self.tasks[task].of, seeds=self.seeds, **settings)


# Without them, a model is trained with one constant rate for all layers and all at once.
FULL: Settings = {"transfer": "all", "layer_decay": 1.0, "optimizer.schedule": "constant", "optimizer.warmup": 0.0}
LM_FULL: Settings = {"lm.layer_decay": 1.0, "lm.optimizer.schedule": "constant", "lm.optimizer.warmup": 0.0}
NO_LM: Settings = {"lm.epochs": 0.0, "unlabelled": ""}
DISCRIMINATIVE: Settings = {"layer_decay": 1 / 2.6}
TRIANGLE: Settings = {"optimizer.schedule": "slanted_triangular", "optimizer.warmup": 0.1}
GRADUAL: Settings = {"transfer": "gradual"}

_TOY_TOPICS = toy(TOY_DATA, "topics")
# Topics and words that the language model does not know.
_TOY_ELSEWHERE = toy(ToyData(topics=8, words=6, train=128, dev=256), "topics")
_COLUMNS = {"task": "classification", "text": "text", "label": "label"}
_IMDB = {**_COLUMNS, **files("imdb", "train.tsv", "dev.tsv"), "unlabelled": File("imdb/unlabelled.txt")}
_TREC = {"task": "trec", **files("trec", "train.txt", "dev.txt")}

ULMFIT = {
    "toy": Scale(
        "awd_lstm:toy",
        {"data": TOY_DATA.corpus("words", 8_192, TOY_DOCUMENTS), "steps": 1_000, "batch_size": 64,
         "eval_every": 1_000, "checkpoint_every": 250, "eval_batches": 4},
        {
            TREC: ScaleTask("topic of a sentence (toy world), accuracy", _TOY_TOPICS),
            AG: ScaleTask("topic of a sentence (a toy world that the language model does not know), accuracy",
                          _TOY_ELSEWHERE),
        },
        {"preset": "toy", "drop_factor": 0.25, "lm.drop_factor": 0.0, "lm.epochs": 10.0, "lm.batch_size": 8,
         "lm.length": 16, "lm.spread": 2, "lm.coefficients.activation": 0.0, "lm.coefficients.change": 0.0,
         "epochs": 40.0, "batch_size": 16, "eval_every": 100_000},
        (0, 1), (TREC,),
    ),
    "one_gpu": Scale(
        "awd_lstm:original", {"data": File("corpora/wikitext103"), "steps": 60_000, "model.dtype": "bfloat16"},
        {
            IMDB: ScaleTask("IMDb, a fifth of its labels, accuracy", {**_IMDB, "share": 0.2}),
            TREC: ScaleTask("TREC-6, accuracy", _TREC),
        },
        {"dtype": "bfloat16", "lm.epochs": 5.0}, (0, 1, 2),
    ),
    "paper": Scale(
        "awd_lstm:original", {"data": File("corpora/wikitext103")},
        {
            IMDB: ScaleTask("IMDb, accuracy", _IMDB),
            TREC: ScaleTask("TREC-6, accuracy", _TREC),
            AG: ScaleTask("AG, accuracy", {**_COLUMNS, **files("ag", "train.tsv", "dev.tsv")}),
        },
        {}, (0, 1, 2, 3, 4),
    ),
}  # fmt: skip


class Text(NamedTuple):
    """A text in one language: its general language model, and the task whose language model and classifiers follow."""

    language: str
    config: str
    pretraining: Settings
    task: Settings
    tuning: Settings  # of the language model, in addition to `Real.lm`
    columns: Mapping[str, tuple[str, Settings]]  # the columns' titles, and the settings of their classifiers


class Real(NamedTuple):
    """A scale of ulmfit_real: its texts by name, and what all language models and classifiers have in common."""

    texts: Mapping[str, Text]
    lm: Settings
    classifier: Settings
    seeds: tuple[int, ...]
    one_rate: float  # of all layers, where they have no rates of their own


def _nsmc(labels: int, epochs: float, batch_size: int) -> tuple[str, Settings]:
    return f"NSMC, {labels:,} labels, accuracy", {
        "share": labels / 10_000, "epochs": epochs, "batch_size": batch_size
    }  # fmt: skip


_NOVELS: Settings = {"data": File("corpora/novels_words"), "steps": 1_000, "eval_every": 1_000, "eval_batches": 10}
_TOY_KOREAN = TOY_DATA._replace(language="ko")
_TOY_LM, _TOY_FEW = ULMFIT["toy"].pretraining, {"batch_size": 16, "epochs": 40.0}
REAL_COLUMNS = ("TREC-6", "SST-2, 1%", "SST-2, 10%", "NSMC, 100", "NSMC, 1,000", "NSMC, 10,000")
REAL = {
    "toy": Real(
        {
            "TREC-6": Text("English", "awd_lstm:toy", _TOY_LM, _TOY_TOPICS, {}, {
                REAL_COLUMNS[0]: ("topic of a sentence (toy world), accuracy", _TOY_FEW)}),
            "NSMC": Text(
                "Korean", "awd_lstm:toy", {**_TOY_LM, "data": _TOY_KOREAN.corpus("sentencepiece", 400, TOY_DOCUMENTS)},
                toy(_TOY_KOREAN, "topics"), {"unlabelled": _TOY_KOREAN.file("topics", "train")},
                {REAL_COLUMNS[3]: ("topic of a sentence (toy world in Korean), 38 labels, accuracy",
                                   {**_TOY_FEW, "share": 0.3})}),
        },
        {"lm.drop_factor": 0.0, "lm.epochs": 10.0, "lm.batch_size": 8, "lm.length": 16, "lm.spread": 2},
        {"drop_factor": 0.25, "eval_every": 100_000}, (0, 1), 1e-2,
    ),
    "laptop": Real(
        {
            "TREC-6": Text(
                "English", "awd_lstm:novels", _NOVELS, _TREC,
                {"lm.epochs": 4.0, "lm.batch_size": 16, "lm.length": 35},
                {REAL_COLUMNS[0]: ("TREC-6, accuracy", {"epochs": 6.0, "batch_size": 32})}),
            "SST-2": Text(
                "English", "awd_lstm:novels", _NOVELS, SST2,
                {"share": 0.01, "unlabelled": SST2["train"], "lm.epochs": 1.0},
                {REAL_COLUMNS[1]: ("SST-2, 673 labels, accuracy", {"share": 0.01, "epochs": 10.0, "batch_size": 16}),
                 REAL_COLUMNS[2]: ("SST-2, 6,735 labels, accuracy", {"share": 0.1, "epochs": 5.0, "batch_size": 32})}),
            "NSMC": Text(
                "Korean", "awd_lstm:korean", {"data": File("corpora/korean_pieces"), "steps": 750},
                {"task": "nsmc", **files("nsmc", "train_10000.tsv", "dev.tsv")},
                {"share": 0.01, "unlabelled": File("nsmc/unlabelled.txt"), "lm.epochs": 1.0},
                dict(zip(REAL_COLUMNS[3:], (_nsmc(100, 20.0, 16), _nsmc(1_000, 10.0, 32), _nsmc(10_000, 5.0, 64))))),
        },
        {"lm.drop_factor": 0.25, "lm.batch_size": 32, "lm.eval_batches": 10},
        {"drop_factor": 0.5, "eval_every": 100_000}, (0, 1, 2), 2e-3,
    ),
}  # fmt: skip


def as_accuracies(*errors: float) -> tuple[float, ...]:
    """Return the papers' validation errors as accuracies, which the tables here have."""
    return tuple(round(100 - error, 2) for error in errors)
