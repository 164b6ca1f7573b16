"""Any encoder of ours as what a task's network reads: layers [L, T, D] with a vector for each word of a sentence.

Of an ELMo these are its words' own vectors, of a BERT those of each word's first piece.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.data.rows.widths import width_for
from bert_elmo_jax.data.tasks.examples import TaggedSentence
from bert_elmo_jax.data.tasks.tag_rows import tag_places
from bert_elmo_jax.data.tasks.word_rows import Batch, Layers, WordRow
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.encoder import BertEncoder
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.encoder import ElmoEncoder
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.word_layers import word_layers
from bert_elmo_jax.text import Lexicon, WordVocabulary, boundary_characters, character_table

WordEncoder = BertEncoder | ElmoEncoder
CHARACTERS = (16, 24, 32)  # widths that words are cut to; beyond, the encoder's own


def word_encoder(path: str) -> WordEncoder:
    """The encoder of a model, without its heads: so it has one fingerprint, whatever it was trained with.

    >>> word_encoder("tests/goldens/elmo_tiny").params.keys()
    dict_keys(['encoder'])
    """
    stored = read_model(path)
    if not isinstance(stored.config, BertConfig | ElmoConfig):
        raise ValueError(f"{path} is a task's network, which is no encoder; give the encoder that it was made with")
    params = {"encoder": {name: part for name, part in stored.params["encoder"].items() if name != "pooler"}}
    if isinstance(stored.config, ElmoConfig):
        assert stored.tokenizer is None or isinstance(stored.tokenizer, WordVocabulary)
        vocabulary = stored.tokenizer if stored.config.input == "words" else None
        elmo = ElmoEncoder(stored.config, params, vocabulary, str(path))
        if stored.config.input == "words":
            elmo.vocabulary  # noqa: B018 -- raises where there is none
        return elmo
    assert not isinstance(stored.tokenizer, WordVocabulary | Lexicon)
    bert = BertEncoder(stored.config, params, stored.tokenizer, str(path))
    bert.tokenizer  # noqa: B018 -- raises where there is none
    return bert


def size_of(encoder: WordEncoder) -> tuple[int, int]:
    """How many layers it has, and how many numbers a word in each.

    >>> size_of(word_encoder("tests/goldens/elmo_tiny")), size_of(word_encoder("tests/goldens/bert_tiny"))
    ((3, 24), (4, 64))
    """
    config = encoder.config
    return config.num_layers + 1, config.hidden_size if isinstance(config, BertConfig) else 2 * config.width


def encode_words(encoder: WordEncoder, sentences: Sequence[Sequence[str]]) -> list[Float32[np.ndarray, "L T D"]]:
    """All layers of each sentence; zeros where the encoder makes nothing of a word (a control character of a BERT).

    >>> encoder = word_encoder("tests/goldens/elmo_tiny")
    >>> [layers.shape for layers in encode_words(encoder, [["강가의", "작은", "은행"], ["배"]])]
    [(3, 3, 24), (3, 1, 24)]
    """
    return list(word_layers(encoder, sentences, pieces="first"))


def frozen_layers(encoder: WordEncoder) -> Layers:
    """The entries of a batch for a network that does not train the encoder: its `layers`, computed when asked for.

    >>> row = WordRow(0, ("강가의", "은행"), np.zeros(2, np.int32))
    >>> frozen_layers(word_encoder("tests/goldens/elmo_tiny"))([row], 2, 8)["layers"].shape
    (2, 3, 8, 24)
    """

    def layers(rows: Sequence[WordRow], height: int, width: int) -> Batch:
        return stack_layers(encode_words(encoder, [row.words for row in rows]), height, width)

    return layers


def stack_layers(found: Sequence[Float32[np.ndarray, "L _ D"]], height: int, width: int) -> Batch:
    """The layers of sentences, padded, as an entry of a batch.

    >>> stack_layers([np.ones((3, 2, 4), np.float32)], 2, 8)["layers"].shape
    (2, 3, 8, 4)
    """
    layers, _, size = found[0].shape
    whole = np.zeros((height, layers, width, size), np.float32)
    for n, one in enumerate(found):
        whole[n, :, : one.shape[1]] = one
    return {"layers": whole}


def trained_layers(encoder: WordEncoder) -> Layers:
    """The entries of a batch for a network that trains the encoder along: what `heads.word_layers` reads.

    >>> row = WordRow(0, ("강가의", "은행"), np.zeros(2, np.int32))
    >>> batch = trained_layers(word_encoder("tests/goldens/elmo_tiny"))([row], 2, 8)
    >>> {name: array.shape for name, array in batch.items()}
    {'elmo_words': (2, 10), 'elmo_lengths': (2,), 'elmo_characters': (2, 10, 16)}
    """

    def elmo(rows: Sequence[WordRow], height: int, width: int) -> Batch:
        config = encoder.config
        assert isinstance(config, ElmoConfig) and isinstance(encoder, ElmoEncoder)
        words = np.zeros((height, width + 2), np.int32)
        lengths = np.zeros(height, np.int32)
        lengths[: len(rows)] = [row.width + 2 for row in rows]
        if config.input == "words":
            vocabulary = encoder.vocabulary
            for n, row in enumerate(rows):
                ids = vocabulary.ids(row.words)
                words[n, : row.width + 2] = [vocabulary.bos_id, *ids, vocabulary.eos_id]
            return {"elmo_words": words, "elmo_lengths": lengths}
        most = config.max_characters
        longest = max(len(word.encode("utf-8", "replace")) for row in rows for word in row.words) + 2
        cut = min(next((size for size in CHARACTERS if size >= longest), most), most)
        # Every row has a table of its own, so that rows can be on any device: its words in their order.
        characters = np.zeros((height, width + 2, cut), np.int32)
        marks = boundary_characters(cut)
        words[:] = np.arange(width + 2)
        for n, row in enumerate(rows):
            characters[n, 0], characters[n, row.width + 1] = marks
            characters[n, 1 : row.width + 1] = character_table(row.words, cut)
        return {"elmo_words": words, "elmo_lengths": lengths, "elmo_characters": characters}

    def bert(rows: Sequence[WordRow], height: int, width: int) -> Batch:
        config = encoder.config
        assert isinstance(config, BertConfig) and isinstance(encoder, BertEncoder)
        read = [_pieces(encoder, config, row) for row in rows]
        size = width_for(max(len(ids) for ids, _ in read), config.max_positions)
        pieces, segments = np.full((height, size), config.pad_id, np.int32), np.zeros((height, size), np.int32)
        first = np.zeros((height, width), np.int32)
        for n, (ids, places) in enumerate(read):
            pieces[n, : len(ids)], segments[n, : len(ids)] = ids, 1
            first[n, : len(places)] = places
        return {"pieces": pieces, "segments": segments, "first": first}

    return elmo if isinstance(encoder, ElmoEncoder) else bert


def _pieces(encoder: BertEncoder, config: BertConfig, row: WordRow) -> tuple[np.ndarray, np.ndarray]:
    """The ids of a sentence, and where each word begins."""
    sentence = TaggedSentence(row.words, None, "", (0,) * row.width, 0)
    parts = list(tag_places([sentence], encoder.tokenizer, config.max_positions))
    if len(parts) > 1:
        shown = " ".join(row.words[:8])
        raise ValueError(
            f"a sentence of {row.width} words ({shown} …) has more than the {config.max_positions} pieces that "
            f"{encoder.source} takes, which is trained along here: split it, or leave the encoder frozen"
        )
    _, ids, words = parts[0]
    return ids, words[:, 1]
