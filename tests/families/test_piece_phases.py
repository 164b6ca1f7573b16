"""The phases of a pretraining: mask rates, fewer rows first, next pieces first, longer rows last."""

import jax
import numpy as np
import pytest

from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.data.pipeline.batches import Phases, train_batches
from bert_elmo_jax.families.piece_phases import held_out_examples, plan_phases
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import build_objective, check_phases, pretrain
from bert_elmo_jax.train import DEVICES, ONE_DEVICE, Placement, make_mesh


def config(recipe="bert.py:toy", **changes):
    c, _ = read_config(f"experiments/configs/{recipe}")
    c.update(objective="documents", steps=100, batch_size=8, length=32)
    for name, value in changes.items():
        part, _, field = name.rpartition("__")
        (c[part] if part else c)[field] = value
    return c


def summary(c):
    phases = plan_phases(c)
    assert sum(phase.steps for phase in phases) == c.steps
    return [(p.steps, p.rows, p.examples.masking.kind, round(p.examples.masking.rate, 3)) for p in phases]


def test_by_default_there_are_the_phases_of_the_paper():
    assert summary(config()) == [(100, 8, "token", 0.15)]
    c = config(long_share=0.1, long_length=64, long_batch_size=4)
    assert summary(c) == [(90, 8, "token", 0.15), (10, 4, "token", 0.15)]
    assert [p.examples.length for p in plan_phases(c)] == [32, 64]
    assert held_out_examples(c) == plan_phases(c)[0].examples
    assert build_objective(c, 100)[1].long_steps == 10


def test_a_falling_rate_has_one_width():
    c = config(masking__rate=0.3, masking__end_rate=0.15, masking__rates=4)
    assert summary(c) == [(25, 8, "token", rate) for rate in (0.3, 0.25, 0.2, 0.15)]
    assert {p.examples.places for p in plan_phases(c)} == {10}  # of 32
    assert held_out_examples(c).masking.rate == 0.15 and held_out_examples(c).places == 5
    assert len(plan_phases(config(masking__end_rate=0.3))) == 16


def test_few_rows_first_causal_first_and_long_rows_last():
    c = config(batch_warmup__rows=(2, 4), batch_warmup__share=0.2, causal_share=0.15, long_share=0.1, long_length=64)
    phases = [(steps, rows, kind) for steps, rows, kind, _ in summary(c)]
    assert phases == [(10, 2, "next"), (5, 4, "next"), (5, 4, "token"), (70, 8, "token"), (10, 8, "token")]
    objective = build_objective(c, 100)[1]
    assert objective.held_out_examples.masking.kind == "token" and objective.long_steps == 10


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"causal_share": 1.0}, "expected a share of the steps"),
        ({"causal_share": 0.1, "objective": "nsp"}, "the first one sees no pair; use objective=documents"),
        ({"causal_share": 0.1, "masking__kind": "next"}, "all steps predict the next piece already"),
        ({"batch_warmup__rows": (2, 4)}, r"rows=\(2, 4\) and share=0.0: give both"),
        ({"batch_warmup__share": 0.5}, r"rows=\(\) and share=0.5: give both"),
        ({"batch_warmup__rows": (3,), "batch_warmup__share": 0.5, "accumulate": 2}, "use multiples of it"),
        ({"masking__end_rate": 0.1, "masking__rates": 1}, "rates=1: expected 2 or more"),
        ({"masking__end_rate": 0.1, "masking__kind": "next"}, "masks none: leave it out"),
        ({"masking__kind": "next"}, "the model sees all: use model.causal=true"),
    ],
)
def test_contradictions(changes, message):
    with pytest.raises(ValueError, match=message):
        build_objective(config(**changes), 100)


def test_a_family_without_causal_attention_says_so():
    c, _ = read_config("experiments/configs/modernbert.py:toy")
    with c.unlocked():
        c.causal_share = 0.1
    with pytest.raises(ValueError, match="need causal attention, which a ModernBERT does not have"):
        build_objective(c, 100)


def test_the_rows_of_all_phases_are_checked_before_the_first():
    phases = plan_phases(config(long_share=0.1, long_length=64, long_batch_size=3))
    check_phases(phases, 1, ONE_DEVICE)
    with pytest.raises(
        ValueError, match=r"phase 2 of 2 has batches of 3 rows.*accumulate=2 parts: use multiples of 2 for"
    ):
        check_phases(phases, 2, ONE_DEVICE)


@pytest.mark.devices
def test_rows_of_a_later_phase_that_the_devices_cannot_share(corpus, tmp_path):
    c = config(data=str(corpus), long_share=0.1, long_length=64, long_batch_size=12)
    with pytest.raises(ValueError, match="phase 2 of 2 has batches of 12 rows, which 8 devices cannot share in"):
        pretrain(c, tmp_path / "run")
    phases = plan_phases(config())
    check_phases(phases, 2, Placement(make_mesh()))  # the rows of a mesh are split in both ways, but not at once
    with pytest.raises(ValueError, match="use multiples of 16"):
        check_phases(phases, 2, Placement(axis=DEVICES))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return toy_corpus(tmp_path_factory.mktemp("toy"), documents=60)


def original(batch):
    """Return the rows of a batch before masking."""
    tokens = batch["tokens"].copy()
    if "causal" not in batch:
        row, place = np.nonzero(batch["mlm_weights"])
        tokens[row, batch["mlm_positions"][row, place]] = batch["mlm_targets"][row, place]
    return tokens


def test_phases_go_on_in_the_data_and_resume_anywhere(corpus):
    c = config(
        steps=12, batch_warmup__rows=(2, 4), batch_warmup__share=0.5, causal_share=0.25, masking__rate=0.3,
        masking__end_rate=0.15, masking__rates=2, sequences=2,
    )  # fmt: skip

    def batches():
        return Phases([(p.steps, train_batches(corpus, p.examples, p.rows, window=2_000)) for p in plan_phases(c)])

    stream, states, all_batches = batches(), [], []
    for _ in range(12):
        states.append(stream.state())
        all_batches.append(next(stream))
    rows = [2] * 3 + [4] * 3 + [8] * 6
    assert [len(batch["tokens"]) for batch in all_batches] == rows
    assert ["causal" in batch for batch in all_batches] == [True] * 3 + [False] * 9
    plain = train_batches(corpus, plan_phases(c)[-1].examples, sum(rows), window=2_000)
    np.testing.assert_array_equal(np.concatenate([original(batch) for batch in all_batches]), original(next(plain)))
    for stop in (0, 2, 3, 4, 6, 7, 11):
        again = batches()
        again.restore(states[stop])
        for batch in all_batches[stop : stop + 2]:
            jax.tree.map(np.testing.assert_array_equal, next(again), batch)


def test_longer_rows_begin_with_the_first_text(corpus):
    c = config(steps=4, long_share=0.5, long_length=64)
    phases = [(p.steps, train_batches(corpus, p.examples, p.rows)) for p in plan_phases(c)]
    batches = Phases(phases)
    first_batches = [next(batches) for _ in range(3)]
    first = next(train_batches(corpus, plan_phases(c)[1].examples, 8))
    jax.tree.map(np.testing.assert_array_equal, first_batches[2], first)
