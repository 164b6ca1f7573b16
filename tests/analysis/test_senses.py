"""Examples of `bert_elmo_jax.analysis.senses`."""

import numpy as np

from bert_elmo_jax.analysis.senses import find_senses, split_documents
from bert_elmo_jax.data.tasks.annotated import Sense, SenseSentence
from bert_elmo_jax.inference.kept_vectors import VectorFolder


def test_example_of_split_documents():
    sentences = [SenseSentence(("배",), (), f"d{n // 2}", "semcor.tsv", n) for n in range(10)]
    train, test = split_documents(sentences)
    assert (len(train), len(test), {s.document for s in train} & {s.document for s in test}) == (8, 2, set())


def test_example_of_find_senses():
    import tempfile

    from bert_elmo_jax.inference.word_layers import StaticVectors

    sense = Sense(0, 1, "bank%1", ("bank%1:14:00::",), (2,))
    sentence = SenseSentence(("bank",), (sense,), "d", "semcor.tsv", 1)
    sources, folder = {"my vectors": StaticVectors({"bank": np.ones(2)})}, VectorFolder(tempfile.mkdtemp())
    assert (
        repr(find_senses(sources, [sentence], [sentence], folder))
        == "[senses, first sense: 100.0 %, senses, my vectors, layer 0: 100.0 %]"
    )
