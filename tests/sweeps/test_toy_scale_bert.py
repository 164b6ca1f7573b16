"""BERT's tables at toy scale, each to its end.

Half of what the toy scale costs, in a file of its own: so that two workers have one half each.
"""

import pytest

from .toy_runs import NAMES, check_toy_scale, marked


@pytest.mark.parametrize("name", marked(name for name in NAMES if name.startswith("bert_")))
def test_toy_scale(name, toy_tables):
    check_toy_scale(name, toy_tables)
