"""Results of campaigns, one JSON line each, and their table in docs/results."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SURVIVED, LOST, UNCLEAR, MISSED, REFUSED = "survived", "lost", "unclear", "missed", "refused"
HEADINGS = {
    "en": ("kind", "what", "tried", "survived", "lost", "unclear message"),
    "ko": ("종류", "대상", "시도", "생존", "손실", "불명확한 메시지"),
}
KOREAN = {"kills": "강제 종료", "faults": "시스템 오류", "inputs": "손상된 입력", "machines": "여러 프로세스"}
BEGIN, END = "<!-- rendered by make campaign: do not edit -->", "<!-- end -->"


@dataclass(frozen=True)
class Record:
    """The result of one case.

    `outcome` is "survived" (the results equal an undisturbed run's, or a broken file was refused clearly), "lost",
    "unclear" (no result was lost, but the message names neither file nor reason), "missed" (the case did not happen:
    the program ended before, or the call was never made), or "refused" (the program refuses this work undisturbed).
    """

    kind: str
    name: str
    seed: int
    outcome: str
    detail: str = ""
    seconds: float = 0.0
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, int]:
        """The identity of the case; a second start of the campaign skips recorded keys."""
        return self.kind, self.name, self.seed


class Records:
    """The file of results; every result is on the disk before the next case begins."""

    def __init__(self, file: Path):
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_file() and (data := file.read_bytes()) and not data.endswith(b"\n"):
            file.write_bytes(data[: data.rfind(b"\n") + 1])  # the last line of a campaign that was killed
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        self._last = {record.key: record for record in (Record(**json.loads(line)) for line in lines)}

    @property
    def all(self) -> list[Record]:
        """The last result of every case, in the order of their first ones."""
        return list(self._last.values())

    def add(self, record: Record) -> None:
        """Append a result."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record), ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._last[record.key] = record

    @property
    def done(self) -> set[tuple[str, str, int]]:
        """The keys of all results."""
        return set(self._last)


def rows_of(records: Iterable[Record]) -> list[list[str]]:
    """Return a row of the table for each kind and target: numbers as text."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        if record.kind not in ("fuzz", *ATTACKS) and record.outcome != REFUSED:
            counts.setdefault((record.kind, record.name), Counter())[record.outcome] += 1
    rows = []
    for (kind, name), outcomes in sorted(counts.items()):
        tried = outcomes.total() - outcomes[MISSED]
        equal = tried - outcomes[LOST]
        rows.append([kind, name, *map(str, (tried, equal, outcomes[LOST], outcomes[UNCLEAR]))])
    return rows


def summed(rows: Sequence[Sequence[str]], names: Mapping[str, str] | None = None) -> list[list[str]]:
    """Return the rows added up by the kind and the group of their targets; `names` translates the kinds.

    >>> summed([["kills", "pretrain bert", "2", "2", "0", "0"], ["kills", "pretrain elmo", "3", "2", "1", "0"]])
    [['kills', '`pretrain`', '5', '4', '1', '0']]
    """
    added: dict[tuple[str, str], list[int]] = {}
    for kind, name, *numbers in rows:
        group = name if kind == "machines" else name.partition(":")[0] if kind == "faults" else name.split()[0]
        total = added.setdefault((kind, group), [0] * len(numbers))
        for place, number in enumerate(numbers):
            total[place] += int(number)
    names = names or {}
    return [[names.get(kind, kind), f"`{group}`", *map(str, numbers)] for (kind, group), numbers in added.items()]


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def fuzz_rows(records: Iterable[Record]) -> list[list[str]]:
    """Return a row for each reader: executions, per second, lines reached of all, files kept, crashes."""
    by_reader: dict[str, list[Record]] = {}
    for record in records:
        if record.kind == "fuzz":
            by_reader.setdefault(record.name, []).append(record)
    rows = []
    for name, reader_records in sorted(by_reader.items()):
        runs = sum(record.figures["executions"] for record in reader_records)
        seconds = sum(record.figures["seconds"] for record in reader_records)
        last = reader_records[-1].figures
        crashes = sum(record.figures["crashes"] for record in reader_records)
        lines = f"{last['lines']} / {last['of']}"
        rows.append(
            [f"`{name}`", f"{runs:,}", f"{runs / max(seconds, 0.1):,.0f}", lines, str(last["kept"]), str(crashes)]
        )
    return rows


FUZZ = {
    "en": ("reader", "executions", "per second", "lines reached", "inputs kept", "crashes"),
    "ko": ("읽는 코드", "실행", "초당", "도달한 줄", "남긴 입력", "크래시"),
}


ATTACKS = ("attacks", "commands")
ENDS: dict[str, tuple[str, ...]] = {  # the columns of the table of attacks, by how a case ended
    "executed": ("executed",), "outside": ("outside",), "silent": ("silent",), "hang": ("hang", "memory", "crash"),
    "clear": ("refused", "clear", "waits"), "harmless": ("read", "accepted"),
}  # fmt: skip
ATTACK_HEADINGS = {
    "en": ("attack", "tried", "executed", "read outside", "silent", "hang, memory, crash", "traceback", "unclear",
           "refused clearly", "harmless"),
    "ko": ("공격", "시도", "실행됨", "폴더 밖을 읽음", "조용히 틀림", "멈춤, 메모리, 크래시", "트레이스백", "불명확",
           "명확히 거부", "무해"),
}  # fmt: skip


def attack_rows(records: Iterable[Record]) -> list[list[str]]:
    """Return a row for each way to change a model, for each program, and for all of both kinds.

    >>> attack_rows([Record("attacks", "link bert_tiny", 0, SURVIVED, figures={"ended": "refused"})])[0]
    ['`link`', '1', '0', '0', '0', '0', '0', '0', '1', '0']
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        ended = record.figures.get("ended", "")
        if record.kind not in ATTACKS or ended == "no change":
            continue
        column = next((name for name, ends in ENDS.items() if ended in ends), "traceback")
        column = "unclear" if record.outcome == UNCLEAR else column
        for name in (record.name.split()[0], ""):
            counts.setdefault((record.kind, name), Counter())[column] += 1
    columns = ("executed", "outside", "silent", "hang", "traceback", "unclear", "clear", "harmless")
    return [
        [f"`{name}`" if name else f"**{kind}**", str(tally.total()), *(str(tally[column]) for column in columns)]
        for (kind, name), tally in sorted(counts.items(), key=lambda item: (item[0][0], not item[0][1], item[0][1]))
    ]


KILLED = {"en": "SIGKILLs in all: {:,}.", "ko": "SIGKILL은 모두 {:,}번입니다."}


def count_kills(records: Iterable[Record]) -> int:
    """Return how often a program got SIGKILL."""
    return sum(record.figures.get("kills", 0) for record in records if record.kind == "kills")


def render(page: Path, records: Sequence[Record], language: str) -> None:
    """Write the tables into a page, between its two marks."""
    rows = summed(rows_of(records), KOREAN if language == "ko" else None)
    kills = KILLED[language].format(count_kills(records))
    parts = [f"{table(HEADINGS[language], rows)}\n{kills}\n", table(FUZZ[language], fuzz_rows(records))]
    _replace(page, parts)


def render_attacks(page: Path, records: Sequence[Record], language: str) -> None:
    """Write the table of attacks into a page, between its two marks."""
    _replace(page, [table(ATTACK_HEADINGS[language], attack_rows(records))])


def _replace(page: Path, parts: Sequence[str]) -> None:
    text = page.read_text(encoding="utf-8")
    sections = iter(f"{BEGIN}\n\n{part}\n{END}" for part in parts)
    page.write_text(re.sub(f"{BEGIN}.*?{END}", lambda _: next(sections), text, flags=re.S), encoding="utf-8")
