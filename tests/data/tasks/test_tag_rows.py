"""Examples of `bert_elmo_jax.data.tasks.rows`."""

from bert_elmo_jax.data.tasks.examples import TaggedSentence
from bert_elmo_jax.data.tasks.rows import tag_places


def test_example_of_tag_places():
    from bert_elmo_jax.text import WordPiece

    tokenizer = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "서울", "##역", "배"])
    sentences = [TaggedSentence((word, "배"), None, "a.conll", (1, 2), 0) for word in ("서울역", "배")]
    assert [(ids.tolist(), words.tolist()) for _, ids, words in tag_places(sentences, tokenizer, 8)] == [
        ([2, 5, 6, 7, 3], [[0, 1], [1, 3]]),
        ([2, 7, 7, 3], [[0, 1], [1, 2]]),
    ]
    assert [ids.tolist() for _, ids, _ in tag_places(sentences, tokenizer, 6, context=True)] == [
        [2, 5, 6, 7, 7, 3],
        [2, 6, 7, 7, 7, 3],
    ]
