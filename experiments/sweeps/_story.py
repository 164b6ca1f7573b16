"""The systems of 2013 to 2024 at equal budgets: their pretrainings, tasks and languages at each scale, for `story`.

The steps are chosen so that all positions of a system's rows together cost BUDGETS, as `count_budget` counts them;
tests/sweeps/test_equal_budgets.py counts again. Static vectors are the exception: they are done after far fewer
operations. A DistilBERT has the budget for itself; its teacher is the BERT of the same language.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_elmo_jax.sweeps.points import File
from bert_elmo_jax.sweeps.toy_tasks import ToyData

from ._scales import ELMO, NSMC, SNLI, SQUAD, SST2, UNER, ScaleTask, Settings, files, toy

# When each system's paper appeared, in the order of the table.
YEARS = {
    "static vectors": 2013.0, "CoVe": 2017.6, "AWD-LSTM": 2017.6, "ELMo": 2018.1, "GPT": 2018.4, "BERT": 2018.8,
    "RoBERTa": 2019.5, "DistilBERT": 2019.8, "ELECTRA": 2020.2, "ModernBERT": 2024.9,
}  # fmt: skip
BUDGETS = {"toy": 4e11, "laptop": 1.2e13}  # operations of each pretraining


class Sizes(NamedTuple):
    """The settings of a scale that systems share: rows of pieces, of words and of pairs, and the widths of layers."""

    pieces: Settings
    words: Settings
    pairs: Settings
    width: int
    elmo: Settings
    awd_lstm: Settings
    static: Settings


class Task(NamedTuple):
    """A task: its language, its measurement and files, the network that reads frozen layers, and its seeds."""

    language: str
    task: ScaleTask
    network: str
    settings: Settings
    seeds: tuple[int, ...]


def list_systems(sizes: Sizes, steps: Mapping[str, int], language: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the config and the settings of each system's pretraining, evaluated once, at its end."""
    width = sizes.width
    layers: dict[str, Any] = {
        **sizes.pieces, "optimizer.warmup": 0.1, "model.num_layers": 2, "model.hidden_size": width,
        "model.num_heads": 4, "model.feed_forward_size": 4 * width,
    }  # fmt: skip
    systems: dict[str, tuple[str, dict[str, Any]]] = {
        "static vectors": ("static:toy", {"data": sizes.words["data"], **sizes.static}),
        "CoVe": ("cove:toy", {**sizes.pairs, "translations": 0, "reverse": language == "ko"}),
        "ELMo": ("elmo:toy", {**sizes.words, **sizes.elmo}),
        "AWD-LSTM": ("awd_lstm:toy", {**sizes.words, **sizes.awd_lstm}),
        "GPT": ("gpt:toy", layers),
        "BERT": ("bert:toy", layers),
        "RoBERTa": ("roberta:toy", layers),
        "DistilBERT": ("distilbert:distil_toy", {**layers, "model.num_layers": 1}),  # half of the BERT, its teacher
        "ELECTRA": ("electra:toy", {**layers, "model.embedding_size": width}),
        # Its feed-forward layers are gated, so they have three matrices instead of two.
        "ModernBERT": ("modernbert:toy", {**layers, "model.feed_forward_size": 2 * width}),
    }
    once = {name: {"steps": n, "eval_every": n, "checkpoint_every": n, "eval_batches": 4} for name, n in steps.items()}
    return {name: (config, {**settings, **once[name]}) for name, (config, settings) in systems.items()}


# No run chooses a model on dev. No vectors from files: their text would be part of the budget.
_ONCE: dict[str, Any] = {"eval_every": 100_000, "patience": 0, "mix_l2": 0.001, "unknown": "classes"}
_TOY_WORLD = ToyData(topics=4, words=2, train=128, dev=256)
_TOY_BOTH = _TOY_WORLD._replace(language="en_ko")
_TOY = Sizes(
    {"data": _TOY_BOTH.corpus("wordpiece", 8_192, 3_000), "batch_size": 32, "length": 24, "sequences": 1,
     "optimizer.learning_rate": 5e-3, "model.max_positions": 64},
    {"data": _TOY_BOTH.corpus("words", 8_192, 3_000), "batch_size": 32, "length": 20},
    {"data": "toyworld", "toyworld.words": 2, "toyworld.documents": 6_000, "batch_size": 32,
     "model.vector_size": 32, "model.lstm_size": 32, "model.target_size": 32},
    64,
    {"model.cell_size": 64, "model.projection_size": 32, "model.filters": ((1, 16), (2, 16), (3, 32))},
    {"model.embedding_size": 64, "model.cell_size": 64},
    {"model.hidden_size": 64},
)  # fmt: skip
_LAPTOP = Sizes(
    {"data": File("corpora/novels"), "batch_size": 32, "length": 64, "sequences": 8, "model.max_positions": 128},
    {"data": File("corpora/novels_words"), "batch_size": 64, "length": 20},
    {"data": File("corpora/sts_words"), "batch_size": 64, "length": 48, "target_length": 48},
    128,
    {"model.cell_size": 256, "model.projection_size": 64, "model.filters": ((1, 16), (2, 16), (3, 32), (4, 64)),
     "negatives": 2_048},
    {"model.embedding_size": 128, "model.cell_size": 256},
    {"model.hidden_size": 100, "batch_size": 64},
)  # fmt: skip
_LAPTOP_KOREAN = _LAPTOP._replace(
    pieces={**_LAPTOP.pieces, "data": File("corpora/reviews")},
    words={**_LAPTOP.words, "data": File("corpora/reviews_words")},
)
STEPS = {
    ("toy", "en"): {
        "static vectors": 2_000, "CoVe": 631, "ELMo": 890, "AWD-LSTM": 958, "GPT": 437, "BERT": 714,
        "RoBERTa": 714, "DistilBERT": 1_252, "ELECTRA": 560, "ModernBERT": 710,
    },
    ("laptop", "en"): {
        "static vectors": 10_000, "CoVe": 154, "ELMo": 1_834, "AWD-LSTM": 353, "GPT": 670, "BERT": 1_648,
        "RoBERTa": 1_648, "DistilBERT": 2_574, "ELECTRA": 1_336, "ModernBERT": 1_424,
    },
    ("laptop", "ko"): {
        "static vectors": 10_000, "CoVe": 154, "ELMo": 1_834, "AWD-LSTM": 353, "GPT": 400, "BERT": 1_304,
        "RoBERTa": 1_304, "DistilBERT": 1_824, "ELECTRA": 1_102, "ModernBERT": 978,
    },
}  # fmt: skip
# The toy systems read both languages. A CoVe reads the first one of its pairs only.
SYSTEMS = {
    "toy": {language: list_systems(_TOY, STEPS["toy", "en"], language) for language in ("en", "ko")},
    "laptop": {
        "en": list_systems(_LAPTOP, STEPS["laptop", "en"], "en"),
        "ko": list_systems(_LAPTOP_KOREAN, STEPS["laptop", "ko"], "ko"),
    },
}


def _list_toy_tasks() -> dict[str, Task]:
    # Of one width: systems with equally many layers share the compiled network, and compiling takes longer than a run.
    how = {**_ONCE, "layers": "top", "mix_l2": 0.0, "epochs": 60.0}
    texts = ("bcn", {**ELMO["toy"].tasks["SNLI"][2], **how}, (0,))
    words = ("tagger", {**ELMO["toy"].tasks["SRL"][2], **how}, (0,))
    tasks = {}
    for language, name in (("en", "English"), ("ko", "Korean")):
        senses = ScaleTask(
            f"words of several senses as entities (toy world, {name}), F1",
            toy(_TOY_WORLD._replace(language=language), "senses"),
        )
        tasks[f"senses, {name}"] = Task(language, senses, *words)
    pairs = _TOY_WORLD._replace(train=512)
    columns = {"task": "classification", "text": "a", "pair": "b", "label": "label"}
    following = {**columns, **{part: pairs.file("next", part) for part in ("train", "dev")}}
    measured = ScaleTask("does a sentence follow another (toy world, English), accuracy", following)
    return {**tasks, "inference, English": Task("en", measured, *texts)}


def _list_laptop_tasks() -> dict[str, Task]:
    network = {
        "lstm_size": 64, "word_size": 50, "dropout": 0.2, "mix_dropout": 0.2, "batch_size": 32,
        "optimizer.learning_rate": 2e-3, **_ONCE,
    }  # fmt: skip
    words = ("tagger", {**network, "lstm_layers": 1, "epochs": 6.0}, (0, 1, 2))
    texts = ("bcn", {**network, "feed_size": 64, "epochs": 3.0}, (0, 1, 2))
    pairs = ("esim", {**network, "epochs": 6.0, "max_length": 48}, (0, 1, 2))
    questions = ("bidaf", {**network, "epochs": 3.0, "max_length": 200}, (0,))
    ewt, gsd = (
        {"task": "ud_upos", **files(f"ud_{name}", f"{bank}-ud-train.conllu", f"{bank}-ud-dev.conllu")}
        for name, bank in (("english", "en_ewt"), ("korean", "ko_gsd"))
    )
    part = {"share": 0.25}
    return {
        "part of speech, English": Task("en", ScaleTask("UD EWT, a quarter, accuracy", {**ewt, **part}), *words),
        "entities, English": Task("en", ScaleTask("UNER English EWT, a quarter, F1", {**UNER, **part}), *words),
        "sentiment, English": Task("en", ScaleTask("SST-2, a tenth, accuracy", {**SST2, "share": 0.1}), *texts),
        "inference, English": Task("en", ScaleTask("SNLI, accuracy", SNLI), *pairs),
        "questions, English": Task("en", ScaleTask("SQuAD 1.1, F1", SQUAD), *questions),
        "part of speech, Korean": Task("ko", ScaleTask("UD Korean GSD, accuracy", gsd), *words),
        "sentiment, Korean": Task("ko", ScaleTask("NSMC, a tenth, accuracy", {**NSMC, "share": 0.1}), *texts),
    }


TASKS = {"toy": _list_toy_tasks(), "laptop": _list_laptop_tasks()}
