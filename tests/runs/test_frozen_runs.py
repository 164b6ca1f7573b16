"""Runs of an earlier version resume and load with the same results: tests/goldens/make_frozen_runs.py made them."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from ..goldens.make_frozen_runs import FROZEN, STREAMS, describe_machine, frozen_cases, read_results, run, stream_cases
from ..simulated_devices import DEVICES

pytestmark = pytest.mark.skipif(DEVICES != 1, reason="was computed on one device")
QUICK = ("bert",)  # in every run of the tests
RUNS = sorted(file.stem for file in FROZEN.glob("*.zip"))
# Fields of recipes that have changed since: the streams were computed with these.
EARLIER = {"modernbert": {"optimizer.b2": 0.999, "optimizer.decay": 1e-5}}


def compare(computed, expected, path, exact):
    """Compare trees of JSON: numbers bit for bit, or on another machine to a few digits."""
    if isinstance(expected, dict):
        later = {"unknown_f1", "unknown_accuracy"} - expected.keys()  # figures that earlier versions did not compute
        assert computed.keys() - later == expected.keys(), path
        for name in expected:
            compare(computed[name], expected[name], f"{path}/{name}", exact)
    elif isinstance(expected, list) and not (expected and isinstance(expected[0], float)):
        assert len(computed) == len(expected), path
        for number, pair in enumerate(zip(computed, expected)):
            compare(*pair, f"{path}[{number}]", exact)
    elif exact or isinstance(expected, str | bool | None):
        assert computed == expected, path
    else:
        np.testing.assert_allclose(computed, expected, rtol=1e-2, atol=1e-3, err_msg=path)


def check(results, file):
    """Compare results with a file; hashes of parameters and words of predictions only on the machine that made it."""
    expected = json.loads(file.read_text(encoding="utf-8"))
    exact = expected.pop("machine") == describe_machine()
    if not exact:
        for name in ("hash", "predictions"):
            results.pop(name, None)
            expected.pop(name, None)
    compare(results, expected, file.stem, exact)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in RUNS])
def test_a_run_of_an_earlier_version_resumes(name, tmp_path):
    shutil.unpack_archive(FROZEN / f"{name}.zip", tmp_path / "run")
    assert run(frozen_cases()[name], tmp_path / "run") == 0
    check(read_results(tmp_path / "run"), FROZEN / f"{name}.json")


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(file.stem for file in STREAMS.glob("*.json")))
def test_losses_scores_and_encodings_of_an_earlier_version(name, tmp_path):
    case = stream_cases()[name]
    case = dataclasses.replace(case, fields={**case.fields, **EARLIER.get(name, {})})
    assert run(case, tmp_path / "run") == 0
    check(read_results(tmp_path / "run"), STREAMS / f"{name}.json")
