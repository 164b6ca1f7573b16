import functools
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.masking import Masking, Vocabulary
from bert_elmo_jax.data.rows.pieces import PieceExamples, piece_batch, plan_rows

PAD, CLS, SEP, MASK = 0, 2, 3, 4
SIZE = 5000
VOCABULARY = Vocabulary(SIZE, CLS, SEP, PAD, MASK, np.zeros(SIZE, bool), np.isin(np.arange(SIZE), (PAD, CLS, SEP)))
OBJECTIVES = ["nsp", "sop", "sentences", "documents"]


def make_text(documents=40, seed=0, longest=20) -> Text:
    """Return a text whose tokens are all different."""
    rng = np.random.default_rng(seed)
    sizes = [rng.integers(1, longest, rng.integers(1, 9)) for _ in range(documents)]
    cuts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return Text((np.arange(cuts[-1]) + 5).astype(np.uint16), cuts, np.cumsum([0, *map(len, sizes)]))


def unmasked(batch):
    tokens = batch["tokens"].copy()
    row, place = np.nonzero(batch["mlm_weights"])
    tokens[row, batch["mlm_positions"][row, place]] = batch["mlm_targets"][row, place]
    return tokens


def examples_of(batch):
    """Yield tokens, types, positions, label and weight of each example in a batch."""
    tokens = unmasked(batch)
    for row in range(len(tokens)):
        segments = batch["segments"][row]
        for slot in range(segments.max()):
            columns = np.flatnonzero(segments == slot + 1)
            assert (np.diff(columns) == 1).all()
            assert batch["nsp_positions"][row, slot] == columns[0]
            yield (
                tokens[row, columns].tolist(),
                batch["types"][row, columns].tolist(),
                batch["positions"][row, columns].tolist(),
                int(batch["nsp_targets"][row, slot]),
                float(batch["nsp_weights"][row, slot]),
            )


def expected_examples(text, rows):
    """Yield the same from the plan."""
    for n in rows.members.tolist():
        a, a_length, b, b_length, label, weight = (int(column[n]) for column in rows.examples)
        first, second = (rows.tokens[x : x + n].tolist() for x, n in ((a, a_length), (b, b_length)))
        tokens = [CLS, *first, SEP] + ([*second, SEP] if second else [])
        types = [0] * (len(first) + 2) + ([1] * (len(second) + 1) if second else [])
        yield tokens, types, list(range(len(tokens))), label, float(weight)


@given(st.sampled_from(OBJECTIVES), st.integers(8, 70), st.integers(1, 5), st.integers(0, 50))
def test_batch_matches_the_plan(objective, length, sequences, seed):
    text = make_text(seed=seed)
    examples = PieceExamples(length, objective, sequences=sequences)
    rows = plan_rows(text, examples, VOCABULARY, (seed,))
    batch = piece_batch(rows, 0, len(rows), examples, VOCABULARY)
    assert list(examples_of(batch)) == list(expected_examples(text, rows))
    padding = batch["segments"] == 0
    assert (batch["tokens"][padding] == PAD).all()
    assert not batch["types"][padding].any()
    assert not batch["positions"][padding].any()
    assert rows.examples.lengths.sum() == (~padding).sum()
    assert {array.dtype for array in batch.values()} == {np.dtype(np.int32), np.dtype(np.float32)}
    if objective in ("sentences", "documents"):
        assert not batch["nsp_weights"].any()
        read = sorted(t for tokens, *_ in examples_of(batch) for t in tokens if t > MASK)
        assert read == sorted(text.tokens.tolist())  # every token once


@given(st.sampled_from(OBJECTIVES), st.integers(1, 4), st.integers(0, 50), st.data())
def test_row_is_the_same_in_every_batch(objective, sequences, seed, data):
    examples = PieceExamples(32, objective, sequences=sequences, masking=Masking("word", 0.3))
    rows = plan_rows(make_text(seed=seed), examples, VOCABULARY, (seed,))
    full_batch = piece_batch(rows, 0, len(rows), examples, VOCABULARY)
    first = data.draw(st.integers(0, len(rows) - 1))
    end = data.draw(st.integers(first + 1, len(rows)))
    for name, array in piece_batch(rows, first, end, examples, VOCABULARY).items():
        assert (array == full_batch[name][first:end]).all(), name


def test_rows_are_shuffled():
    rows, other = (plan_rows(make_text(400), PieceExamples(32, "documents"), VOCABULARY, (n,)) for n in (0, 1))
    places = rows.examples.a[rows.members]
    assert abs(np.corrcoef(places, np.arange(len(places)))[0, 1]) < 5 / np.sqrt(len(places))
    assert (other.members != rows.members).any()


def test_packed_rows_hold_the_same_examples_as_unpacked_rows():
    text = make_text(200)
    plans = [plan_rows(text, PieceExamples(48, "nsp", sequences=n), VOCABULARY, (7,)) for n in (1, 4)]
    examples = [sorted(map(str, expected_examples(text, rows))) for rows in plans]
    assert examples[0] == examples[1]
    assert len(plans[1]) < len(plans[0])


def test_separators_between_documents_of_a_row():
    text = Text(np.arange(10, 20).astype(np.uint16), np.arange(0, 11, 2), np.array([0, 1, 3, 5]))
    examples = PieceExamples(16, "sentences")
    rows = plan_rows(text, examples, VOCABULARY, (0,))
    (tokens,) = unmasked(piece_batch(rows, 0, 1, examples, VOCABULARY)).tolist()
    assert tokens == [CLS, 10, 11, SEP, 12, 13, 14, 15, SEP, 16, 17, 18, 19, SEP, PAD, PAD]


def test_invalid_settings_raise(as_users_run):
    for settings, message in (
        ({"length": 4}, r"length=4 has no room for \[CLS\] A \[SEP\] B \[SEP\]; use 5 or more"),
        ({"objective": "mlm"}, "objective 'mlm' is not known; it is one of nsp, sop, sentences, documents"),
        ({"short_per": "row"}, "expected document or chunk"),
    ):
        with pytest.raises(ValueError, match=message):
            PieceExamples(**settings)


def test_packed_and_unpacked_examples_have_the_same_logits():
    """No information leaks between the examples of a row."""
    import jax

    from bert_elmo_jax.families.bert.config import BertConfig
    from bert_elmo_jax.families.bert.family import FAMILY
    from bert_elmo_jax.families.init_params import init_params

    from ...families.logits import pretraining_logits

    config = BertConfig(
        vocab_size=SIZE, hidden_size=16, num_layers=2, num_heads=2, feed_forward_size=32, max_positions=48
    )
    shapes = jax.eval_shape(lambda key: init_params(FAMILY, config, key, ("mlm", "nsp")), jax.random.key(0))
    draw = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: draw.normal(0, 0.3, leaf.shape).astype(np.float32), shapes)
    examples = PieceExamples(48, "nsp", sequences=4)
    rows = plan_rows(make_text(longest=6), examples, VOCABULARY, (0,))
    batch = piece_batch(rows, 0, 4, examples, VOCABULARY)
    inputs = ("tokens", "types", "positions", "segments", "mlm_positions", "nsp_positions")
    where = [
        (row, slot) for row, slot in itertools.product(range(4), range(4)) if (batch["segments"][row] > slot).any()
    ]
    unpacked = {name: np.zeros((len(where), batch[name].shape[1]), np.int32) for name in inputs}
    owned = []
    for number, (row, slot) in enumerate(where):
        columns = np.flatnonzero(batch["segments"][row] == slot + 1)
        for name in ("tokens", "types", "positions"):
            unpacked[name][number, : len(columns)] = batch[name][row, columns]
        unpacked["segments"][number, : len(columns)] = 1
        owned.append(np.flatnonzero((batch["mlm_weights"][row] > 0) & np.isin(batch["mlm_positions"][row], columns)))
        unpacked["mlm_positions"][number, : len(owned[-1])] = batch["mlm_positions"][row, owned[-1]] - columns[0]
    assert len(where) > 8
    both = {name: np.concatenate([batch[name], unpacked[name]]) for name in inputs}
    logits = jax.jit(functools.partial(pretraining_logits, config))(params, **both)
    for number, ((row, slot), mlm_columns) in enumerate(zip(where, owned), start=4):
        np.testing.assert_allclose(logits.mlm[number, : len(mlm_columns)], logits.mlm[row, mlm_columns], atol=1e-5)
        np.testing.assert_allclose(logits.nsp[number, 0], logits.nsp[row, slot], atol=1e-5)
    assert sum(map(len, owned)) == batch["mlm_weights"].sum()
