"""The official files themselves, if available."""

import re
import tarfile

import pytest

from bert_elmo_jax.data.tasks import (
    TAG_LAYOUTS,
    find_labels,
    find_scheme,
    find_tags,
    label_ids,
    read_qamr,
    read_squad,
    read_tagged,
    read_texts,
    tag_ids,
)


@pytest.fixture(scope="module")
def unpacked(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")

    def unpack(name):
        if not (folder / name).exists():
            with tarfile.open(shared / "data" / f"{name}.tar.xz") as archive:
                archive.extractall(folder, filter="data")
        return folder / name

    return unpack


@pytest.mark.parametrize(
    ("layout", "files", "counts", "labels"),
    [
        ("cola", ("cola/in_domain_train.tsv", "cola/in_domain_dev.tsv"), (8551, 527), 2),
        ("rte", ("rte/train.tsv", "rte/dev.tsv"), (2490, 277), 2),
        ("sst2", ("sst2_glue/dev.tsv", "sst2_glue/test.tsv"), (6735, 872), 2),
        ("sst5", ("sst5/stsa.fine.train", "sst5/stsa.fine.dev"), (8544, 1101), 5),
        ("trec", ("trec6/TREC.train", "trec6/TREC.test"), (5452, 500), 6),
        ("trec_fine", ("trec6/TREC.train", "trec6/TREC.test"), (5452, 500), 50),
        ("kornli", ("kornli_xnli/xnli.dev.ko.tsv",) * 2, (2490, 2490), 3),
        ("stsb", ("stsb/sts-train.csv", "stsb/sts-dev.csv"), (5749, 1500), None),
        ("korsts", ("korsts/sts-train.tsv", "korsts/sts-dev.tsv"), (5749, 1500), None),
    ],
)
def test_texts(unpacked, layout, files, counts, labels):
    train, dev = (read_texts(unpacked(file.split("/")[0]).parent / file, layout) for file in files)
    assert (len(train), len(dev)) == counts
    if labels is None:
        assert {type(example.label) for example in train} == {float}
        assert min(e.label for e in train) == 0.0
        assert max(e.label for e in train) == 5.0
    else:
        assert len(find_labels(train)) == labels
        assert len(label_ids(dev, find_labels(train))) == counts[1]


@pytest.mark.parametrize(
    ("layout", "files", "sentences", "tags"),
    [
        ("wnut17", ("wnut17/wnut17train.conll", "wnut17/emerging.test.annotated"), (3394, 1287), 13),
        ("uner", ("uner_english_ewt/en_ewt-ud-dev.iob2", "uner_english_ewt/en_ewt-ud-test.iob2"), (2001, 2077), 7),
        ("ud_upos", ("ud_korean_gsd/ko_gsd-ud-train.conllu", "ud_korean_gsd/ko_gsd-ud-dev.conllu"), (4400, 950), 16),
    ],
)
def test_tags(unpacked, layout, files, sentences, tags):
    train, dev = (read_tagged(unpacked(file.split("/")[0]).parent / file, layout) for file in files)
    assert (len(train), len(dev)) == sentences
    tag_names = find_tags(train, entities=TAG_LAYOUTS[layout].entities)
    assert len(tag_names) == tags
    assert all(len(tag_ids(sentence, tag_names)) == len(sentence.words) for sentence in dev)
    if TAG_LAYOUTS[layout].entities:
        assert find_scheme(train) == "IOB2"


def test_characters(unpacked, tmp_path):
    lines = (unpacked("klue_ner") / "klue-ner-v1.1_dev.tsv").read_text("utf-8").split("\n")
    (tmp_path / "part.tsv").write_text("\n".join(lines[:20_000]), encoding="utf-8")
    sentences = read_tagged(tmp_path / "part.tsv", "klue_ner")
    assert len(find_tags(sentences)) == 13
    # The second comment of a sentence is its text with <entity:TYPE> markup.
    marked = [line.split("\t", 1)[1] for line in lines[:20_000] if line.startswith("## klue")]
    for sentence, text in zip(sentences[:-1], marked):
        assert "".join(sentence.words) == re.sub(r"<([^<>]+?):[A-Z]{2}>", r"\1", text)


def test_questions(unpacked):
    for name, count, impossible in (("dev-v1.1", 2191, 0), ("dev-v2.0", 2787, 1348)):
        questions = read_squad(unpacked("squad") / f"{name}.json")
        assert (len(questions), sum(not question.answers for question in questions)) == (count, impossible)
    questions = read_qamr(unpacked("qamr") / "filtered_dev.tsv")
    assert len(questions) == 18908
    assert all(q.context[a.start : a.end] == a.text for q in questions for a in q.answers)
