"""Damaged texts: how much of a text each kind of noise changes, and the rows with texts and originals."""

import numpy as np
import pytest

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.denoising import (
    DenoisingExamples,
    Noise,
    damage,
    infill,
    plan_denoising_rows,
    split_documents,
)
from bert_elmo_jax.data.rows.translation import pair_batch

MASK, PAD, BEGIN, END = 4, 0, 2, 3
QUIET = {"permute": False, "infill": 0.0}
SENTENCES = [np.arange(10, 200), np.arange(200, 300), np.arange(300, 510)]
PIECES = np.concatenate(SENTENCES)


def damaged(seed=0, **noise):
    return damage(SENTENCES, Noise(**(QUIET | noise)), MASK, np.random.default_rng(seed))


def test_no_noise_changes_nothing():
    assert damaged().tolist() == PIECES.tolist()


def test_permuted_sentences_stay_whole():
    orders = {tuple(damaged(seed, permute=True)) for seed in range(30)}
    assert len(orders) == 6 and all(sorted(order) == PIECES.tolist() for order in orders)


def test_a_rotated_text_begins_elsewhere():
    starts = {int(damaged(seed, rotate=True)[0]) for seed in range(20)}
    assert len(starts) > 15
    text = damaged(rotate=True)
    assert np.roll(text, int(text[0]) - 10).tolist() == PIECES.tolist()


def test_masked_and_deleted_shares():
    masked, deleted = damaged(mask=0.2), damaged(delete=0.2)
    assert len(masked) == 500 and 70 < (masked == MASK).sum() < 130
    assert (masked == PIECES)[masked != MASK].all()
    assert 370 < len(deleted) < 430 and (np.diff(deleted) > 0).all()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_infilled_spans_cover_their_share_with_one_mask_each(share):
    counts = []
    for seed in range(20):
        text = damaged(seed, infill=share)
        masks = (text == MASK).sum()
        assert len(text) - masks == 500 - round(share * 500)  # exactly this share is gone
        assert (np.diff(text[text != MASK]) > 0).all()
        places = np.flatnonzero(text == MASK)
        assert (np.diff(places) > 1).all()  # spans do not touch
        counts.append(masks)
    # The mean of Poisson's distribution with 3 is 3, spans of no pieces included.
    assert np.mean(counts) == pytest.approx(share * 500 / 3, rel=0.1)


def test_extreme_shares_of_infilling():
    rng = np.random.default_rng(0)
    assert infill(PIECES, 1.0, 3.0, MASK, rng).tolist() == [MASK]
    text = infill(PIECES, 0.95, 1.0, MASK, rng)
    assert (text != MASK).sum() == 25 and (np.diff(np.flatnonzero(text == MASK)) > 1).all()
    assert infill(PIECES[:1], 0.3, 3.0, MASK, rng).tolist() == [10]
    assert infill(PIECES[:0], 0.3, 3.0, MASK, rng).tolist() == []


def text_of(*documents):
    sentences = [sentence for document in documents for sentence in document]
    starts = np.cumsum([0, *map(len, sentences)])
    return Text(np.concatenate(sentences), starts, np.cumsum([0, *map(len, documents)]))


def test_documents_are_split_between_sentences():
    a, b, c = np.arange(10, 14), np.arange(14, 19), np.arange(20, 43)
    parts = [np.concatenate(part).tolist() for part in split_documents(text_of([a, b], [b, c]), 10)]
    assert parts == [[*a, *b], [*b], [*c[:10]], [*c[10:20]], [*c[20:]]]


def examples(**changes):
    fields = {"source_length": 16, "target_length": 16, "start": END, "end": END, "pad": PAD, "sequences": 2}
    return DenoisingExamples(**(fields | {"noise": Noise(**(QUIET | {"mask": 0.5}))} | changes))


def test_rows_hold_a_damaged_text_and_its_original():
    text, settings = text_of([np.arange(10, 15)], [np.arange(20, 24), np.arange(30, 32)]), examples()
    rows = plan_denoising_rows(text, settings, (0, 0), ((BEGIN,), (END,)), MASK)
    batch = pair_batch(rows, 0, len(rows), settings)
    originals = set()
    for row in range(len(rows)):
        for number in range(1, batch["source_segments"].max() + 1):
            read, written = (batch[f"{side}_segments"][row] == number for side in ("source", "target"))
            if not read.any():
                continue
            source, entered, expected = (
                batch[name][row][place].tolist()
                for name, place in (("source_tokens", read), ("target_in", written), ("target_out", written))
            )
            assert entered == [END, *expected[:-1]] and expected[0] == BEGIN and expected[-1] == END
            assert source[0] == BEGIN and source[-1] == END and len(source) == len(expected)
            assert all(one in (other, MASK) for one, other in zip(source, expected, strict=True))
            originals.add(tuple(expected[1:-1]))
    assert originals == {tuple(range(10, 15)), (20, 21, 22, 23, 30, 31)}


def test_every_epoch_has_damage_of_its_own():
    text = text_of([np.arange(10, 24)])
    sources = [
        plan_denoising_rows(text, examples(), key, ((BEGIN,), (END,)), MASK).tokens[:14].tolist()
        for key in ((0, 0), (0, 0), (0, 1))
    ]
    assert sources[0] == sources[1] != sources[2]


def test_rows_without_room_are_refused():
    with pytest.raises(ValueError, match="rows of 2 pieces have no room for a piece between the special ones"):
        settings = examples(source_length=2, target_length=2)
        plan_denoising_rows(text_of([np.arange(9)]), settings, (0,), ((BEGIN,), (END,)), MASK)
