"""Fine-tuning: the paper's values, and recipes for its tasks and for small models; `base` is the default."""

from typing import Any

from ml_collections import ConfigDict, config_dict

from bert_elmo_jax.runs.config_files import choose_recipe


def fields() -> ConfigDict:
    """Return the fields of every run on a task, for heads and networks."""
    c = ConfigDict()
    c.task = ""  # classification, regression, entities or tags of your own files, or one by name: sst2, squad, …
    c.train = ""
    c.dev = ""  # a file, or a share of the training examples that is held out, such as 0.1
    c.test = ""  # scored once, by the model that is best on dev
    c.text = ""  # columns of your own files: the text (or word), by name or number
    c.update(pair="", label="", encoding="utf-8")
    c.on_bad = "stop"  # at a row of a table that cannot be read; skip: leave it out, and list it in skipped.jsonl
    c.share = 1.0  # of the training examples that are learned from; a smaller share is part of a larger one
    c.compute = config_dict.placeholder(str)  # cpu, gpu, tpu, auto: dtype, attention that suit it; empty: unchanged
    # The trained parts of a pretrained encoder: all; frozen: none; head_first: the head, then all; top_down: the head,
    # then one more layer in every epoch; chain_thaw: the head, then each layer alone from the lowest up, then all;
    # upper: the head and the `upper_layers`; lora: the head and low-rank adapters (the fields `lora`).
    c.transfer = "all"
    c.upper_layers = config_dict.placeholder(int)
    c.head_epochs = 1.0  # for head_first, top_down: how long the head is trained alone; chain_thaw: each part
    c.layer_decay = 1.0  # the rate of a layer divided by the rate of the layer above
    c.epochs = 3.0
    c.batch_size = 32  # rows, on all devices together
    c.update(accumulate=1, seed=0)
    c.patience = 0  # evaluations without a better score that end a run; 0: it does not end early
    c.log_every = 10
    c.eval_every = 0  # steps; 0: once per epoch
    c.checkpoint_every = 0  # steps; 0: with every evaluation
    c.stop_after_failures = 10
    c.mesh = ConfigDict({"data": -1, "fsdp": 1, "tensor": 1})
    c.optimizer = ConfigDict()
    c.optimizer.name = "bert_adam"  # adamw, lamb, adagrad
    c.optimizer.schedule = "linear_from_start"  # linear_after_warmup, cosine, inverse_square_root, constant
    c.optimizer.learning_rate = 5e-5
    c.optimizer.warmup = 0.1  # a share of the steps; from 1 on, a number of steps
    c.optimizer.update(decay=0.01, gradient_scale=1.0)
    c.optimizer.clip = 1.0  # the largest norm of the gradients, which are scaled down to it; 1e9 clips nothing
    return c


def base(**changes: Any) -> ConfigDict:
    r"""Fine-tuning as in the paper: every field with its meaning, and the paper's values.

    Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3 and appendix A.3: batches
    of 16 or 32, rates 5e-5, 3e-5 and 2e-5, two to four epochs, the best on the development data; GLUE 79.6 on average
    with BERT-base (table 1).
    Cost: depends on model and data; BERT-base on 67 k sentences (SST-2) took an hour on a GPU in the paper. Command:
      python -m experiments.finetune --config=finetune --task=classification --train=my.csv \
          --dev=dev.csv --text=review --label=stars --init=google-bert/bert-base-cased --workdir=runs/reviews
    """
    c = fields()
    c.max_length = 0  # pieces per row; 0: 128, for questions 384, or the model's maximum
    c.context = False  # for tags: read a sentence with its document around it
    c.stride = 128  # for questions: pieces from window to window
    c.question_length = 64
    c.longest_answer = 30
    c.preset = "tiny"  # without --init: a size (tiny, roberta-base, …), or a model whose configuration is taken
    c.dropout = config_dict.placeholder(float)  # of layers and attention; empty: the model's own
    c.attention_dropout = config_dict.placeholder(float)  # empty: as `dropout`
    c.dtype = "float32"
    c.attention = "reference"  # or fused, on a TPU splash, or one of your own
    # If layers are given (-1: the last, or all), the head reads these, and no pooled vector.
    c.features = ConfigDict({"layers": "", "combine": "concat", "lstm_layers": 0, "lstm_size": 768, "dropout": 0.1})
    # For sentences: the loss (in_batch, triplets, scores, cosent; empty: as the columns of --train say), the factor of
    # cosines (1 / temperature) and the margin of triplets, and the score of equal texts (0: 1 or 5); whether positives
    # have in-batch negatives, too; widths such as 256,64 at which cut vectors are trained as well; for encoders without
    # a pooling, its modes (mean, or such as cls+mean) and whether vectors get length 1.
    c.sentences = ConfigDict({"loss": "", "scale": 20.0, "margin": 1.0, "top_score": 0.0, "both_ways": False})
    c.sentences.update(widths="", pooling="", normalize=False)
    # Read pairs in both orders and add their vectors, as GPT does where the order means nothing; empty: False.
    c.both_orders = config_dict.placeholder(bool)
    # Of the term that predicts the next pieces of the task's texts, for a GPT (its paper: 0.5); empty: no such term.
    c.lm_weight = config_dict.placeholder(float)
    # Of transfer=lora: the rank of adapters, their factor alpha / rank (or alpha / √rank), and the layers that get one:
    # names or ends of paths, such as query, feed_forward/up, or all. `in_full` names parts of the encoder that
    # are trained without adapters, such as pooler, which the head reads and sentence models do not train.
    c.lora = ConfigDict({"rank": 8, "alpha": 16.0, "targets": "query,value", "rslora": False, "in_full": ""})
    c.class_weights = ""  # balanced, or numbers by label: 0=1,1=2.5
    c.update(changes)
    return c


def small() -> ConfigDict:
    r"""Any task with a small BERT that was pretrained on a laptop (`novels`, `reviews`), or from scratch.

    A higher rate than the paper's, because small models need it, and dropout, although they were pretrained without.
    Paper and expected score: none in a paper; parts of speech of English EWT 92.9 (87.2 from scratch), and the other
    tasks in docs/results/reproductions.md, each of them a command like this one. Cost: two to eight minutes of
    processor time per run. Command:
      python -m experiments.finetune --config=finetune:small --init=runs/bert_novels \
          --task=ud_upos --train=en_ewt-ud-train.conllu --dev=en_ewt-ud-dev.conllu --test=en_ewt-ud-test.conllu \
          --seeds=0,1,2 --workdir=runs/pos
    The same from scratch, with the same tokenizer and sizes:
      … --tokenizer=runs/bert_novels --config.preset=runs/bert_novels (instead of --init; whole texts want a lower
      rate then, --config.optimizer.learning_rate=1e-4)
    """
    return base(dropout=0.1, optimizer={"learning_rate": 5e-4})


def sst2() -> ConfigDict:
    r"""SST-2 with the paper's recipe: sentences of film reviews, positive or negative.

    Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805: accuracy 93.5 with BERT-base (table
    1); Turc et al. 2019, https://arxiv.org/abs/1908.08962: 83.2 with BERT-tiny (google-research/bert, README; both on
    GLUE's test data).
    Cost: not measured here; in the paper at most an hour on a TPU, or a few on a GPU, for any task of GLUE. Command:
      python -m experiments.finetune --config=finetune:sst2 --init=google-bert/bert-base-cased \
          --train=sst2/train.tsv --dev=sst2/dev.tsv --workdir=runs/sst2
    """
    return base(task="sst2")


def nsmc() -> ConfigDict:
    r"""NSMC: Korean film reviews, positive or negative.

    Paper and expected score: none in BERT's paper; not measured here yet. The data: https://github.com/e9t/nsmc.
    Cost: not measured here. Command:
      python -m experiments.finetune --config=finetune:nsmc \
          --init=google-bert/bert-base-multilingual-cased --train=nsmc/train.tsv --dev=nsmc/dev.tsv \
          --workdir=runs/nsmc
    """
    return base(task="nsmc", optimizer={"learning_rate": 3e-5})


def stsb() -> ConfigDict:
    r"""STS-B: how similar two sentences are, from 0 to 5.

    Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805: Spearman 85.8 with BERT-base (table
    1). Cost: not measured here; the data are small (5.7 k pairs). Command:
      python -m experiments.finetune --config=finetune:stsb --init=google-bert/bert-base-cased \
          --train=stsb/sts-train.csv --dev=stsb/sts-dev.csv --workdir=runs/stsb
    """
    return base(task="stsb", batch_size=16, epochs=4.0)


def sentences() -> ConfigDict:
    r"""Vectors of sentences, trained with similarity scores, or on pairs or triplets: the columns of --train decide.

    Paper and expected score: Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084: Spearman 84.7 on STS-B's test
    data with BERT-base, trained on STS-B alone (table 2). Cost: not measured here; the data are small (5.7 k pairs).
    Command:
      python -m experiments.finetune --config=finetune:sentences \
          --init=google-bert/bert-base-cased --train=stsb/sts-train.csv --dev=stsb/sts-dev.csv --workdir=runs/vectors
    """
    return base(task="sentences", batch_size=16, epochs=4.0, optimizer={"learning_rate": 2e-5})


def pos() -> ConfigDict:
    r"""Parts of speech of Universal Dependencies (UPOS); the first piece of each word is tagged.

    Paper and expected score: none in BERT's paper; not measured here yet. The data: https://universaldependencies.org,
    English EWT and Korean GSD. Cost: not measured here. Command:
      python -m experiments.finetune --config=finetune:pos --init=google-bert/bert-base-cased \
          --train=en_ewt-ud-train.conllu --dev=en_ewt-ud-dev.conllu --workdir=runs/pos
    """
    return base(task="ud_upos")


def entities() -> ConfigDict:
    r"""Named entities in UNER's or CoNLL's columns; each sentence is read within its document.

    Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805: F1 92.4 on CoNLL-2003 with a cased
    BERT-base (table 7). Cost: not measured here. Command:
      python -m experiments.finetune --config=finetune:entities \
          --init=google-bert/bert-base-cased --train=en_ewt-ud-train.iob2 --dev=en_ewt-ud-dev.iob2 \
          --workdir=runs/entities
    """
    return base(task="uner", context=True)


def entities_features() -> ConfigDict:
    r"""Named entities from a frozen BERT: its last four layers, concatenated, feed two BiLSTMs of 768.

    Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805: F1 96.1 on CoNLL-2003's development
    data with a cased BERT-base (table 7), 0.3 below fine-tuning. Cost: not measured here. Command:
      python -m experiments.finetune --config=finetune:entities_features \
          --init=google-bert/bert-base-cased --train=en_ewt-ud-train.iob2 --dev=en_ewt-ud-dev.iob2 \
          --workdir=runs/entities_features
    """
    c = entities()
    c.update(transfer="frozen", epochs=10.0, patience=3)
    c.features.update(layers="-4,-3,-2,-1", lstm_layers=2, lstm_size=768)
    c.optimizer.update(name="adamw", schedule="constant", learning_rate=1e-3, decay=0.0)
    return c


def squad() -> ConfigDict:
    r"""SQuAD 1.1: answers as spans of a paragraph. KorQuAD 1.0 with `--task=korquad`.

    Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805: exact match 80.8 and F1 88.5 with
    BERT-base on the development data (table 2). Cost: not measured here; in the paper half an hour on a TPU. Command:
      python -m experiments.finetune --config=finetune:squad --init=google-bert/bert-base-cased \
          --train=squad/train-v1.1.json --dev=squad/dev-v1.1.json --workdir=runs/squad
    """
    return base(task="squad")


def squad2() -> ConfigDict:
    r"""SQuAD 2.0: answers as spans of a paragraph, or none; the threshold for none is chosen on the development data.

    Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805: F1 81.9 with BERT-large on the
    development data (table 3). Cost: not measured here. Command:
      python -m experiments.finetune --config=finetune:squad2 \
          --init=google-bert/bert-base-cased --train=squad/train-v2.0.json --dev=squad/dev-v2.0.json \
          --workdir=runs/squad2
    """
    return base(task="squad", batch_size=48, epochs=2.0)


def swag() -> ConfigDict:
    r"""SWAG: which of four sentences follows.

    Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805: accuracy 81.6 on the development
    data with BERT-base (table 4). Cost: not measured here. Command:
      python -m experiments.finetune --config=finetune:swag --init=google-bert/bert-base-cased \
          --train=swag/train.csv --dev=swag/val.csv --workdir=runs/swag
    """
    return base(task="swag", batch_size=16, optimizer={"learning_rate": 2e-5})


def quickstart() -> ConfigDict:
    r"""Fine-tuning in `make quickstart`: a small BERT of the toy world, or none, on a task in English and Korean.

    No dropout, as in its pretraining, a rate for small models, and one evaluation at the end, which chooses nothing.
    Expected score: in the quickstart's report. Cost: a few seconds on two cores. Command:
      python -m experiments.finetune --config=finetune:quickstart --init=runs/quickstart/bert \
          --task=classification --text=text --label=label --train=runs/quickstart/tasks/topics/train.tsv \
          --dev=runs/quickstart/tasks/topics/dev.tsv --workdir=runs/topics
    """
    return base(dropout=0.0, eval_every=100_000, optimizer={"learning_rate": 1e-3})


get_config = choose_recipe(
    base,
    small,
    sst2,
    nsmc,
    stsb,
    sentences,
    pos,
    entities,
    entities_features,
    squad,
    squad2,
    swag,
    quickstart,
    default="base",
)
