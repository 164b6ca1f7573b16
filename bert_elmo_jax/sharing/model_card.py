"""The model card of a folder, a README.md for the hub, from the files of the run that made it."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bert_elmo_jax.files import read_json
from bert_elmo_jax.report.language import Language
from bert_elmo_jax.runs.start_run import read_costs, sum_costs
from bert_elmo_jax.weights.hub import NAME, hub_cache

PACKAGE = "git+https://github.com/OWNER/bert_elmo_jax"  # where pip finds it
Say = Callable[[str, str], str]  # a sentence in English and in Korean -> the one of the card's language
PIPELINES = {
    "classification": "text-classification", "regression": "text-classification", "tags": "token-classification",
    "questions": "question-answering", "sentences": "sentence-similarity", "choice": "multiple-choice",
    "rank": "text-ranking",
}  # fmt: skip


class Card(NamedTuple):
    """The facts of a card; an unknown one is empty, and the card says so."""

    name: str
    called: str  # "a BERT"
    kind: str = ""  # of its task
    labels: tuple[str, ...] = ()
    parameters: int = 0  # 0 if their number is not known
    longest: int | None = None  # pieces or words that it reads
    license: str = ""
    load: str = ""  # Python that loads it and uses it
    run: Mapping[str, Any] = {}
    result: Mapping[str, Any] = {}
    corpora: Mapping[str, Any] = {}
    costs: Mapping[str, Any] = {}


def read_run(folder: str | Path) -> dict[str, Any]:
    """Return the files of a run that a card reads, as fields of `Card`; those that are missing are empty.

    >>> read_run("tests/goldens/bert_tiny")
    {'run': {}, 'result': {}, 'corpora': {}, 'costs': {}}
    """
    folder = Path(folder)
    files = {"run": "run.json", "result": "result.json", "corpora": "data.json"}
    fields: dict[str, Any] = {field: read_json(folder / name, default={}) for field, name in files.items()}
    starts = read_costs(folder)  # a run that was resumed has several
    sums = {name: sum_costs(folder, name) for name in ("seconds", "processor")}
    fields["costs"] = {**starts[-1], **sums} if starts else {}
    return fields


def write_card(card: Card, language: Language = "en") -> str:
    """Return the text of README.md in a language.

    >>> text = write_card(Card("mine/reviews", "a BERT", load="model = load('mine/reviews')"))
    >>> "The licence is not stated" in text, "# mine/reviews" in text
    (True, True)
    """
    say: Say = (lambda english, korean: korean) if language == "ko" else (lambda english, korean: english)
    parts = [
        (say("Use", "사용법"), _use(card, say)),
        (say("Scores", "점수"), _scores(card, say)),
        (say("Data", "데이터"), _data(card, say)),
        (say("Training", "학습"), _training(card, say)),
        (say("Limits", "한계"), _limits(card, say)),
        (say("Licence", "라이선스"), _license(card, say)),
    ]
    return f"{_front(card, language)}\n# {card.name}\n\n{_opening(card, say)}\n" + "".join(
        f"\n## {title}\n\n{text.strip()}\n" for title, text in parts
    )


def _front(card: Card, language: Language) -> str:
    """Return the fields in front of the text, which the hub reads; only those that are known."""
    base = str(card.run.get("init") or card.run.get("encoder") or "")
    fields = {
        "license": card.license, "library_name": "bert_elmo_jax", "pipeline_tag": PIPELINES.get(card.kind, ""),
        "base_model": base if is_from_hub(base) else "",
    }  # fmt: skip
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items() if value]
    tags = ["jax", "bert_elmo_jax"]
    return "\n".join(["---", *lines, f"tags: {json.dumps(tags)}", "---", ""])


def _opening(card: Card, say: Say) -> str:
    size = f"{card.parameters:,}" if card.parameters else ""
    text = say(
        f"This is {card.called}{size and f' with {size} parameters'}, written by bert_elmo_jax.",
        f"bert_elmo_jax로 만든 모델입니다.{size and f' 파라미터 수는 {size}개입니다.'}",
    )
    if card.labels:
        text += " " + say("Its labels: ", "레이블: ") + ", ".join(f"`{label}`" for label in card.labels) + "."
    return text + "\n"


def _use(card: Card, say: Say) -> str:
    return f"```bash\npip install {PACKAGE}\n```\n\n```python\n{card.load.strip()}\n```\n"


def _scores(card: Card, say: Say) -> str:
    result = card.result
    parts = [part for part in ("dev", "test") if isinstance(result.get(part), Mapping)]
    if not parts:
        return say("No scores are known for this model.", "이 모델의 점수는 알려져 있지 않습니다.")
    rows = []
    for part in parts:
        compared = result.get("comparison", {}).get(part, {})
        interval = compared.get("interval")
        unknown = say("not known", "알 수 없음")
        shown = f"{interval[0]:.4f}–{interval[1]:.4f}" if interval else unknown
        for name, value in result[part].items():
            is_score = name == result.get("score")
            rows.append(
                [part, name, _number(value), shown if is_score else "", compared.get("size", "") if is_score else ""]
            )
        for baseline, figures in compared.get("baselines", {}).items():
            rows.append(
                [part, f"{result.get('score')} ({baseline})", _number(figures.get(result.get("score"))), "", ""]
            )
    head = [say("part", "데이터"), say("score", "점수"), say("value", "값"), say("95% interval", "95% 신뢰 구간")]
    table = _table([*head, say("size", "크기")], rows)
    if "test" not in parts:
        note = say(
            "The rows of dev chose the checkpoint, so these scores are a little too good.",
            "dev 데이터로 체크포인트를 골랐으므로 실제보다 조금 높은 점수입니다.",
        )
        table += f"\n{note}\n"
    return table


def _number(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, int | float) else ""


def _table(head: list[str], rows: list[list[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |\n" for row in lines)


def _data(card: Card, say: Say) -> str:
    """Return the tables of files and corpora, by name alone: folders of a machine are of no use to others."""
    files = card.result.get("data") or {}
    rows = [[part, f"`{hide_folders(str(x.get('file', '')))}`", str(x.get("fingerprint", ""))[:12]]
            for part, x in files.items()]  # fmt: skip
    rows += [
        [say("corpus", "말뭉치"), f"`{hide_folders(name)}`", str(x.get("fingerprint", ""))[:12]]
        for name, x in card.corpora.items()
    ]
    task = card.run.get("task")
    text = say(f"The task is `{task}`.", f"과제는 `{task}`입니다.") + "\n\n" if task else ""
    if not rows:
        return text + say("The training data is not known.", "학습 데이터는 알려져 있지 않습니다.")
    return text + _table([say("part", "데이터"), say("file", "파일"), "SHA-256"], rows)


def _training(card: Card, say: Say) -> str:
    run = {name: hide_folders(value) for name, value in card.run.items() if value not in (None, "", {}, [])}
    if not run:
        return say("How the model was trained is not known.", "학습 방법은 알려져 있지 않습니다.")
    text = f"```json\n{json.dumps(run, indent=1, ensure_ascii=False)}\n```\n"
    return f"{_cost(card, say)}\n\n{text}"


def hide_folders(value: Any) -> Any:
    r"""Return a field of a run, also one with fields of its own, without the folders and buckets of its files.

    >>> hide_folders({"data": "corpora/novels", "train": "~/a.csv,s3://acme/b.csv", "init": r"C:\Users\kim\base"})
    {'data': 'novels', 'train': 'a.csv,b.csv', 'init': 'base'}
    """
    if isinstance(value, Mapping):
        return {name: hide_folders(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [hide_folders(part) for part in value]
    if not isinstance(value, str):
        return value
    return ",".join(part if is_from_hub(part) else _last_part(part) for part in value.split(","))


def _last_part(name: str) -> str:
    path = re.sub(r"^\w+://[^/]*", "", name.strip())  # a bucket is private, too
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]


def is_from_hub(name: str) -> bool:
    """Return True for a name of the hub that was loaded from there on this machine.

    A run may come from another machine, where "runs/base" was a folder: the name alone does not tell.
    """
    snapshots = hub_cache() / f"models--{name.replace('/', '--')}" / "snapshots"
    return bool(NAME.fullmatch(name)) and "/" in name and not Path(name).exists() and snapshots.is_dir()


def _cost(card: Card, say: Say) -> str:
    costs = card.costs
    if "seconds" not in costs:
        return say("What the training cost is not known.", "학습 비용은 알려져 있지 않습니다.")
    minutes, device = costs["seconds"] / 60, costs.get("device") or say("a machine", "한 컴퓨터")
    processor = costs.get("processor")
    extra = "" if processor is None else say(f", {processor / 60:,.1f} minutes of processor time",
                                             f", 프로세서 시간 {processor / 60:,.1f}분")  # fmt: skip
    return say(f"Training took {minutes:,.1f} minutes on {device}{extra}.",
               f"학습 시간은 {device}에서 {minutes:,.1f}분입니다{extra}.")  # fmt: skip


def _limits(card: Card, say: Say) -> str:
    lines = []
    if card.longest:
        lines.append(
            say(f"Texts are read up to {card.longest} pieces.", f"텍스트는 조각 {card.longest}개까지 읽습니다.")
        )
    if card.result.get("data") or card.corpora:
        lines.append(
            say("The scores say nothing about texts of another kind than in the files above.",
                "위 파일과 종류가 다른 텍스트에서는 점수가 다를 수 있습니다.")
        )  # fmt: skip
    lines.append(
        say("Its bias and its errors on groups of people were not measured.",
            "편향이나 특정 집단에 대한 오류는 측정하지 않았습니다.")
    )  # fmt: skip
    return "".join(f"- {line}\n" for line in lines)


def _license(card: Card, say: Say) -> str:
    if card.license:
        return say(f"The licence is `{card.license}`.", f"라이선스는 `{card.license}`입니다.")
    return say(
        "The licence is not stated: ask the owner of the model before using it.",
        "라이선스가 명시되어 있지 않습니다. 사용하기 전에 모델 소유자에게 확인하세요.",
    )
