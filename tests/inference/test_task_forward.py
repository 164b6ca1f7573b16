"""Batches side by side: in order, a few at a time, and errors are raised."""

import threading
import time
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from bert_elmo_jax.inference.row_outputs import compute_outputs, two_at_a_time


def test_in_order_however_long_each_takes():
    def run(batch):
        time.sleep(0.05 if batch[0] == 0 else 0)
        return {"doubled": jax.numpy.asarray(batch) * 2}

    outputs = list(two_at_a_time(run, [np.array([n]) for n in range(7)]))
    assert [out["doubled"].tolist() for out in outputs] == [[2 * n] for n in range(7)]
    assert all(type(out["doubled"]) is np.ndarray for out in outputs)
    assert list(two_at_a_time(run, [])) == []


@pytest.mark.parametrize("devices", [1, 8])
def test_two_side_by_side_and_no_more(monkeypatch, devices):
    """On one device both threads compute; on several devices only the caller's thread starts computations."""
    monkeypatch.setattr(jax, "device_count", lambda: devices)
    now, most, threads = 0, 0, set()
    guard = threading.Lock()

    def run(batch):
        nonlocal now, most
        with guard:
            now, most = now + 1, max(most, now + 1)
            threads.add(threading.current_thread())
        time.sleep(0.02)
        with guard:
            now -= 1
        return batch

    batch_numbers = []

    def batches():
        for n in range(12):
            batch_numbers.append(n)
            yield np.array([n])

    for done, _ in enumerate(two_at_a_time(run, batches())):
        assert len(batch_numbers) <= done + 3, "batches are made when there is room for them"
    assert most == (2 if devices == 1 else 1)
    assert (threading.main_thread() in threads) == (devices > 1)


def test_errors_and_readers_that_stop_begin_few_batches():
    begun = []

    def run(batch):
        begun.append(int(batch))
        if batch == 1:
            raise ValueError("the second batch")
        return batch

    with pytest.raises(ValueError, match="the second batch"):
        list(two_at_a_time(run, iter(np.arange(50))))
    assert len(begun) < 8
    begun.clear()
    outputs = two_at_a_time(lambda batch: begun.append(batch) or batch, iter(np.arange(50)))
    next(outputs)
    outputs.close()
    assert len(begun) < 6 and threading.active_count() < 20


@pytest.mark.parametrize(
    ("in_parts", "shapes"), [(False, [(1, 20_000), (4, 1000), (8, 512), (1, 20)]), (True, [(8, 20_000), (8, 512)])]
)
def test_batches_of_long_rows_have_fewer_of_them(in_parts, shapes):
    widths = [1000, 20, *[512] * 8, 20_000, 20, 1000, 1000]
    computed = []

    def run(batch):
        computed.append((len(batch), int(batch.max())))
        return batch

    def collate(rows, height):
        return np.array([row.width for row in rows] + [0] * (height - len(rows)))

    rows = [SimpleNamespace(width=width) for width in widths]
    assert compute_outputs(run, rows, 8, collate, in_parts=in_parts) == widths
    assert sorted(computed) == sorted(shapes)
