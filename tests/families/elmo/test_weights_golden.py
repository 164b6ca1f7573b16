"""AllenNLP's weight files give the same vectors here."""

import functools
import io
import json
import tarfile

import h5py
import jax
import numpy as np
import pytest

from bert_elmo_jax.families.elmo.model import Elmo, zero_state
from bert_elmo_jax.inference.read_model import read_weights
from bert_elmo_jax.text import boundary_characters, character_table

pytestmark = pytest.mark.usefixtures("strict_dtypes")
# Theirs are computed in float32 and lie up to 1.4e-6 from what float64 gives; to six decimals is as near as one can be.
SIX_DECIMALS = 1.5e-6


def batch_of(sentences, max_characters=50, distinct=0, width=0):
    """Distinct words of sentences with their marks, [1, U, C]; places among them, [B, T]; lengths.

    U and T are at least `distinct` and `width`: batches of one shape are compiled once.
    """
    words = sorted({word for sentence in sentences for word in sentence})
    characters = np.concatenate([boundary_characters(max_characters), character_table(words, max_characters)])
    characters = np.pad(characters, [(0, max(0, distinct - len(characters))), (0, 0)])
    place = {word: number + 2 for number, word in enumerate(words)}
    lengths = np.array([len(sentence) + 2 for sentence in sentences], np.int32)
    places = np.zeros((len(sentences), max(lengths.max(), width)), np.int32)
    for row, sentence in enumerate(sentences):
        places[row, : lengths[row]] = [0, *(place[word] for word in sentence), 1]
    return characters.astype(np.int32)[None], places, lengths


@pytest.fixture(scope="module")
def run():
    @functools.partial(jax.jit, static_argnums=0)
    def apply(config, params, characters, places, lengths, state):
        return Elmo(config).apply({"params": params}, places, lengths, characters=characters, state=state)

    return apply


@pytest.fixture(scope="module")
def theirs(shared, tmp_path_factory):
    """Return the folder of AllenNLP's own small model, with its expected vectors."""
    archive = shared / "data" / "elmo_allennlp.tar.xz"
    if not archive.is_file():
        pytest.skip(f"needs {archive.name} in the folder of data beside the checkout")
    folder = tmp_path_factory.mktemp("theirs")
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes()), mode="r:xz") as files:
        files.extractall(folder, filter="data")
    return folder / "elmo_allennlp"


def test_their_own_vectors(run, theirs):
    params, config, report = read_weights(theirs)
    assert report.source.endswith("lm_weights.hdf5") and not report.unexpected
    streams = json.loads((theirs / "sentences.json").read_text(encoding="utf-8"))
    files = [h5py.File(theirs / f"lm_embeddings_{n}.hdf5") for n in range(3)]
    state, compared = zero_state(config, 3), 0
    for step, sentences in enumerate(zip(*streams, strict=True)):
        characters, places, lengths = batch_of([sentence.split() for sentence in sentences], distinct=170, width=64)
        output = run(config, params["encoder"], characters, places, lengths, state)
        state = output.state
        for row, file in enumerate(files):
            expected = file[str(step)][()]
            vectors = np.asarray(output.last[row, 1 : lengths[row] - 1])
            assert expected.shape == (2, len(vectors), config.width)
            assert np.abs(vectors - np.concatenate(expected, axis=-1)).max() <= SIX_DECIMALS
            compared += len(vectors)
    assert compared > 300
    for file in files:
        file.close()


def test_their_token_vectors(run, theirs):
    params, config, _ = read_weights(theirs)
    words = (theirs / "vocab_test.txt").read_text(encoding="utf-8").split()
    with h5py.File(theirs / "elmo_token_embeddings.hdf5") as file:
        expected = file["embedding"][()]
    marks = {"<S>": 0, "</S>": 1}
    characters, places, lengths = batch_of([[word for word in words if word not in marks]])
    output = run(config, params["encoder"], characters, places, lengths, zero_state(config, 1))
    vectors = np.asarray(output.token[0])
    assert np.abs(expected[[word not in marks for word in words]] - vectors[1:-1]).max() <= SIX_DECIMALS
    assert np.abs(expected[words.index("<S>")] - vectors[0]).max() <= SIX_DECIMALS
