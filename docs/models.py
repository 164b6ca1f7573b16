"""The pages docs/models.md and docs/models.ko.md, from docs/models.json: released models that people use.

    python docs/models.py           # write the pages
    python docs/models.py --check   # load and use every model first, from the hub, and note the day
    python docs/models.py --check --only=klue/bert-base

`make models` is the second one. A model that cannot be reached keeps the day of its last check. Checking needs a
network and room for the files, about 30 GB for all; files already in the hub's cache are not downloaded again.
"""

import argparse
import datetime
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
LIST = DOCS / "models.json"
Model = Mapping[str, Any]

# Title in both languages, and the call that such a model promises: method, arguments, named arguments.
USES: Mapping[str, tuple[str, str, str, tuple[Any, ...], dict[str, Any]]] = {
    "pretrained": ("Encoders to fine-tune", "미세 조정할 인코더", "encode", (["a text"],), {}),
    "sentences": ("Vectors of sentences", "문장 벡터", "sentences", (["a text"],), {}),
    "reranker": ("Rerankers", "리랭커", "rank", ("a query", ["a text", "another"]), {}),
    "classifier": ("Classifiers", "분류기", "predict", (["a text"],), {}),
    "tagger": ("Taggers", "태거", "predict", (["a text"],), {"aggregation": "simple"}),
    "reader": ("Readers", "독해 모델", "predict", ([("a question", "a text")],), {}),
    "generation": ("Generation", "생성", "generate", (["a text"],), {"max_new": 20}),
    "translation": ("Translation", "번역", "translate", (["a text"],), {}),
}
LANGUAGES = {"en": ("English", "영어"), "ko": ("Korean", "한국어"), "multilingual": ("many", "다국어")}
TEXTS = (
    {
        "title": "Released models",
        "twin": "[한국어](models.ko.md)",
        "begin": (
            "This page lists {count} models of the hub that people use, each with its family, its tokenizer "
            "and what was checked.\n\nFor each, tests build a small *replica*: the settings of the released "
            "`config.json` with small sizes and random weights. Its outputs equal those of transformers to "
            "1e-5 (`tests/families/test_released_models.py`). *Loaded* is the day on which `make models` "
            "last loaded the released files and used them."
        ),
        "columns": ("model", "family", "language", "tokenizer", "head", "parameters", "loaded"),
        "million": "{} M",
        "end": (
            "Other models of these families load as well: `load` says what it cannot honour. A model that is "
            "missing here gets a line in `docs/models.json`."
        ),
    },
    {
        "title": "공개된 모델",
        "twin": "[English](models.md)",
        "begin": (
            "허브에서 많이 쓰는 모델 {count}개의 계열, 토크나이저, 확인한 것을 적은 표입니다.\n\n모델마다 "
            "테스트가 작은 *복제본*을 만듭니다. 공개된 `config.json`의 설정에 작은 크기와 임의의 가중치를 "
            "쓰며, 출력은 transformers와 1e-5까지 같습니다(`tests/families/test_released_models.py`). "
            "*불러옴*은 `make models`가 공개된 파일을 마지막으로 불러와 써 본 날입니다."
        ),
        "columns": ("모델", "계열", "언어", "토크나이저", "헤드", "파라미터", "불러옴"),
        "million": "{} M",
        "end": (
            "같은 계열의 다른 모델도 불러올 수 있습니다. 지킬 수 없는 설정이 있으면 `load`가 알려 줍니다. "
            "여기에 없는 모델은 `docs/models.json`에 한 줄로 더합니다."
        ),
    },
)


def read_list() -> list[dict[str, Any]]:
    """Return the entries of docs/models.json."""
    models: list[dict[str, Any]] = json.loads(LIST.read_text(encoding="utf-8"))
    return models


def write_list(models: Sequence[Model]) -> None:
    """Write docs/models.json, a line for each model."""
    lines = ",\n".join(f"  {json.dumps(model, ensure_ascii=False)}" for model in models)
    LIST.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def render(models: Sequence[Model], korean: bool) -> str:
    """Return the page in one language."""
    texts = TEXTS[korean]
    parts = [f"# {texts['title']}", texts["twin"], texts["begin"].format(count=len(models))]
    rule = "|---" * len(texts["columns"]) + "|"
    for use, (english, other, method, values, named) in USES.items():
        arguments = ", ".join([*map(repr, values), *(f"{name}={value!r}" for name, value in named.items())])
        call = f"{method}({arguments})".replace("'", '"')
        rows = [model for model in models if model["use"] == use]
        parts += [
            f"## {other if korean else english}",
            f'`load("{rows[0]["name"]}").{call}`',
            "\n".join([f"| {' | '.join(texts['columns'])} |", rule, *(_row(model, korean) for model in rows)]),
        ]
    return "\n\n".join([*parts, texts["end"]]) + "\n"


def _row(model: Model, korean: bool) -> str:
    config = model["config"]
    cells = [
        f"`{model['name']}`", f"`{config['model_type']}`", LANGUAGES[model["language"]][korean], model["tokenizer"],
        config["architectures"][0].partition("For")[2] or "–", TEXTS[korean]["million"].format(model["millions"]),
        model.get("loaded", "–"),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def check(model: Model) -> None:
    """Load a released model, and call what its use promises."""
    from bert_elmo_jax import load

    _, _, method, values, named = USES[model["use"]]
    getattr(load(model["name"]), method)(*values, **named)


def main() -> int:
    """Check models if asked to, and write the pages; the status is 1 if a model that was reached did not work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="load and use the models first")
    parser.add_argument("--only", default="", help="names that contain this")
    options = parser.parse_args()
    models, failed = read_list(), []
    for model in models if options.check else ():
        if options.only not in model["name"]:
            continue
        try:
            check(model)
        except OSError as error:  # no network, or not in the hub any more
            print(f"{model['name']}: not reached ({type(error).__name__})")
        except Exception as error:
            failed.append(model["name"])
            print(f"{model['name']}: FAILED: {error}")
        else:
            model["loaded"] = datetime.date.today().isoformat()
            print(f"{model['name']}: works")
        write_list(models)
    for korean in (False, True):
        (DOCS / f"models{'.ko' if korean else ''}.md").write_text(render(models, korean), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
