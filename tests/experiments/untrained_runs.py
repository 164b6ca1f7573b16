"""Run directories of models that have learned nothing, for programs that compare runs with baselines."""

import jax
import numpy as np

from bert_elmo_jax import train
from bert_elmo_jax.inference.run_directory import describe_run

TINY = {"hidden_size": 8, "num_layers": 1, "num_heads": 2, "feed_forward_size": 16}
MASKING = {"kind": "token", "rate": 0.15, "predictions": None, "split": (0.8, 0.1, 0.1)}
# The fields of a pretraining on pieces that decide what it reads.
PIECES = {"program": "pretrain", "short_share": 0.0, "short_per": "document", "sequences": 1, "copies": 0,
          "long_share": 0.0, "batch_size": 4, "eval_batches": None, "steps": 3, "masking": MASKING}  # fmt: skip


def write_run(folder, model, params, tokenizer, /, **fields):
    """Write the directory of a run that stopped after three steps, and return it."""
    train.same_run(folder, fields, ())
    describe_run(folder, model, jax.tree.map(np.asarray, params), tokenizer)
    with train.Checkpoints(folder, keep=1) as checkpoints:
        checkpoints.save(3, params, {"step": np.array(3)}, {})
        checkpoints.wait()
    return folder
