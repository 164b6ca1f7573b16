"""The scales of the sweeps: models, tasks, sizes, seeds, and the names of the data files.

`toy` makes its own data (the toy world) and takes minutes on two cores; `laptop` takes about an hour there, on real
text; `one_gpu` about a day on one GPU; `paper` has the paper's sizes. `--data` must have these files (links will do):

  corpora/novels, corpora/novels_words     novels, prepared as the recipes bert:novels and elmo:novels say
  corpora/wiki, corpora/1b                 Wikipedia with books (pieces), the 1B-word benchmark (words), prepared
  corpora/wiki_words                       the text of corpora/wiki with --tokenizer=words --vocab_size=793471
  corpora/wiki_characters                  the text of corpora/wiki with --vocab_size=512: almost only characters
  corpora/wiki_bytes                       the text of corpora/wiki with --tokenizer=byte_bpe
  corpora/wmt_words                        pairs of sentences, prepared as the recipe cove:original says
  corpora/ko_{wordpiece,sentencepiece}     one Korean text, prepared with each --tokenizer, --vocab_size=32000
  corpora/wmt                              WMT 2014, English and German, prepared with --source and --target
  uner/en_ewt-ud-{train,dev}.iob2          Universal NER, English EWT
  ud/en_ewt-ud-{train,dev}.conllu          Universal Dependencies, English EWT
  conll2003/{train,dev}.txt                CoNLL-2003, English, four columns
  sst2/{train,dev}.tsv                     SST-2, GLUE's columns
  cola/{train,dev}.tsv                     CoLA, GLUE's columns
  mnli/{train,dev_matched}.tsv             MNLI, GLUE's columns
  qnli/{train,dev}.tsv, mrpc/{train,dev}.tsv   QNLI, and MRPC in its original columns
  nsmc/{train,dev}.tsv                     NSMC: id, document, label
  klue_ner/{train,dev}.tsv                 KLUE's named entities
  rte/{train,dev}.tsv                      RTE, GLUE's columns
  snli/{train,dev}.tsv                     SNLI: sentence1, sentence2, gold_label
  squad/{train,dev}-v1.1.json              SQuAD 1.1
  corpora/wikitext103                      WikiText-103, prepared as the recipe awd_lstm:original says
  imdb/{train,dev}.tsv, imdb/unlabelled.txt    IMDb: text, label; its reviews without labels, one per line
  trec/{train,dev}.txt                     TREC in its own format; ag/{train,dev}.tsv: AG's news, text and label
  corpora/{mnli,conll}_texts               texts of a task's training examples, one per line with blank lines between
                                           them, prepared with --tokenizer=corpora/wiki/tokenizer
  corpora/sts_words                        English sentences and their Korean translations, with --tokenizer=words
  corpora/reviews, corpora/reviews_words   Korean reviews, as the recipe bert:reviews says; with --tokenizer=words and
                                           --vocab_size=30000
  ud_english/en_ewt-ud-{train,dev}.conllu  UD English EWT; ud_korean/ko_gsd-ud-{train,dev}.conllu: UD Korean GSD
  corpora/korean_pieces                    a Korean text, prepared as the recipe awd_lstm:korean says
  nsmc/train_10000.tsv                     the first 10,000 reviews of nsmc/train.tsv (head -n 10001)
  nsmc/unlabelled.txt                      other reviews of the same site, without labels, one per line
  glove/glove.txt                          word vectors in GloVe's format, of any width
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.sweeps.definition import Add, Means, Paper
from bert_elmo_jax.sweeps.points import File, Point
from bert_elmo_jax.sweeps.toy_tasks import ToyData

Settings = Mapping[str, Any]


class ScaleTask(NamedTuple):
    """A task that replaces one of the paper's: its description, and the settings that name it and its files."""

    of: str
    settings: Settings


TUNED = ("MNLI", "NER fine-tuned")  # the columns of `pairs` and `entities`


class BertScale(NamedTuple):
    """BERT at a scale: its pretraining, its tasks, and how it is fine-tuned.

    `pairs` (MNLI) and `entities` exist at every scale; `tasks` are the others by the paper's name, with their config.
    """

    config: str
    pretraining: Settings
    layers: int
    pairs: ScaleTask
    entities: ScaleTask
    tuning: Settings  # of fine-tuning
    features: Settings  # of heads that read frozen layers
    seeds: tuple[int, ...]
    tasks: Mapping[str, tuple[str, ScaleTask]] = {}

    def pretrain(self, add: Add, name: str, **more: Any) -> Point:
        """Add the pretraining with some settings changed."""
        return add.pretrain(name, self.config, **{**self.pretraining, **more})

    def cell(self, add: Add, row: str, column: str, config: str, task: ScaleTask, **more: Any) -> None:
        """Add a cell of a task."""
        add.transfer(row, column, config, of=task.of, seeds=self.seeds, **{**task.settings, **more})

    def tune(self, add: Add, row: str, **more: Any) -> None:
        """Add a row's cells of fine-tuning for all columns of the table that are in TUNED or `tasks`."""
        two = zip(TUNED, (("finetune", self.pairs), ("finetune:entities", self.entities)))
        for column, (config, task) in {**dict(two), **self.tasks}.items():
            if column in add.paper.columns:
                self.cell(add, row, column, config, task, **{**self.tuning, **more})


class ElmoScale(NamedTuple):
    """ELMo at a scale: its pretraining, and by the paper's name each task with its network's config and settings."""

    config: str
    pretraining: Settings
    tasks: Mapping[str, tuple[str, ScaleTask, Settings]]
    seeds: tuple[int, ...]
    fewer_seeds: Mapping[str, tuple[int, ...]] = {}  # of the slowest tasks

    def pretrain(self, add: Add, name: str = "ELMo", **more: Any) -> Point:
        """Add the pretraining with some settings changed."""
        return add.pretrain(name, self.config, **{**self.pretraining, **more})

    def cell(self, add: Add, row: str, column: str, name: str = "", **more: Any) -> tuple[Point, ...]:
        """Add a cell of a task, by default of the column's, with some settings changed."""
        network, task, _ = self.tasks[name or column]
        return add.transfer(row, column, network, of=task.of, **{**self.settings(name or column), **more})

    def settings(self, name: str) -> dict[str, Any]:
        """Return the seeds and the settings of a task."""
        _, task, how = self.tasks[name]
        return {"seeds": self.fewer_seeds.get(name, self.seeds), **task.settings, **how}


SHARES = {"toy": (0.1, 0.3, 1.0), "one_gpu": (0.001, 0.01, 0.1, 1.0), "paper": (0.001, 0.01, 0.1, 1.0)}


def list_shares(*tasks: str) -> dict[str, tuple[str, float]]:
    """Return a column for each task and share of its training data, at all scales together."""
    shares = sorted({share for values in SHARES.values() for share in values})
    return {f"{task}, {100 * share:g}%": (task, share) for task in tasks for share in shares}


def plot_lines(means: Means, title: str, label: str, points: Iterable[Any], *, logarithmic: bool = False) -> Lines:
    """Plot the cells that have a mean; `points` are (line, x, (row, column))."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, x, cell in points:
        if cell in means:
            lines.setdefault(name, []).append((x, means[cell]))
    return Lines(title, label, "score", lines, logarithmic)


def plot_shares(means: Means, paper: Paper, columns: Mapping[str, tuple[str, float]]) -> Lines:
    """Plot a line per task and row over the share of the training data."""
    points = [(f"{task}, {row}", 100 * share, (row, c)) for row in paper.rows for c, (task, share) in columns.items()]
    return plot_lines(means, "Score against the share of the training data", "% of it", points, logarithmic=True)


def files(folder: str, train: str, dev: str) -> dict[str, File]:
    """Return the settings that name a task's files of real data."""
    return {"train": File(f"{folder}/{train}"), "dev": File(f"{folder}/{dev}")}


def toy(data: ToyData, which: str) -> dict[str, Any]:
    """Return the settings of a task of the toy world: topics (of texts) or senses (of words)."""
    task, text, label = ("classification", "text", "label") if which == "topics" else ("entities", "0", "1")
    return {"task": task, "text": text, "label": label, **{part: data.file(which, part) for part in ("train", "dev")}}


# Few examples: how words are related can only be learned from text.
TOY_DATA = ToyData(topics=4, words=4, train=128, dev=256)
TOY_DOCUMENTS = 3_000
TOY_TOPICS, TOY_SENSES = toy(TOY_DATA, "topics"), toy(TOY_DATA, "senses")
# Texts that a biLM of TOY_DATA's world does not know: other topics with other words.
TOY_ELSEWHERE = toy(ToyData(topics=8, words=6, train=128, dev=256), "topics")
UNER = {"task": "uner", **files("uner", "en_ewt-ud-train.iob2", "en_ewt-ud-dev.iob2")}
UPOS = {"task": "ud_upos", **files("ud", "en_ewt-ud-train.conllu", "en_ewt-ud-dev.conllu")}
CONLL = {"task": "conll", **files("conll2003", "train.txt", "dev.txt")}
SST2 = {"task": "sst2", **files("sst2", "train.tsv", "dev.tsv")}
MNLI = {"task": "mnli", **files("mnli", "train.tsv", "dev_matched.tsv")}
QNLI = {"task": "qnli", **files("qnli", "train.tsv", "dev.tsv")}
MRPC = {"task": "mrpc", **files("mrpc", "train.tsv", "dev.tsv")}
RTE = {"task": "rte", **files("rte", "train.tsv", "dev.tsv")}
SNLI = {"task": "snli", **files("snli", "train.tsv", "dev.tsv")}
NSMC = {"task": "nsmc", **files("nsmc", "train.tsv", "dev.tsv")}
KLUE_NER = {"task": "klue_ner", "context": False, **files("klue_ner", "train.tsv", "dev.tsv")}
SQUAD = {"task": "squad", **files("squad", "train-v1.1.json", "dev-v1.1.json")}
GLOVE = {"vectors": File("glove/glove.txt"), "tune_words": False}

LEFT_TO_RIGHT = {"model.attention": "causal", "masking.kind": "next"}  # each word is predicted from the words before it
_MNLI, _CONLL = ScaleTask("MNLI, matched, accuracy", MNLI), ScaleTask("CoNLL-2003, dev, F1", CONLL)
_GLUE = {
    "QNLI": ("finetune", ScaleTask("QNLI, accuracy", QNLI)),
    "MRPC": ("finetune", ScaleTask("MRPC, accuracy", MRPC)),
    "SST-2": ("finetune", ScaleTask("SST-2, accuracy", SST2)),
    "SQuAD": ("finetune:squad", ScaleTask("SQuAD 1.1, F1", SQUAD)),
}

# With rows of one short example, so small a model knows more than word frequencies within 700 steps.
_TOY_BERT: dict[str, Any] = {
    "data": TOY_DATA.corpus("wordpiece", 8_192, TOY_DOCUMENTS),
    "model.hidden_size": 64, "model.feed_forward_size": 256, "model.max_positions": 64,
    "steps": 2_250, "batch_size": 64, "length": 24, "sequences": 1, "optimizer.learning_rate": 5e-3,
    "optimizer.warmup": 0.1, "eval_every": 2_250, "checkpoint_every": 750, "eval_batches": 4,
}  # fmt: skip
# The slowest rows show [MASK] only. With 32 pieces per row, such a model knows more than word frequencies after 300
# steps, with 64 after 900.
_LAPTOP_BERT = {
    "data": File("corpora/novels"), "model.num_layers": 2, "model.hidden_size": 128, "model.num_heads": 2,
    "model.feed_forward_size": 512, "steps": 1_800, "length": 32, "batch_size": 128, "long_length": 64,
    "long_batch_size": 64, "eval_every": 900, "checkpoint_every": 300,
}  # fmt: skip
_ONE_GPU_BERT = {
    "data": File("corpora/wiki"), "steps": 100_000, "long_share": 0.0, "model.dtype": "bfloat16",
    "checkpoint_every": 2_500, "keep": 40,
}  # fmt: skip

_TOY_PAIRS = ScaleTask("topic of a sentence (toy world), accuracy", TOY_TOPICS)
# Single sentences, as in the pretraining: the sentences around one are unrelated.
_TOY_ENTITIES = ScaleTask("words of several senses as entities (toy world), F1", {**TOY_SENSES, "context": False})

BERT = {
    "toy": BertScale(
        "bert:toy", _TOY_BERT, 2, _TOY_PAIRS, _TOY_ENTITIES,
        {"epochs": 60.0, "batch_size": 64, "dropout": 0.0, "optimizer.learning_rate": 5e-4, "eval_every": 100_000},
        {"epochs": 60.0, "eval_every": 100_000, "patience": 0, "features.layers": "-2,-1",
         "batch_size": 64, "dropout": 0.0, "optimizer.learning_rate": 5e-3,
         "features.lstm_layers": 1, "features.lstm_size": 32, "features.dropout": 0.0},
        (0, 1),
        {"SQuAD": ("finetune:entities", _TOY_ENTITIES)},
    ),
    "laptop": BertScale(
        "bert:novels", _LAPTOP_BERT, 2,
        ScaleTask("SST-2 (a tenth of its phrases), accuracy", {**SST2, "share": 0.1}),
        ScaleTask("UNER English EWT, F1", {**UNER, "context": False}),  # so rows are not longer than in the pretraining
        {"epochs": 2.0, "dropout": 0.1, "optimizer.learning_rate": 5e-4},
        {"epochs": 3.0, "dropout": 0.1, "features.layers": "-2,-1", "features.lstm_size": 64,
         "features.lstm_layers": 1},
        (0, 1, 2),
    ),
    "one_gpu": BertScale(
        "bert:small", _ONE_GPU_BERT, 4, _MNLI, _CONLL,
        {"epochs": 3.0, "optimizer.learning_rate": 1e-4, "dtype": "bfloat16"}, {}, (0, 1, 2), _GLUE,
    ),
    "paper": BertScale(
        "bert:base", {"data": File("corpora/wiki"), "checkpoint_every": 20_000, "keep": 50}, 12, _MNLI, _CONLL,
        {"epochs": 3.0, "optimizer.learning_rate": 3e-5}, {}, (0, 1, 2, 3, 4), _GLUE,
    ),
}  # fmt: skip

_TOY_KOREAN = TOY_DATA._replace(language="ko")
KOREAN = {
    "toy": {
        "NSMC": ("finetune", ScaleTask("topic of a sentence (toy world in Korean), accuracy",
                                       toy(_TOY_KOREAN, "topics"))),
        "KLUE NER": ("finetune:entities", ScaleTask("words of several senses as entities (toy world in Korean), F1",
                                                    {**toy(_TOY_KOREAN, "senses"), "context": False})),
    },
    "real": {
        "NSMC": ("finetune", ScaleTask("NSMC, accuracy", NSMC)),
        "KLUE NER": ("finetune:entities", ScaleTask("KLUE's named entities, F1", KLUE_NER)),
    },
}  # fmt: skip


def toy_corpus(tokenizer: str, vocab_size: int, language: str = "en") -> File:
    """Return the corpus of BERT's toy scale with another vocabulary."""
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
# Small batches, because an hour has few updates. Words without a GloVe vector share one: the paper's networks for SNLI
# and SRL read no characters either, and these would compile for three widths.
_LAPTOP_NETWORK = {
    "lstm_size": 64, "dropout": 0.2, "mix_dropout": 0.2, "unknown": "unk", "batch_size": 16,
    "optimizer.learning_rate": 1e-3, "patience": 0, **GLOVE,
}  # fmt: skip
_SRL = "named entities in place of semantic roles"

ELMO = {
    "toy": ElmoScale(
        "elmo:toy", _TOY_ELMO,
        {
            # No SQuAD, because a reader compiles for minutes.
            "SNLI": ("bcn", ScaleTask("topic of a sentence (toy world), accuracy", TOY_TOPICS),
                     {**_TOY_NETWORK, "feed_size": 24, "epochs": 100.0}),
            "SRL": ("tagger", ScaleTask("words of several senses as entities (toy world), F1", TOY_SENSES),
                    {**_TOY_NETWORK, "epochs": 100.0, "lstm_layers": 1}),
        },
        (0, 1),
    ),
    "laptop": ElmoScale(
        "elmo:novels",
        {"data": File("corpora/novels_words"), "steps": 2_500, "eval_every": 2_500, "eval_batches": 50},
        {
            "SQuAD": ("bidaf", ScaleTask("SQuAD 1.1, F1", SQUAD),
                      {**_LAPTOP_NETWORK, "epochs": 3.0, "max_length": 200}),
            "SNLI": ("esim", ScaleTask("SNLI, accuracy", SNLI), {**_LAPTOP_NETWORK, "epochs": 6.0, "max_length": 48}),
            # With all 12,543 sentences the biLM has no advantage.
            "SRL": ("tagger", ScaleTask(f"UNER English EWT, a quarter of its sentences, F1: {_SRL}", UNER),
                    {**_LAPTOP_NETWORK, "epochs": 8.0, "share": 0.25}),
        },
        (0, 1, 2),
        {"SQuAD": (0,)},
    ),
    "one_gpu": ElmoScale(
        "elmo:medium", {"data": File("corpora/1b"), "steps": 300_000, "model.dtype": "bfloat16"},
        {
            "SQuAD": ("bidaf", ScaleTask("SQuAD 1.1, F1", SQUAD), GLOVE),
            "SNLI": ("esim", ScaleTask("SNLI, a fifth of its pairs, accuracy", SNLI), {**GLOVE, "share": 0.2}),
            "SRL": ("tagger", ScaleTask(f"CoNLL-2003, dev, F1: {_SRL}", CONLL), {"vectors": GLOVE["vectors"]}),
        },
        (0, 1, 2),
    ),
    "paper": ElmoScale(
        "elmo:original", {"data": File("corpora/1b")},
        {
            "SQuAD": ("bidaf", ScaleTask("SQuAD 1.1, F1", SQUAD), GLOVE),
            "SNLI": ("esim", ScaleTask("SNLI, accuracy", SNLI), {**GLOVE, "lstm_size": 300}),
            "SRL": ("tagger", ScaleTask(f"CoNLL-2003, dev, F1: {_SRL}", CONLL), {"vectors": GLOVE["vectors"]}),
        },
        (0, 1, 2, 3, 4),
    ),
}  # fmt: skip


class GptScale(NamedTuple):
    """GPT at a scale: its pretraining, and by the paper's name each task with its config."""

    config: str
    pretraining: Settings
    tasks: Mapping[str, tuple[str, ScaleTask]]
    tuning: Settings
    seeds: tuple[int, ...]


_SMALLER_GPT = {"model.hidden_size": 384, "model.num_heads": 6, "model.feed_forward_size": 1536}
_COLA = ScaleTask("CoLA, Matthews' correlation", {"task": "cola", **files("cola", "train.tsv", "dev.tsv")})
_GPT_TASKS = {"SST-2": _GLUE["SST-2"], "CoLA": ("finetune", _COLA)}
_GPT_TUNING = {"epochs": 3.0, "optimizer.learning_rate": 6.25e-5, "optimizer.warmup": 0.002}
GPT = {
    "toy": GptScale(
        "gpt:toy",
        {"data": TOY_DATA.corpus("wordpiece", 8_192, TOY_DOCUMENTS), "model.hidden_size": 64,
         "model.feed_forward_size": 256, "model.max_positions": 64, "steps": 1_500, "batch_size": 64, "length": 24,
         "sequences": 1, "optimizer.learning_rate": 5e-3, "optimizer.warmup": 0.1, "eval_every": 1_500,
         "checkpoint_every": 750, "eval_batches": 4},
        {"SST-2": ("finetune", _TOY_PAIRS)},
        {"epochs": 30.0, "batch_size": 64, "dropout": 0.0, "optimizer.learning_rate": 1e-3, "eval_every": 100_000},
        (0, 1),
    ),
    "one_gpu": GptScale(
        "gpt:gpt1", {"data": File("corpora/wiki"), "steps": 100_000, "model.dtype": "bfloat16", **_SMALLER_GPT},
        _GPT_TASKS, _GPT_TUNING, (0, 1, 2),
    ),
    "paper": GptScale("gpt:gpt1", {"data": File("corpora/wiki")}, _GPT_TASKS, _GPT_TUNING, (0, 1, 2, 3, 4)),
}  # fmt: skip


class TranslationScale(NamedTuple):
    """The Transformer at a scale: its run, the rows of table 3 (none: all), and its sizes as parts of the paper's."""

    config: str
    fields: Settings
    parts: Mapping[str, int]
    big: Settings
    rows: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    notes: str = ""

    def shrink(self, name: str, value: int) -> int:
        """Return a size at this scale, by the paper's name."""
        return max(1, round(value / self.parts.get(name, 1)))


_BIG = {"model.num_heads": 16, "model.dropout": 0.3}
TRANSLATION = {
    "toy": TranslationScale(
        "transformer:toy",
        {"steps": 600, "average": 1, "eval_every": 600, "checkpoint_every": 300, "translations": 100,
         "model.hidden_size": 64, "model.feed_forward_size": 128, "model.dropout": 0.1,
         "optimizer.learning_rate": 4e-3},
        {"h": 2, "d_k": 8, "N": 3, "d_model": 8, "d_ff": 16},
        {"model.hidden_size": 128, "model.feed_forward_size": 256, "model.num_heads": 8, "model.dropout": 0.1},
        ("base", "h=1", "d_k=16", "N=2", "d_model=256", "P_drop=0.0", "ε_ls=0.0", "learned positions"),
        (0, 1),
        "Sizes are fractions of the paper's: base has two layers of 64, N=2 one layer, d_model=256 layers of 32, "
        "d_k=16 keys of 2. The seeds are two whole trainings. As in the paper, half the width and small keys are "
        "worse, dropout helps a little, learned positions are as good as sinusoids, and without smoothing the "
        "perplexity is lower; the BLEU of these rows, except for half the width, is within the noise. One layer "
        "is as good as two: the sentences of the toy world are simple.",
    ),
    "one_gpu": TranslationScale(
        "transformer:base",
        {"data": File("corpora/wmt"), "steps": 20_000, "average": 1, "model.dtype": "bfloat16",
         "model.hidden_size": 256, "model.feed_forward_size": 1024},
        {"d_k": 2, "d_model": 2, "d_ff": 2},
        {**_BIG, "model.hidden_size": 512, "model.feed_forward_size": 2048, "steps": 60_000},
    ),
    "paper": TranslationScale(
        "transformer:base", {"data": File("corpora/wmt"), "average": 1, "translations": 3_000}, {},
        {**_BIG, "model.hidden_size": 1024, "model.feed_forward_size": 4096, "steps": 300_000},
    ),
}  # fmt: skip
