"""all-mpnet-base-v2 against the vectors and the figure of sentence-transformers 6.2.

The variable ALL_MPNET names its folder; docs/tutorials/sentence_vectors.md says how to get it.
"""

import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.task import read_examples, task_named
from bert_elmo_jax.evals.glue import spearman
from bert_elmo_jax.inference.predictions import cosine

from ..conftest import GOLDENS, SHARED

FOLDER = Path(os.environ.get("ALL_MPNET") or "missing")
STSB = SHARED / "data" / "stsb.tar.xz"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not (FOLDER / "modules.json").is_file(), reason="ALL_MPNET names no folder of all-mpnet-base-v2"
    ),
]


@pytest.fixture(scope="module")
def encoder():
    return load(FOLDER)


def test_vectors(encoder):
    frozen = np.load(GOLDENS / "all_mpnet_base_v2.npz")
    texts = [str(text) for text in frozen["texts"]]
    np.testing.assert_allclose(encoder.sentences(texts, overflow="truncate"), frozen["vectors"], rtol=0, atol=1e-5)


@pytest.mark.skipif(not STSB.is_file(), reason="needs ../shared/data")
def test_spearman_of_stsb(encoder, tmp_path):
    with tarfile.open(STSB) as archive:
        archive.extractall(tmp_path, filter="data")
    pairs = read_examples(next(tmp_path.rglob("sts-dev.csv")), task_named("sentences"))
    first, second = (encoder.sentences([pair.texts[n] for pair in pairs]) for n in (0, 1))
    score = spearman([pair.label for pair in pairs], np.array([cosine(a, b) for a, b in zip(first, second)]))
    assert score == pytest.approx(0.88109, abs=1e-4)
