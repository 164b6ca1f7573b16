"""Fields of every pretraining config; each family adds its own."""

import dataclasses
from typing import Any, get_args

from ml_collections import ConfigDict, config_dict


def fields(family: str, model: Any) -> ConfigDict:
    """Return the fields of every pretraining run; `model` is the configuration of the family's model."""
    c = ConfigDict()
    c.family = family
    # Fields that depend on the vocabulary of the data are left out.
    vocabulary = ("vocab_size", "pad_id", "end_id")
    sizes = {name: value for name, value in dataclasses.asdict(model).items() if name not in vocabulary}
    kinds = {field.name: next(iter(get_args(field.type)), float) for field in dataclasses.fields(model)}
    c.model = ConfigDict({n: config_dict.placeholder(kinds[n]) if v is None else v for n, v in sizes.items()})
    c.compute = config_dict.placeholder(str)  # cpu, gpu, tpu, auto: fields of `model` that suit it; empty: unchanged
    # auto: model.remat and model.scan by the device's memory, after compiling a step; empty: unchanged
    c.remat = config_dict.placeholder(str)
    c.data = ""  # a folder of prepare_data, several with weights (wiki=3,news=1), or toyworld
    c.steps = 1_000_000
    c.batch_size = 256  # rows, on all devices together
    c.accumulate = 1  # parts of a batch, computed one after the other
    c.update(seed=0, log_every=100, eval_every=10_000)
    c.eval_batches = config_dict.placeholder(int)  # of the held-out text; empty: all of it
    c.checkpoint_every = 5_000
    c.keep = 3  # newest checkpoints, in addition to the best one
    # `load` reads the mean of this number of last checkpoints (keep as many); empty or 1: the last one.
    c.average = config_dict.placeholder(int)
    c.stop_after_failures = 10  # steps in a row without a finite loss
    c.workers = 0  # processes that make batches; 0: the main process
    c.mesh = ConfigDict({"data": -1, "fsdp": 1, "tensor": 1})  # -1: all remaining devices
    c.optimizer = ConfigDict()
    c.optimizer.name = "bert_adam"  # bert_adam, adamw, lamb, adagrad, row_sgd
    # linear_after_warmup, cosine, inverse_square_root, constant; noam, whose learning_rate is a factor of the paper's;
    # warmup_stable_decay, which decays in the last `cooldown` steps; slanted_triangular, of ULMFiT.
    c.optimizer.schedule = "linear_from_start"
    # Steps of warmup_stable_decay, or below 1 a share of them; empty: 0.2.
    c.optimizer.cooldown = config_dict.placeholder(float)
    c.optimizer.learning_rate = 1e-4
    c.optimizer.warmup = 10_000.0  # steps, or below 1 a share of them
    c.optimizer.long_learning_rate = 0.0  # above 0: the rate of BERT's second phase, which restarts the schedule
    c.optimizer.long_warmup = 0.0  # of the second phase
    c.optimizer.update(decay=0.01, gradient_scale=1.0)
    # The largest norm of the gradients, which are scaled down to it, or of row_sgd's step of a row; 1e9 clips nothing.
    # LAMB does not clip.
    c.optimizer.clip = 1.0
    c.optimizer.b1 = config_dict.placeholder(float)  # of Adam and LAMB; empty: 0.9
    c.optimizer.b2 = config_dict.placeholder(float)  # empty: 0.999
    c.optimizer.eps = config_dict.placeholder(float)  # empty: 1e-6
    # For data=toyworld: the world, and the number of documents in each language. `words` is the length of a topic's
    # longest list.
    c.toyworld = ConfigDict({"language": "en,ko", "topics": 24, "words": 6, "documents": 5_000})
    c.toyworld.update({"vocab_size": 2048, "heldout": 0.02})
    return c


def masked(family: str, model: Any) -> ConfigDict:
    """Return the fields of a run on masked words, in full rows of whole sentences that cross documents."""
    c = fields(family, model)
    c.update(length=512, long_share=0.0, long_length=512)
    c.long_batch_size = 0  # 0: as in the first phase
    c.objective = "sentences"  # documents
    c.coefficients = ConfigDict({"mlm": 1.0})  # of the terms of the loss
    c.short_share = 0.0
    c.short_per = "document"  # chunk
    c.sequences = 1  # the largest number of examples that share a row
    c.copies = 0  # 0: new examples in every epoch; n: the same n epochs over and over
    c.masking = ConfigDict({"kind": "token", "rate": 0.15, "split": (0.8, 0.1, 0.1)})  # word, span, next
    c.masking.predictions = config_dict.placeholder(int)  # per row; empty: rate · length
    return c


def replaced(family: str, model: Any) -> ConfigDict:
    """Return the fields of a run on replaced pieces; masked places show nothing but [MASK]."""
    c = masked(family, model)
    c.objective = "replaced"  # sentences, documents: masked words, without a generator; see masking.split
    c.texts = "sentences"  # documents: rows that do not cross the boundaries of documents
    c.predict = "replaced"  # of the second network: replaced_masked, masked, all
    # Of the generator, and of the second network, which has one of the other two terms.
    c.coefficients = ConfigDict({"mlm": 1.0, "replaced": 50.0, "original": 1.0})
    c.masking.split = (1.0, 0.0, 0.0)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", warmup=10_000.0)
    return c


def laptop(c: ConfigDict) -> ConfigDict:
    """Return a recipe of masked words for a laptop: two layers, on the toy world."""
    c.update(data="toyworld", steps=9_000, batch_size=16, length=128, objective="documents", sequences=8)
    c.model.update(num_layers=2, hidden_size=128, num_heads=4, feed_forward_size=512, max_positions=128)
    c.model.update(initializer_range=0.05, dropout=0.0, attention_dropout=0.0)
    c.optimizer.update(name="adamw", schedule="linear_after_warmup", learning_rate=2e-3, warmup=0.05)
    c.toyworld.update(documents=20_000, vocab_size=8_192)
    c.update(log_every=20, eval_every=500, checkpoint_every=500)
    return c


def distil(c: ConfigDict) -> ConfigDict:
    """Return a recipe of masked pieces with the fields of a run that learns from a teacher."""
    c.teacher = ""  # a model with a head for masked pieces: anything `load` understands
    c.temperature = 2.0  # of both softmaxes in the term `soft`
    c.init_from_teacher = True  # copy evenly spaced layers, embeddings and head, where path and shape agree
    # Soft cross entropy at masked positions, masked pieces, cosine distance of last hidden states; 0 leaves `soft` or
    # `cosine` out.
    c.coefficients.update({"soft": 5.0, "mlm": 2.0, "cosine": 1.0})
    return c


def translate(c: ConfigDict) -> ConfigDict:
    """Return a recipe with the fields of a run that learns to translate."""
    c.length = 256  # positions of a row's sources; longer sources are left out
    c.target_length = 256  # and of its targets
    c.sequences = 1  # the largest number of pairs that share a row
    c.reverse = False  # translate from the second language to the first
    c.smoothing = 0.1  # of the targets of the loss
    c.translations = 200  # held-out texts that are translated and scored at the end; 0: none
    c.beams = 4  # of these translations
    c.length_penalty = 0.6  # their log-probability is divided by length^penalty
    return c
