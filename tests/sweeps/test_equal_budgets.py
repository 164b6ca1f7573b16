"""The pretrainings of own_three_encoders, story, compute_curves and elmo_to_bert do the same number of operations."""

import jax
import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.piece_objective import count_weights
from bert_elmo_jax.runs.config_files import read_config, set_field, show_value
from bert_elmo_jax.runs.pretraining import build_objective
from bert_elmo_jax.runs.pretraining_budget import count_budget
from bert_elmo_jax.sweeps.points import File
from experiments.sweeps import _compute_curves, _elmo_to_bert, _story
from experiments.sweeps._three_encoders import BUDGETS, SCALES

# Words of ELMo, pieces of GPT and BERT: in the toy world, in the novels' corpora, and as the file says.
VOCABULARIES = {"toy": (355, 770), "laptop": (30_000, 8_192), "one_gpu": (793_471, 32_000), "paper": (793_471, 32_000)}
STORY = {("toy", "en"): (676, 1_540), ("laptop", "en"): (30_000, 8_192), ("laptop", "ko"): (30_000, 16_000)}


def count(config, settings, words, pieces):
    """Return the budget of a pretraining."""
    c, _ = read_config(config)
    for name, value in settings.items():
        if not isinstance(value, File):
            set_field(c, name, show_value(value))
    return count_budget(c, pieces if get_family(c.family).inputs.takes_heads else words)


@pytest.mark.parametrize("scale", SCALES)
def test_budgets_are_equal(scale):
    positions = {}
    for name, (config, settings) in SCALES[scale].pretrainings.items():
        budget = count(config, settings, *VOCABULARIES[scale])
        positions[name] = budget.positions
        assert budget.operations == pytest.approx(BUDGETS[scale], rel=0.01), name
    assert positions["GPT"] < positions["BERT"], "GPT predicts every piece, so it reads fewer"


@pytest.mark.parametrize(("scale", "language"), STORY)
def test_budgets_of_the_story_are_equal(scale, language):
    systems = _story.SYSTEMS[scale][language]
    assert systems.keys() == _story.YEARS.keys()
    for name, (config, settings) in systems.items():
        operations = count(config, settings, *STORY[scale, language]).operations
        if name == "static vectors":
            assert operations < 0.1 * _story.BUDGETS[scale]
        else:
            assert operations == pytest.approx(_story.BUDGETS[scale], rel=0.01), name


@pytest.mark.parametrize("scale", _compute_curves.OPERATIONS)
def test_budgets_of_the_compute_curves_are_equal(scale):
    for operations in _compute_curves.OPERATIONS[scale]:
        for name in _compute_curves.NAMES:
            config, settings = _story.SYSTEMS[scale]["en"][name]
            steps = _compute_curves.count_steps(scale, name, operations)
            counted = count(config, {**settings, "steps": steps}, *STORY[scale, "en"]).operations
            assert counted == pytest.approx(operations, rel=0.01), name


@pytest.mark.parametrize("scale", _elmo_to_bert.BUDGETS)
def test_every_step_from_elmo_to_bert_has_the_same_budget(scale):
    for row, (config, settings) in _elmo_to_bert.list_pretrainings(scale).items():
        operations = count(config, settings, *VOCABULARIES[scale]).operations
        assert operations == pytest.approx(_elmo_to_bert.BUDGETS[scale], rel=0.01), row


def test_a_budget_of_pairs_counts_both_texts():
    c, _ = read_config("cove:toy")
    c.length, c.target_length = 24, 24
    budget = count_budget(c, 300)
    _, objective = build_objective(c, 300)
    params = jax.eval_shape(objective.init, jax.random.key(0))
    encoder, decoder = (
        count_weights([part for name, part in params[side].items() if name not in ("embeddings", "embedding")])
        for side in ("encoder", "decoder")
    )
    rows = c.steps * c.batch_size
    assert budget.positions == rows * (24 + 24)
    assert budget.operations == pytest.approx(6 * rows * (24 * encoder + 24 * decoder))


def test_a_budget_counts_the_projection_of_narrow_embeddings():
    c, _ = read_config("albert:toy")
    _, objective = build_objective(c, 300)
    params = jax.eval_shape(objective.init, jax.random.key(0))
    project = count_weights(params["encoder"].pop("project"))
    length = objective.phases[0].examples.length
    budget = count_budget(c, 300)
    assert project and budget.operations == pytest.approx(
        (objective.work(params, length) + 6 * project) * budget.positions
    )
