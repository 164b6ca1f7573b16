import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks import TaggedSentence, TagLayout, find_scheme, find_tags, read_tagged, tag_ids
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.evals.entities import entities


@pytest.fixture
def read(tmp_path):
    def read(text, layout="conll", **options):
        (tmp_path / "a.txt").write_text(text, encoding="utf-8", newline="")
        return read_tagged(tmp_path / "a.txt", layout, **options)

    return read


def rows(sentences):
    return [list(zip(sentence.words, sentence.tags)) for sentence in sentences]


def test_conll_2003(read):
    text = (
        "-DOCSTART- -X- -X- O\n\nEU NNP B-NP I-ORG\n# # O O\n\nPeter NNP B-NP I-PER\n\n"
        "-DOCSTART- -X- -X- O\n\n서울 NNP B-NP I-LOC\n\n"
    )
    sentences = read(text)
    assert rows(sentences) == [[("EU", "I-ORG"), ("#", "O")], [("Peter", "I-PER")], [("서울", "I-LOC")]]
    assert [sentence.document for sentence in sentences] == [0, 0, 1]
    assert [sentence.lines for sentence in sentences] == [(3, 4), (6,), (10,)]
    assert find_scheme(sentences) == "IOB1"
    assert rows(read(text, TagLayout(word=0, tag=1, entities=False)))[1] == [("Peter", "NNP")]
    # Such files may be aligned with additional spaces.
    assert rows(read("EU   I-ORG \nof O\n")) == [[("EU", "I-ORG"), ("of", "O")]]


def test_uner_and_its_comments(read):
    text = (
        "# newdoc id = a\n# sent_id = a-1\n# text = # Seoul\n1\t#\tO\t-\t-\n2\tSeoul\tB-LOC\t-\tme\n\n"
        "# newdoc id = b\n1\t역\tO\t-\t-\n"
    )
    sentences = read(text, "uner")
    assert rows(sentences) == [[("#", "O"), ("Seoul", "B-LOC")], [("역", "O")]]
    assert [sentence.document for sentence in sentences] == [0, 1]


def test_wnut_separates_sentences_with_a_tab(read):
    sentences = rows(read("@paul\tO\nESB\tB-location\n\t\nPretty\tO\n", "wnut17"))
    assert sentences == [[("@paul", "O"), ("ESB", "B-location")], [("Pretty", "O")]]


def test_klue_has_one_character_per_line(read):
    text = "## 컬럼명 : CHAR\tNE_TAG\n## klue-1\t<경찰:OG>은 #1\n경\tB-OG\n찰\tI-OG\n은\tO\n \tO\n#\tO\n1\tO\n\n"
    [sentence] = read(text, "klue_ner")
    assert "".join(sentence.words) == "경찰은 #1"
    assert entities(sentence.tags) == [("OG", 0, 2)]
    # A space is a character without tags, too; a blank line ends a sentence.
    sentences = read("## klue-1\t경찰\n경\n찰\n \n은\n\n#\n1\n", "klue_ner", tagged=False)
    assert ["".join(sentence.words) for sentence in sentences] == ["경찰 은", "#1"]


def test_conll_u(read):
    tail = "\t_" * 5
    text = (
        "# newdoc\n# sent_id = 1\n1-2\tdel\t_\t_\t_" + tail + f"\n1\tde\tde\tADP\tIN{tail}\n2\tel\tel\tDET\tDT{tail}\n"
        f"2.1\tx\tx\tX\tX{tail}\n3\t#\t#\tSYM\tNN{tail}\n\n# newdoc\n1\tcôte sud\tx\tNOUN\tNN{tail}\n"
    )
    sentences = read(text, "ud_upos")
    assert rows(sentences) == [[("de", "ADP"), ("el", "DET"), ("#", "SYM")], [("côte sud", "NOUN")]]
    assert [(sentence.line, sentence.document) for sentence in sentences] == [(4, 0), (10, 1)]
    assert rows(read(text, "ud_xpos"))[0][0] == ("de", "IN")
    for word, tag, tagged, message in (
        (1, 12, True, r"a\.txt:4: 10 columns, expected a tag in column 12 \(counted from 0\)"),
        (-11, 3, False, r"a\.txt:4: 10 columns, expected a word in column -11"),
        (1, -9, True, r"a\.txt:4: 10 columns, expected words and tags in two of them"),
    ):
        with pytest.raises(BadRow, match=message):
            read(text, TagLayout(word, tag, False, "conllu"), tagged=tagged)
    assert read(text, TagLayout(1, 12, False, "conllu"), tagged=False)[0].words == ("de", "el", "#")


def test_json_lines_and_words_alone(read):
    [sentence] = read('{"words": ["서울", "역"], "tags": ["NNP", "NNG"], "id": 1}\n', "jsonl")
    assert rows([sentence]) == [[("서울", "NNP"), ("역", "NNG")]]
    layout = TagLayout(word="tokens", tag="ner", table="jsonl")
    assert read('{"tokens": ["서울"], "ner": ["B-LOC"]}', layout)[0].tags == ("B-LOC",)
    layout = TagLayout(word="단어", tag="품사", table="jsonl", entities=False)
    keys = unicodedata.normalize("NFD", '{"단어": ["a"], "품사": ["DET"]}')
    assert rows(read(keys, layout)) == [[("a", "DET")]]  # keys are compared in NFC
    assert read("서울\tB-LOC\n", tagged=False)[0].tags is None
    for text, layout, words in (
        ("서울\n역\n\nhere\n", "conll", [("서울", "역"), ("here",)]),
        ('{"words": ["서울"]}', "jsonl", [("서울",)]),
        ("1\tSeoul\n\n1\t역\n", "uner", [("Seoul",), ("역",)]),  # without a column of tags
    ):
        assert [sentence.words for sentence in read(text, layout, tagged=False)] == words
    # Other spaces are part of a word.
    assert rows(read("a\u00a0b O\n\u3000x O\n")) == [[("a\u00a0b", "O"), ("\u3000x", "O")]]
    assert rows(read("서울 \tO \n 역\tO\n")) == [[("서울", "O"), ("역", "O")]]  # but blanks at its ends are not


def test_invalid_layouts_are_refused(read):
    for layout, message in (
        ("conllu", "there is no layout 'conllu'; there are conll"),
        (TagLayout(word="words"), "columns are numbers"),
        (TagLayout(word=0, tag=1, table="jsonl"), "keys of JSON lines are names"),
    ):
        with pytest.raises(ValueError, match=message):
            read("a O\n", layout)


def sentence(tags):
    tags = tuple(tags.split())
    return TaggedSentence(("x",) * len(tags), tags, "a.conll", tuple(range(1, len(tags) + 1)), 0)


LEGAL = {
    # A lone B- is legal in IOB2.
    "IOB2": ["O O", "B-A O B-A I-A", "B-A B-A I-A B-B", "B I O B"],
    "IOB1": ["I-A I-A O I-B", "I-A B-A I-A O", "I-A I-B B-B"],  # B- after its own type
    "BIOES": ["B-A E-A O S-B", "B-A I-A I-A E-A S-A"],
}
ILLEGAL = [
    ("B-A O I-A", 3, "I-A without a B-A before it, while line 1 has B-A where IOB1 has I-A"),
    ("B-A I-B", 2, "I-B without a B-B"),
    ("I-A O I-A O B-A", 5, "B-A begins an entity, while on line 1 I-A does"),
    ("S-A B-A", 2, "an unfinished entity of type 'A', but the sentence ends"),
    ("B-A E-B", 1, "an unfinished entity of type 'A', but E-B follows"),
    ("B-A B-A E-A", 1, "but B-A follows"),
    ("S-A I-A E-A", 2, "I-A without a B-A"),
    ("E-A", 1, "E-A without a B-A"),
]


def test_legal_and_illegal_tags():
    for scheme, legal in LEGAL.items():
        assert {find_scheme([sentence(tags)]) for tags in legal} == {scheme}
    for tags, line, message in ILLEGAL:
        with pytest.raises(ValueError, match=rf"a\.conll:{line}: .*{message}"):
            find_scheme([sentence(tags)])


def test_the_prefixes_of_each_type_are_known():
    assert find_tags([sentence("I-A O I-B")], entities=True) == ["B-A", "B-B", "I-A", "I-B", "O"]
    bioes = ["B-A", "B-B", "E-A", "E-B", "I-A", "I-B", "O", "S-A", "S-B"]
    assert find_tags([sentence("S-A O B-B E-B")], entities=True) == bioes
    assert find_tags([sentence("O")], entities=True) == ["O"]
    assert find_tags([sentence("NOUN VERB NOUN")]) == ["NOUN", "VERB"]
    with pytest.raises(ValueError, match="no tags in these sentences"):
        find_tags([])


TAGS = st.lists(st.sampled_from(["B-A", "I-A", "O", "B-B", "I-B"]), min_size=1, max_size=6)


@given(st.lists(TAGS, min_size=1, max_size=4))
def test_writing_and_reading_are_inverse(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("conll") / "a.conll"
    for between in ("\t", " "):
        path.write_text("\n\n".join("\n".join(f"#{between}{tag}" for tag in tags) for tags in sentences))
        loaded = read_tagged(path, TagLayout(entities=False))
        assert [list(sentence.tags) for sentence in loaded] == sentences
        tags = find_tags(loaded)
        assert all(tags[i] == tag for s in loaded for i, tag in zip(tag_ids(s, tags), s.tags))


def test_names_of_columns_are_no_words(read):
    with pytest.raises(BadRow, match=r"a\.txt:1: names of columns \(Token, POS\); delete the line"):
        read("Token\tPOS\nship\tNOUN\n", TagLayout(entities=False))
    assert rows(read("word\tNOUN\n", TagLayout(entities=False))) == [[("word", "NOUN")]]
