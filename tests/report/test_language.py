"""Every phrase of a report has its Korean, with the same values, and none is left over."""

import ast
import re
import string
from pathlib import Path

import pytest

from bert_elmo_jax.families.pairs import Pairs
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.families.words import Words
from bert_elmo_jax.networks import NetworkConfig
from bert_elmo_jax.report.korean_phrases import KOREAN
from bert_elmo_jax.report.language import Phrase, choose_language, translator
from bert_elmo_jax.runs import model_facts, run_report, task_report, task_result
from bert_elmo_jax.sweeps.search.run_search import ENDS

PACKAGE = Path(__file__).parents[2] / "bert_elmo_jax"


def names_of(template):
    return sorted(name for _, name, _, _ in string.Formatter().parse(template) if name)


def phrases_of_the_sources():
    """Return the texts that are given to `translate` or `Phrase` as they stand."""
    texts = set()
    folders = ("analysis", "runs", "report", "sweeps")
    for file in (file for folder in folders for file in (PACKAGE / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("translate", "Phrase") and node.args:
                texts |= {one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant)} - {"test", "-"}
    return {text for text in texts if isinstance(text, str)}


def test_every_phrase_has_its_korean():
    listed = {
        *task_result.TASK_NAMES.values(), *model_facts.TITLES.values(), *run_report.UNITS.values(),
        *task_report.AXES, task_report.NONE, task_report.ONE_TAG, task_report.ONE_LABEL,
        task_report.ONE_NUMBER, task_report.NO_ANSWERS,
        *(title for inputs in (Pieces(), Words(), Pairs()) for title, _ in inputs.next_steps(Path("runs/a"))),
        *ENDS.values(), "trial", "end", "steps",
        *(network.CALLED for network in [NetworkConfig, *NetworkConfig.__subclasses__()]),
    }  # fmt: skip
    assert sorted((phrases_of_the_sources() | listed) - KOREAN.keys() - {"an ESIM"}) == []


@pytest.mark.parametrize("phrase", KOREAN)
def test_both_languages_have_the_same_values(phrase):
    assert names_of(phrase) == names_of(KOREAN[phrase])
    assert (
        re.search("[가-힣]", KOREAN[phrase])
        or phrase in ("f1", "a biattentive classification network")
        or "{" in phrase
    )


def test_no_phrase_is_left_over():
    code = "\n".join(
        file.read_text(encoding="utf-8")
        for file in PACKAGE.rglob("*.py")
        if file.name != "korean_phrases.py"
    )  # fmt: skip
    code = re.sub(r'"\n\s*f?"', "", code)  # texts over several lines
    unused = [phrase for phrase in KOREAN if phrase not in code and phrase not in FROM_PARTS]
    assert unused == []


FROM_PARTS = {
    task_report.ONE_TAG,
    task_report.ONE_LABEL,
    *(phrase for phrase in KOREAN if phrase.startswith("{name} rose from")),
}


def test_values_are_not_translated_and_braces_are_kept():
    korean = translator("ko")
    assert korean(Phrase("always '{label}'", label="mean {x}")) == "항상 'mean {x}'"
    assert korean("a phrase without Korean {x}") == "a phrase without Korean {x}"


def test_a_value_may_be_a_phrase():
    phrase = Phrase("Measured ({how}): {scores}.", how=Phrase("one seed"), scores="NER: F1")
    assert phrase == "Measured (one seed): NER: F1."
    assert translator("ko")(phrase) == "측정한 점수(시드 하나): NER: F1."


def test_the_locale_chooses_the_language():
    assert choose_language(None, {"LC_ALL": "en_GB.UTF-8", "LANG": "ko_KR.UTF-8"}) == "en"
    assert choose_language(None, {"LC_ALL": "", "LANG": "ko_KR.UTF-8"}) == choose_language("ko") == "ko"
    assert choose_language(None, {}) == "en"
    with pytest.raises(ValueError, match="language='de': expected one of en, ko"):
        choose_language("de")
