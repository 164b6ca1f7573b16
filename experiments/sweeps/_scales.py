"""What the sweeps of a scale have in common: models, tasks, sizes, seeds, and the names of the files of real data.

`toy` makes its own data (the toy world) and takes minutes of two cores; `laptop` about an hour of them on real text;
`one_gpu` about a day of one GPU; `paper` is the paper's own size. Below `--data` lie under these names (links will do):

  corpora/novels, corpora/novels_words     novels, prepared (recipes bert.py:novels and elmo.py:novels)
  corpora/wiki, corpora/1b                 Wikipedia with books (pieces), the 1B-word benchmark (words), prepared
  corpora/wiki_characters                  the text of corpora/wiki with --vocab_size=512: little but characters
  corpora/ko_{wordpiece,sentencepiece}     one Korean text, prepared with each --tokenizer, --vocab_size=32000
  uner/en_ewt-ud-{train,dev}.iob2          Universal NER, English EWT
  conll2003/{train,dev}.txt                CoNLL-2003, English, four columns
  sst2/{train,dev}.tsv                     SST-2, GLUE's columns
  mnli/{train,dev_matched}.tsv             MNLI, GLUE's columns
  qnli/{train,dev}.tsv, mrpc/{train,dev}.tsv   QNLI, and MRPC in its original columns
  nsmc/{train,dev}.tsv                     NSMC: id, document, label
  klue_ner/{train,dev}.tsv                 KLUE's named entities
  snli/{train,dev}.tsv                     SNLI: sentence1, sentence2, gold_label
  squad/{train,dev}-v1.1.json              SQuAD 1.1
  glove/glove.txt                          word vectors in GloVe's format, of any width
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_elmo_jax.sweeps.points import File
from bert_elmo_jax.sweeps.toy_tasks import ToyData

Settings = Mapping[str, Any]


class TaskOf(NamedTuple):
    """A task that stands for one of the paper's: what it is, and the settings that name it and its files."""

    of: str
    settings: Settings


class BertScale(NamedTuple):
    """BERT at a scale: its pretraining, its tasks, and how they are learned.

    `tasks` are by the paper's name what stands for it, with the config of fine-tuning; `pairs` and `entities` are those
    that every scale has.
    """

    config: str
    pretraining: Settings
    layers: int
    pairs: TaskOf
    entities: TaskOf
    tuning: Settings  # beside the config of fine-tuning
    features: Settings  # beside the config that reads frozen layers
    seeds: tuple[int, ...]
    tasks: Mapping[str, tuple[str, TaskOf]] = {}


class ElmoScale(NamedTuple):
    """ELMo at a scale: its pretraining, and of each task of the paper what stands for it and how it is learned."""

    config: str
    pretraining: Settings
    tasks: Mapping[str, tuple[str, TaskOf, Settings]]  # by the paper's name: the network's config, the task, how
    seeds: tuple[int, ...]
    fewer_seeds: Mapping[str, tuple[int, ...]] = {}  # of tasks whose runs take longest

    def seeds_of(self, task: str) -> tuple[int, ...]:
        """The seeds that a task is learned with."""
        return self.fewer_seeds.get(task, self.seeds)


def files(folder: str, train: str, dev: str) -> dict[str, File]:
    """The settings that name a task's files of real data."""
    return {"train": File(f"{folder}/{train}"), "dev": File(f"{folder}/{dev}")}


def toy(data: ToyData, which: str, **settings: str) -> dict[str, Any]:
    """The settings of a task of the toy world."""
    return {**settings, "train": data.file(which, "train"), "dev": data.file(which, "dev")}


# Few examples: what words have to do with one another is learned from text, or not at all.
TOY_DATA = ToyData(topics=4, words=4, train=128, dev=256)
TOY_DOCUMENTS = 3_000
TOY_TOPICS = toy(TOY_DATA, "topics", task="classification", text="text", label="label")
TOY_SENSES = toy(TOY_DATA, "senses", task="entities", text="0", label="1")
# Texts that a biLM of TOY_DATA's world has not read: of other topics, with other words.
TOY_ELSEWHERE = toy(ToyData(topics=8, words=6, train=128, dev=256), "topics", task="classification", text="text",
                    label="label")  # fmt: skip
UNER = {"task": "uner", **files("uner", "en_ewt-ud-train.iob2", "en_ewt-ud-dev.iob2")}
CONLL = {"task": "conll", **files("conll2003", "train.txt", "dev.txt")}
SST2 = {"task": "sst2", **files("sst2", "train.tsv", "dev.tsv")}
MNLI = {"task": "mnli", **files("mnli", "train.tsv", "dev_matched.tsv")}
QNLI = {"task": "qnli", **files("qnli", "train.tsv", "dev.tsv")}
MRPC = {"task": "mrpc", **files("mrpc", "train.tsv", "dev.tsv")}
SNLI = {"task": "snli", **files("snli", "train.tsv", "dev.tsv")}
NSMC = {"task": "nsmc", **files("nsmc", "train.tsv", "dev.tsv")}
KLUE_NER = {"task": "klue_ner", "context": False, **files("klue_ner", "train.tsv", "dev.tsv")}
SQUAD = {"task": "squad", **files("squad", "train-v1.1.json", "dev-v1.1.json")}
GLOVE = {"vectors": File("glove/glove.txt"), "tune_words": False}

LEFT_TO_RIGHT = {"model.attention": "causal", "masking.kind": "next"}  # each word from those before it
_GLUE = {
    "MNLI": ("finetune", TaskOf("MNLI, matched, accuracy", MNLI)),
    "QNLI": ("finetune", TaskOf("QNLI, accuracy", QNLI)),
    "MRPC": ("finetune", TaskOf("MRPC, accuracy", MRPC)),
    "SST-2": ("finetune", TaskOf("SST-2, accuracy", SST2)),
    "SQuAD": ("finetune:squad", TaskOf("SQuAD 1.1, F1", SQUAD)),
}

# Rows of one short example: so a small model leaves "how frequent are words" behind within 700 steps.
_TOY_BERT: dict[str, Any] = {
    "data": TOY_DATA.corpus("wordpiece", 8_192, TOY_DOCUMENTS),
    "model.hidden_size": 64, "model.feed_forward_size": 256, "model.max_positions": 64,
    "steps": 2_250, "batch_size": 64, "length": 24, "sequences": 1, "optimizer.learning_rate": 5e-3,
    "optimizer.warmup": 0.1, "eval_every": 2_250, "checkpoint_every": 750, "eval_batches": 4,
}  # fmt: skip
# Where all places show [MASK], the slowest row, such a model knows more than how frequent words are after 300 steps in
# rows of 32 pieces, after 900 in rows of 64.
_LAPTOP_BERT = {
    "data": File("corpora/novels"), "model.num_layers": 2, "model.hidden_size": 128, "model.num_heads": 2,
    "model.feed_forward_size": 512, "steps": 1_800, "length": 32, "batch_size": 128, "long_length": 64,
    "long_batch_size": 64, "eval_every": 900, "checkpoint_every": 300,
}  # fmt: skip
_ONE_GPU_BERT = {
    "data": File("corpora/wiki"), "steps": 100_000, "long_share": 0.0, "model.dtype": "bfloat16",
    "checkpoint_every": 2_500, "keep": 40,
}  # fmt: skip

_TOY_PAIRS = TaskOf("topic of a sentence (toy world), accuracy", TOY_TOPICS)
# Sentences by themselves, as in the pretraining: what stands around one has nothing to do with it.
_TOY_ENTITIES = TaskOf("words of several senses as entities (toy world), F1", {**TOY_SENSES, "context": False})

BERT = {
    "toy": BertScale(
        "bert:toy", _TOY_BERT, 2,
        _TOY_PAIRS, _TOY_ENTITIES,
        {"epochs": 60.0, "batch_size": 64, "dropout": 0.0, "optimizer.learning_rate": 5e-4, "eval_every": 100_000},
        {"epochs": 60.0, "eval_every": 100_000, "patience": 0, "features.layers": "-2,-1",
         "batch_size": 64, "dropout": 0.0, "optimizer.learning_rate": 5e-3,
         "features.lstm_layers": 1, "features.lstm_size": 32, "features.dropout": 0.0},
        (0, 1),
        {
            "MNLI": ("finetune", _TOY_PAIRS),
            "SQuAD": ("finetune:entities", _TOY_ENTITIES),
        },
    ),
    "laptop": BertScale(
        "bert:novels", _LAPTOP_BERT, 2,
        TaskOf("SST-2 (a tenth of its phrases), accuracy", {**SST2, "share": 0.1}),
        TaskOf("UNER English EWT, F1", {**UNER, "context": False}),  # rows no longer than those of the pretraining
        {"epochs": 2.0, "dropout": 0.1, "optimizer.learning_rate": 5e-4},
        {"epochs": 3.0, "dropout": 0.1, "features.layers": "-2,-1", "features.lstm_size": 64,
         "features.lstm_layers": 1},
        (0, 1, 2),
    ),
    "one_gpu": BertScale(
        "bert:small", _ONE_GPU_BERT, 4,
        TaskOf("MNLI, matched, accuracy", MNLI), TaskOf("CoNLL-2003, dev, F1", CONLL),
        {"epochs": 3.0, "optimizer.learning_rate": 1e-4, "dtype": "bfloat16"}, {}, (0, 1, 2), _GLUE,
    ),
    "paper": BertScale(
        "bert:base", {"data": File("corpora/wiki"), "checkpoint_every": 20_000, "keep": 50}, 12,
        TaskOf("MNLI, matched, accuracy", MNLI), TaskOf("CoNLL-2003, dev, F1", CONLL),
        {"epochs": 3.0, "optimizer.learning_rate": 3e-5}, {}, (0, 1, 2, 3, 4), _GLUE,
    ),
}  # fmt: skip

# The same world prepared with another vocabulary, of more pieces a word: then rows are longer.
TOY_PIECES = {"length": 40, "batch_size": 40}

_TOY_KOREAN = TOY_DATA._replace(language="ko")
KOREAN = {
    "toy": {
        "NSMC": ("finetune", TaskOf("topic of a sentence (toy world in Korean), accuracy",
                                    toy(_TOY_KOREAN, "topics", task="classification", text="text", label="label"))),
        "KLUE NER": ("finetune:entities",
                     TaskOf("words of several senses as entities (toy world in Korean), F1",
                            {**toy(_TOY_KOREAN, "senses", task="entities", text="0", label="1"), "context": False})),
    },
    "real": {
        "NSMC": ("finetune", TaskOf("NSMC, accuracy", NSMC)),
        "KLUE NER": ("finetune:entities", TaskOf("KLUE's named entities, F1", KLUE_NER)),
    },
}  # fmt: skip


def toy_corpus(tokenizer: str, vocab_size: int, language: str = "en") -> File:
    """The toy world of BERT's toy scale with a vocabulary of its own."""
    return TOY_DATA._replace(language=language).corpus(tokenizer, vocab_size, TOY_DOCUMENTS)


_TOY_ELMO = {
    "data": TOY_DATA.corpus("words", 8_192, TOY_DOCUMENTS),
    "model.cell_size": 64, "model.projection_size": 32, "model.filters": ((1, 16), (2, 16), (3, 32)),
    "steps": 750, "batch_size": 64, "eval_every": 750, "checkpoint_every": 250, "eval_batches": 4,
}  # fmt: skip
_TOY_NETWORK = {
    "lstm_size": 24, "word_size": 24, "dropout": 0.1, "mix_dropout": 0.1, "unknown": "unk", "batch_size": 64,
    "optimizer.learning_rate": 5e-3, "patience": 0, "eval_every": 100_000,
}  # fmt: skip
# Small batches: an hour has few updates otherwise. Words without a GloVe vector are one and the same: the paper's
# networks for SNLI and SRL read no characters either, which would be compiled in three widths.
_LAPTOP_NETWORK = {
    "lstm_size": 64, "dropout": 0.2, "mix_dropout": 0.2, "unknown": "unk", "batch_size": 16,
    "optimizer.learning_rate": 1e-3, "patience": 0, **GLOVE,
}  # fmt: skip
_SRL = "named entities in place of semantic roles"

ELMO = {
    "toy": ElmoScale(
        "elmo:toy", _TOY_ELMO,
        {
            # A reader's functions take minutes to compile: no SQuAD here.
            "SNLI": ("bcn", TaskOf("topic of a sentence (toy world), accuracy", TOY_TOPICS),
                     {**_TOY_NETWORK, "feed_size": 24, "epochs": 100.0}),
            "SRL": ("tagger", TaskOf("words of several senses as entities (toy world), F1", TOY_SENSES),
                    {**_TOY_NETWORK, "epochs": 100.0, "lstm_layers": 1}),
        },
        (0, 1),
    ),
    "laptop": ElmoScale(
        "elmo:novels",
        {"data": File("corpora/novels_words"), "steps": 2_500, "eval_every": 2_500, "eval_batches": 50},
        {
            "SQuAD": ("bidaf", TaskOf("SQuAD 1.1, F1", SQUAD),
                      {**_LAPTOP_NETWORK, "epochs": 3.0, "max_length": 200}),
            "SNLI": ("esim", TaskOf("SNLI, accuracy", SNLI), {**_LAPTOP_NETWORK, "epochs": 6.0, "max_length": 48}),
            # All 12,543 sentences make up for what the biLM brings.
            "SRL": ("tagger", TaskOf(f"UNER English EWT, a quarter of its sentences, F1: {_SRL}", UNER),
                    {**_LAPTOP_NETWORK, "epochs": 8.0, "share": 0.25}),
        },
        (0, 1, 2),
        {"SQuAD": (0,)},
    ),
    "one_gpu": ElmoScale(
        "elmo:medium", {"data": File("corpora/1b"), "steps": 300_000, "model.dtype": "bfloat16"},
        {
            "SQuAD": ("bidaf", TaskOf("SQuAD 1.1, F1", SQUAD), GLOVE),
            "SNLI": ("esim", TaskOf("SNLI, a fifth of its pairs, accuracy", SNLI), {**GLOVE, "share": 0.2}),
            "SRL": ("tagger", TaskOf(f"CoNLL-2003, dev, F1: {_SRL}", CONLL), {"vectors": GLOVE["vectors"]}),
        },
        (0, 1, 2),
    ),
    "paper": ElmoScale(
        "elmo:original", {"data": File("corpora/1b")},
        {
            "SQuAD": ("bidaf", TaskOf("SQuAD 1.1, F1", SQUAD), GLOVE),
            "SNLI": ("esim", TaskOf("SNLI, accuracy", SNLI), {**GLOVE, "lstm_size": 300}),
            "SRL": ("tagger", TaskOf(f"CoNLL-2003, dev, F1: {_SRL}", CONLL), {"vectors": GLOVE["vectors"]}),
        },
        (0, 1, 2, 3, 4),
    ),
}  # fmt: skip
