"""Tokenizers (WordPiece, SentencePiece, byte-level BPE, words, characters) and word vectors."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.text.bpe import train_byte_bpe as train_byte_bpe
    from bert_elmo_jax.text.characters import NUM_CHARACTERS as NUM_CHARACTERS
    from bert_elmo_jax.text.characters import boundary_characters as boundary_characters
    from bert_elmo_jax.text.characters import character_table as character_table
    from bert_elmo_jax.text.encoding import Encoding as Encoding
    from bert_elmo_jax.text.encoding import Frame as Frame
    from bert_elmo_jax.text.fastai_words import FastaiVocabulary as FastaiVocabulary
    from bert_elmo_jax.text.lexicon import Lexicon as Lexicon
    from bert_elmo_jax.text.lexicon import Unknown as Unknown
    from bert_elmo_jax.text.marian import Marian as Marian
    from bert_elmo_jax.text.marian import load_marian as load_marian
    from bert_elmo_jax.text.sentencepiece import SentencePiece as SentencePiece
    from bert_elmo_jax.text.sentencepiece import load_sentencepiece as load_sentencepiece
    from bert_elmo_jax.text.sentencepiece import train_sentencepiece as train_sentencepiece
    from bert_elmo_jax.text.tokenizer import Tokenizer as Tokenizer
    from bert_elmo_jax.text.tokenizer_file import TokenizerFile as TokenizerFile
    from bert_elmo_jax.text.tokenizer_loader import load_tokenizer as load_tokenizer
    from bert_elmo_jax.text.tokenizer_loader import load_tokenizer_file as load_tokenizer_file
    from bert_elmo_jax.text.vectors import WordVectors as WordVectors
    from bert_elmo_jax.text.vectors import read_vectors as read_vectors
    from bert_elmo_jax.text.vectors import width_of as width_of
    from bert_elmo_jax.text.word_table import WordTable as WordTable
    from bert_elmo_jax.text.wordpiece import WordPiece as WordPiece
    from bert_elmo_jax.text.wordpiece import load_wordpiece as load_wordpiece
    from bert_elmo_jax.text.wordpiece import train_wordpiece as train_wordpiece
    from bert_elmo_jax.text.words import WORD_RULES as WORD_RULES
    from bert_elmo_jax.text.words import WordSpans as WordSpans
    from bert_elmo_jax.text.words import WordVocabulary as WordVocabulary
    from bert_elmo_jax.text.words import split_words as split_words
    from bert_elmo_jax.text.words import word_spans as word_spans

__all__, __getattr__ = lazy_names(__name__, __file__)
