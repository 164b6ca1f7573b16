r"""ULMFiT: a language model is tuned to the texts of a task, then a classifier of whole documents is trained on it.

Three stages: a general language model (`experiments.pretrain` with awd_lstm.py, or fastai's files), which is --init;
the same model on the texts of the task, labelled or not; and the classifier. The second and the third are one command,
which resumes in either. Labels of your own files, or a named task of single texts: trec, sst2, nsmc, …

Paper and expected score: Howard and Ruder 2018, https://arxiv.org/abs/1801.06146: test errors IMDb 4.6, TREC-6 3.6,
AG 5.01 (tables 2 and 3), forward and backward models averaged. Cost: not measured here; the toy scale of
the sweep `ulmfit_table7` takes minutes. Command:
  python -m experiments.finetune --config=ulmfit --init=runs/lm --task=classification \
      --train=my.csv --dev=dev.csv --text=review --label=stars --workdir=runs/my_ulmfit
"""

from ml_collections import ConfigDict, config_dict

from bert_elmo_jax.families.awd_lstm.config import RATES, AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.objective import COEFFICIENTS

from . import finetune


def get_config() -> ConfigDict:
    """Return the configuration."""
    c = finetune.fields()
    c.dtype = "float32"
    c.backward = ""  # the model of the other direction: both become classifiers, whose probabilities are averaged
    # Further texts of the task for the language model, several files with commas: .txt with one per line, or with the
    # columns of --train, whose labels are not read.
    c.unlabelled = ""
    c.preset = "original"  # without --init: a size (original, toy, …), or a model whose configuration is taken
    c.vocab_size = 60_000  # without --init and --tokenizer: the most frequent words of the task's texts
    # Words that the task's texts have at least so many times are added to the vocabulary of --init, each with the mean
    # of its vectors; 0: none.
    c.add_words = 2
    model = AwdLstmConfig(vocab_size=1)
    c.rates = ConfigDict({name: getattr(model, name) for name in RATES})  # of dropout, in both stages
    c.drop_factor = 1.0  # multiplies these rates while the classifier is trained
    c.class_weights = ""  # balanced, or numbers by label: 0=1,1=2.5

    # Stage 2: the language model. 0 epochs leave it out.
    c.lm = ConfigDict({"epochs": 15.0, "batch_size": 64, "reading": "streams", "length": 70, "spread": 5})
    c.lm.drop_factor = 1.0
    c.lm.layer_decay = 1 / 2.6  # discriminative rates: the rate of a layer divided by the rate above
    c.lm.coefficients = ConfigDict(COEFFICIENTS)
    c.lm.update(eval_every=0, checkpoint_every=0)  # steps; 0: four times in the run
    c.lm.eval_batches = config_dict.placeholder(int)
    c.lm.optimizer = ConfigDict({"name": "adamw", "schedule": "slanted_triangular", "learning_rate": 4e-3})
    c.lm.optimizer.update(warmup=0.1, b1=0.7, b2=0.99, eps=1e-8, clip=0.25, decay=1.2e-6, gradient_scale=1.0)

    # Stage 3: the classifier.
    c.documents = ConfigDict()
    c.documents.part = 70  # words that are read at a time; the gradient does not go through the state between parts
    c.documents.gradient_words = 1_400  # the gradient reaches the last so many words of a document; 0: all
    c.documents.pooling = "last+max+mean"  # of a document's vectors; or fewer of the three
    c.documents.sizes = (50,)  # of the layers between the pooled vectors and the classes
    c.documents.dropout = (0.4, 0.1)  # before each of these layers, and before the classes
    c.transfer = "gradual"  # gradual unfreezing: the classifier, then one more layer in every epoch
    c.layer_decay = 1 / 2.6
    c.update(epochs=10.0, batch_size=64)
    c.optimizer.update(name="adamw", schedule="slanted_triangular", learning_rate=1e-2, warmup=0.1, decay=0.0)
    c.optimizer.update(b1=0.7, b2=0.99, eps=1e-8)
    return c
