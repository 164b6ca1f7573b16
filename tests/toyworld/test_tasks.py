"""The written files, read back with standard tools, match the generated examples."""

import csv
import json
from itertools import islice, pairwise

import pytest

from bert_elmo_jax.toyworld import (
    ToyWorld,
    best_next,
    next_examples,
    question_examples,
    sense_examples,
    topic_examples,
    word_log_probabilities,
    write_corpus,
    write_pairs,
    write_tasks,
)
from bert_elmo_jax.toyworld.tasks import questions

LANGUAGE_NAMES = ["en", "ko"]


@pytest.fixture(scope="module", params=LANGUAGE_NAMES)
def world(request):
    return ToyWorld(request.param)


def tsv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_corpus(world, tmp_path):
    corpus, held_out = write_corpus(tmp_path, world, documents=20, held_out=5)
    text = corpus.read_bytes().decode("utf-8")
    assert "\r" not in text
    assert text.endswith("\n\n")
    documents = text.removesuffix("\n\n").split("\n\n")
    assert documents == [world.document(i).text for i in range(20)]
    assert held_out.read_text("utf-8").count("\n\n") == 5
    assert not set(held_out.read_text("utf-8").split("\n\n")) & set(documents) - {""}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "held_out.txt"]


def test_writing_twice_gives_the_same_bytes(world, tmp_path, monkeypatch):
    def write(folder):
        paths = [*write_tasks(folder, world, 20, 5, 5), *write_pairs(folder, world, 20, 5, 5)]
        return {path.relative_to(folder): path.read_bytes() for path in paths}

    assert write(tmp_path / "a") == write(tmp_path / "b")
    # Interrupted files are not left under their final name.
    monkeypatch.setattr(ToyWorld, "document", lambda self, i: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_corpus(tmp_path, world)
    assert not (tmp_path / "corpus.txt").exists()


def test_aligned_pairs(tmp_path):
    train, dev, test = write_pairs(tmp_path, ToyWorld(), train=30, dev=10, test=10)
    rows = tsv(train)
    english, korean = (ToyWorld(language).document(2**31).sentences[0].text for language in ("en", "ko"))
    assert len(rows) == 30 and rows[0] == {"english": english, "korean": korean}
    assert len(tsv(dev)) == len(tsv(test)) == 10


@pytest.fixture(scope="module")
def files(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    write_tasks(folder, world, train=200, dev=5, test=5)
    return folder


def test_sense_files(world, files):
    blocks = (files / "senses" / "train.conll").read_text("utf-8").removesuffix("\n\n").split("\n\n")
    read = [[tuple(line.split("\t")) for line in block.split("\n")] for block in blocks]
    expected = [list(zip(s.words, s.tags, strict=True)) for s in islice(sense_examples(world, "train"), 200)]
    assert read == expected
    assert all(any(tag != "O" for _, tag in block) for block in read)


def test_topic_and_next_files(world, files):
    topics = tsv(files / "topics" / "train.tsv")
    assert [(row["text"], row["label"]) for row in topics] == list(islice(topic_examples(world, "train"), 200))
    assert {row["label"] for row in topics} == set(world.topic_names)
    pairs = tsv(files / "next" / "train.tsv")
    examples = list(islice(next_examples(world, "train"), 200))
    assert [(r["a"], r["b"], int(r["label"])) for r in pairs] == examples
    assert 70 < sum(int(row["label"]) for row in pairs) < 130
    # Pairs are neighbours or random.
    neighbours = set()
    for i in range(2**31, 2**31 + 60):
        neighbours |= set(pairwise(s.text for s in world.document(i).sentences))
    assert all((a, b) in neighbours for a, b, label in examples if label == 0)
    best = best_next(world, [(a, b) for a, b, _ in examples], [label for *_, label in examples])
    assert best.accuracy > 0.95


def test_squad_files(world, files):
    read = json.loads((files / "questions" / "train.json").read_text("utf-8"))
    assert read["version"] == "1.1"
    paragraphs = [p for article in read["data"] for p in article["paragraphs"]]
    assert paragraphs == list(islice(question_examples(world, "train"), 200))
    ids = [qa["id"] for p in paragraphs for qa in p["qas"]]
    assert len(set(ids)) == len(ids) > 200
    firsts = set()
    for paragraph in paragraphs:
        for qa in paragraph["qas"]:
            firsts |= set(qa["question"].split()) & {"Who", "What", "Where", "누가", "무엇을", "어디에서"}
            for answer in qa["answers"]:
                start = answer["answer_start"]
                assert paragraph["context"][start:].startswith(answer["text"])
                assert start == 0 or paragraph["context"][start - 1] == " "
            # The last answer consists of whole words, for readers that cannot split a word.
            assert paragraph["context"][qa["answers"][-1]["answer_start"] :].startswith(qa["answers"][-1]["text"] + " ")
    assert len(firsts) == 3


def test_questions_are_sentences_with_one_answer(world):
    """There is no question about facts with different answers."""
    texts = [qa["question"] for p, _ in zip(question_examples(world, "dev"), range(50)) for qa in p["qas"]]
    assert all(len(p) for p in word_log_probabilities(world, texts))
    for i in range(120):
        answers = {}
        for question in questions(world, world.document(i)):
            answers.setdefault(question.text, set()).add(question.answers[0][0].lower())
            if world.language == "ko":  # answers come without and with their particle
                (bare, start), (with_particle, same) = question.answers
                assert start == same and with_particle.startswith(bare) and with_particle != bare
        assert all(len(texts) == 1 for texts in answers.values()), answers


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="expected one of corpus, held_out, train, dev, test"):
        next(topic_examples(ToyWorld(), "validation"))
