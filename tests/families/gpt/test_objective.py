"""Pretraining of a GPT: its loss by hand, packed rows that leak nothing, and refused configs."""

import dataclasses

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.rows.masking import Masking
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.families.gpt.objective import make_objective, name_figures
from bert_elmo_jax.families.piece_objective import piece_loss
from bert_elmo_jax.runs.config_files import read_config

from ..huggingface_models import Model, random_params

FAMILY = get_family("gpt")
CONFIG = GptConfig(60, 16, 2, 2, 32, 24, initializer_range=0.3, dropout=0.0, embedding_dropout=0.0)


def batch_of(rows, width):
    """Return a batch as the data pipeline makes it, from rows of several texts each."""
    shape = (len(rows), width)
    tokens, positions, segments = (np.zeros(shape, np.int32) for _ in range(3))
    for number, texts in enumerate(rows):
        at = 0
        for segment, text in enumerate(texts, start=1):
            tokens[number, at : at + len(text)] = text
            positions[number, at : at + len(text)] = range(len(text))
            segments[number, at : at + len(text)] = segment
            at += len(text)
    real = (segments[:, 1:] > 0) & (segments[:, 1:] == segments[:, :-1])
    return {
        "tokens": tokens, "types": np.zeros(shape, np.int32), "positions": positions, "segments": segments,
        "mlm_positions": np.tile(np.arange(width - 1, dtype=np.int32), (len(rows), 1)),
        "mlm_targets": np.where(real, tokens[:, 1:], 0).astype(np.int32), "mlm_weights": real.astype(np.float32),
        "causal": np.ones((len(rows), 1), np.int32),
    }  # fmt: skip


@pytest.mark.parametrize("norm_first", [True, pytest.param(False, marks=pytest.mark.long)])
def test_packed_rows_leak_nothing(norm_first):
    config = dataclasses.replace(CONFIG, norm_first=norm_first)
    params = random_params(Model(config, ""), scale=0.3)
    texts = [[5, 9, 14, 2, 7], [31, 8, 3, 41], [6, 6, 20]]
    packed, single_batch = batch_of([texts], 14), batch_of([[text] for text in texts], 5)

    def value_and_grad(batch, packs):
        loss = piece_loss(FAMILY, config, packed=packs)

        def mean(params):
            total, weight = loss(params, batch, None, None)[0]["lm"]
            return total / weight

        return jax.jit(jax.value_and_grad(mean))(params)

    (ours, ours_grad), (theirs, theirs_grad) = value_and_grad(packed, True), value_and_grad(single_batch, False)
    assert float(ours) == pytest.approx(float(theirs), rel=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), ours_grad, theirs_grad)
    changed = batch_of([[[1, 2, 3, 4, 50], *texts[1:]]], 14)
    apply, names = jax.jit(FAMILY.build(config).apply), ("tokens", "types", "positions", "segments")
    before, after = (
        np.asarray(apply({"params": params["encoder"]}, *(batch[name] for name in names)).last)
        for batch in (packed, changed)
    )
    np.testing.assert_array_equal(before[:, 5:12], after[:, 5:12])
    assert np.abs(before - after)[:, :5].max() > 1e-2


def test_the_loss_is_that_of_transformers(goldens):
    """Every piece of a row is a target, as in `gpt_tiny`."""
    model, golden = load(goldens / "gpt_tiny"), np.load(goldens / "gpt_tiny" / "golden.npz")
    tokens = golden["input_ids"].astype(np.int32)
    batch = batch_of([[row] for row in tokens], tokens.shape[1])
    terms, metrics, _ = jax.jit(piece_loss(model.family, model.config))(model.params, batch, None, None)
    total, weight = terms["lm"]
    assert float(weight) == tokens.shape[0] * (tokens.shape[1] - 1)
    assert float(total / weight) == pytest.approx(float(golden["loss"]), rel=1e-5)
    right = np.argmax(golden["logits"][:, :-1], -1) == tokens[:, 1:]
    assert float(metrics["lm_accuracy"][0]) == right.sum()


def test_the_objective_of_a_config():
    config, _ = read_config("experiments/configs/gpt.py:toy")
    config.update(length=24, long_length=24)
    objective = make_objective(config, CONFIG)
    assert (objective.score, dict(objective.coefficients)) == ("held_out/score", {"lm": 1.0})
    assert set(jax.eval_shape(objective.init, jax.random.key(0))) == {"encoder"}
    assert objective.phases[0].examples.masking == Masking("next", 0.15, None, (0.8, 0.1, 0.1))
    assert name_figures({"lm": np.log(7.0), "lm_accuracy": 0.5})["held_out/perplexity"] == pytest.approx(7.0)
    config.masking.kind = "token"
    with pytest.raises(ValueError, match=r"config.masking.kind='token' masks pieces, but a GPT predicts each piece"):
        make_objective(config, CONFIG)
