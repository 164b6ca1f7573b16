import gzip

import pytest

from bert_elmo_jax.data.corpora.text_files import each_line, each_sentence, each_text, find_file, read_lines


@pytest.fixture
def conll(tmp_path):
    def read(text, *args, **kwargs):
        (tmp_path / "a.conll").write_text(text, encoding="utf-8")
        return list(each_sentence(tmp_path / "a.conll", *args, **kwargs))

    return read


@pytest.mark.parametrize("between", ["\t", " "])
def test_number_sign_can_be_a_word(conll, between):
    lines = ["# O", "1 B-X", "fan O", "", "the O", "# O", "#강남 O", "", "# O", "", "## O", "#1 O"]
    sentences = conll("\n".join(line.replace(" ", between) for line in lines))
    assert sentences == [(1, ["#", "1", "fan"]), (5, ["the", "#", "#강남"]), (9, ["#"]), (11, ["##", "#1"])]


LAYOUTS = [  # a file, the column, and the sentences with their lines
    (
        "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\n# # O O\n\n-DOCSTART- -X- O O\nPeter NNP I-NP I-PER\n",
        0,
        [(3, ["EU", "#"]), (7, ["Peter"])],
    ),
    ("-DOCSTART-\n\nEU\n", 0, [(3, ["EU"])]),
    (  # comments before columns separated by tabs
        "# newdoc id = a\n# sent_id = a-1\n# text = Paris # 1\n1\tParis\tB-LOC\n2\t#\tO\n3\t1\tO\n\n"
        "# sent_id = a-2\n# text = # 1\n1\t#\tO\n2\t1\tO\n\n# the end\n",
        1,
        [(4, ["Paris", "#", "1"]), (10, ["#", "1"])],
    ),
    (  # a comment with a tab
        "## 컬럼명 : CHAR\tTAG\n## id-1\t<경찰:OG>은\n경\tB-OG\n찰\tI-OG\n\n## id-2\t#\n#\tO\n",
        0,
        [(3, ["경", "찰"]), (7, ["#"])],
    ),
    ("# a comment of its own\n\n# a comment\n#tag\nword\n\n#\n", 0, [(4, ["#tag", "word"]), (7, ["#"])]),
    ("# id 1 of many\nSeoul B-LOC\n", 0, [(2, ["Seoul"])]),
]


@pytest.mark.parametrize(("text", "column", "expected"), LAYOUTS)
def test_documents_marks_and_comments_are_no_words(conll, text, column, expected):
    assert conll(text, column) == expected


def test_conll_u(conll):
    text = "# text = de el\n1-2\tdel\t_\n1\tde\t_\n2\tel\t_\n2.1\tx\t_\n3\t#\t_\n\n# only this\n\n1\t눈\t_\n"
    assert conll(text, 1, numbered=True) == [(3, ["de", "el", "#"]), (10, ["눈"])]


def test_invalid_sentences_and_blank_lines_raise(conll, tmp_path):
    for text, column, message in (
        ("one\tO\n\ntwo\n", 1, "line 3: no word in column 1"),
        ("\t\nSeoul\tO\n", 2, "line 2: no word in column 2"),
        ("# only\n# comments here\n\n-DOCSTART- O\n", 0, "no sentence, only comments"),
    ):
        with pytest.raises(ValueError, match=message):
            conll(text, column)
    (tmp_path / "a.txt").write_bytes("\ufeff강\r\nb\r\n \r\nc".encode())
    with pytest.raises(ValueError, match=r"a\.txt, line 3: a blank line"):
        read_lines(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_bytes("\ufeff강\r\nb".encode())
    assert read_lines(tmp_path / "a.txt") == ["강", "b"]


def test_texts_are_read_lazily(tmp_path):
    """Reading is lazy: an error is raised only when its line is reached."""
    (tmp_path / "a.txt").write_text("강\n\nb\n", encoding="utf-8")
    lines = each_line(tmp_path / "a.txt")
    assert next(lines) == (1, "강")
    with pytest.raises(ValueError, match="line 2: a blank line"):
        next(lines)
    (tmp_path / "a.conll").write_text("강\tO\n\none\n", encoding="utf-8")
    sentences = each_sentence(tmp_path / "a.conll", 1)
    assert next(sentences) == (1, ["O"])
    with pytest.raises(ValueError, match="line 3: no word in column 1"):
        next(sentences)


def test_layout_depends_on_the_ending_unless_given(tmp_path):
    for name in ("a.txt", "a.conll", "a.CONLLU"):
        (tmp_path / name).write_text("1\t강\tO\n", encoding="utf-8")
    texts = {name: list(each_text(tmp_path / name)) for name in ("a.txt", "a.conll", "a.CONLLU")}
    assert texts == {"a.txt": [(1, "1\t강\tO")], "a.conll": [(1, ["1"])], "a.CONLLU": [(1, ["강"])]}
    assert list(each_text(tmp_path / "a.txt", "conll", 2)) == [(1, ["O"])]
    assert list(each_text(tmp_path / "a.CONLLU", "text")) == [(1, "1\t강\tO")]
    (tmp_path / "a.conllu.gz").write_bytes(gzip.compress("1\t강\tO\n".encode()))
    for layout in ("auto", "conll"):
        assert list(each_text(tmp_path / "a.conllu.gz", layout)) == [(1, ["강"])]


def test_several_files_and_a_column_of_a_text_file_raise(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("강가의 은행\n", encoding="utf-8")
    assert find_file(tmp_path / "a*") == str(tmp_path / "a.txt")
    with pytest.raises(ValueError, match=r"\*\.txt: matches 2 files; name one, or join them into one first"):
        read_lines(tmp_path / "*.txt")
    with pytest.raises(ValueError, match=r"column=1 does not apply to .*a\.txt, which is read as one text per line"):
        each_text(tmp_path / "a.txt", column=1)
    assert [text for _, text in each_text(tmp_path / "a.txt", "conll", 1)] == [["은행"]]


def test_names_do_not_decide_about_windows_line_ends(tmp_path):
    for name, layout in (("a.txt", "auto"), ("reviews.csv.txt", "auto"), ("reviews.csv", "text")):
        (tmp_path / name).write_bytes(b"the river\r\nthe bank\r\n")
        assert list(each_text(tmp_path / name, layout)) == [(1, "the river"), (2, "the bank")], name
