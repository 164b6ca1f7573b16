"""A sweep of two rows, as small as it can be: a BERT, and a task with it and without it.

Paper and expected score: none.
"""

from bert_elmo_jax.sweeps.definition import Paper

SCALES = ("toy",)
PAPER = Paper(
    "none", ("topics", "perplexity"), {"from nothing": (None, None), "pretrained": (None, None)}, "from nothing"
)
PRETRAINING = {
    "data": "toyworld", "steps": 20, "batch_size": 4, "length": 32, "log_every": 10, "eval_every": 20,
    "checkpoint_every": 20, "eval_batches": 1, "toyworld.documents": 100, "toyworld.vocab_size": 448,
    "toyworld.topics": 2, "toyworld.words": 2, "model.num_layers": 1, "model.hidden_size": 16, "model.num_heads": 2,
    "model.feed_forward_size": 32, "model.max_positions": 48,
}  # fmt: skip
TASK = {
    "task": "classification", "text": "text", "label": "label", "epochs": 12.0, "batch_size": 16, "dropout": 0.0,
    "train": "tests/goldens/before/inputs/texts/train.tsv", "dev": "tests/goldens/before/inputs/texts/dev.tsv",
    "optimizer.learning_rate": 2e-2, "eval_every": 100,
}  # fmt: skip


def sweep(add):
    """Add a pretraining, and a cell for each row: one of two seeds, so that the table has a deviation."""
    bert = add.pretrain("BERT", "bert:toy", **PRETRAINING)
    nothing = {"tokenizer": bert, "preset": bert}
    for row, seeds, begin in (("from nothing", (0,), nothing), ("pretrained", (0, 1), {"init": bert})):
        add.transfer(row, "topics", "finetune", of="accuracy", seeds=seeds, **TASK, **begin)
    add.figure("pretrained", "perplexity", bert, of="masked words", score="held_out/mlm_perplexity")
