"""The tables of docs/results/speed.md and speed.ko.md, rendered from `bench.json` between two marks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ._results import PRECISIONS, Comparison, minor
from ._works import NAMES

BEGIN, END = "<!-- rendered from bench.json: do not edit -->", "<!-- end of the rendered part -->"


class Language(NamedTuple):
    """The words of a page in one language."""

    file: str
    works: Mapping[str, tuple[str, str]]  # name of a work -> heading, description
    columns: Sequence[str]
    machine: str
    terms: Mapping[str, str]  # English -> this language, in cases and peers
    compared: str
    measured: str
    nothing: str


ENGLISH = Language(
    "speed.md",
    {
        "step": (
            "A pretraining step of BERT-base",
            "8 rows of 128 tokens with 20 predictions each, dropout, clipping, AdamW.",
        ),
        "encode": ("Encoding with BERT-base", "Sentences of mixed length, from texts to vectors; both sides tokenise."),
        "encode_onnx": (
            "Encoding with BERT-base, beside ONNX Runtime",
            "The same sentences and sizes; in int8, both sides scale the rows of activations while they run.",
        ),
        "sentences_onnx": (
            "Vectors of sentences with a MiniLM-size model, beside sentence-transformers",
            "Its ONNX backend reads the folder that `experiments.export --to=onnx --int8` writes.",
        ),
        "one_text": ("One short text", "The same models, one text per call."),
        "deberta_step": (
            "A training step of DeBERTa-v3-base on masked words",
            "8 rows of 128 tokens with 20 predictions each, dropout, clipping, AdamW.",
        ),
        "deberta_encode": (
            "Encoding with DeBERTa-v3-base",
            "Sentences of mixed length, from texts to vectors; both sides tokenise.",
        ),
        "first_call": ("The first call", "From the start of the process: import, load, compile, encode one text."),
        "generate": (
            "Generation with GPT-2 small",
            "12 layers of 768, 50,257 pieces, random weights; greedy or by beam search, prompts of 32 pieces.",
        ),
        "finetune": (
            "Fine-tuning a MiniLM-size model",
            "6 layers of 384, batches of 32, sentences with the lengths of SST-2.",
        ),
        "tagger": (
            "A BiLSTM-CRF tagger with cached ELMo vectors",
            "The network of `configs/tagger.py`: 640 sentences of 4 to 60 words.",
        ),
        "awd_lstm": (
            "A training step of an AWD-LSTM",
            "ULMFiT's sizes: embeddings of 400, three layers of 1150, all five kinds of dropout, both penalties, "
            "carried state, clipping, Adam.",
        ),
        "elmo": ("ELMo", "From character ids to the mean of the layers, random weights."),
    },
    ("case", "precision", "JAX", "theirs, s", "ours, s", "ratio"),
    "machine",
    {},
    "Compared with **{peer}**:",
    "Measured {dates} on {processor}, {cores} cores, {memory} GiB, {instructions}; "
    "Python {python}; at least {turns} turns.",
    "There are no results yet. The commands above measure them.",
)  # fmt: skip
KOREAN = Language(
    "speed.ko.md",
    {
        "step": (
            "BERT-base의 사전 학습 스텝",
            "128토큰 행 8개, 행마다 예측 20개, 드롭아웃, 기울기 자르기, AdamW입니다.",
        ),
        "encode": ("BERT-base로 인코딩", "길이가 섞인 문장을 텍스트에서 벡터까지 처리하며, 양쪽 모두 토큰화합니다."),
        "encode_onnx": (
            "BERT-base로 인코딩, ONNX Runtime과 비교",
            "같은 문장과 크기입니다. int8에서는 양쪽 모두 실행 중에 활성값의 스케일을 행마다 정합니다.",
        ),
        "sentences_onnx": (
            "MiniLM 크기 모델의 문장 벡터, sentence-transformers와 비교",
            "상대의 ONNX 백엔드는 `experiments.export --to=onnx --int8`이 쓴 폴더를 읽습니다.",
        ),
        "one_text": ("짧은 텍스트 하나", "같은 모델에 한 번에 텍스트 하나를 넣습니다."),
        "deberta_step": (
            "DeBERTa-v3-base의 마스크 학습 한 스텝",
            "토큰 128개짜리 8행에 예측 20개씩, 드롭아웃, 클리핑, AdamW.",
        ),
        "deberta_encode": (
            "DeBERTa-v3-base로 인코딩",
            "길이가 섞인 문장을 텍스트에서 벡터까지 처리하며, 양쪽 모두 토큰화합니다.",
        ),
        "first_call": ("첫 호출", "프로세스 시작부터 임포트, 읽기, 컴파일, 텍스트 하나의 인코딩까지입니다."),
        "generate": (
            "GPT-2 small로 생성",
            "폭 768인 층 12개, 조각 50,257개, 무작위 가중치, 32조각짜리 프롬프트로 그리디 또는 빔 탐색을 합니다.",
        ),
        "finetune": ("MiniLM 크기 모델의 미세 조정", "폭 384인 층 6개, 배치 32, SST-2와 길이가 비슷한 문장입니다."),
        "tagger": (
            "캐시한 ELMo 벡터를 쓰는 BiLSTM-CRF 태거",
            "`configs/tagger.py`의 네트워크와 4~60단어 문장 640개입니다.",
        ),
        "awd_lstm": (
            "AWD-LSTM의 학습 스텝",
            "ULMFiT의 크기입니다. 폭 400인 임베딩, 폭 1150인 층 3개, 드롭아웃 다섯 가지, 페널티 두 가지, "
            "이어지는 상태, 기울기 자르기, Adam입니다.",
        ),
        "elmo": ("ELMo", "문자 id에서 층 평균까지, 무작위 가중치입니다."),
    },
    ("경우", "자료형", "JAX", "상대, 초", "이 프로젝트, 초", "비율"),
    "기계",
    {
        "transformers on PyTorch: SDPA, gathered predictions, fused AdamW":
            "PyTorch의 transformers: SDPA, 예측 위치의 로짓만 계산, fused AdamW",
        "transformers on PyTorch: sorted by length, SDPA, inference mode":
            "PyTorch의 transformers: 길이순 정렬, SDPA, inference mode",
        "transformers on PyTorch: DeBERTa's own attention, gathered predictions, fused AdamW":
            "PyTorch의 transformers: DeBERTa 자체 어텐션, 예측 위치의 로짓만 계산, fused AdamW",
        "transformers on PyTorch: sorted by length, DeBERTa's own attention, inference mode":
            "PyTorch의 transformers: 길이순 정렬, DeBERTa 자체 어텐션, inference mode",
        "sentence-transformers with ONNX Runtime": "ONNX Runtime을 쓰는 sentence-transformers",
        "ONNX Runtime: fused layers, sorted by length": "ONNX Runtime: 융합한 층, 길이순 정렬",
        "transformers on PyTorch: AutoModel, SDPA, inference mode":
            "PyTorch의 transformers: AutoModel, SDPA, inference mode",
        "transformers' Trainer: grouped by length, SDPA, fused AdamW":
            "transformers의 Trainer: 길이별 묶음, SDPA, fused AdamW",
        "the same network in PyTorch: packed sequences, vectorised CRF":
            "PyTorch로 쓴 같은 네트워크: packed sequence, 벡터화한 CRF",
        "fastai's AWD-LSTM on PyTorch, fused AdamW": "PyTorch의 fastai AWD-LSTM, fused AdamW",
        "64 × 70 words, a vocabulary of 20,000": "64 × 70단어, 어휘 20,000개",
        "AllenNLP on PyTorch": "PyTorch의 AllenNLP",
        "transformers on PyTorch: generate with its cache, SDPA, inference mode":
            "PyTorch의 transformers: 캐시를 쓰는 generate, SDPA, inference mode",
        "one prompt, 64 new pieces": "프롬프트 하나, 새 조각 64개",
        "one prompt, 384 new pieces": "프롬프트 하나, 새 조각 384개",
        "32 prompts, 32 new pieces": "프롬프트 32개, 새 조각 32개",
        "4 prompts, 4 beams, 32 new pieces": "프롬프트 4개, 빔 4개, 새 조각 32개",
        "8 × 128 tokens, 20 predictions": "8 × 128 토큰, 예측 20개",
        "400 sentences": "문장 400개",
        "one sentence of 11 words, warm": "11단어 문장 하나, 컴파일 뒤",
        "first call in a new process": "새 프로세스의 첫 호출",
        "first call, compiled by an earlier process": "앞선 프로세스가 컴파일해 둔 첫 호출",
        "tenth call": "열 번째 호출",
        "an epoch of 2,048 sentences": "문장 2,048개 한 에포크",
        "training": "학습",
        "prediction with the probability of each tag": "태그마다의 확률도 함께 예측",
        "prediction": "예측",
        "one sentence of 20 words": "20단어짜리 한 문장",
        "32 × 20 words": "32 × 20단어",
        "forward and all gradients": "순방향과 모든 기울기",
        "forward": "순방향",
        "original": "원래 크기",
        "small": "작은 크기",
    },
    "비교 상대는 **{peer}**입니다.",
    "{dates}에 측정했습니다. {processor}, 코어 {cores}개, {memory} GiB, {instructions}, "
    "파이썬 {python}, {turns}번 이상 번갈아 실행.",
    "아직 결과가 없습니다. 위의 명령으로 측정합니다.",
)  # fmt: skip
LANGUAGES = (ENGLISH, KOREAN)


def render_pages(folder: Path, results: Sequence[Comparison]) -> list[Path]:
    """Write the tables into the pages of a folder, and return the pages."""
    pages = []
    for language in LANGUAGES:
        page = folder / language.file
        page.write_text(insert(page.read_text(encoding="utf-8"), render(results, language)), encoding="utf-8")
        pages.append(page)
    return pages


def insert(page: str, rendered: str) -> str:
    """Return a page with other text between the two marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"the page needs the lines {BEGIN} and {END}, once each and in this order")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    return f"{before}{BEGIN}\n\n{rendered}\n\n{END}{after}"


def render(results: Sequence[Comparison], language: Language) -> str:
    """Return the tables of all works that have results, with their machines."""
    if not results:
        return language.nothing
    machines = list(dict.fromkeys(map(describe_place, results)))
    parts = ["\n".join(describe_places(results, machines, language))]
    for name in NAMES:
        work_results = sorted((one for one in results if one.work == name), key=lambda one: sort_key(one))
        if work_results:
            heading, description = language.works[name]
            parts += [f"## {heading}", description]
        for peer in dict.fromkeys((one.peer.name, one.peer.version) for one in work_results):
            rows = [one for one in work_results if (one.peer.name, one.peer.version) == peer]
            compared = language.compared.format(peer=f"{translate(peer[0], language)} ({peer[1]})")
            parts += [compared, draw_table(rows, machines, language)]
    return "\n\n".join(parts)


def draw_table(results: Sequence[Comparison], machines: Sequence[tuple[str, ...]], language: Language) -> str:
    """Return a table of comparisons with one peer; it names the machine if there are several."""
    columns = [*language.columns, *([language.machine] if len(machines) > 1 else [])]
    rows = [columns, ["---"] * len(columns), *(draw_row(one, machines, language) for one in results)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def sort_key(one: Comparison) -> tuple[str, int, str]:
    """Return the order of rows: cases as they were measured, float32 before bfloat16, old JAX before new."""
    return one.case, PRECISIONS.index(one.precision), minor(one.versions["jax"])


def describe_place(one: Comparison) -> tuple[str, ...]:
    """Return what two results share if they are of one machine and one Python."""
    machine = one.machine
    named = ", ".join(machine.get("instructions", ())) or "-"
    return str(machine["processor"]), str(machine["cores"]), str(machine.get("memory_gib", "?")), named


def describe_places(
    results: Sequence[Comparison], machines: Sequence[tuple[str, ...]], language: Language
) -> Iterator[str]:
    """Yield a sentence for each machine."""
    for place in machines:
        place_results = [one for one in results if describe_place(one) == place]
        dates = sorted({one.date for one in place_results})
        text = language.measured.format(
            dates=" – ".join(dict.fromkeys((dates[0], dates[-1]))), processor=place[0], cores=place[1], memory=place[2],
            instructions=place[3], python=", ".join(sorted({minor(one.versions["python"]) for one in place_results})),
            turns=min(len(one.ours) for one in place_results),
        )  # fmt: skip
        yield f"- {letter(machines, place)}: {text}" if len(machines) > 1 else text


def letter(machines: Sequence[tuple[str, ...]], place: tuple[str, ...]) -> str:
    """Return the letter of a machine."""
    return chr(ord("A") + machines.index(place))


def draw_row(one: Comparison, machines: Sequence[tuple[str, ...]], language: Language) -> list[str]:
    """Return the cells of a comparison."""
    ours, theirs = one.medians
    precision = one.precision if one.precision == one.peer.precision else f"{one.precision} / {one.peer.precision}"
    cells = [translate(one.case, language), precision, one.versions["jax"], show(theirs), show(ours)]
    return [*cells, f"**{one.ratio:.2f}**", *([letter(machines, describe_place(one))] if len(machines) > 1 else [])]


def translate(text: str, language: Language) -> str:
    """Return a text with its terms in a language, the longest first."""
    if not language.terms:
        return text
    terms = sorted(language.terms, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, terms)), lambda match: language.terms[match[0]], text)


def show(seconds: float) -> str:
    """Return seconds with three significant digits.

    >>> show(2.3512), show(0.01234), show(81.33)
    ('2.35', '0.0123', '81.3')
    """
    return f"{seconds:#.3g}".rstrip(".")
