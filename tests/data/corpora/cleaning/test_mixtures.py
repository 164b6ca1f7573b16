"""Mixtures have the shares that were requested; held-out text is never in the training part."""

import dataclasses
import json

import pytest

from bert_elmo_jax.data.corpora.corpus import iterate_sample
from bert_elmo_jax.data.corpora.prepare import OtherPlan, Request, prepare
from bert_elmo_jax.data.corpora.reading import Reading, Source
from bert_elmo_jax.data.corpora.store import open_store

from ...conftest import inline, no_bar


@pytest.fixture(scope="module")
def two_inputs(tmp_path_factory):
    """Write 800 documents of `river` and 200 of `bank`, each with a number, of equal sizes."""
    folder = tmp_path_factory.mktemp("two")
    for name, word, count in (("novels", "rive", 800), ("reviews", "bank", 200)):
        text = "\n\n".join(f"{word} {number:04d}" for number in range(count))
        (folder / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    return tuple(str(folder / f"{name}.txt") for name in ("novels", "reviews"))


def read_part(store, part):
    opened = open_store(store, part)
    return [" ".join(opened.forms[i] for i in document[0]) for document in opened]


@pytest.mark.parametrize(
    ("options", "share"),
    [
        ({"mix": "novels=0.5,reviews=0.5"}, 0.5),
        ({"mix": "novels=1,reviews=9"}, 0.9),
        ({"temperature": 0.5}, 1 / 3),
        ({"temperature": 0.0}, 0.5),
    ],
)
def test_shares_of_the_training_part(tmp_path, two_inputs, options, share):
    request = Request(two_inputs, str(tmp_path / "out"), tokenizer="words", heldout=0.1, shards=3, **options)
    manifest = prepare(request, inline, no_bar)
    train, heldout = (read_part(tmp_path / "out", part) for part in ("train", "heldout"))
    assert abs(len(train) - 900) < 60
    assert abs(sum(text.startswith("bank") for text in train) / len(train) - share) < 0.03
    assert len(set(heldout)) == len(heldout) > 10
    assert not set(heldout) & set(train)
    mixture = json.loads((tmp_path / "out" / "dropped.json").read_text())["mixture"]
    assert mixture["reviews"]["share"] == pytest.approx(share, abs=0.01)
    assert manifest["counts"]["train"]["documents"] == len(train)
    again = prepare(request, inline, no_bar)
    assert again == manifest


def test_the_sample_for_a_vocabulary_follows_the_mixture(tmp_path):
    sources = []
    for name, copies in (("a", 0.4), ("b", 1.6)):
        path = tmp_path / f"{name}.txt"
        path.write_text(f"{name * 63}\n" * (1 << 15))
        sources.append(Source(str(path), str(path), path.stat().st_size, "", copies=copies))
    sample = list(iterate_sample(sources, Reading(), 2.0, 0))
    assert sample.count("b" * 63) / len(sample) == pytest.approx(0.8, abs=0.13)
    sample = list(iterate_sample(sources, Reading(), 5.0, 0))  # more than there is
    assert sample.count("b" * 63) / len(sample) == pytest.approx(0.8, abs=0.001)
    assert len(sample) == pytest.approx(2 << 15, rel=0.001)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mix": "novel=1,reviews=1"}, "no --input is named 'novel'; they are novels, reviews; did you mean novels"),
        ({"mix": "novels=1"}, "no weight for reviews; give one for each --input"),
        ({"mix": "novels=1,reviews=-1"}, "reviews=-1 should be a weight above 0"),
        ({"mix": "novels=1,reviews=1", "temperature": 0.5}, "both set the shares; leave one out"),
        ({"mix": "novels=1", "inputs": ("novels.txt",)}, "needs two or more inputs"),
        ({"temperature": 0.5, "inputs": ("a/x.txt", "b/x.txt")}, "two inputs of a mixture are named x"),
        ({"dedupe": 0.3}, "give 0.5 to 1, for example 0.8"),
    ],
)
def test_wrong_mixtures_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Request(**{"inputs": ("novels.txt", "reviews.txt"), "output": "out"} | options)


def test_too_many_copies_are_refused(tmp_path, two_inputs):
    request = Request(two_inputs, str(tmp_path / "out"), tokenizer="words", mix="novels=0.001,reviews=999")
    assert prepare(request, inline, no_bar)["counts"]["train"]["documents"] > 900
    (tmp_path / "tiny.txt").write_text("a text\n")
    request = Request((*two_inputs, str(tmp_path / "tiny.txt")), str(tmp_path / "no"), temperature=0.0)
    with pytest.raises(ValueError, match=r"would repeat tiny .* 100 times are the most: give it a smaller share"):
        prepare(request, inline, no_bar)


def test_files_that_move_to_another_input_are_another_mixture(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"{name} text\n\n" * 9)
    request = Request(
        tuple(f"{tmp_path}/{name}.txt" for name in "abc"), str(tmp_path / "out"), "words", heldout=0.0, temperature=0.5
    )
    prepare(request, inline, no_bar)
    other = dataclasses.replace(request, inputs=(f"{tmp_path}/a.txt", f"{tmp_path}/[bc].txt"))
    with pytest.raises(OtherPlan, match=r"inputs: {'a': 1, 'b': 1, 'c': 1} there, {'a': 1, .*: 2} given"):
        prepare(other, inline, no_bar)
