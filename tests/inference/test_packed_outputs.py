"""Packed prediction: few shapes, little padding, small shapes for single inputs, and results in the order of inputs."""

import dataclasses

import numpy as np
import pytest

from bert_elmo_jax.data.tasks.packed_examples import Shape
from bert_elmo_jax.data.tasks.rows import Row
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.task_head import TaskHead
from bert_elmo_jax.inference.packed_outputs import compute_packed, plan_inputs
from bert_elmo_jax.inference.task_model import RowShapes

from ..data.tasks.test_even_batches import draw_lengths


def draw_sentences(count, seed=0):
    """Lengths of sentences: 25 pieces on average, never many more than twice that."""
    return np.clip(np.random.default_rng(seed).normal(25, 11, count).astype(np.int64), 4, 55)


def padding_of(lengths, shapes):
    return 1 - lengths.sum() / sum(shape.positions for shape in shapes)


@pytest.mark.parametrize("lengths", [draw_lengths(6000), draw_sentences(872)], ids=["phrases", "sentences"])
def test_few_shapes_and_little_padding(lengths):
    planned = plan_inputs(lengths, 32, 512)
    assert len(set(planned.shapes)) <= 2 and padding_of(lengths, planned.shapes) < 0.05
    assert sorted(np.concatenate(planned.chosen).tolist()) == list(range(len(lengths)))
    # A batch takes no more memory than one of padded rows.
    assert planned.shape.positions <= 32 * lengths.max()


def test_parts_of_a_stream_share_their_shapes_and_devices_the_batches():
    shapes = {plan_inputs(draw_lengths(2048, seed), 32, 512).shape for seed in range(8)}
    assert len(shapes) <= 2 and {shape.width for shape in shapes} == {128}
    planned = plan_inputs(draw_lengths(3000), 32, 512, parts=8)
    assert {shape.rows % 8 for shape in planned.shapes[:-1]} == {0}


def test_shapes_of_few_inputs():
    for lengths, positions, shapes in (
        ([12], 512, [(1, 16)]),
        ([12, 12], 512, [(1, 32)]),
        ([100], 512, [(1, 128)]),
        ([100], 100, [(1, 100)]),
        ([200], 512, [(1, 256)]),
        ([12] * 12, 40, [(1, 40)] * 4),  # a model of few positions
        ([600], 512, [(1, 640)]),  # the choices of one example
        ([512] * 5, 512, [(4, 512), (1, 512)]),
    ):
        assert plan_inputs(np.array(lengths), 4, positions).shapes == [Shape(*shape) for shape in shapes]


def test_results_are_in_the_order_of_inputs():
    rows = [Row(n, (np.full(k, n, np.int32),), (np.zeros(k, np.int32),)) for n, k in enumerate(draw_lengths(300))]
    how = {"positions": 512, "pad_id": 0}
    outputs = compute_packed(lambda batch: {"ids": batch["tokens"]}, rows, 8, of_pieces=True, **how)
    assert all((out["ids"] == row.ids[0]).all() for out, row in zip(outputs, rows, strict=True))
    firsts = compute_packed(
        lambda batch: np.take_along_axis(batch["tokens"], batch["nsp_positions"], 1), rows, 8, of_pieces=False, **how
    )
    assert firsts == list(range(300))
    assert compute_packed(lambda batch: batch, [], 8, of_pieces=False, **how) == []


def test_families_and_heads_that_do_not_pack():
    """Not packed: a family that does not separate packed texts, and BiLSTMs, which read across texts."""
    config, task = FAMILY.config(vocab_size=50), task_named("sst2", max_length=64)
    mixed, lstm = (TaskHead("classification", 2, Features((0, -1), "mix", lstm_layers=n)) for n in (0, 1))
    apart = dataclasses.replace(FAMILY, inputs=Pieces(packs=False))
    for family, head, packs in ((FAMILY, mixed, True), (FAMILY, lstm, False), (apart, mixed, False)):
        assert RowShapes.of(task, head, family, config).packs == packs
    rows = [Row(n, (np.full(k, 7, np.int32),), (np.zeros(k, np.int32),)) for n, k in enumerate((3, 9, 20))]
    shapes = []

    def run(batch):
        shapes.append((sorted(batch), batch["tokens"].shape))
        return batch["segments"].sum(axis=1)

    assert RowShapes.of(task, mixed, apart, config).compute(run, rows, 2) == [3, 9, 20]
    assert shapes == [(["segments", "tokens", "types"], shape) for shape in ((2, 32), (1, 16))]


def test_few_long_examples_are_computed_together():
    shapes = plan_inputs(np.array([8000] * 8), 32, 8192).shapes
    assert {(shape.rows, shape.width) for shape in shapes} == {(1, 8192)}
