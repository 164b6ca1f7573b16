"""One sentence as models of several families read it, and its page."""

import itertools
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.analysis.one_sentence import (
    describe_reading,
    draw_readings,
    format_readings,
    read_sentence,
    strongest_head,
)
from bert_elmo_jax.files import write_text
from bert_elmo_jax.inference.kept_vectors import VectorFolder
from bert_elmo_jax.report.figures import Arcs, Bars
from bert_elmo_jax.report.show import show
from bert_elmo_jax.report.word_page import TEXTS, write_word_page

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
WORDS = ["배가", "<b>", "왔다"]
CORPUS = [["큰", "배가", "왔다"], ["배가", "간다"], ["왔다", "</script>"]]


@pytest.fixture(scope="module")
def readings(goldens, tmp_path_factory):
    folder = VectorFolder(tmp_path_factory.mktemp("vectors"))
    names = ("bert_tiny", "elmo_tiny", "gpt2_tiny")
    return {name: read_sentence(load(goldens / name), WORDS, CORPUS, folder) for name in names}


def test_each_model_shows_what_it_can(readings):
    bert, elmo, gpt = readings.values()
    assert (bert.guessed, elmo.guessed, gpt.guessed) == ("hidden", None, "next")
    assert elmo.maps is None and elmo.guesses is None
    for reading in (bert, gpt):
        np.testing.assert_allclose(reading.maps.sum(axis=-1), 1, atol=1e-5)  # nothing is left out
        assert [reading.shown[place] for place in reading.places if place is not None] == [
            word for word, place in zip(WORDS, reading.places) if place is not None
        ]
        for chances in ([p for _, p in each] for each in reading.guesses):
            assert chances == sorted(chances, reverse=True)
            assert sum(chances) <= 1.0001
    assert np.allclose(np.triu(gpt.maps, 1), 0)  # a causal model sees only the words before
    for reading in readings.values():
        for of_words in reading.near.values():
            assert [len(near) for near in of_words] == [5] * len(WORDS)  # the others have five different words
            assert all(a.cosine >= b.cosine - 1e-5 for near in of_words for a, b in itertools.pairwise(near))


def test_a_word_without_a_vector_has_no_neighbours_and_is_none(tmp_path):
    (tmp_path / "v.txt").write_text("배가 1 2\n간다 2 1\n", encoding="utf-8")
    reading = read_sentence(load(tmp_path / "v.txt"), ["배가", "떴다"], CORPUS, VectorFolder(tmp_path))
    [near, none] = reading.near[0]
    assert ([CORPUS[n.sentence][n.place] for n in near], none) == (["배가", "간다"], [])
    assert "layer 0: cosine: none, as the word has no vector" in format_readings({"v": reading}, CORPUS, 1)
    assert show(draw_readings({"v": reading}, CORPUS, 1, "en")).document


def test_guesses_are_those_of_fill_mask(readings, goldens):
    encoder = load(goldens / "bert_tiny")
    first = encoder.fill_mask([encoder.tokenizer.tokens[encoder.tokenizer.mask_id], *WORDS[1:]], top=5)
    assert [chance for _, chance in readings["bert_tiny"].guesses[0]] == pytest.approx([g.probability for g in first])


def test_the_strongest_head_is_that_of_another_word(readings):
    reading = readings["bert_tiny"]
    layer, head, place = strongest_head(reading, 0)
    places = [other for other in reading.places[1:] if other is not None]
    assert place in places
    assert reading.maps[layer, head, reading.places[0], place] == reading.maps[:, :, reading.places[0], places].max()


def test_the_picture_has_a_column_for_each_model(readings):
    picture = draw_readings(readings, CORPUS, 2, "ko")
    kinds = {name: [type(figure) for figure in figures] for name, figures in picture.columns.items()}
    assert kinds == {"bert_tiny": [Bars, Bars, Arcs], "elmo_tiny": [Bars], "gpt2_tiny": [Bars, Bars, Arcs]}
    assert "가렸을 때" in show(picture).document


def test_the_page_is_one_small_file_that_shows_texts_as_text(readings, tmp_path):
    models = {f"<i>{name}": describe_reading(reading) for name, reading in readings.items()}
    page = write_word_page(tmp_path / "page.html", "<b>", models, CORPUS, language="ko").read_text(encoding="utf-8")
    assert len(page.encode()) < 60_000
    assert not re.search(r"""https?:|(src|href)=|@import|<[bi]>|innerHTML""", page)
    assert page.count("<script") == page.count("</script>") == 2
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert data["sentences"] == CORPUS
    assert [model["name"] for model in data["models"]] == ["<i>bert_tiny", "<i>elmo_tiny", "<i>gpt2_tiny"]
    bert = data["models"][0]
    reading = readings["bert_tiny"]
    np.testing.assert_allclose(np.array(bert["maps"]) / 1000, reading.maps, atol=0.0006)
    assert bert["near"]["3"][0][0][1:] == list(reading.near[3][0][0][1:])


@pytest.mark.long
@pytest.mark.skipif(BROWSER is None, reason="no chromium")
def test_a_browser_shows_the_chosen_word_within_a_phone(readings, tmp_path):
    models = {name: describe_reading(reading) for name, reading in readings.items()}
    page = write_word_page(tmp_path / "page.html", "배", models, CORPUS, word=2, language="ko")
    keys = """document.querySelectorAll("button.word")[2].focus();
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft", bubbles: true}));
    document.querySelector("#controls button").click();
    document.title = document.documentElement.scrollWidth + " of " + innerWidth;"""
    write_text(page, page.read_text(encoding="utf-8").replace("</html>", f"<script>{keys}</script></html>"))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'browser'}", "--dump-dom"]
    done = subprocess.run([BROWSER, *flags, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    width, inner = re.search(r"<title>(\d+) of (\d+)", done.stdout).groups()
    assert int(width) <= int(inner)
    pressed = re.findall(r'<button[^>]*aria-pressed="true"[^>]*>(.*?)</button>', done.stdout)
    assert pressed == ["&lt;b&gt;"]  # moved to by the arrow key
    assert "the model guesses" in done.stdout  # in the other language, after the click


def test_both_languages_have_every_text():
    script_names = set(re.findall(r'say\(\s*"(\w+)"', _script())) | {
        "hidden",
        "next",
        "no_maps",
        "embeddings",
        "attends",
    }
    assert set(TEXTS["en"]) == set(TEXTS["ko"]) == script_names
    for english, korean in zip(TEXTS["en"].values(), TEXTS["ko"].values()):
        assert len(re.findall(r"\{\d?\}", english)) == len(re.findall(r"\{\d?\}", korean))


def _script():
    from pathlib import Path

    from bert_elmo_jax.report import word_page

    return Path(word_page.__file__).with_name("word_page.js").read_text(encoding="utf-8")
