"""ELMo's tables at toy scale and our own, each to its end.

Half of what the toy scale costs, in a file of its own: so that two workers have one half each.
"""

import pytest

from .toy_runs import NAMES, check_toy_scale, marked


@pytest.mark.parametrize("name", marked(name for name in NAMES if not name.startswith("bert_")))
def test_toy_scale(name, toy_tables):
    # The biLM that ELMo's tables have in common is pretrained for the first of them; then most of the work is compiling
    # their networks, each for some seconds of training.
    # The story's networks are compiled for every number of layers.
    check_toy_scale(name, toy_tables, quick=name == "story" or (name.startswith("elmo_") and name != "elmo_domain"))
