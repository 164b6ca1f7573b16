"""The quickstart's page: what was learned, what it is worth, and how each part was made; one file, no network."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from bert_elmo_jax.quickstart.models import learned, looks, senses, weights
from bert_elmo_jax.quickstart.parts import COLUMNS, RESULT, TASKS, Part
from bert_elmo_jax.report.page import draw_code, draw_table, write_page
from bert_elmo_jax.toyworld import ToyWorld

PER_CENT = {"questions": 1}  # the official scorer's figures are per cent already
TITLE = "BERT and ELMo in JAX: a quickstart"
ABOUT = """<p>A toy BERT and a toy ELMo, pretrained on a small generated language in English and Korean of which the
best possible score is known, and what that is worth on three tasks.</p>
<p lang="ko">가능한 최고 점수가 정확히 알려진 작은 인공 언어(영어와 한국어)로 BERT와 ELMo를 사전 학습하고, 그것이
세 가지 과제에서 얼마나 도움이 되는지 보여 줍니다.</p>"""


def write_quickstart_report(
    workdir: Path, parts: Sequence[Part], worlds: Sequence[ToyWorld], times: Mapping[str, float]
) -> Path:
    """Write `report.html` from what the parts have left in the run directory."""
    sections = [
        ("What was learned of the language", learned(workdir)),
        ("What it is worth", transfer_table(workdir, parts)),
        ("Senses of a word, layer by layer", senses(workdir, worlds)),
        ("Which layers of the ELMo the tasks took", weights(workdir, parts)),
        ("Where the BERT looks, when it is asked", looks(workdir, parts)),
        ("How each part was made", commands(parts, times)),
    ]
    return write_page(workdir / "report.html", TITLE, [("", ABOUT), *sections], "figure{max-width:26rem}")


def transfer_table(workdir: Path, parts: Sequence[Part]) -> str:
    """A line for each task: means over the seeds, and how far they lie apart."""
    rows, count = [], 0
    for task in TASKS:
        cells, score = [], ""
        for part in (part for part in parts if part.task == task):
            result = json.loads((workdir / part.name / RESULT).read_text(encoding="utf-8"))
            score = result["score"]
            values = [PER_CENT.get(task, 100) * one[score] for one in result["seeds"].values()]
            count = len(values)
            apart = f" ± {statistics.stdev(values):.1f}" if count > 1 else ""
            cells.append(f"{statistics.mean(values):.1f}{apart}")
        rows.append([task, score, *cells])
    about = f"Per cent; {f'mean ± standard deviation of {count} seeds' if count > 1 else 'one seed'}."
    return f"<p>{about}</p>" + draw_table(["task", "score", *COLUMNS], rows)


def commands(parts: Sequence[Part], times: Mapping[str, float]) -> str:
    """The command of each part and the seconds it took; here all seeds of a part were trained side by side."""
    lines = "\n".join(f"# {times.get(part.name, 0):.0f} seconds\n{part.command}" for part in parts)
    about = (
        "Each of these makes its part by itself, one seed after the other; here the seeds were trained side by side, "
        "which is quicker and the same to rounding. Any field of a config can be changed."
    )
    return f"<p>{about}</p>{draw_code(lines)}"
