"""The three pretrainings of own_three_encoders do the same number of operations."""

import jax
import pytest

from bert_elmo_jax.plan.plan import build_objective
from bert_elmo_jax.runs.config_files import read_config, set_field, show_value
from bert_elmo_jax.sweeps.points import File
from experiments.sweeps._three_encoders import BUDGETS, SCALES

# Words of ELMo, pieces of GPT and BERT: in the toy world, in the novels' corpora, and as the file says.
VOCABULARIES = {"toy": (355, 770), "laptop": (30_000, 8_192), "one_gpu": (793_471, 32_000), "paper": (793_471, 32_000)}


def count(config, settings, vocabulary):
    """Return the operations of a pretraining, and its positions."""
    c, _ = read_config(config)
    for name, value in settings.items():
        if not isinstance(value, File):
            set_field(c, name, show_value(value))
    _, objective = build_objective(c, vocabulary)
    params = jax.eval_shape(objective.init, jax.random.key(0))
    sizes = [(phase.examples.length, phase.steps * phase.rows * phase.examples.length) for phase in objective.phases]
    return sum(objective.work(params, length) * positions for length, positions in sizes), sum(n for _, n in sizes)


@pytest.mark.parametrize("scale", SCALES)
def test_budgets_are_equal(scale):
    words, pieces = VOCABULARIES[scale]
    read = {}
    for name, (config, settings) in SCALES[scale].pretrainings.items():
        work, read[name] = count(config, settings, words if name == "ELMo" else pieces)
        assert work == pytest.approx(BUDGETS[scale], rel=0.01), name
    assert read["GPT"] < read["BERT"], "GPT predicts every piece, so it reads fewer"
