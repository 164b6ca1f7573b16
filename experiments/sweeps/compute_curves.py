r"""Score against the operations of the pretraining: AWD-LSTM, ELMo, GPT and BERT, frozen, fine-tuned and from scratch.

Each system is pretrained several times at each budget, from different seeds. Seed n of a cell is the n-th pretraining
and the n-th seed of the task, so deviations hold the luck of both. Budgets and the frozen systems' network are those of
`story`; GPT and BERT are also fine-tuned with a layer on top. "from scratch" is the BERT's network without a
pretraining, and "no encoder" the network alone: both are the same at each budget.

Paper and expected score: none. Prediction, written before the first run: more operations help every system; frozen
layers lead at the small budget; fine-tuning overtakes them at the larger one for pairs, and not for words.
Scales: toy (the toy world, 10¹¹ and 4 · 10¹¹ operations, three seeds), laptop (novels; UNER, SNLI; 10¹³ and 10¹⁴
operations; 1, 10 and 100 percent of the labels). Cost: not measured.
Command: python -m experiments.sweep --sweep=compute_curves --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.sweeps.definition import Add, Means

from ._compute_curves import COLUMNS, NAMES, OPERATIONS, SEEDS, SHARES, TUNED, name_column, pair_runs, pretrain
from ._story import TASKS
from ._three_encoders import SCALES as HEADS

SCALES = ("toy", "laptop")


def sweep(add: Add) -> None:
    """Add the pretrainings, and each task with every one of them and without any."""
    budgets = OPERATIONS[add.scale]
    models = {n: {name: {s: pretrain(add, name, n, s) for s in SEEDS} for name in NAMES} for n in budgets}
    bert = models[budgets[0]]["BERT"][0]
    for task in COLUMNS[add.scale]:
        _, measured, network, reading, _ = TASKS[add.scale][task]
        config, tuning = HEADS[add.scale].tasks["NER" if network == "tagger" else "SST-2"].head
        for share in SHARES[add.scale]:
            frozen, tuned = ({**measured.settings, "share": share, **how} for how in (reading, tuning))
            alone = {name: value for name, value in frozen.items() if name not in ("layers", "mix_l2")}
            scratch: dict[str, Any] = {**tuned, "tokenizer": bert, "preset": bert}
            without = {
                row: add.runs(f"{row}, {task}, {share}", kind, seeds=SEEDS, **settings)
                for row, kind, settings in (("no encoder", network, alone), ("from scratch", config, scratch))
            }
            for operations in budgets:
                column = name_column(task, share, operations)
                rows = dict(without)
                for name, seeds in models[operations].items():
                    encoders = {seed: {"encoder": model} for seed, model in seeds.items()}
                    rows[f"{name}, frozen"] = pair_runs(add, f"{name}, frozen", column, network, frozen, encoders)
                for name in TUNED:
                    starts = {seed: {"init": model} for seed, model in models[operations][name].items()}
                    rows[f"{name}, fine-tuned"] = pair_runs(add, f"{name}, fine-tuned", column, config, tuned, starts)
                for row, runs in rows.items():
                    add.figure(row, column, runs, of=measured.of, score="", percent=True)


def plot(means: Means) -> Lines:
    """Draw each row's scores over the operations, with all labels."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for (row, column), mean in means.items():
        task, share, operations = column.split(", ")
        if share.startswith("100%"):
            lines.setdefault(f"{task}: {row}", []).append((float(operations), mean))
    ordered = {name: sorted(points) for name, points in lines.items()}
    return Lines("Score against the operations of the pretraining", "operations", "score", ordered, logarithmic=True)
