r"""Fine-tuning as in the paper: every field with what it means, and the paper's values.

Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3 and appendix A.3: batches of
16 or 32, rates 5e-5, 3e-5 and 2e-5, two to four epochs, the best on the development data; GLUE 79.6 on average with
BERT-base (table 1).
Cost: hangs on model and data; BERT-base on 67 k sentences (SST-2) took an hour on a GPU in the paper.

Command:
  python -m experiments.finetune --config=experiments/configs/finetune.py --task=classification --train=my.csv \
      --dev=dev.csv --text=review --label=stars --init=google-bert/bert-base-cased --workdir=runs/reviews
"""

from ml_collections import ConfigDict, config_dict


def common() -> ConfigDict:
    """The fields of every run on a task, whatever model it is of."""
    c = ConfigDict()
    c.task = ""  # classification, regression, entities or tags of your own files, or one by name: sst2, squad, …
    c.train = ""
    c.dev = ""  # a file, or a share of the training examples that is kept aside, such as 0.1
    c.test = ""  # scored once, by the model that is best on dev
    c.text = ""  # columns of your own files: the text (or word), by name or number
    c.pair = ""
    c.label = ""
    c.encoding = "utf-8"
    c.share = 1.0  # of the training examples that are learned from; a smaller share is part of a larger one
    c.layer_decay = 1.0  # each layer's rate is so many times that of the layer above
    c.epochs = 3.0
    c.batch_size = 32  # rows, of all devices together
    c.accumulate = 1
    c.seed = 0
    c.patience = 0  # evaluations without a better score, after which a run ends; 0: it does not
    c.log_every = 10
    c.eval_every = 0  # steps; 0: once an epoch
    c.checkpoint_every = 0  # steps; 0: with every evaluation
    c.stop_after_failures = 10
    c.mesh = ConfigDict({"data": -1, "fsdp": 1, "tensor": 1})
    c.optimizer = ConfigDict()
    c.optimizer.name = "bert_adam"  # adamw, lamb, adagrad
    c.optimizer.schedule = "linear_from_start"  # linear_after_warmup, cosine, inverse_square_root, constant
    c.optimizer.learning_rate = 5e-5
    c.optimizer.warmup = 0.1  # a share of the steps, or from 1 on steps
    c.optimizer.decay = 0.01
    c.optimizer.clip = 1.0
    c.optimizer.gradient_scale = 1.0
    return c


def get_config() -> ConfigDict:
    """The configuration."""
    c = common()
    c.max_length = 0  # pieces of a row; 0: 128, of questions 384, or what the model can take
    c.context = False  # of tags: whether a sentence is read with its document around it
    c.stride = 128  # of questions: pieces from window to window
    c.question_length = 64
    c.longest_answer = 30
    c.preset = "tiny"  # without --init: the size of a BERT from scratch, or a model whose configuration is taken
    c.dropout = config_dict.placeholder(float)  # of layers and attention; empty: that of the model
    c.dtype = "float32"
    c.implementation = "reference"
    c.transfer = "all"  # frozen; head_first, then all; top_down: the head, then a layer more every epoch
    c.head_epochs = 1.0  # of head_first and top_down: how long the head is trained alone
    # Where layers are named (-1: the last, or all), the head reads these, and no pooled vector.
    c.features = ConfigDict({"layers": "", "combine": "concat", "lstm_layers": 0, "lstm_size": 768, "dropout": 0.1})
    c.class_weights = ""  # balanced, or numbers by label: 0=1,1=2.5
    return c
