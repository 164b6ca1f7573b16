"""The quickstart's page: scores, transfer, senses, attention, and the command of each part, in one file."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from bert_elmo_jax.files import read_json
from bert_elmo_jax.quickstart.models import show_attention, show_scores, show_senses, show_weights
from bert_elmo_jax.quickstart.parts import COLUMNS, TASKS, Part, QuickstartFolders
from bert_elmo_jax.report.page import draw_code, draw_table, write_page
from bert_elmo_jax.runs.finetuning import RESULT
from bert_elmo_jax.runs.start_cost import sum_costs
from bert_elmo_jax.toyworld import ToyWorld

PERCENT = {"questions": 1}  # the official scorer returns percentages
TITLE = "BERT and ELMo in JAX: a quickstart"
ABOUT = """<p>A toy BERT and a toy ELMo, pretrained on a small generated language in English and Korean whose best
possible score is known, and what that is worth on three tasks.</p>
<p lang="ko">가능한 최고 점수가 정확히 알려진 작은 인공 언어(영어와 한국어)로 BERT와 ELMo를 사전 학습하고, 그것이
세 가지 과제에서 얼마나 도움이 되는지 보여 줍니다.</p>"""


def write_quickstart_report(folders: QuickstartFolders, parts: Sequence[Part], worlds: Sequence[ToyWorld]) -> Path:
    """Write `report.html` from the run directories of the parts."""
    sections = [
        ("How well the models know the language", show_scores(folders.workdir)),
        ("How much pretraining helps", show_transfer(folders, parts)),
        ("Senses of a word, layer by layer", show_senses(folders.workdir, worlds)),
        ("Which layers of the ELMo the tasks use", show_weights(folders.workdir, parts)),
        ("Where the BERT looks when it is asked", show_attention(folders, parts)),
        ("The command of each part", show_commands(folders, parts)),
    ]
    return write_page(folders.workdir / "report.html", TITLE, [("", ABOUT), *sections], "figure{max-width:26rem}")


def show_transfer(folders: QuickstartFolders, parts: Sequence[Part]) -> str:
    """Return a table with a line per task: means over the seeds, with their standard deviations."""
    rows, count = [], 0
    for task in TASKS:
        cells, score = [], ""
        for part in (part for part in parts if part.task == task):
            result = read_json(folders.run(part.point) / RESULT)
            score = result["score"]
            values = [PERCENT.get(task, 100) * one[score] for one in result["seeds"].values()]
            count = len(values)
            apart = f" ± {statistics.stdev(values):.1f}" if count > 1 else ""
            cells.append(f"{statistics.mean(values):.1f}{apart}")
        rows.append([task, score, *cells])
    about = f"Percent; {f'mean ± standard deviation of {count} seeds' if count > 1 else 'one seed'}."
    return f"<p>{about}</p>" + draw_table(["task", "score", *COLUMNS], rows)


def show_commands(folders: QuickstartFolders, parts: Sequence[Part]) -> str:
    """Return the command of each part and the seconds it took."""
    commands = ((part.point, sum_costs(folders.run(part.point))) for part in parts)
    lines = "\n".join(f"# {seconds:.0f} seconds\n{folders.command(point)}" for point, seconds in commands)
    about = (
        "Each command makes one part, one seed after the other. Here the seeds were trained side by side, "
        "which is faster and gives the same result except for rounding. Any field of a config can be changed."
    )
    return f"<p>{about}</p>{draw_code(lines)}"
