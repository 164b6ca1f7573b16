r"""ELMo, figure 2: how much of each layer of the biLM the tasks take, at the input and at the output of their networks.

The softmax of the weights that a finished network has learned for each layer, in percent.

Paper and expected score: Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 5.5, figure 2 (a picture, so
there are no figures to print beside ours): at the input the tasks favour the first BiLSTM layer, at the output the
weights are nearly even, a little more on the lower layers. There is no network for semantic roles here: named entities
stand for them.
Scales: toy (nothing beyond elmo_table3), one_gpu, paper. The networks are those of elmo_table3 with the layers at both
places. What lies below --data: experiments/sweeps/_scales.py. Cost: toy, 180 seconds of processor time in 5 runs; the
others are not measured yet.

Command:
  python -m experiments.sweep --sweep=experiments/sweeps/elmo_figure2.py --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.report.figures import Bars
from bert_elmo_jax.sweeps.definition import Add, Means, Paper
from experiments.sweeps._scales import ELMO

SCALES = ("toy", "one_gpu", "paper")
LAYERS = {"words": 0, "first BiLSTM": 1, "second BiLSTM": 2}
COLUMNS = {f"{task}, {place}": (task, place) for place in ("input", "output") for task in ("SQuAD", "SNLI", "SRL")}
PAPER = Paper(
    source="Peters et al. 2018, figure 2",
    columns=tuple(COLUMNS),
    rows={row: (None,) * len(COLUMNS) for row in LAYERS},
    reference="first BiLSTM",
)
NOTES = {
    "toy": "At the input the last layer has more than the first BiLSTM's, otherwise than in the paper: in this world "
    "it tells topics and senses best (alone it is ahead in elmo_table2, too)."
}


def sweep(add: Add) -> None:
    """One biLM, a network for each task that reads it at both places, and the weights of its mixtures."""
    s = ELMO[add.scale]
    elmo = add.pretrain("ELMo", s.config, **s.pretraining)
    runs = {}
    for name, (network, task, how) in s.tasks.items():
        both: dict[str, Any] = {"places": "input,output", "mix_l2": 0.001}
        settings = {"encoder": elmo, **both, **task.settings, **how}
        runs[name] = add.runs(f"{name}, input and output", network, seeds=s.seeds_of(name), **settings)
    for column, (name, place) in COLUMNS.items():
        for row, layer in LAYERS.items():
            if name in runs:
                shown = f"layer_shares/mix/{place}/{layer}"
                add.figure(row, column, runs[name], of="share of the layer, %", score=shown, percent=True)


def plot(means: Means) -> Bars:
    """A row of bars for each task and place, one for each layer."""
    columns = [column for column in COLUMNS if all((row, column) in means for row in LAYERS)]
    shares = {column: [means[row, column] / 100 for row in LAYERS] for column in columns}
    return Bars("Softmax of the layers' weights", list(LAYERS), shares)
