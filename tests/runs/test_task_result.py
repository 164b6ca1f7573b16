"""The first sections of a report: result, baselines, model and data, in both languages."""

import dataclasses
import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from unicodedata import normalize

import numpy as np
import pytest

from bert_elmo_jax.data.tasks.examples import (
    Answer,
    ChoiceExample,
    ParsedSentence,
    Question,
    SentenceExample,
    TaggedSentence,
    TextExample,
)
from bert_elmo_jax.data.tasks.task import Task, task_named
from bert_elmo_jax.inference.predictions import AnswerSpan, Choice, Label, Number, Tags
from bert_elmo_jax.inference.task_model import Predictor
from bert_elmo_jax.report.korean_phrases import KOREAN
from bert_elmo_jax.report.language import translator
from bert_elmo_jax.runs.bag_of_words import compare_words
from bert_elmo_jax.runs.baselines import fit_baselines
from bert_elmo_jax.runs.model_facts import describe_model
from bert_elmo_jax.runs.run_report import write_report
from bert_elmo_jax.runs.task_report import task_sections
from bert_elmo_jax.runs.task_result import (
    compare_with_baselines,
    draw_result,
    draw_task_data,
    judge,
    list_lines,
    name_task,
    to_json,
)
from bert_elmo_jax.runs.task_scores import figures_of, find_interval, score_name, score_unknown
from bert_elmo_jax.train.metrics import Metrics

FILE = {"file": "a.csv", "fingerprint": "0" * 64}
LONG = "정말재미있는영화였어요" * 9  # a word that is wider than a phone


def classification(labels, texts=None, labelled=("0", "1")):
    texts = texts or [f"text {n}" for n in range(len(labels))]
    task = Task("classification", "classification", task_named("classification").layout, labels=labelled)
    return task, [
        TextExample(text, None, label, None, "dev.csv", n) for n, (text, label) in enumerate(zip(texts, labels))
    ]


def cases():
    """Return a task, training data, dev data and predictions of every kind, with mistakes."""
    task, rows = classification(["1", "1", "0", "1"], ["good", "fine", f"bad {LONG}", "great"])
    yield task, rows, [Label("1", 0.9, {})] * 4
    numbers = [TextExample(f"text {n}", None, float(n), None, "dev.csv", n) for n in range(6)]
    yield task_named("regression"), numbers, [Number(float(n % 3)) for n in range(6)]
    pairs = [TextExample(f"query {n}", f"passage {n}", float(n % 2), None, "dev.csv", n) for n in range(6)]
    yield task_named("rank"), pairs, [Number(n / 6) for n in range(6)]
    tagged = [TaggedSentence(("서울", "역", LONG), ("B-LOC", "I-LOC", "O"), "dev.conll", (1, 2, 3), 0)] * 3
    tags = [
        Tags(tagged[0].words, ("B-LOC", "O", "O"), (0.9, 0.8, 0.7)),
        *[Tags(tagged[0].words, tagged[0].tags, (1.0,) * 3)] * 2,
    ]
    for name in ("entities", "tags"):
        labels = ("B-LOC", "I-LOC", "O")
        yield Task(name, "tags", task_named(name, file="a.conll").layout, labels=labels), tagged, tags
    choices = [ChoiceExample("She opens", ("the door", LONG), n % 2, None, "dev.csv", n) for n in range(4)]
    yield task_named("swag"), choices, [Choice(0, "the door", (0.7, 0.3))] * 4
    answers = [(Answer("강가", 3),), (), (Answer("강가", 3),)]
    questions = [Question(f"q{n}", "어디 ?", "배는 강가에", right, "dev.json", n) for n, right in enumerate(answers)]
    span = AnswerSpan("배", 0, 1, 0.6, (AnswerSpan("배", 0, 1, 0.6, (), 0.0),), -1.0)
    yield Task("squad", "questions", unanswerable=True), questions, [span] * 3
    yield Task("squad", "questions"), questions[::2], [span, AnswerSpan("강가", 3, 5, 0.9, (), -9.0)]
    sentences = [SentenceExample(("비가 온다", f"비가 {n}"), float(n), "dev.csv", n) for n in range(6)]
    yield Task("sentences", "sentences", top_score=5.0), sentences, [Number(float(n % 4)) for n in range(6)]


def write_task_report(run, task, rows, predictions, language="en", **options):
    translate = translator(language)
    (run / "run.json").write_text(json.dumps({"init": "runs/bert", "seed": 0, "transfer": "all"}), encoding="utf-8")
    with Metrics(run, 0) as metrics:
        metrics.write(1, {"loss": 1.0, f"dev/{score_name(task)}": 0.5})
    score, compared = score_name(task), compare_with_baselines(task, rows, {"dev": (rows, predictions)})
    model = Predictor()
    model.task = task
    sections = [
        draw_result(score, compared, 20, 40, translate),
        describe_model("BERT", {"w": np.zeros((2, 3))}, {"init": "runs/bert"}, translate),
        draw_task_data({"train": rows, "dev": rows}, task, {"train": FILE}, translate),
        *task_sections(model, rows, predictions, translate),
    ]  # fmt: skip
    page = write_report(run, sections, title=f"{name_task(task, translate)}: a.csv", language=language, **options)
    return compared, page


class Texts(HTMLParser):
    """The headings and the texts of a page, without commands, settings and figures."""

    def __init__(self, page):
        super().__init__()
        self.headings, self.texts, self.inside = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "path", "line", "polyline", "circle", "rect"):
            self.inside.append(tag)
        self.texts += [value for name, value in attrs if name == "data-name"]

    def handle_endtag(self, tag):
        if tag in self.inside:
            del self.inside[len(self.inside) - 1 - self.inside[::-1].index(tag) :]

    def handle_data(self, text):
        if self.inside and self.inside[-1] in ("h1", "h2"):
            self.headings.append(text)
        if not {"pre", "style", "figcaption"} & set(self.inside):
            self.texts.append(text.strip())


@pytest.mark.parametrize("case", [*cases()], ids=lambda case: case[0].name)
def test_every_kind_begins_with_its_result_and_ends_with_the_curves(case, tmp_path):
    compared, page = write_task_report(tmp_path, *case, command="python -m experiments.finetune --task=a")
    text = page.read_text(encoding="utf-8")
    headings = Texts(text).headings
    assert headings[0] != tmp_path.name and "a.csv" in headings[0]
    assert headings[1:4] == ["Result", "Model", "Data"]
    assert headings[-2:] == ["Command", "Curves"] and text.index("Curves") < text.index("<figcaption>loss")
    scores, score = compared["dev"], score_name(case[0])
    assert f"{score} {scores.figures[score]:.4f} on dev" in html.unescape(text)
    printed = " ".join(list_lines(score, compared))
    for number in re.findall(r"\d+\.\d{4}", text.partition("<h2>Model")[0]):
        assert number in printed or any(
            f"{value:.4f}" == number for one in scores.baselines.values() for value in one.values()
        )
    json.dumps(to_json(compared))


@pytest.mark.parametrize("case", [*cases()], ids=lambda case: case[0].name)
def test_a_korean_page_is_korean(case, tmp_path):
    _, page = write_task_report(tmp_path, *case, language="ko", command="python -m experiments.finetune")
    text = page.read_text(encoding="utf-8")
    assert '<html lang="ko">' in text
    texts = Texts(text).texts
    names_of_scores = ("f1", "precision", "recall")
    templates = [re.escape(phrase) for phrase in KOREAN if KOREAN[phrase] != phrase and phrase not in names_of_scores]
    english = re.compile("|".join(re.sub(r"\\{\w+\\}", ".+", template) for template in templates))
    assert [text for text in texts if english.fullmatch(text)] == []


def test_the_result_by_hand():
    """30 rows, 23 right, 16 of them of the label that most training rows have."""
    task, rows = classification(["1"] * 16 + ["0"] * 14)
    predictions = [Label(row.label if n < 23 else "1", 0.9, {}) for n, row in enumerate(rows)]
    _, train = classification(["1", "1", "0"])
    scores = compare_with_baselines(task, train, {"dev": (rows, predictions)})["dev"]
    assert str(scores.size) == "30 rows: one row is 3.3 points"
    assert scores.figures["accuracy"] == 23 / 30
    assert scores.interval == pytest.approx((0.5907, 0.8821), abs=1e-4)
    assert scores.baselines["always '1'"]["accuracy"] == 16 / 30
    assert judge("accuracy", scores) == "Better than the best baseline, “always '1'” (0.5333)."
    lines = list_lines("accuracy", {"dev": scores})
    assert lines[0].startswith("dev: accuracy 0.7667, macro_f1 ")
    assert lines[1].startswith(
        "dev: accuracy is between 0.5907 and 0.8821 (95%); 30 rows: one row is 3.3 points; always '1'"
    )


def test_a_baseline_that_is_as_good_is_named():
    task, rows = classification(["1", "1", "0"])
    scores = compare_with_baselines(task, rows, {"dev": (rows, [Label("1", 0.9, {})] * 3)})["dev"]
    always = scores._replace(baselines={"always '1'": scores.baselines["always '1'"]})
    assert judge("accuracy", always).startswith("No better than the baseline “always '1'” (0.6667)")
    better = scores._replace(baselines={"bag of words": {"accuracy": 0.9}})
    assert judge("accuracy", better).startswith("Worse than the baseline “bag of words” (0.9000)")
    task, rows = classification(["1"] * 6 + ["0"] * 4)
    right = [Label(row.label, 0.9, {}) for row in rows[:9]] + [Label("1", 0.9, {})]
    scores = compare_with_baselines(task, rows, {"dev": (rows, right)})["dev"]._replace(
        baselines={"always '1'": {"accuracy": 0.6}}
    )
    assert judge("accuracy", scores).startswith("The interval includes the baseline “always '1'” (0.6000)")


def test_baselines_by_hand():
    task, train = classification(["1", "0", "1"], ["good", "bad", "good"])
    examples = [TextExample(text, None, "1", None, "dev.csv", 1) for text in ("bad", "good", "?")]
    predicted = {name: [p.label for p in predict(examples)] for name, predict in fit_baselines(task, train).items()}
    assert predicted == {"always '1'": ["1", "1", "1"], "bag of words": ["0", "1", "1"]}
    tags = [TaggedSentence(("a", "b", "a"), ("X", "Y", "Y"), "t", (1, 2, 3), 0),
            TaggedSentence(("a",), ("X",), "t", (5,), 0), TaggedSentence(("c",), ("Y",), "t", (7,), 0)]  # fmt: skip
    words = [TaggedSentence(("a", "b", "new"), None, "d", (1, 2, 3), 0)]
    predicted = {
        name: predict(words)[0].tags
        for name, predict in fit_baselines(task_named("tags", file="a.conll"), tags).items()
    }
    assert predicted == {"always 'Y'": ("Y", "Y", "Y"), "the usual tag of each word": ("X", "Y", "Y")}
    assert fit_baselines(Task("squad", "questions"), []) == {}


def test_words_are_compared_composed():
    """Networks read them composed, in whichever form a file has them."""
    train, dev = (
        [TaggedSentence(tuple(normalize(form, word) for word in ("서울", "강")), ("X", "Y"), "t", (1, 2), 0)]
        for form in ("NFC", "NFD")
    )
    task = task_named("tags", file="a.conll")
    assert score_unknown(task, train, dev, dev) == {}
    assert [predict(dev)[0].tags for predict in fit_baselines(task, train).values()][1] == ("X", "Y")
    train, dev = (
        [ParsedSentence(one.words, None, (2, 0), ("obj", "root"), "t", (1, 2), None) for one in part]
        for part in (train * 2, dev)
    )
    train[1] = dataclasses.replace(train[1], words=("배", "강"), relations=("nsubj", "root"))
    train.append(train[1])  # the most frequent relation is another one
    [predict] = fit_baselines(task_named("dependencies"), train).values()
    assert predict(dev)[0].relations == ("obj", "root")
    assert compare_words("서울", normalize("NFD", "서울")) == pytest.approx(1.0)


def test_intervals_of_tags_and_answers_by_hand():
    [tagged] = [case for case in cases() if case[0].name == "tags"]
    low, high = find_interval(*tagged)  # sentences with 2, 3 and 3 of 3 words right
    assert (low, high) == pytest.approx((2 / 3, 1.0))
    right = [Tags(one.words, one.tags, (1.0,) * 3) for one in tagged[1]]
    assert find_interval(tagged[0], tagged[1], right) == (1.0, 1.0)
    assert find_interval(tagged[0], tagged[1][:1], right[:1]) is None


def test_entities_of_klue_have_the_score_of_its_scorer_too():
    def tagged(tags):
        return TaggedSentence(tuple("한국 은행"), tuple(tags), "dev.tsv", (1,) * 5, 0)

    whole, stray = ["B-OG", "I-OG", "I-OG", "I-OG", "I-OG"], ["B-OG", "I-OG", "O", "I-OG", "I-OG"]
    figures = figures_of(task_named("klue_ner"), [tagged(whole)], [tagged(stray)])
    assert figures["f1"] == 0.0 and figures["entity_macro_f1"] == 1.0  # KLUE leaves out spaces
    figures = figures_of(task_named("klue_ner"), [tagged(whole)], [tagged(["I-OG", *whole[1:]])])
    assert figures["f1"] == 1.0 and figures["entity_macro_f1"] == 0.0  # and wants B-
    assert "entity_macro_f1" not in figures_of(task_named("conll"), [tagged(whole)], [tagged(stray)])


def test_scores_on_unknown_words_by_hand():
    """Only words, entities and answers that the training examples lack are counted."""

    def tagged(words, tags):
        return TaggedSentence(tuple(words.split()), tuple(tags.split()), "dev.conll", (1,) * len(words.split()), 0)

    def predict(*sentences):
        return [Tags(one.words, one.tags, (1.0,) * len(one.words)) for one in sentences]

    train = [tagged("in Seoul now", "O B-LOC O")]
    dev = [tagged("in Busan now", "O B-LOC O"), tagged("New Seoul , Seoul", "B-LOC I-LOC O B-LOC")]
    guess = predict(tagged("in Busan now", "B-LOC B-LOC O"), tagged("New Seoul , Seoul", "B-LOC O B-PER O"))
    # Right entities with a new word: Busan, New Seoul; predicted ones: Busan, New, and the comma, a new word.
    assert score_unknown(task_named("uner"), train, dev, guess) == {"unknown_f1": pytest.approx(2 / 5)}
    assert score_unknown(task_named("uner"), dev, train, predict(*train)) == {}
    assert score_unknown(task_named("ud_upos"), train, dev, guess) == {"unknown_accuracy": pytest.approx(2 / 3)}

    def question(context, answer):
        return Question("q", "where ?", context, (Answer(answer, context.index(answer)),), "dev.json", 1)

    train, dev = [question("in Seoul", "Seoul")], [question("in Busan", "Busan"), question("to Seoul", "Seoul")]
    answers = [AnswerSpan(text, 0, 5, 1.0, (), 0.0) for text in ("in Busan", "wrong")]
    assert score_unknown(task_named("squad"), train, dev, answers) == {"unknown_f1": pytest.approx(200 / 3)}
    assert score_unknown(task_named("squad"), dev, train, answers) == {}
    assert score_unknown(*classification(["1"]), [], []) == {}


def test_a_report_without_a_result_leaves_it_out(tmp_path):
    with Metrics(tmp_path, 0) as metrics:
        metrics.write(1, {"loss": 1.0})
    headings = Texts(write_report(tmp_path).read_text(encoding="utf-8")).headings
    assert headings == [tmp_path.name, "Settings", "Curves"]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# In each frame: the right edge of all elements but those in boxes that scroll.
MEASURE = """<script>parent.document.title += " " + Math.max(...[...document.querySelectorAll("*")]
.filter(e => !e.parentElement || !e.parentElement.closest(".scroll,figure,pre"))
.map(e => e.getBoundingClientRect().right))</script>"""


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: chromium")
@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_report_fits_the_width_of_a_phone(language, tmp_path):
    frames = []
    for number, case in enumerate(cases()):
        run = tmp_path / str(number)
        run.mkdir()
        _, page = write_task_report(run, *case, language=language, command=f"python --train=/{'a' * 90}.csv")
        content = html.escape(page.read_text(encoding="utf-8").replace("</html>", f"{MEASURE}</html>"))
        frames.append(f'<iframe style="border:0;width:390px" srcdoc="{content}"></iframe>')
    (tmp_path / "frames.html").write_text(f"<title></title>{''.join(frames)}", encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [CHROMIUM, *options, f"--user-data-dir={tmp_path / 'browser'}", "--dump-dom"]
    page = subprocess.run([*command, (tmp_path / "frames.html").as_uri()], capture_output=True, text=True, timeout=120)
    edges = [float(edge) for edge in re.search("<title>(.*)</title>", page.stdout)[1].split()]
    assert len(edges) == len(frames) and max(edges) <= 390, edges
