"""Quality filters on generated English and Korean text."""

import gzip
import json
import random

import pytest

from bert_elmo_jax.data.corpora.cleaning.filters import ENGLISH, KOREAN, REASONS, judge_documents
from bert_elmo_jax.data.corpora.cleaning.near_duplicates import WordHashes
from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.corpora.reading import Reading
from bert_elmo_jax.data.corpora.store import open_store

from ...conftest import ENGLISH as ENGLISH_WORDS
from ...conftest import KOREAN as KOREAN_WORDS
from ...conftest import ask, inline, no_bar


def generate(language, lines, seed=0):
    coins = random.Random(seed)
    words = (ENGLISH_WORDS if language == "english" else KOREAN_WORDS).split()
    return [" ".join(coins.choices(words, k=9)) + "." for _ in range(lines)]


def reason(lines):
    words = " ".join(lines).split()
    other = generate("english", 4)  # a neighbour in the batch changes nothing
    batch = [other, lines, other]
    verdicts = judge_documents(batch, [other, words, other], (ENGLISH, KOREAN), WordHashes())
    return REASONS[verdicts[1]]


@pytest.mark.parametrize("language", ["english", "korean"])
def test_each_reason(language):
    good = generate(language, 6)
    assert reason(good) == ""
    assert reason([" ".join(good[0].split()[:4])]) == "too few words"
    assert reason([*good, "3,141 2,718 1,618 0,577 " * 40]) == "too few letters"
    assert reason([" ".join(f"{word} #{'|' * 2}" for word in line.split()) for line in good]) in (
        "many symbols",
        "too few letters",
    )
    assert reason([line.replace(" ", " # ").replace(".", "##") for line in good]) == "many symbols"
    assert reason([*good, *good]) == "repeated lines"
    assert reason([" ".join(good[0].split() * 5), good[1]]) == "repeated phrases"


def test_korean_has_limits_of_its_own():
    assert reason(["배를 타고 강을 건너서 은행에 갔다"]) == ""  # six words
    assert reason(["We took a boat to the bank"]) == "too few words"
    assert reason(["영화 정말 재밌다 ㅋㅋㅋㅋㅋㅋㅋㅋㅋㅋㅋㅋ 최고 최고다 ㅠㅠㅠㅠ"]) in (
        "many symbols",
        "too few letters",
    )
    assert reason(["영화 정말 재밌다 ㅋㅋ 진짜 최고의 작품이다"]) == ""
    phrase = "배를 타고 강을 건너서 "  # four words again and again, others between
    assert reason([phrase + word + " " + phrase + word + "다" for word in "물 산 집".split()]) == "repeated phrases"


@pytest.fixture
def mixed(tmp_path):
    documents = [*(generate("english", 5, n) for n in range(9)), *(generate("korean", 5, n) for n in range(9))]
    documents += [["short"], ["spam spam spam spam " * 9], generate("korean", 5, 3)]
    (tmp_path / "a.txt").write_text("\n\n".join("\n".join(lines) for lines in documents) + "\n", encoding="utf-8")
    return tmp_path


def test_filters_and_near_duplicates_together(mixed, tokenizer_folder):
    options = {"filter": "default", "dedupe": 0.8, "heldout": 0.0}
    prepare(ask(mixed, mixed / "out", tokenizer_folder, **options), inline, no_bar)
    report = json.loads((mixed / "out" / "dropped.json").read_text(encoding="utf-8"))
    counts = {name: entry["documents"] for name, entry in report["dropped"].items()}
    assert counts == {"a near-duplicate": 1, "repeated phrases": 1, "too few words": 1}
    assert report["dropped"]["too few words"]["samples"][0]["text"] == "short"
    assert len(open_store(mixed / "out")) == report["remaining"] == 18
    options["filter"] = "default,words=0,repeated_phrases=1"
    prepare(ask(mixed, mixed / "milder", tokenizer_folder, **options), inline, no_bar)
    assert len(open_store(mixed / "milder")) == 20


def plain_text(texts):
    return "".join(f"\n{text}\n" for text in texts).encode()


def json_lines(texts):
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


@pytest.mark.parametrize(
    ("name", "content", "ends", "place"),
    [
        ("a.txt", plain_text, "blank_line", {"byte": 119}),
        ("a.txt.gz", lambda texts: gzip.compress(plain_text(texts)), "blank_line", {"line": 7}),
        ("a.jsonl", json_lines, "blank_line", {"document": 3}),
        ("a.jsonl.gz", lambda texts: gzip.compress(json_lines(texts)), "line", {"document": 3}),
        ("a.csv", lambda texts: "".join(f'"{text}"\n' for text in ("text", *texts)).encode(), "file", {"document": 3}),
    ],
)
def test_the_places_of_dropped_documents_are_those_in_the_users_file(
    tmp_path, tokenizer_folder, name, content, ends, place
):
    texts = [f"{' '.join(f'word{n}{m}' for m in range(8))}{end}" for n, end in ((1, ""), (2, "\nand"))]
    (tmp_path / name).write_bytes(content([*texts, texts[0]]))
    request = Request((str(tmp_path / name),), str(tmp_path / "out"), str(tokenizer_folder), heldout=0.0, dedupe=1.0,
                      reading=Reading(documents=ends))  # fmt: skip
    prepare(request, inline, no_bar)
    report = json.loads((tmp_path / "out" / "dropped.json").read_text(encoding="utf-8"))
    (sample,) = report["dropped"]["a near-duplicate"]["samples"]
    (unit,) = place
    first = {"byte": 1, "line": 2, "document": 1}[unit]
    assert sample.pop("similar_to") == {"file": str(tmp_path / name), unit: first}
    assert sample == {"file": str(tmp_path / name), "text": texts[0], **place}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("strict", "must begin with default"),
        ("default,letter=0.5", "no limit 'letter'.*did you mean letters"),
        ("default,letters=70", "letters=70 should be a share from 0 to 1"),
        ("default,words=few", "words=few should be a whole number"),
    ],
)
def test_wrong_limits_are_named(text, message):
    with pytest.raises(ValueError, match=message):
        Request(("a.txt",), "out", filter=text)


def test_an_empty_corpus_is_an_error(mixed, tokenizer_folder):
    with pytest.raises(ValueError, match=r"every document was left out; .*dropped.json says why"):
        prepare(ask(mixed, mixed / "out", tokenizer_folder, filter="default,words=9999"), inline, no_bar)
