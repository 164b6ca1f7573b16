"""The fields that pretraining configs share, with what they mean; each config changes what is its own."""

import dataclasses

from ml_collections import ConfigDict, config_dict

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.elmo.config import ElmoConfig


def common() -> ConfigDict:
    """The fields of every pretraining run."""
    c = ConfigDict()
    c.data = ""  # a folder of prepare_data, several with weights (wiki=3,news=1), or toyworld
    c.steps = 1_000_000
    c.batch_size = 256  # rows, of all devices together
    c.accumulate = 1  # parts that a batch is computed in, one after the other
    c.seed = 0
    c.log_every = 100
    c.eval_every = 10_000
    c.eval_batches = config_dict.placeholder(int)  # of the held-out text; all of it where this is empty
    c.checkpoint_every = 5_000
    c.keep = 3  # newest checkpoints, and the best beside them
    c.stop_after_failures = 10  # steps in a row without a finite loss
    c.workers = 0  # processes that make batches; 0: this one
    c.mesh = ConfigDict({"data": -1, "fsdp": 1, "tensor": 1})  # -1: all devices that are left
    c.optimizer = ConfigDict()
    c.optimizer.name = "bert_adam"  # bert_adam, adamw, lamb, adagrad
    c.optimizer.schedule = "linear_from_start"  # linear_after_warmup, cosine, inverse_square_root, constant
    c.optimizer.learning_rate = 1e-4
    c.optimizer.warmup = 10_000.0  # steps, or below 1 a share of them
    c.optimizer.long_learning_rate = 0.0  # above 0: that of BERT's second phase, which then begins anew
    c.optimizer.long_warmup = 0.0  # of that phase
    c.optimizer.decay = 0.01
    c.optimizer.clip = 1.0
    c.optimizer.gradient_scale = 1.0
    # Where data is toyworld: what is made of it, so many documents of each language. `words` are those of a topic's
    # longest list.
    c.toyworld = ConfigDict({"language": "en,ko", "topics": 24, "words": 6, "documents": 5_000})
    c.toyworld.update({"vocab_size": 2048, "heldout": 0.02})
    return c


def bert(preset: str) -> ConfigDict:
    """The paper's recipe: 90 percent of the steps at length 128, the rest at 512."""
    c = common()
    c.family = "bert"
    c.model = model(BertConfig.preset(preset))
    c.length = 128
    c.long_share = 0.1
    c.long_length = 512
    c.long_batch_size = 0  # 0: as before
    c.objective = "nsp"  # sop, sentences, documents
    c.short_share = 0.1
    c.short_per = "document"  # chunk
    c.sequences = 1  # up to how many examples share a row
    c.copies = 0  # 0: new examples in every epoch; n: those of n epochs over and over, as the original
    c.masking = ConfigDict({"kind": "token", "rate": 0.15, "split": (0.8, 0.1, 0.1)})  # word, span, next
    c.masking.predictions = config_dict.placeholder(int)  # places in a row; empty: rate · length
    return c


def elmo(preset: str) -> ConfigDict:
    """The original recipe: streams of text with carried state, Adagrad, a sampled softmax."""
    c = common()
    c.family = "elmo"
    c.model = model(ElmoConfig.preset(preset))
    c.batch_size = 128
    c.reading = "streams"  # sentences: each from a zero state, both directions the same words
    c.length = 20
    c.negatives = 8192  # 0: the full softmax
    c.optimizer.update({"name": "adagrad", "schedule": "constant", "learning_rate": 0.2, "warmup": 0.0})
    c.optimizer.update({"clip": 10.0, "gradient_scale": 20.0, "decay": 0.0})
    return c


def model(preset: BertConfig | ElmoConfig) -> ConfigDict:
    """A model's fields, but for what the vocabulary of the data decides."""
    fields = {name: value for name, value in dataclasses.asdict(preset).items() if name not in ("vocab_size", "pad_id")}
    return ConfigDict(
        {name: config_dict.placeholder(float) if value is None else value for name, value in fields.items()}
    )
