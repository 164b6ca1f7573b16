"""A page of one sentence that answers to mouse, touch and keyboard: attention, neighbours and guesses of each word.

One file without a network; its script is `word_page.js`. Knows no models.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import read_text
from bert_elmo_jax.report.language import Language
from bert_elmo_jax.report.page import write_page

TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "how": "Point at a word, tap it, or move with Tab and the arrow keys. A click keeps the word; Escape lets go.",
        "model": "model", "layer": "layer", "head": "head", "mean": "mean of all",
        "other": "한국어", "other_code": "ko",
        "attends": "Bars and numbers: how much “{}” attends to each word. The highest bar is the largest weight.",
        "no_maps": "This model has no attention. Its neighbours and guesses stand below.",
        "embeddings": "Layer 0 is the embeddings, which attend to nothing: choose a higher layer.",
        "near": "Nearest to “{}” in layer {}", "hidden": "If “{}” is hidden, the model guesses",
        "next": "Before “{}” comes, the model expects", "links": "Where “{}” looks most",
        "link": "{}: layer {}, head {}, weight {}",
    },
    "ko": {
        "how": "단어를 가리키거나 누르세요. Tab과 화살표 키도 됩니다. 클릭하면 고정되고 Esc를 누르면 풀립니다.",
        "model": "모델", "layer": "층", "head": "헤드", "mean": "모두의 평균",
        "other": "English", "other_code": "en",
        "attends": "막대와 숫자는 ‘{}’의 어텐션이 각 단어로 가는 정도입니다. 가장 높은 막대가 가장 큰 가중치입니다.",
        "no_maps": "이 모델에는 어텐션이 없습니다. 가까운 단어와 추측은 아래에 있습니다.",
        "embeddings": "0층은 임베딩이라 어텐션이 없습니다. 더 높은 층을 고르세요.",
        "near": "{1}층에서 ‘{0}’에 가장 가까운 단어", "hidden": "‘{}’을(를) 가리면 모델의 추측",
        "next": "‘{}’ 앞까지 읽은 모델의 예상", "links": "‘{}’의 어텐션이 가장 큰 곳",
        "link": "{}: {}층 헤드 {}, 가중치 {}",
    },
}  # fmt: skip
STYLE = """
#controls{display:flex;flex-wrap:wrap;gap:.6rem 1.2rem;align-items:center;margin:1rem 0}
select,button{font:inherit;color:var(--ink);background:var(--box);border:1px solid var(--soft);border-radius:.4rem;
padding:.3rem .6rem;min-height:2.4rem}
button{cursor:pointer}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
ol#sentence{display:flex;flex-wrap:wrap;gap:.5rem .3rem;list-style:none;padding:0;margin:1rem 0}
#sentence li{display:flex;flex-direction:column;align-items:center;max-width:100%}
.word{font-size:1.15rem;line-height:1.4;padding:.3rem .45rem;min-height:2.4rem;box-sizing:border-box;
border:1px solid transparent;display:inline-block}
span.word{color:var(--soft)}
button.word{border-color:var(--rule)}
button[aria-pressed=true]{border-color:var(--link);font-weight:700;box-shadow:inset 0 0 0 2px var(--link)}
.bar{height:4rem;width:1.6rem;display:flex;align-items:flex-end;border-bottom:2px solid var(--soft);margin-top:.2rem}
.bar div,.share div{background:#28a;width:100%}
.share div{height:.8rem}
.share{flex:1;max-width:14rem}
.number{font-variant-numeric:tabular-nums;font-size:.9rem;min-height:1.4rem}
#panels{display:flex;flex-wrap:wrap;gap:0 2.5rem}
#panels section{flex:1 1 19rem;min-width:0;max-width:34rem}
#panels h2{font-size:1.1rem;border:0;margin:1rem 0 .4rem}
#panels ol,#panels ul{padding-left:0;list-style:none;margin:0}
.guesses li{display:flex;gap:.7rem;align-items:center}
.guesses li span:first-child{flex:0 1 7rem}
.links li{margin:.3rem 0}
q{quotes:none}
"""


def write_word_page(
    path: str | Path, title: str, models: Mapping[str, Mapping[str, Any]], sentences: Sequence[Sequence[str]],
    *, word: int = 0, language: Language = "en", sentence_language: Language | None = None,
    further_sections: Sequence[tuple[str, str]] = (), style: str = "",
) -> Path:  # fmt: skip
    """Write the page of a sentence.

    `models` are readings by name, as `describe_reading` returns them; their neighbours name sentences by number. `word`
    is chosen first, `language` is the language of the page until the reader changes it, `sentence_language` the
    sentence's (the page's by default), and `further_sections` (a heading, HTML) follow.
    """
    used = sorted({n[1] for m in models.values() for layer in m["near"].values() for each in layer for n in each})
    number_of = {old: new for new, old in enumerate(used)}
    data = {
        "language": language, "of_sentence": sentence_language or language, "word": word, "texts": TEXTS,
        "sentences": [sentences[n] for n in used],
        "models": [{**m, "name": name, "near": _renumber(m["near"], number_of)} for name, m in models.items()],
    }  # fmt: skip
    stored = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    script = read_text(Path(__file__).with_name("word_page.js"))
    body = (
        '<p id="how"></p><noscript>This page needs JavaScript; it loads nothing. 이 페이지는 자바스크립트가 '
        '필요합니다.</noscript><div id="words" hidden><div id="controls"></div><ol id="sentence"></ol>'
        '<p id="note"></p><div id="panels" aria-live="polite"></div></div>'
        f'<script type="application/json" id="data">{stored}</script>'
    )
    sections = [("", body), *further_sections, ("", f"<script>{script}</script>")]
    return write_page(path, title, sections, STYLE + style, language)


def _renumber(near: Mapping[str, Any], number_of: Mapping[int, int]) -> dict[str, Any]:
    return {
        layer: [[[cosine, number_of[n], place] for cosine, n, place in each] for each in words]
        for layer, words in near.items()
    }
