"""Three learning rates, each with two numbers of epochs, for a classifier of a table.

reviews.csv has a column of texts, `review`, and one of labels, `liked`. A tenth of its rows is held out and scored.
Command: python -m experiments.sweep --sweep=my_sweep.py --data=. --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.sweeps.definition import Add, Means
from bert_elmo_jax.sweeps.points import File

# The rows and columns of the table. The others are compared with the first row.
RATES = {"rate 2e-5": 2e-5, "rate 5e-5": 5e-5, "rate 1e-4": 1e-4}
EPOCHS = {"2 epochs": 2.0, "4 epochs": 4.0}


def sweep(add: Add) -> None:
    """Add a cell for each rate and number of epochs: one run of `finetune` for each seed."""
    for row, rate in RATES.items():
        for column, epochs in EPOCHS.items():
            # Fields of the config: `finetune --config=finetune --help` lists them.
            fields: dict[str, Any] = {"optimizer.learning_rate": rate, "epochs": epochs}
            add.transfer(
                row,
                column,
                "finetune",  # a recipe; one of your own is "my_recipes.py:mine"
                of="accuracy on a tenth of reviews.csv",  # the measurement, for readers
                seeds=(0, 1, 2),
                init="google-bert/bert-base-multilingual-cased",
                task="classification",
                train=File("reviews.csv"),  # below --data
                dev="0.1",
                text="review",
                label="liked",
                **fields,
            )


def plot(means: Means) -> Lines:
    """Draw the mean scores of the finished cells over the rate: a line for each column. You may leave it out."""
    lines = {
        column: [(rate, means[row, column]) for row, rate in RATES.items() if (row, column) in means]
        for column in EPOCHS
    }
    return Lines("Accuracy by learning rate", "learning rate", "accuracy", lines, logarithmic=True)
