"""Examples of `bert_elmo_jax.data.corpora.unpack`."""

from bert_elmo_jax.data.corpora.reading import Reading
from bert_elmo_jax.data.corpora.unpack import needs_unpacking


def test_example_of_needs_unpacking():
    assert (needs_unpacking("a.txt", Reading(encoding="cp949")), needs_unpacking("a.txt.gz", Reading())) == (
        False,
        True,
    )
