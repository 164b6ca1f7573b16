"""The program `probe`, as people run it, and its error messages."""

import csv
import functools
import re
import sys

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.elmo.encoder import ElmoEncoder
from bert_elmo_jax.report.korean_phrases import KOREAN
from bert_elmo_jax.text import WordVocabulary
from bert_elmo_jax.text.words import choose_word_rule

from .programs import run_program

LINES = "1\tw1\t_\tNOUN\t_\tNumber=Sing\t2\tnsubj\t_\t_\n2\tw2\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
OTHER = "1\tw3\t_\tVERB\t_\t_\t0\troot\t_\t_\n2\tw4\t_\tNOUN\t_\tNumber=Plur\t1\tobj\t_\t_\n\n"
SENSES = "# newdoc id = {0}\nw1\tw1\tNN\t{1}\t1:0{1}:00::\t_\t_\nw2\t_\tVB\t_\t_\t_\t_\n\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.conllu").write_text((LINES * 2 + OTHER * 2) * 10, encoding="utf-8")
    (tmp_path / "glove.txt").write_text("w1 1 0\nw2 0 1\nw3 0 1.5\nw4 2 0\n배 1 1\n", encoding="utf-8")
    senses = "".join(SENSES.format(f"d{n}", 1 + n % 2) for n in range(10))
    (tmp_path / "semcor.tsv").write_text(senses, encoding="utf-8")
    (tmp_path / "texts.txt").write_text("w1 배를 w2\nw3 배를\nw1 배를 w2\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(files, monkeypatch):
    """Return a function that runs the program with flags and returns its status and both outputs."""
    monkeypatch.chdir(files)
    return functools.partial(run_program, "probe", "--output=out")


TREEBANK = [f"--{name}=a.conllu" for name in ("train", "dev", "test")]


def rows(files, study):
    with open(files / "out" / study / "table.csv", encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_probes(run, files, goldens):
    elmo = f"--model={goldens / 'elmo_tiny'}"
    status, out, _ = run("--what=probe", elmo, "--static=glove.txt", "--tasks=pos,Number", "--layers=0", *TREEBANK)
    assert status == 0
    assert [row["encoder"] for row in rows(files, "probe")][:3] == [
        "most frequent of the word",
        "glove.txt",
        "elmo_tiny",
    ]
    assert "97.3" in out  # the paper's figure is in the table, too
    page = (files / "out" / "probe" / "report.html").read_text(encoding="utf-8")
    assert "pos by layer" in page
    assert "a.conllu" in page
    status, out, _ = run("--what=efficiency", "--static=glove.txt", "--tasks=pos", "--fractions=0.5,1", *TREEBANK)
    assert status == 0
    assert [row["layer"] for row in rows(files, "efficiency")] == ["50%", "50%", "100%", "100%"]


@pytest.mark.long
def test_korean_pages_have_no_english_phrase(run, files, goldens):
    """The page and its figures are Korean; the table in the terminal and table.csv are unchanged."""
    bert, elmo = (f"--model={goldens / name}" for name in ("bert_tiny", "elmo_tiny"))
    studies = {
        "probe": ["--static=glove.txt", "--tasks=pos", *TREEBANK],
        "efficiency": ["--static=glove.txt", "--tasks=pos", "--fractions=0.5,1", *TREEBANK],
        "senses": ["--static=glove.txt", "--train=semcor.tsv", "--seeds=1"],
        "neighbours": [elmo, "--static=glove.txt", "--train=texts.txt", "--words=w1"],
        "attention": [bert, "--test=a.conllu"],
        "sentence": [bert, "--train=texts.txt", "--sentence=w1 w2"],
    }
    for study, flags in studies.items():
        status, out, err = run(f"--what={study}", "--language=ko", *flags)
        assert status == 0, err
        page = (files / "out" / study / "report.html").read_text(encoding="utf-8")
        assert '<html lang="ko">' in page and "<h2>설정</h2>" in page
        figures = "".join(path.read_text(encoding="utf-8") for path in (files / "out" / study).glob("*.svg"))
        shown = re.sub("<(style|script)[ >].*?</(style|script)>|<pre>.*?</pre>", "", page, flags=re.S) + figures
        texts = {text.strip() for text in re.findall(">([^<]+)<", shown) if re.search("[a-z]{2} [a-z]{2}", text)}
        assert {text for text in texts if not re.search("[가-힣]|et al[.]", text)} == set(), study
        english = [phrase for phrase in KOREAN if len(phrase) > 12 and "{" not in phrase and phrase in shown]
        assert english == [], study
        assert not re.search("[가-힣]", out.replace("배", "").replace("를", "")), out
    assert "most frequent of the word" in (files / "out" / "probe" / "table.csv").read_text(encoding="utf-8-sig")


def test_senses_and_neighbours(run, files):
    status, out, err = run("--what=senses", "--static=glove.txt", "--train=semcor.tsv", "--seeds=1")
    assert status == 0
    assert err.startswith("senses of glove.txt -> out/senses, on 1 × cpu\n")
    assert "first sense" in out
    assert "69.0" in out
    status, out, _ = run("--what=neighbours", "--static=glove.txt", "--train=texts.txt", "--words=w1")
    assert status == 0
    assert "words near w1: w4" in out


def test_neighbours_attention_and_the_toy_world(run, files, goldens):
    bert = f"--model={goldens / 'bert_tiny'}"
    status, out, _ = run("--what=neighbours", bert, "--train=texts.txt", "--words=배*", "--layers=-1")
    assert status == 0
    assert "w1 [배를] w2" in out
    assert "<b>배를</b>" in (files / "out" / "neighbours" / "report.html").read_text(encoding="utf-8")
    status, out, err = run("--what=attention", bert, "--test=a.conllu", "--batch_size=4")
    assert status == 0, err
    assert "attention: nsubj" in out


def test_one_sentence_through_two_models(run, files, goldens):
    models = f"--model={goldens / 'bert_tiny'},{goldens / 'elmo_tiny'}"
    arguments = ("--what=sentence", models, "--train=texts.txt", "--sentence=w1 배를 w2", "--words=배를", "--stage")
    status, out, err = run(*arguments)
    assert status == 0, err
    assert "bert_tiny, guesses with the word hidden: " in out
    folder = files / "out" / "sentence"
    assert sorted(path.name for path in folder.iterdir()) == ["figure_00.svg", "report.html", "table.csv"]
    assert "단어를 가렸을 때의 추측" in (folder / "figure_00.svg").read_text(encoding="utf-8")
    assert {row["kind"] for row in rows(files, "sentence")} == {"hidden", "near"}
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "@media(min-width:40rem){html{font-size:150%}}" in page
    assert '"word":1' in page
    status, _, err = run(*arguments[:-2], "--words=w9")
    assert status == 2
    assert "'w9' is not in the sentence 'w1 배를 w2': name a word of it" in err
    status, _, err = run(*(f"{part},{goldens / 'gpt_tiny'}" if "--model=" in str(part) else part for part in arguments))
    assert status == 2
    assert "gpt_tiny has no tokenizer" in err and "vectors of" not in err


def test_lines_are_split_as_the_run_split_them(run, files, goldens, tmp_path):
    """A text with blank lines, in an encoding of Windows; punctuation after a word is not part of it."""
    (files / "novel.txt").write_bytes("이 영화.\n\n\n그 영화!\n영화를 보다\n".encode("cp949"))
    common = ("--what=neighbours", "--train=novel.txt", "--encoding=cp949", "--words=영화")
    status, out, _ = run(*common, f"--model={goldens / 'elmo_tiny'}")
    assert status == 0
    assert out.splitlines()[:2] == [
        "영화 occurs 2 times in the text. For 2 of them, spread evenly over the text, here are the other occurrences "
        "whose vectors are nearest in a layer, with their cosine: at most 1.000, the same direction.",
        "elmo_tiny, layer 1: 이 [영화] .",
    ]  # a word's own layer 0 is the same everywhere
    table = rows(files, "neighbours")
    assert [row["layer"] for row in table] == ["1", "2", "1", "2"]
    assert [table[0][name] for name in ("asked", "asked in", "word", "in")] == [
        "영화",
        "이 영화 .",
        "영화",
        "그 영화 !",
    ]
    page = (files / "out" / "neighbours" / "report.html").read_text(encoding="utf-8")
    assert "<p>영화 occurs 2 times" in page
    model = load(goldens / "elmo_tiny")
    words = WordVocabulary(["<S>", "</S>", "<UNK>", "영화."], rule="whitespace")
    words.save(tmp_path / "words")
    assert WordVocabulary.load(tmp_path / "words").rule == "whitespace"
    assert choose_word_rule({"ours": ElmoEncoder(model.config, model.params, words)}) == "whitespace"
    status, out, _ = run(*common, f"--model={goldens / 'elmo_tiny'}", "--sentence=영화를 본 영화", "--layers=0")
    assert status == 0
    assert "For the 영화 in your sentence" in out
    assert "layer 0: 영화를 본 [영화]\n  1.000  " in out


def test_remedies_are_those_of_the_program(run, files, goldens):
    elmo = f"--model={goldens / 'elmo_tiny'}"
    (files / "novel.txt").write_bytes("이 영화는 좋다\n".encode("cp949"))
    (files / "wide.txt").write_bytes("이 영화는 좋다\n".encode("utf-16"))
    (files / "semcor_cp949.tsv").write_bytes(SENSES.format("영화", 1).encode("cp949"))
    for flags, message in [
        (["--train=novel.txt"], "it reads as cp949: pass --encoding=cp949 if that is right\n"),
        (["--train=wide.txt"], "it looks like UTF-16: save it as UTF-8\n"),
        (["--train=novell.txt"], "novell.txt: no file matches; did you mean novel.txt?\n"),
        (["--train=texts.txt", "--sentence=없다"], "'배' is not in the sentence '없다': name a word of it"),
    ]:
        status, _, err = run("--what=neighbours", elmo, "--words=배", *flags)
        assert status == 2
        assert message in err
    status, _, err = run("--what=senses", elmo, "--train=semcor_cp949.tsv")
    assert "it reads as cp949: save it as UTF-8, or give its encoding (cp949): --encoding=cp949\n" in err
    status, _, err = run("--what=senses", elmo, "--train=semcorr.tsv")
    assert "semcorr.tsv: there is no such file; did you mean semcor.tsv?\n" in err


def test_errors_are_one_line(run, files, goldens):
    elmo = f"--model={goldens / 'elmo_tiny'}"
    static = "--static=glove.txt"
    (files / "broken.conllu").write_text("1\tw1\n", encoding="utf-8")
    (files / "reviews.csv").write_text("review,stars\nw1 w2,5\n", encoding="utf-8")
    expected = [
        (
            ["--what=neighbours", elmo, "--train=reviews.csv", "--words=w1"],
            "call the column of texts 'text', or give a",
        ),
        (["--model=x"], "probe: --what=… is needed"),
        (["--what=probe", static], "--what=probe needs --train=…, --dev=…, --test=…"),
        (["--what=probe", *TREEBANK], "no encoder: give --model=… or --static=…"),
        (["--what=attention", "--test=a.conllu"], "no encoder: give --model=…"),
        (["--what=attention", elmo, "--test=a.conllu"], "elmo_tiny has no attention heads: leave it out"),
        (["--what=weights", elmo], "elmo_tiny has no mix of layers"),
        (["--what=weights", elmo, "--words=a"], "--words means nothing for --what=weights: leave it out"),
        (["--what=probe", static, *TREEBANK, "--tasks=Tense"], "no word of the train data has Tense"),
        (["--what=probe", static, *TREEBANK, "--layers=last"], "--layers=last: use whole numbers"),
        (["--what=probe", static, *TREEBANK, "--tasks="], "--tasks= is empty"),
        (["--what=efficiency", static, *TREEBANK, "--tasks=pos", "--fractions=2"], "expected shares above 0 to 1"),
        (["--what=probe", static, *TREEBANK[:2], "--test=broken.conllu"], "broken.conllu:1: 2 columns between tabs"),
        (["--what=senses", static, "--train=a.conllu"], "a.conllu:"),
        (["--what=senses", static, "--train=none.tsv"], "none.tsv: there is no such file"),
        (["--what=toyworld", elmo, "--words=river"], "'river' has a single sense in the toy world (en); "),
        (["--what=toyworld", "--model=nowhere"], "nowhere"),
        (["--what=neighbours", elmo, "--train=texts.txt", "--words=없다"], "'없다' occurs 0 times in the text"),
        (["--what=weights", elmo, "more"], "unexpected argument 'more'"),
    ]
    for flags, message in expected:
        status, _, err = run(*flags)
        assert status == 2, flags
        assert message in err, err
        assert err.strip().splitlines()[-1].startswith("probe: "), err
    assert not (files / "out" / "probe").exists()


def test_png_needs_the_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, _, err = run("--what=probe", "--static=glove.txt", *TREEBANK, "--png")
    assert status == 2
    assert "pip install 'bert_elmo_jax[figures]'" in err


def test_interrupted(run, monkeypatch):
    from bert_elmo_jax.analysis import run_study

    def stop(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_study, "STUDIES", {**run_study.STUDIES, "weights": (stop, (), ())})
    status, _, err = run("--what=weights", "--model=x")
    assert status == 130
    assert "probe: stopped; the same command resumes from here" in err


def test_it_finds_what_layers_hold(run, files):
    """The vectors contain the part of speech, and the table shows it."""
    status, _, _ = run("--what=probe", "--static=glove.txt", "--tasks=pos", *TREEBANK)
    assert status == 0
    assert np.isclose(float(rows(files, "probe")[1]["score"]), 1.0)
