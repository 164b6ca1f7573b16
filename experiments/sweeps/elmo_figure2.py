"""ELMo, figure 2: the learned weights of the biLM's layers, at the input and at the output of the tasks' networks.

Cells are the softmax of the weights in a finished network, in percent.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 5.5, figure 2 (a picture without
figures to compare with): at the input the tasks prefer the first BiLSTM layer; at the output the weights are nearly
even, slightly larger for lower layers. There is no network for semantic roles here; named entities replace them.
Scales: toy (minutes on two cores), one_gpu, paper. The networks are shared with elmo_table3 (the row "input and
output"). Cost: toy, 180 seconds of processor time in 5 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=elmo_figure2 --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.report.figures import Bars
from bert_elmo_jax.sweeps.definition import Add, Means, Paper

from ._scales import ELMO

SCALES = ("toy", "one_gpu", "paper")
LAYERS = {"words": 0, "first BiLSTM": 1, "second BiLSTM": 2}
COLUMNS = {f"{task}, {place}": (task, place) for place in ("input", "output") for task in ("SQuAD", "SNLI", "SRL")}
PAPER = Paper.without_figures(COLUMNS, LAYERS, "first BiLSTM", "Peters et al. 2018, figure 2")
NOTES = {
    "toy": "Unlike in the paper, the last layer has a larger weight than the first BiLSTM at the input: in this world "
    "it separates topics and senses best (it also leads alone in elmo_table2)."
}


def sweep(add: Add) -> None:
    """Add one biLM, a network for each task that reads it at both places, and the weights of its mixtures."""
    s = ELMO[add.scale]
    both: dict[str, Any] = {"encoder": s.pretrain(add), "places": "input,output", "mix_l2": 0.001}
    runs = {
        name: add.runs(f"{name}, input and output", network, **both, **s.settings(name))
        for name, (network, *_) in s.tasks.items()
    }
    for column, (name, place) in COLUMNS.items():
        for row, layer in LAYERS.items():
            if name in runs:
                shown = f"layer_shares/mix/{place}/{layer}"
                add.figure(row, column, runs[name], of="share of the layer, %", score=shown, percent=True)


def plot(means: Means) -> Bars:
    """Plot a row of bars per task and place, one bar per layer."""
    columns = [column for column in COLUMNS if all((row, column) in means for row in LAYERS)]
    shares = {column: [means[row, column] / 100 for row in LAYERS] for column in columns}
    return Bars("Softmax of the layers' weights", list(LAYERS), shares)
