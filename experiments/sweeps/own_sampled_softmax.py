"""ELMo's training softmax: over all words or over a sample. Held-out text is always scored over all words.

Paper and expected score: none; the original ELMo samples 8,192 of 793,471 words. A larger sample is closer to the full
softmax. A loss in perplexity need not be a loss in the tasks.
Scales: toy (minutes on two cores, 8 and 64 of about 350 words), one_gpu (ELMo-medium, 300,000 steps per row), paper.
At toy scale the biLM with the full softmax is shared with elmo_table2, elsewhere the one with 8,192 samples.
Cost: toy, 330 seconds of processor time in 15 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=own_sampled_softmax --jobs=2 --workdir=runs/sweeps
"""

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._scales import ELMO

SCALES = ("toy", "one_gpu", "paper")
PERPLEXITY = "perplexity (lower is better)"
COLUMNS = (PERPLEXITY, "SNLI", "SRL")
ROWS = ("all words", "a large sample", "a small sample")
NEGATIVES = {"toy": (0, 64, 8), "one_gpu": (0, 8_192, 512), "paper": (0, 8_192, 512)}
PAPER = Paper.without_figures(COLUMNS, ROWS, "all words")


def sweep(add: Add) -> None:
    """Add three biLMs and two tasks."""
    s = ELMO[add.scale]
    for row, negatives in zip(ROWS, NEGATIVES[add.scale]):
        elmo = s.pretrain(add, f"ELMo, {row}", negatives=negatives)
        add.figure(row, PERPLEXITY, elmo, of="of held-out text by the full softmax", score="held_out/perplexity")
        for column in COLUMNS[1:]:
            s.cell(add, row, column, encoder=elmo)
