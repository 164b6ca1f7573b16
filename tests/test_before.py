"""Results that the redesign must not change: they are computed again and compared with `tests/goldens/before`.

On a computer like the one that recorded them, they must agree bit for bit. `tests/goldens/before/record.py` makes the
records, and says which differences another computer may have. `make proofs` runs this.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from .goldens.before import record

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def found(request, tmp_path_factory):
    """Return a function that takes a record's name, waits for its results and returns them.

    All commands that the chosen tests need start at once, two at a time, or one at a time if there are other workers.
    """
    mine = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    needed = dict.fromkeys(item.callspec.params["name"] for item in mine)
    recorder = record.Recorder(tmp_path_factory.mktemp("before"), os.environ["JAX_COMPILATION_CACHE_DIR"])
    workers = 1 if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1 else 2
    with ThreadPoolExecutor(workers) as threads:
        results = {name: threads.submit(recorder.found, name) for name in needed}
        yield lambda name: (results[name].result(), recorder.folder)
        for result in results.values():
            result.cancel()
    recorder.close()


def check(name, found):
    """Fail if a result differs from its record, and name the first differences."""
    now, folder = found(name)
    lines = record.differences(name, now, folder)
    assert not lines, "\n".join([f"{len(lines)} differences", *lines[:20]])


@pytest.mark.parametrize("name", record.names(["streams"]))
def test_losses_and_parameters_of_pretraining(name, found):
    check(name, found)


@pytest.mark.parametrize("name", record.names(["tasks"]))
def test_scores_and_parameters_of_fine_tuning(name, found):
    check(name, found)


@pytest.mark.parametrize("name", record.names(["prepared"]))
def test_prepared_shards(name, found):
    check(name, found)


@pytest.mark.parametrize("name", record.names(["sweeps"]))
def test_table_of_a_sweep(name, found):
    check(name, found)


@pytest.mark.parametrize("name", record.names(["loaded"]))
def test_vectors_and_predictions_of_what_is_loaded(name, found):
    check(name, found)
