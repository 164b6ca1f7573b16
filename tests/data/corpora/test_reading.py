"""Examples of `bert_elmo_jax.data.corpora.reading`."""

import re

import pytest

from bert_elmo_jax.data.corpora.reading import BadInput, Reading, Tally, find_files


def test_example_of_badinput():
    assert str(BadInput("novel.txt", 3, "a NUL byte", "remove it")) == "novel.txt, line 3: a NUL byte; remove it"


def test_example_of_tally():
    tally = Tally(Reading(on_bad="skip"))
    tally.bad("novel.txt", lambda: 3, "a NUL byte", "remove it")
    assert dict(tally.skipped) == {"a NUL byte": 1}


def test_example_of_find_files():
    with pytest.raises(BadInput, match=re.escape("nowhere/*.txt: no file matches; check the path, and quote a glob:")):
        find_files(["nowhere/*.txt"], Tally(Reading()))
