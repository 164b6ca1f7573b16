"""Tokenizers (WordPiece, SentencePiece, byte-level BPE, words, characters) and word vectors."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.text.bpe import train_byte_bpe
    from bert_elmo_jax.text.characters import NUM_CHARACTERS, boundary_characters, character_table
    from bert_elmo_jax.text.encoding import Encoding, Frame
    from bert_elmo_jax.text.fastai_words import FastaiVocabulary
    from bert_elmo_jax.text.lexicon import Lexicon, Unknown
    from bert_elmo_jax.text.marian import Marian, load_marian
    from bert_elmo_jax.text.sentencepiece import SentencePiece, load_sentencepiece, train_sentencepiece
    from bert_elmo_jax.text.tokenizer import Tokenizer
    from bert_elmo_jax.text.tokenizer_file import TokenizerFile
    from bert_elmo_jax.text.tokenizer_loader import load_tokenizer, load_tokenizer_file
    from bert_elmo_jax.text.vectors import WordVectors, read_vectors, width_of
    from bert_elmo_jax.text.word_table import WordTable
    from bert_elmo_jax.text.wordpiece import WordPiece, load_wordpiece, train_wordpiece
    from bert_elmo_jax.text.words import WORD_RULES, WordSpans, WordVocabulary, split_words, word_spans

__all__, __getattr__ = lazy_names(__name__, __file__)
