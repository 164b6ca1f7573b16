"""Recipes of pretraining made small: one size for each family, so that tests share compiled functions."""

import functools

from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus, toy_pairs
from bert_elmo_jax.families import get_family
from bert_elmo_jax.runs.config_files import list_fields, override, read_config

# Small values for the fields of a recipe, where it has them.
RUN = {"steps": 16, "batch_size": 8, "log_every": 5, "eval_every": 8, "checkpoint_every": 4, "eval_batches": 1,
       "keep": 2, "average": 2, "length": 32, "target_length": 32, "long_length": 64, "long_batch_size": 0,
       "translations": 2, "spread": 1, "negatives": 8}  # fmt: skip
MODEL = {"num_layers": 1, "hidden_size": 16, "num_heads": 2, "feed_forward_size": 32, "cell_size": 16,
         "projection_size": 8, "filters": "((1, 4), (2, 4))", "max_characters": 12, "vector_size": 8, "lstm_size": 8,
         "target_size": 8, "embedding_size": 16, "decoder_layers": 1, "buckets": 100}  # fmt: skip


def small_fields(file):
    """Return the assignments that make a recipe small, for the fields that it has."""
    config, _ = read_config(file)
    names = {field for field, _ in list_fields(config)}
    values = {**RUN, **{f"model.{field}": value for field, value in MODEL.items()}}
    if get_family(config.family).inputs.name == "words" and "target_length" not in names:
        values["length"] = 8
    if "model.dropout" in names:  # a random key that went wrong would show
        values["model.dropout"] = 0.1
    return [f"{field}={value}" for field, value in values.items() if field in names]


def small_config(file, **changes):
    """Return the config of a small recipe, with further changes."""
    config, _ = read_config(file)
    override(config, small_fields(file))
    config.update_from_flattened_dict(changes)
    return config


def corpus_kind(file):
    """Return the kind of corpus that a recipe reads: pieces, words, pairs or word_pairs."""
    config, _ = read_config(file)
    words = get_family(config.family).inputs.name == "words"
    if "target_length" in config:
        return "word_pairs" if words else "pairs"
    return "words" if words else "pieces"


def toy_corpora(folder, documents=200):
    """Return a function that makes the corpus of a kind when it is first asked for, and returns its folder."""

    @functools.cache
    def make(kind):
        tokenizer = "words" if "word" in kind else "wordpiece"
        if "pairs" in kind:
            return toy_pairs(folder / kind, topics=2, words=3, documents=3 * documents, tokenizer=tokenizer)
        return toy_corpus(folder / kind, documents=documents, tokenizer=tokenizer)

    return make
