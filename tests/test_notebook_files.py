"""The stored notebooks: outputs, settings, links, and Korean twins with the same content."""

import ast
import io
import re
import tokenize
from collections import Counter

import pytest

from .notebook_files import FILES, PAPER, PRETRAIN, ROOT, TWINS, code_of, read, settings_of

MOST = 200_000  # bytes of a notebook with its outputs
ELSEWHERE = re.compile(r"(?<![\w.:])/(home|root|Users|work|tmp|mnt|opt|usr|var|private|workspace)/")
HANGUL = re.compile("[가-힣]")
CODE = re.compile(r"`[^`\n]+`")


@pytest.mark.parametrize("name", FILES)
def test_outputs_are_stored(name):
    """Outputs come from one pass over all cells with the default settings, and the files are small."""
    notebook, text = read(name), FILES[name].read_text(encoding="utf-8")
    cells = code_of(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    for cell in cells:
        kinds = [kind for output in cell.outputs for kind in output.get("data", {})]
        last = cell.source.splitlines()
        kinds_by_call = {"show(": "image/svg+xml", "HTML(": "text/html"}
        for call, kind in kinds_by_call.items():
            if any(line.startswith(call) for line in last):
                assert kind in kinds, f"{name}: a cell has no picture or table: {last[-1]}"
    streams = {
        stream: "".join(output.text for cell in cells for output in cell.outputs if output.get("name") == stream)
        for stream in ("stderr", "stdout")
    }
    if name.startswith(PAPER):
        assert re.search(r"\b(\d+) of \1 done", streams["stdout"])
    else:
        steps = settings_of(notebook)["steps"] or 1_500
        assert f"{steps:,} steps" in streams["stderr"]
    assert "Warning" not in streams["stderr"]
    if name.startswith(PRETRAIN):
        assert re.search(r"resuming from step [\d,]+", streams["stderr"])
    assert len(text.encode()) < MOST
    assert not ELSEWHERE.search(text), f"{name} names a folder of some machine: {ELSEWHERE.search(text)[0]}"


@pytest.mark.parametrize("name", FILES)
def test_every_setting_is_used_and_nothing_else(name):
    notebook = read(name)
    code = "\n".join(cell.source for cell in code_of(notebook)[1:])
    assert set(re.findall(r'settings\["(\w+)"\]', code)) == settings_of(notebook).keys()


@pytest.mark.parametrize("name", FILES)
def test_links_lead_to_files(name):
    prose = "\n".join(cell.source for cell in read(name).cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", prose))
    colab = [link for link in links if link.startswith("https://colab.research.google.com/")]
    address = "https://colab.research.google.com/github/OWNER/bert_elmo_jax/blob/main/notebooks"
    assert colab == ["https://colab.research.google.com/assets/colab-badge.svg", f"{address}/{name}.ipynb"]
    assert len(links) > len(colab)
    for link in links:
        assert link in colab or (ROOT / "notebooks" / link).is_file(), f"{name} links to {link}, which is not there"


# Differences of the Korean code, except for its comments.
TRANSLATIONS = {
    "en": "ko",
    "same": "같음",
    "other": "다름",
    "word": "단어",
    "here": "여기와",
    "and here": "여기",
    "sense": "뜻",
    ", layer ": ", ",
    ": ": "층: ",
    " right": " 맞힘",
    "text": "텍스트",
    "right": "정답",
    "predicted": "예측",
    "sure": "확신",
    "says ": "확신 ",
    "run": "실행",
    "program": "프로그램",
    "begins with": "출발점",
    "none": "없음",
    "paper": "논문",
    "ours": "여기",
    ": beside ": ": 기준은 ",
    "row of the table": "표의 행",
    "points": "점",
    "row": "행",
    "column": "열",
    "seed": "시드",
    "score of each seed": "시드별 점수",
    "p against the reference": "기준에 대한 p",
    "seconds": "초",
    " runs, ": "개 실행, 프로세서 시간 ",
    " seconds of processor time; shared by cells: ": "초. 여러 칸이 함께 쓰는 것: ",
    "How often it is right": "실제로 맞힌 비율",
    "least sure first": "자신 없는 것부터",
    "Probability of each label": "레이블마다의 확률",
    "stopped, and saved: run this cell again, and it goes on": (
        "저장하고 멈추었습니다. 이 셀을 다시 실행하면 이어 갑니다"
    ),
}


class InEnglish(ast.NodeTransformer):
    """Translate the texts in Korean code back; in Korean the number of a layer comes before the word."""

    def __init__(self, english):
        self.english = english

    def visit_JoinedStr(self, node):
        self.generic_visit(node)
        parts = node.values
        if len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value == "층":
            node.values = [ast.Constant("layer "), parts[0]]
        return node

    def visit_Constant(self, node):
        return ast.Constant(self.english.get(node.value, node.value)) if isinstance(node.value, str) else node


def in_english(source, english):
    """Return the syntax tree of Korean code with all texts of `TRANSLATIONS` that the English code has in English."""
    texts = {korean: theirs for theirs, korean in TRANSLATIONS.items() if theirs in english and korean not in english}
    return ast.dump(InEnglish(texts).visit(ast.parse(source)))


def strings(source):
    return {n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def comments(source):
    return [t.string for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type == tokenize.COMMENT]


@pytest.mark.parametrize(("korean", "english"), TWINS.items())
def test_twins_have_the_same_code(korean, english):
    ours, theirs = code_of(read(korean)), code_of(read(english))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert in_english(a.source, strings(b.source)) == ast.dump(ast.parse(b.source)), a.source
        korean_comments, english_comments = comments(a.source), comments(b.source)
        assert len(korean_comments) == len(english_comments)
        assert all(map(HANGUL.search, korean_comments)), korean_comments


def test_code_that_differs_is_found():
    assert in_english('f"{n}층"', set()) == ast.dump(ast.parse('f"layer {n}"'))
    assert in_english('x = "같음"', {"same"}) == ast.dump(ast.parse('x = "same"'))
    assert in_english('x = "같음", 3', {"same"}) != ast.dump(ast.parse('x = "same", 2'))
    assert in_english('x = "다른 말"', {"same"}) != ast.dump(ast.parse('x = "same"'))


@pytest.mark.parametrize(("korean", "english"), TWINS.items())
def test_twins_say_the_same(korean, english):
    ours, theirs = read(korean).cells, read(english).cells
    assert [cell.cell_type for cell in ours] == [cell.cell_type for cell in theirs]
    for a, b in zip(ours, theirs):
        if a.cell_type == "markdown":
            assert HANGUL.search(a.source)
            assert re.findall("^#+ ", a.source, re.M) == re.findall("^#+ ", b.source, re.M)
            lost = Counter(CODE.findall(b.source)) - Counter(CODE.findall(a.source))
            assert not lost, f"the Korean lacks {sorted(lost)}: {a.source}"
            assert a.source.count("\n- ") == b.source.count("\n- ")
