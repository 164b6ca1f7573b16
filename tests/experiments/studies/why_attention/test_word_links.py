"""Heads that link two words: their weights, pictures, and scores on texts whose links are known."""

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.inference import write_run_directory
from bert_elmo_jax.report.show import show
from bert_elmo_jax.text import train_wordpiece
from bert_elmo_jax.toyworld import ToyWorld, fill_masks
from experiments.studies.why_attention.word_links import (
    SENTENCES,
    best_offset,
    draw_head,
    ends_of,
    find_links,
    find_pronoun,
    rank_words,
    read_maps,
    score_links,
    toy_links,
)

WORLDS = {language: ToyWorld(language, topics=3, words=3) for language in ("en", "ko")}


@pytest.fixture(scope="module")
def bert(goldens):
    return load(goldens / "bert_tiny")


def test_the_sentences_of_the_paper_have_the_words():
    for text, word, linked_words in SENTENCES:
        assert {word, *linked_words} <= set(text.split())


def test_a_word_of_the_readers_own_sentence(bert):
    words = ["the", "boat", "was", "old", ",", "but", "it", "was", "muddy", "."]
    assert (find_pronoun(words), find_pronoun(words, "was")) == (6, 7)
    maps = read_maps(bert, words)
    ranked = rank_words(maps, words, 6, 2, 1)
    assert sorted(link.other for link, _ in ranked) == sorted(words[:6] + words[7:])
    weights = [link.weight for link, _ in ranked]
    assert weights == sorted(weights, reverse=True) and weights[0] == maps[1, 0, 6].max()
    assert all(link.weight <= most for link, most in ranked)
    later = rank_words(maps, words, find_pronoun(words, "was"), 2, 1)[0][0]
    assert draw_head(maps, words, later, "tiny").values[7].tolist() == maps[1, 0, 7].tolist()  # the second "was"
    with pytest.raises(ValueError, match=r"has no word 'ship': name one of its words with --word="):
        find_pronoun(words, "ship")
    with pytest.raises(ValueError, match="has no pronoun"):
        find_pronoun(words[:4])


def test_maps_between_words_add_up_over_pieces(bert):
    words = ["the", "river", "was", "muddy", "."]
    maps = read_maps(bert, words)
    assert maps.shape == (bert.config.num_layers, bert.config.num_heads, 5, 5)
    assert (maps >= 0).all() and (maps.sum(axis=-1) < 1).all()  # [CLS] and [SEP] get the rest
    best, *_ = find_links(maps, words, 2, 1)
    assert best.weight == maps[:, :, 2, 1].max() == maps[best.layer - 1, best.head - 1, 2, 1]
    assert best.even == 0.25
    arcs = draw_head(maps, words, best, "tiny")
    assert list(arcs.words) == list(arcs.targets) == words
    assert (
        arcs.values[2].tolist() == maps[best.layer - 1, best.head - 1, 2].tolist()
        and not arcs.values[[0, 1, 3, 4]].any()
    )
    assert all(show(arcs).document.count(f">{word}<") == 2 for word in words)


def test_words_that_are_not_there(bert):
    with pytest.raises(ValueError, match="give fewer words"):
        read_maps(bert, ["river"] * 600)
    with pytest.raises(ValueError, match="no attention maps"):
        read_maps(object(), ["river"])


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("kind", ["agreement", "pronoun"])
def test_texts_of_the_toy_world_have_the_links(language, kind):
    world = WORLDS[language]
    for text, hidden in zip(toy_links(world, kind, 20), toy_links(world, kind, 20, hidden=True)):
        word, other = (text.words[n] for n in ends_of(text))
        of = next(n for n, head in enumerate(text.heads) if head)
        assert hidden.words == (*text.words[:of], "[MASK]", *text.words[of + 1 :])
        if kind == "pronoun":
            assert word.lower().startswith(("he", "she", "그"))
            (guesses,) = fill_masks(world, " ".join(hidden.words), top=2)
            assert {guess.lower() for guess, _ in guesses} == {word.lower(), other.lower()}  # the name leaves no doubt
        elif language == "en":
            assert word.endswith("s") != other.endswith("s")  # a verb in -s has a subject without it
        else:
            assert other.endswith("께서는") == ("셨" in word or "신" in word or "시" in word)


@pytest.fixture
def toy_bert(tmp_path):
    """A random BERT whose vocabulary has the words of the toy world."""
    sentences = [sentence.text for i in range(300) for sentence in WORLDS["en"].document(i).sentences]
    tokenizer = train_wordpiece(sentences, vocab_size=600)
    sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "feed_forward_size": 16, "max_positions": 64}
    config = BertConfig(vocab_size=tokenizer.vocab_size, **sizes)
    params = jax.tree.map(np.asarray, init_params(FAMILY, config, jax.random.key(0), ("mlm",)))
    write_run_directory(tmp_path / "bert", config, params, tokenizer, run={})
    return load(tmp_path / "bert")


@pytest.mark.long
def test_scores_beside_chance_and_the_best_offset(toy_bert):
    results, figures = score_links(toy_bert, WORLDS["en"], "tiny", count=48)
    by = {(r.task.removeprefix("attention: "), r.encoder.split()[0]): r.score for r in results}
    assert by["agreement", "offset"] == 1  # the verb stands five words behind its subject
    assert 0 < by["agreement", "chance"] < 0.2
    assert {name for name, _ in by} == {"agreement", "agreement, hidden", "pronoun", "pronoun, hidden"}
    assert len(figures) == 4
    assert best_offset(toy_links(WORLDS["en"], "pronoun", 60))[1] < 0.95


def test_a_kind_that_is_not_known():
    with pytest.raises(ValueError, match="kind='subject': it is 'agreement' or 'pronoun'"):
        toy_links(WORLDS["en"], "subject", 1)
