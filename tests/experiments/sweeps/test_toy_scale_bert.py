"""BERT's tables at toy scale, each to its end.

Half of what the toy scale costs, in a file of its own: so that two workers have one half each.
"""

import pytest

from .toy_runs import NAMES, check_toy_scale


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    """One for all sweeps, as it is meant: what they have in common is run once."""
    return tmp_path_factory.mktemp("sweeps")


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("bert_")])
def test_toy_scale(name, workdir):
    check_toy_scale(name, workdir)
