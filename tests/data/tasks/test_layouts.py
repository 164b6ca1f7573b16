import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks import LAYOUTS, Layout, TextExample, find_labels, label_ids, read_swag, read_texts
from bert_elmo_jax.data.tasks.files import BadRow, describe_skipped
from bert_elmo_jax.evals.glue import TASK_METRICS

MNLI = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
)
MNLI_ROW = "0\t1\t1n\tx\t(\t(\t(\t(\tA.\tB."


def as_json(**record):
    return json.dumps([{"guid": "1"} | record])


# The first lines of the official files, and the (text, pair, label) they contain.
# fmt: off
OFFICIAL = {
    ("cola", "train.tsv"): ('gj04\t0\t*\t"The car honked, he said.\n', ('"The car honked, he said.', None, "0")),
    ("sst2", "train.tsv"): ("sentence\tlabel\nso bad \t0\n", ("so bad ", None, "0")),
    ("mrpc", "train.tsv"): ('\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe said "no .\tHe refused .\n',
        ('He said "no .', "He refused .", "1")),
    ("qqp", "train.tsv"): ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t3\t4\tWhy?\tHow?\t0\n",
        ("Why?", "How?", "0")),
    ("stsb", "train.tsv"): ("index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        "0\tmain\tMSR\t2012\t0001\tnone\tnone\tA plane.\tAn air plane.\t4.750\n", ("A plane.", "An air plane.", 4.75)),
    ("stsb", "sts-train.csv"): ('forum\tdeft\t2014\t0\t3.2\t"No, no."\tNo.\tlicence\tsource\n',
        ('"No, no."', "No.", 3.2)),
    ("mnli", "train.tsv"): (f"{MNLI}\tsentence1\tsentence2\tlabel1\tgold_label\n{MNLI_ROW}\tneutral\tneutral\n",
        ("A.", "B.", "neutral")),
    ("mnli", "dev_matched.tsv"): (f"{MNLI}\tsentence1\tsentence2\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
        f"{MNLI_ROW}\tn\tn\tn\te\te\tentailment\n", ("A.", "B.", "entailment")),
    ("qnli", "dev.tsv"): ("index\tquestion\tsentence\tlabel\n0\tWho?\tHe.\tentailment\n",
        ("Who?", "He.", "entailment")),
    ("rte", "dev.tsv"): ("index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tnot_entailment\n",
        ("A.", "B.", "not_entailment")),
    ("rte", "train.tsv"): ("A.\tB.\t1\n", ("A.", "B.", "1")),
    ("wnli", "dev.tsv"): ("index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\t1\n", ("A.", "B.", "1")),
    ("snli", "dev.tsv"): ("a dog\tan animal\t0\n", ("a dog", "an animal", "0")),
    ("kornli", "xnli.dev.ko.tsv"): ('sentence1\tsentence2\tgold_label\n그가 말했다, "엄마."\t전화.\tneutral\n',
        ('그가 말했다, "엄마."', "전화.", "neutral")),
    ("korsts", "sts-dev.tsv"): (
        "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\nmain\tMSR\t2012\t0\t5.000\t비행기.\t비행기다.\n",
        ("비행기.", "비행기다.", 5.0)),
    ("nsmc", "ratings_train.txt"): ("id\tdocument\tlabel\n9976970\t아 더빙..\t0\n", ("아 더빙..", None, "0")),
    ("klue_ynat", "dev.json"): (as_json(title="새 배", label="사회", url="…"), ("새 배", None, "사회")),
    ("klue_sts", "dev.json"): (as_json(sentence1="배", sentence2="눈", labels={"label": 3.7, "binary-label": 1}),
        ("배", "눈", 3.7)),
    ("klue_nli", "dev.json"): (as_json(premise="배", hypothesis="눈", gold_label="neutral"), ("배", "눈", "neutral")),
    ("trec", "TREC.train"): ("DESC:manner How did it ?\n", ("How did it ?", None, "DESC")),
    ("trec_fine", "TREC.train"): ("DESC:manner How did it ?\n", ("How did it ?", None, "DESC:manner")),
    ("sst5", "stsa.fine.dev"): ("3 a film .\n", ("a film .", None, "3")),
}
UNLABELLED = {
    ("cola", "test.tsv"): ("index\tsentence\n0\tBill coughed.\n", ("Bill coughed.", None, None)),
    ("sst2", "test.tsv"): ("index\tsentence\n0\tuneasy \n", ("uneasy ", None, None)),
    ("mrpc", "test.tsv"): ("index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t7\t8\tA\tB\n", ("A", "B", None)),
    ("qqp", "test.tsv"): ("id\tquestion1\tquestion2\n0\tA\tB\n", ("A", "B", None)),
}
# fmt: on


@pytest.mark.parametrize("case", [*OFFICIAL, *UNLABELLED], ids="-".join)
def test_official_files(tmp_path, case):
    content, expected = (OFFICIAL | UNLABELLED)[case]
    file = tmp_path / case[1]
    file.write_text(content, encoding="utf-8")
    [example] = read_texts(file, case[0], labelled=case in OFFICIAL)
    assert (example.text, example.pair, example.label) == expected
    assert (example.file, example.line) == (str(file), 1 if content.count("\n") < 2 else 2)


def test_every_layout_has_metrics():
    assert set(LAYOUTS) <= set(TASK_METRICS)


def test_rows_without_agreement_of_the_annotators_are_skipped(tmp_path):
    names = "gold_label\tsentence1\tsentence2\n"
    (tmp_path / "snli.tsv").write_text(names + "-\tA\tB\nneutral\tC\tD\n")
    assert [example.line for example in read_texts(tmp_path / "snli.tsv", "snli")] == [3]
    (tmp_path / "snli.tsv").write_text(names + "-\tA\tB\n")
    with pytest.raises(ValueError, match="no row with a label other than '-'"):
        read_texts(tmp_path / "snli.tsv", "snli")


def test_of_a_json_list_on_one_line_only_the_bad_row_is_skipped(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps([{"text": text, "guid": "x"} for text in ("good", " ", "bad")]) + "\n")
    skipped = []
    examples = read_texts(file, Layout("text"), labelled=False, on_bad=skipped.append)
    assert [example.text for example in examples] == ["good", "bad"]
    assert describe_skipped(skipped, 3, file).endswith("is skipped: row 2 (the text in text is empty)")
    with pytest.raises(ValueError, match=r"a\.json, row 2: the guid 'x' of row 1 again"):
        read_texts(file, Layout("text", id="guid"), labelled=False)


def test_the_message_about_skipped_rows_of_several_files_names_the_file_of_each():
    skipped = [BadRow("b.csv", 2, "late", ""), BadRow("a.csv", 3, "blank", "")]
    message = "2 of 9 rows of ?.csv are skipped: a.csv, line 3 (blank); b.csv, line 2 (late)"
    assert describe_skipped(skipped, 9, "?.csv") == message


def test_the_few_broken_rows_of_official_files_are_tolerated(tmp_path):
    """Eight of NSMC's 200,000 reviews are empty, but kept; three rows of QQP are truncated and skipped."""
    rows = [f"{i}\t좋다\t{i % 2}" for i in range(2000)]
    rows[7] = "7\t\t1"
    (tmp_path / "nsmc.tsv").write_text("\n".join(["id\tdocument\tlabel", *rows]), encoding="utf-8")
    examples = read_texts(tmp_path / "nsmc.tsv", "nsmc")
    assert len(examples) == 2000
    assert examples[7].text == ""
    rows = [f"{i}\t1\t2\tA\tB\t{i % 2}" for i in range(2000)]
    rows[7] = "7\t1\t2\tA"
    (tmp_path / "qqp.tsv").write_text("\n".join(["id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", *rows]))
    assert [example.id for example in read_texts(tmp_path / "qqp.tsv", "qqp")][6:8] == ["6", "8"]
    rows[8:11] = ["8", "9", "10"]
    (tmp_path / "qqp.tsv").write_text("\n".join(["id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", *rows]))
    with pytest.raises(ValueError, match=r"qqp\.tsv:9: 4 columns, expected 6"):
        read_texts(tmp_path / "qqp.tsv", "qqp")


def test_unlabelled_rows_that_lack_columns_are_not_dropped(tmp_path):
    rows = [f"{i}\t좋다\t1" for i in range(2000)]
    rows[7] = "7\t좋다"
    (tmp_path / "nsmc.tsv").write_text("\n".join(["id\tdocument\tlabel", *rows]), encoding="utf-8")
    assert len(read_texts(tmp_path / "nsmc.tsv", "nsmc")) == 1999
    with pytest.raises(ValueError, match=r"nsmc\.tsv:9: 2 columns, expected 3"):
        read_texts(tmp_path / "nsmc.tsv", "nsmc", labelled=False)


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize(
    ("layout", "header", "missing"),
    [
        ("snli", "premise\thypothesis\tlabel", "'sentence1', 'sentence2'"),
        ("snli", "premise\thypothesis\tgold", "'sentence1', 'sentence2'"),
        ("rte", "s1\ts2\tLabel", "'sentence1', 'sentence2'"),
        ("rte", "전제\t가설\t관계", "'sentence1', 'sentence2'"),
        ("cola", "id\tlabel\tnote\ttext", "'sentence'"),
    ],
)
def test_a_header_with_other_names_is_no_row(tmp_path, layout, header, missing, labelled):
    row = "\t".join("a dog"[: 3 + n] for n in range(header.count("\t"))) + "\t1"
    (tmp_path / "a.tsv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"a\.tsv:1: no column {missing}.* among .*, expected a header, or"):
        read_texts(tmp_path / "a.tsv", layout, labelled=labelled)


def test_a_custom_table(tmp_path):
    (tmp_path / "my.csv").write_text('id,review,stars\r\n1,"so ""good"",\r\nreally",5\r\n2,별로,1\r\n', newline="")
    first, second = read_texts(tmp_path / "my.csv", Layout("review", label="stars", id="id"))
    assert (first.text, first.label, first.line) == ('so "good",\r\nreally', "5", 2)
    assert (second.text, second.id, second.line) == ("별로", "2", 4)
    (tmp_path / "my.tsv").write_text("1\tgood\n0\tbad\n")  # without a header
    layout = Layout("text", bare=("label", "text"))
    assert [example.text for example in read_texts(tmp_path / "my.tsv", layout)] == ["good", "bad"]
    rows = [{"text": "좋다", "meta": {"stars": 5}}, {"text": "별로", "meta": {"stars": True}}]
    (tmp_path / "my.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    assert [e.label for e in read_texts(tmp_path / "my.jsonl", Layout("text", label="meta.stars"))] == ["5", "true"]


def test_byte_order_marks_line_ends_and_encodings(tmp_path):
    for layout, content, options, text, line in (
        ("sst2", "\ufeffsentence\tlabel\r\n좋다\t1\r\n".encode(), {}, "좋다", 2),
        ("sst2", "sentence\tlabel\r좋다\t1\r".encode(), {}, "좋다", 2),
        ("sst2", "sentence\tlabel\n좋다\t1\n".encode("utf-16"), {"encoding": "utf-16"}, "좋다", 2),
        # A text may contain characters at which str.splitlines would split.
        ("sst2", "sentence\tlabel\na\u2028b\x85c\x0bd\x1ce\t1\n".encode(), {}, "a\u2028b\x85c\x0bd\x1ce", 2),
        *(("trec", "X:y Who was Buñuel ?\n".encode(name), {}, "Who was Buñuel ?", 1) for name in ("latin-1", "utf-8")),
    ):
        (tmp_path / "a.tsv").write_bytes(content)
        rows = [(example.text, example.line) for example in read_texts(tmp_path / "a.tsv", layout, **options)]
        assert rows == [(text, line)]


@pytest.mark.parametrize(
    ("layout", "options", "message"),
    [
        ("nli", {}, "there is no layout 'nli'; there are cola, sst2"),
        (Layout("text", label="text"), {}, "one column for two things"),
        (Layout("text", "text"), {}, "one column for two things"),
        (Layout("text"), {"encoding": "utf8-or-so"}, "encoding='utf8-or-so' is not known"),
    ],
)
def test_invalid_arguments_are_refused(tmp_path, layout, options, message):
    (tmp_path / "a.csv").write_text("text,label\na,1\n")
    with pytest.raises(ValueError, match=message):
        read_texts(tmp_path / "a.csv", layout, **options)


def test_labels_are_sorted_by_number_if_they_are_numbers(tmp_path):
    def labels(*names):
        rows = "\n".join(json.dumps({"text": "x", "label": name}) for name in names)
        (tmp_path / "a.jsonl").write_text(rows)
        return find_labels(read_texts(tmp_path / "a.jsonl", Layout("text")))

    assert labels("10", "9", "-1", "9") == ["-1", "9", "10"]
    assert labels("10", "9", "many") == ["10", "9", "many"]
    assert labels("나", "가", "b") == ["b", "가", "나"]
    assert labels("1e400", "2") == ["1e400", "2"]


@given(st.lists(st.sampled_from(["a", "b", "1", "2", "한"]), min_size=2, max_size=20).filter(lambda x: len(set(x)) > 1))
def test_labels_and_ids_are_inverse(names):
    examples = [TextExample("x", None, name, None, "a.csv", i) for i, name in enumerate(names)]
    labels = find_labels(examples)
    assert labels == find_labels(examples[::-1])
    assert [labels[i] for i in label_ids(examples, labels)] == names


def test_numbers_are_not_labels(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\na,1.5\n")
    examples = read_texts(tmp_path / "a.csv", Layout("text", regression=True))
    for rows, message in ((examples, r"a\.csv:2: the label 1\.5, expected a name"), ([], "no examples")):
        with pytest.raises(ValueError, match=message):
            find_labels(rows)


def test_swag(tmp_path):
    names = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"
    row = '0,anet,1,"A man, running. He",A man runs.,He,gold,"stops, here",eats,flies,cries,2\n'
    (tmp_path / "train.csv").write_text(names + row)
    [example] = read_swag(tmp_path / "train.csv")
    assert (example.text, example.label, example.line) == ("A man runs.", 2, 2)
    assert example.choices == ("He stops, here", "He eats", "He flies", "He cries")
    (tmp_path / "test.csv").write_text(names.replace(",label", "") + row.replace(",2\n", "\n"))
    assert read_swag(tmp_path / "test.csv", labelled=False)[0].label is None
