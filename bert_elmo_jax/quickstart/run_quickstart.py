"""The quickstart: a pretrained BERT and ELMo, three tasks with and without them, and a page about it all."""

import contextlib
import html
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from bert_elmo_jax import load, train
from bert_elmo_jax.analysis.layer_weights import weight_results
from bert_elmo_jax.analysis.toy_senses import toy_senses
from bert_elmo_jax.files import read_json, write_text
from bert_elmo_jax.inference.kept_vectors import VectorFolder
from bert_elmo_jax.inference.toy_worlds import load_worlds
from bert_elmo_jax.quickstart.compare_seeds import compare_seeds
from bert_elmo_jax.report.figures import Figure, Lines
from bert_elmo_jax.report.page import draw_code, draw_figures, draw_table, write_page
from bert_elmo_jax.report.show import show
from bert_elmo_jax.runs.finetuning import RESULT
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.runs.run_report import draw_metric
from bert_elmo_jax.runs.start_run import Call, cache_compiled, may_have_accelerator, say, sum_costs
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.runs.task_report import draw_attention
from bert_elmo_jax.sweeps.folders import Folders
from bert_elmo_jax.sweeps.points import File, Point
from bert_elmo_jax.sweeps.runners import Processes
from bert_elmo_jax.sweeps.schedule import Progress
from bert_elmo_jax.toyworld import ToyWorld, question_examples, sense_examples, topic_examples
from bert_elmo_jax.toyworld.tasks import write_examples
from bert_elmo_jax.train.metrics import read_metrics

COLUMNS = ("BERT from scratch", "BERT", "network without ELMo", "network with ELMo")
# Each task's flags for `finetune`, the ending of its files, and the config of its network.
TASKS: Mapping[str, tuple[dict[str, str], str, str]] = {
    "senses": ({"task": "tags", "text": "0", "label": "1"}, "conll", "tagger"),
    "topics": ({"task": "classification", "text": "text", "label": "label"}, "tsv", "bcn"),
    "questions": ({"task": "squad"}, "json", "bidaf"),
}
SHORT = 30  # words of the longest passage: the longest one decides how long all take
PERCENT = {"questions": 1}  # the official scorer returns percentages
TITLE = "BERT and ELMo in JAX: a quickstart"
ABOUT = """<p>A toy BERT and a toy ELMo, pretrained on a small generated language in English and Korean whose best
possible score is known, and what that is worth on three tasks.</p>
<p lang="ko">가능한 최고 점수가 정확히 알려진 작은 인공 언어(영어와 한국어)로 BERT와 ELMo를 사전 학습하고, 그것이
세 가지 과제에서 얼마나 도움이 되는지 보여 줍니다.</p>"""
LEARNED = ("What was learned", "알게 된 점")
KOREAN = {"senses": "의미", "topics": "주제", "questions": "질문"}
WORDS = {"bank": "en", "배": "ko"}
ROOT = Path(__file__).absolute().parents[2]
Lesson = tuple[str, str]  # a sentence, in English and Korean


@dataclass(frozen=True)
class Sizes:
    """The size of every part, as overrides of the configs; the default takes minutes."""

    bert: Mapping[str, Any] = field(default_factory=dict)
    elmo: Mapping[str, Any] = field(default_factory=dict)
    head: Mapping[str, Any] = field(default_factory=lambda: {"epochs": 4})
    network: Mapping[str, Any] = field(default_factory=lambda: {
        "epochs": 6, "lstm_size": 50, "unknown": "unk", "dropout": 0.1, "mix_dropout": 0.1,
        "optimizer.learning_rate": 5e-3,
    })  # fmt: skip
    examples: int = 500  # for training, per task and language; half as many passages, and half as many for evaluation
    seeds: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True)
class Part:
    """A run, the seconds it usually takes on one core, and its place in the table of transfer."""

    point: Point
    seconds: int
    task: str = ""
    column: str = ""


CALLS: Mapping[str, Call] = {"pretrain": pretrain, "finetune": compare_seeds}


@dataclass(frozen=True)
class QuickstartFolders(Folders):
    """The folders of the quickstart, named like their runs; a task's seeds train side by side."""

    calls: Mapping[str, Call] = field(default_factory=lambda: CALLS)

    def run(self, point: Point) -> Path:
        """Return the run directory of a part."""
        return self.workdir / point.name

    def cache(self, point: Point) -> Path | None:
        """Return None: each part computes the vectors of its texts itself."""
        return None


def list_parts(sizes: Sizes) -> list[Part]:
    """Return all parts, needs first."""
    bert = Point("bert", "pretrain", "bert:quickstart", sizes.bert)
    elmo = Point("elmo", "pretrain", "elmo:quickstart", sizes.elmo)
    parts = [Part(bert, 80), Part(elmo, 86)]
    seeds = [str(seed) for seed in sizes.seeds]
    fixed = {**sizes.network, "patience": 0, "eval_every": 100_000}
    for task, (flags, ending, network) in TASKS.items():
        files = {part: File(f"{task}/{part}.{ending}", made=True) for part in ("train", "dev")}
        head = "finetune:quickstart"
        rows: list[tuple[str, str, dict[str, Point], Mapping[str, Any], int]] = [
            ("bert_from_scratch", head, {"tokenizer": bert, "preset": bert}, sizes.head, 15),
            ("bert", head, {"init": bert}, sizes.head, 15),
            ("network", network, {}, fixed, 33),
            ("network_elmo", network, {"encoder": elmo}, fixed, 48),
        ]
        for column, (name, config, begin, size, seconds) in zip(COLUMNS, rows):
            settings = {**flags, **files, **begin, **size, "seeds": seeds}
            parts.append(Part(Point(f"{task}_{name}", "finetune", config, settings), seconds, task, column))
    return parts


def write_tasks(folder: Path, worlds: Sequence[ToyWorld], examples: int) -> None:
    """Write `examples` training examples per task and language (half as many passages), and half as many for dev."""
    tags: set[str] = set()
    for part, count in (("train", examples), ("dev", max(2, examples // 2))):
        sentences = [s for world in worlds for s in islice(sense_examples(world, part), count)]
        tags |= {tag for s in sentences for tag in s.tags} if part == "train" else set()
        topics = [row for world in worlds for row in islice(topic_examples(world, part), count)]
        questions: list[dict] = []
        for world in worlds:
            short = (one for one in question_examples(world, part) if len(one["context"].split()) <= SHORT)
            questions += islice(short, count // 2)
        # A sense that does not occur in so few training sentences cannot be learned.
        learnable = [s for s in sentences if tags.issuperset(s.tags)]
        for task, rows in (("senses", learnable), ("topics", topics), ("questions", questions)):
            write_examples(folder / task / f"{part}.{TASKS[task][1]}", task, rows)


class Ceilings(NamedTuple):
    """The scores of a run next to the best possible ones, as functions of the run, its config and its corpus."""

    masked: Callable[[Path, ConfigDict, Path], Any]  # of the BERT
    stream: Callable[[Path, ConfigDict, Path], Any]  # of the ELMo


def write_quickstart_report(
    folders: QuickstartFolders, parts: Sequence[Part], worlds: Sequence[ToyWorld], ceilings: Ceilings
) -> Path:
    """Write `report.html` from the run directories of the parts."""
    score_lesson, scores = show_scores(folders.workdir, ceilings)
    gained, transfer = show_transfer(folders, parts)
    read, senses = show_senses(folders.workdir, worlds)
    sections = [
        ("", ABOUT + list_lessons([score_lesson, gained, read])),
        ("How well the models know the language · 언어를 얼마나 배웠나", scores),
        ("How much pretraining helps · 사전 학습의 효과", transfer),
        ("Senses of a word, layer by layer · 층별로 본 단어의 의미", senses),
        ("Which layers of the ELMo the tasks use · 과제가 쓰는 ELMo의 층", show_weights(folders.workdir, parts)),
        ("Where the BERT looks when it is asked · 질문을 받은 BERT가 보는 곳", show_attention(folders, parts)),
        ("The command of each part · 각 부분의 명령", show_commands(folders, parts)),
    ]
    return write_page(folders.workdir / "report.html", TITLE, sections, "figure{max-width:26rem}")


def list_lessons(learned: Sequence[Lesson]) -> str:
    """Return the lessons and links to the guides, in English and Korean; built pages of the site come first."""
    parts = []
    for language, heading, guides, lessons in zip(("en", "ko"), LEARNED, ("Guides", "안내서"), zip(*learned)):
        links = []
        for page in sorted((ROOT / "docs" / "guides").glob("*.md")):
            if page.name.endswith(".ko.md") == (language == "ko"):
                site = ROOT / "site" / "guides" / f"{page.stem}.html"
                title = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
                links.append(f'<a href="{(site if site.is_file() else page).as_uri()}">{html.escape(title)}</a>')
        items = "".join(f"<li>{html.escape(lesson)}</li>" for lesson in lessons)
        more = f"<p>{guides}: {' · '.join(links)}</p>" if links else ""
        parts.append(f'<div lang="{language}"><h2>{heading}</h2><ol>{items}</ol>{more}</div>')
    return "".join(parts)


def show_transfer(folders: QuickstartFolders, parts: Sequence[Part]) -> tuple[Lesson, str]:
    """Return what pretraining adds, and a table with a line per task: means and standard deviations over the seeds."""
    rows, gains, count = [], [], 0
    for task in TASKS:
        cells, means, score = [], [], ""
        for part in (part for part in parts if part.task == task):
            result = read_json(folders.run(part.point) / RESULT)
            score = result["score"]
            values = [PERCENT.get(task, 100) * one[score] for one in result["seeds"].values()]
            count = len(values)
            means.append(statistics.mean(values))
            cells.append(f"{means[-1]:.1f}" + (f" ± {statistics.stdev(values):.1f}" if count > 1 else ""))
        rows.append([task, score, *cells])
        gains.append((task, means[1] - means[0], means[3] - means[2]))
    bert, elmo = (", ".join(f"{gain[n]:+.1f} ({gain[0]})" for gain in gains) for n in (1, 2))
    bert_ko, elmo_ko = (", ".join(f"{KOREAN[gain[0]]} {gain[n]:+.1f}점" for gain in gains) for n in (1, 2))
    lesson = (
        f"Compared with the same model from scratch, the pretrained BERT scores {bert} points; "
        f"the vectors of the ELMo change the score of a task's network by {elmo} points.",
        f"처음부터 학습한 같은 모델과 비교한 사전 학습 BERT의 점수 차이는 {bert_ko}이고, "
        f"과제 네트워크에 ELMo의 벡터를 더했을 때의 차이는 {elmo_ko}입니다.",
    )
    about = f"Percent; {f'mean ± standard deviation of {count} seeds' if count > 1 else 'one seed'}."
    return lesson, f"<p>{about}</p>" + draw_table(["task", "score", *COLUMNS], rows)


def show_commands(folders: QuickstartFolders, parts: Sequence[Part]) -> str:
    """Return the command of each part and the seconds it took."""
    commands = ((part.point, sum_costs(folders.run(part.point))) for part in parts)
    lines = "\n".join(f"# {seconds:.0f} seconds\n{folders.command(point)}" for point, seconds in commands)
    about = (
        "Each command makes one part, one seed after the other. Here the seeds were trained side by side, "
        "which is faster and gives the same result except for rounding. Any field of a config can be changed."
    )
    return f"<p>{about}</p>{draw_code(lines)}"


def show_scores(workdir: Path, ceilings: Ceilings) -> tuple[Lesson, str]:
    """Compare held-out scores with the best possible, and show the curves of both pretrainings."""
    bert, elmo = workdir / "bert", workdir / "elmo"
    masked = ceilings.masked(bert, ConfigDict(read_json(bert / "run.json")), bert / "toyworld").lines
    stream = ceilings.stream(elmo, ConfigDict(read_json(elmo / "run.json")), elmo / "toyworld").lines
    rows = []
    for line in masked:
        predicted, comma, language = line.name.partition(", ")
        share = f"{line.model / line.best:.0%} of it"
        rows.append([f"BERT: {predicted} right{comma}{language}", f"{line.model:.3f}", f"{line.best:.3f}", share])
    for one in stream:
        above = f"{one.mean / one.true - 1:.0%} above"
        rows.append([f"ELMo: perplexity, {one.name}", f"{one.mean:.2f}", f"{one.true:.2f}", above])
    words, total = next(line for line in masked if line.name == "masked words"), stream[-1]
    lesson = (
        f"On held-out text, the BERT gets {words.model:.1%} of the masked words right (best "
        f"possible: {words.best:.1%}), and the ELMo has a perplexity of {total.mean:.2f} (lowest: {total.true:.2f}).",
        f"처음 보는 텍스트에서 BERT는 가린 단어의 {words.model:.1%}를 맞히고(최고 {words.best:.1%} 가능), "
        f"ELMo의 퍼플렉서티는 {total.mean:.2f}입니다(최저 {total.true:.2f} 가능).",
    )
    figures = [
        compare_with_best(bert, "held_out/mlm_accuracy", "BERT: masked words right", "share, from 0 to 1", words.best),
        compare_with_best(elmo, "held_out/perplexity", "ELMo: perplexity of a word", "perplexity", total.true),
    ]
    curves = [
        draw_metric(f"{name}: loss", [(float(line["step"]), line["loss"]) for line in read_metrics(run)])
        for name, run in (("BERT", bert), ("ELMo", elmo))
    ]
    return lesson, draw_table(["on held-out text", "reached", "best possible", ""], rows) + draw_figures(
        [*figures, *curves]
    )


def compare_with_best(run: Path, figure: str, title: str, unit: str, best: float) -> Lines:
    """Plot a held-out figure over the steps, and the best that is possible."""
    points = [(line["step"], line[figure]) for line in read_metrics(run) if figure in line]
    ends = [(points[0][0], best), (points[-1][0], best)]
    note = "Each dot is a measurement on held-out text; the level line is the best that any model could reach."
    return Lines(title, "step", unit, {"held-out text": points, "best possible": ends}, note=note)


def show_senses(workdir: Path, worlds: Sequence[ToyWorld]) -> tuple[Lesson, str]:
    """Show how well each layer separates the senses of a word; some of the clouds also go to `senses.svg`."""
    sources: dict[str, Any] = {"BERT": load(workdir / "bert"), "ELMo": load(workdir / "elmo")}
    world_of = {world.language: world for world in worlds}
    words = {word: world_of[language] for word, language in WORDS.items() if language in world_of}
    results, figures = toy_senses(sources, VectorFolder(workdir / "vectors"), words=words)
    about = (
        "How often a linear probe tells the sense of a word from its vector, in percent. The ideal reader knows every "
        "probability of this language and reads the sentence alone. Each dot is an occurrence of the word that the "
        "probe was not fitted on: across is the direction that the probe uses, up the largest other difference."
    )
    layers = sorted({result.layer for result in results if result.layer})
    rows = []
    for word, world in words.items():
        percents = {(r.encoder, r.layer): r.percent for r in results if r.task == f"{word} ({world.language}), probe"}
        ends = [percents["chance", ""], percents["ideal reader", ""]]
        rows += [[word, name, *(percents.get((name, layer), "") for layer in layers), *ends] for name in sources]
    first, *_, last = words
    elmo = [figure for figure in figures if figure.title.startswith(f"{last}: ELMo")]
    bert = [figure for figure in figures if figure.title.startswith(f"{first}: BERT")]
    write_text(workdir / "senses.svg", show(elmo[0], elmo[-1], bert[-1]).document)
    names = ["word", "encoder", *(f"layer {layer}" for layer in layers), "chance", "ideal reader"]
    probed, shown = [result for result in results if result.task.endswith("probe")], ", ".join(words)
    top = max((result.layer for result in probed if result.encoder == "BERT"), key=int)
    start, end, chance = (
        statistics.mean(result.score for result in probed if (result.encoder, result.layer) == place)
        for place in (("BERT", "0"), ("BERT", top), ("chance", ""))
    )
    lesson = (
        f"From layer 0 of the BERT, which sees no context, a linear probe tells the sense of a word ({shown}) in "
        f"{start:.0%} of the cases, from its last layer in {end:.0%}; guessing gets {chance:.0%}.",
        f"선형 프로브가 단어({shown})의 의미를 맞히는 비율은 문맥을 보지 않는 BERT 0층에서 {start:.0%}, 마지막 층에서 "
        f"{end:.0%}이고, 무작위로 고르면 {chance:.0%}입니다.",
    )
    return lesson, f"<p>{about}</p>" + draw_table(names, rows) + draw_figures(figures)


def show_weights(workdir: Path, parts: Sequence[Part]) -> str:
    """Show the layer weights that each network with ELMo has learned."""
    figures: list[Figure] = []
    for part in (part for part in parts if part.column == COLUMNS[-1]):
        figures += weight_results(load(workdir / part.point.name).params, part.task)[1]
    return draw_figures(figures)


def show_attention(folders: QuickstartFolders, parts: Sequence[Part]) -> str:
    """Show the attention over a question and its answer, in each language."""
    point = next(part.point for part in parts if part.task == "questions" and part.column == COLUMNS[1])
    model: Any = load(folders.run(point))
    questions = read_data(folders.config(point)).dev
    shown = []
    for example in (questions[0], questions[-1]):
        answer = model.predict([(example.text, example.context)])[0]
        shown.append(f"<h3>{html.escape(f'{example.text} — {answer}')}</h3>{draw_attention(model, example)}")
    return "".join(shown)


def run_quickstart(workdir: Path, ceilings: Ceilings, sizes: Sizes | None = None, jobs: int | None = None) -> int:
    """Run every part that is not done, by default two at a time on two cores; write the page; return the status."""
    jobs = jobs or (1 if may_have_accelerator() or (os.cpu_count() or 1) < 2 else 2)
    sizes = sizes or Sizes()
    parts, folders = list_parts(sizes), QuickstartFolders(workdir)
    worlds = [*load_worlds(parts[0].point.resolved.to_dict()).values()]
    with train.only_process(workdir):
        where = f"two at a time on {os.cpu_count()} cores" if jobs > 1 else "one after the other on this machine"
        say(f"{workdir}: {len(parts)} parts, {where}; {workdir / 'report.html'} will show them")
        write_tasks(workdir / "tasks", worlds, sizes.examples)
        usual = {part.point.identity: part.seconds for part in parts}
        runner = Processes(jobs, cache=workdir / "compiled")
        progress = Progress(folders, jobs, lambda point: usual[point.identity])
        # The longest first, so that none is left alone at the end.
        points = [part.point for part in sorted(parts, key=lambda part: part.seconds, reverse=True)]
        with contextlib.closing(runner):
            state = progress.run(points, runner, 0, progress.changed)
        if state.stopping:
            say("stopped; the same command continues")
            return train.STOPPED
        if state.failed:
            return 1
        say("the report")
        cache_compiled(workdir / "compiled")
        say(f"{write_quickstart_report(folders, parts, worlds, ceilings)}: open it in a browser")
    return 0
