"""The two grammars: word forms, long-distance agreement, particles by final consonant, senses."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.toyworld import ToyWorld, english, hangul
from bert_elmo_jax.toyworld.lexicon import HEROES, entry, lexicon
from bert_elmo_jax.toyworld.shapes import body_shapes, opening_shapes

SAMPLE = range(300)
LEXICON = lexicon(24, 6)
syllables = st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=1, max_size=4)


@given(syllables)
def test_particles_follow_the_final_consonant(word):
    final = "ᆨ" <= unicodedata.normalize("NFD", word)[-1] <= "ᇂ"
    assert hangul.particle(word, "topic") == word + ("은" if final else "는")
    assert hangul.particle(word, "subject") == word + ("이" if final else "가")
    assert hangul.particle(word, "object") == word + ("을" if final else "를")


VERBS = [  # past, present, honorific present and question; * marks irregular stems
    ("찾다", "찾았다", "찾는다", "찾으신다", "찾나요"),
    ("고치다", "고쳤다", "고친다", "고치신다", "고치나요"),
    ("만들다", "만들었다", "만든다", "만드신다", "만드나요"),
    ("묶다", "묶었다", "묶는다", "묶으신다", "묶나요"),
    ("모으다", "모았다", "모은다", "모으신다", "모으나요"),
    ("배우다", "배웠다", "배운다", "배우신다", "배우나요"),
    ("서두르다", "서둘렀다", "서두른다", "서두르신다", "서두르나요"),
    ("펴다", "폈다", "편다", "펴신다", "펴나요"),
    ("쉬다", "쉬었다", "쉰다", "쉬신다", "쉬나요"),
    ("가져오다", "가져왔다", "가져온다", "가져오신다", "가져오나요"),
    ("자다", "잤다", "잔다", "주무신다", "자나요"),
    ("줍다*", "주웠다", "줍는다", "주우신다", "줍나요"),
    ("돕다*", "도왔다", "돕는다", "도우신다", "돕나요"),
    ("듣다*", "들었다", "듣는다", "들으신다", "듣나요"),
    ("짓다*", "지었다", "짓는다", "지으신다", "짓나요"),
]
ADJECTIVES = [  # before a noun, and past
    ("크다", "큰", "컸다"),
    ("작다", "작은", "작았다"),
    ("바쁘다", "바쁜", "바빴다"),
    ("길다", "긴", "길었다"),
    ("빠르다", "빠른", "빨랐다"),
    ("재미있다", "재미있는", "재미있었다"),
    ("무겁다*", "무거운", "무거웠다"),
    ("노랗다*", "노란", "노랬다"),
    ("하얗다*", "하얀", "하얬다"),
    ("허옇다*", "허연", "허옜다"),
    ("낫다*", "나은", "나았다"),
]


def test_korean_verbs_and_adjectives():
    for verb, past, present, elder, question in VERBS:
        stem, irregular = verb.rstrip("*").removesuffix("다"), verb.endswith("*")
        assert hangul.past(stem, irregular) + "다" == past
        assert hangul.present(stem) == present
        assert hangul.present(hangul.honorific(stem, irregular)) == elder
        assert hangul.question(stem) == question
    for adjective, before, past in ADJECTIVES:
        stem, irregular = adjective.rstrip("*").removesuffix("다"), adjective.endswith("*")
        assert hangul.attributive(stem, irregular) == before
        assert hangul.past(stem, irregular) + "다" == past
    pasts = {"보": "봤", "고르": "골랐", "하": "했", "가꾸": "가꿨"}
    assert {stem: hangul.past(stem) for stem in pasts} == pasts
    assert hangul.honorific("먹") == "드시"


def test_invalid_entries_are_refused():
    for text in ("net", "net=", "=그물", "net=net", "Net=그물", "net#=그물", "net=그물 망"):
        with pytest.raises(ValueError, match="invalid lexicon entry"):
            entry(text)


def test_shapes_are_a_distribution():
    assert sum(weight for weight, _ in opening_shapes()) == 1
    assert sum(weight for weight, _ in body_shapes()) == 1
    assert len({shape for _, shape in body_shapes()}) == len(body_shapes())


def test_every_word_is_well_formed():
    for word in ToyWorld("en").network.words:
        assert re.fullmatch(r"[A-Za-z]+|[.?]", word)
    for word in ToyWorld("ko").network.words:
        assert re.fullmatch(r"[가-힣]+|[.?]", word)
        assert word == unicodedata.normalize("NFC", word)


def test_english_verbs_agree_with_their_subject_not_with_the_noun_before_them():
    people = [e for topic in LEXICON.topics for e in topic.lists["people"]]
    verbs = [e for topic in LEXICON.topics for name in ("acts", "verbs0", "verbs1") for e in topic.lists[name]]
    verbs += LEXICON.general["verbs"]
    one = {english.inflect(e, "plain") for e in people}
    many = {english.inflect(e, "many") for e in people}
    past, third, plain = ({english.inflect(e, form) for e in verbs} for form in ("past", "third", "plain"))
    attracted = 0
    for i in SAMPLE:
        for sentence in ToyWorld("en").document(i).sentences:
            if sentence.shape.frame not in ("do", "act") or sentence.shape.subject not in ("one", "many"):
                continue
            words = list(sentence.words[sentence.shape.adverb :])
            noun, verb = words[1], words[6] if words[2] == "near" else words[2]
            assert noun in (one if sentence.shape.subject == "one" else many), sentence.text
            assert verb in past | (third if noun in one else plain), sentence.text
            attracted += words[2] == "near" and words[5].endswith("s") != (noun in many)
    assert attracted > 20, "expected nouns of the other number between subject and verb in the sample"


def test_english_is_and_are_agree():
    numbers = {"is": "one", "was": "one", "are": "many", "were": "many"}
    forms = set()
    for i in SAMPLE:
        for sentence in ToyWorld("en").document(i).sentences:
            if sentence.shape.frame in ("look", "compare"):
                [be] = [word for word in sentence.words if word in numbers]
                assert numbers[be] == sentence.shape.number, sentence.text
                forms.add((be, sentence.shape.near))
    assert len(forms) == 12


def test_korean_elders_take_honorific_verbs_at_any_distance():
    honorific = re.compile(r"(신다|셨다|시나요|셨나요)$")
    # The stem of 마시다 (drink) ends in 시 without being honorific.
    drink = re.compile(r"^마[시신셨]")
    distances = set()
    for i in SAMPLE:
        for sentence in ToyWorld("ko").document(i).sentences:
            if sentence.shape.frame in ("look", "compare", "who"):
                continue
            elder = [k for k, word in enumerate(sentence.words) if word.endswith("께서는")]
            verb = sentence.words[-2]
            assert bool(elder) == bool(honorific.search(verb)) or drink.match(verb), sentence.text
            distances |= {len(sentence.words) - 2 - k for k in elder}
    assert distances == {2, 3, 4}


def test_tense_agrees_with_the_adverb():
    past = {e.english.capitalize() for e in LEXICON.general["past_adverbs"]}
    for i in SAMPLE:
        en, ko = ToyWorld("en").document(i), ToyWorld("ko").document(i)
        for a, b in zip(en.sentences, ko.sentences):
            if a.shape.adverb:
                assert (a.words[0] in past) == (hangul_past(b.words[-2])), (a.text, b.text)


def hangul_past(verb):
    """Return True for a past verb: a syllable that ends in ㅆ before 다."""
    return unicodedata.normalize("NFD", verb[:-1])[-1] == "ᆻ"


def test_sentences_begin_with_a_capital_and_end_with_their_mark():
    for i in SAMPLE:
        for sentence in ToyWorld("en").document(i).sentences:
            assert sentence.words[0][0].isupper()
            names = {hero.english for hero in HEROES}
            assert all(word.islower() or word in names for word in sentence.words[1:-1]), sentence.text
            assert sentence.words[-1] == ("?" if sentence.shape.frame in ("who", "what", "where") else ".")


def test_polysemous_words_have_two_senses_or_more():
    """In the whole lexicon no tagged word has a single sense: its tag would add no information."""
    for language, side in (("en", "english"), ("ko", "korean")):
        senses = [tag.split(".") for tag in ToyWorld(language).network.senses if tag != "O"]
        words = [word for word, _ in senses]
        assert all(words.count(word) >= 2 for word in words), (side, [w for w in words if words.count(w) < 2])
