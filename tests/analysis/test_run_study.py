"""Examples of `bert_elmo_jax.analysis.run_study` and `studies`."""

import pytest

from bert_elmo_jax.analysis import run_study as studies
from bert_elmo_jax.analysis.studies import Study
from bert_elmo_jax.files import hash_file


def test_the_page_has_the_fingerprints_of_the_files_and_the_table_no_formulas(tmp_path, monkeypatch, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text("배\n", encoding="utf-8")
    study = Study([], [], [], "text", rows=[["word"], ["=1+1"]])
    monkeypatch.setitem(studies.STUDIES, "neighbours", (lambda options: study, (), studies.OF_SOME))
    settings = {**dict.fromkeys(studies.OF_SOME), "static": [], "model": ["a"], "train": str(texts), "tasks": ["pos"],
                "words": [], "fractions": [1], "seeds": [0], "batch_size": 1, "encoding": "utf-8"}  # fmt: skip
    page = studies.run_study("neighbours", tmp_path, settings, guard_formulas=True)
    assert hash_file(texts) in page.read_text(encoding="utf-8")
    assert (page.parent / "table.csv").read_text(encoding="utf-8-sig") == "word\n'=1+1\n"


@pytest.mark.parametrize(("name", "numbers"), [("seeds", ["0", "0", "1"]), ("fractions", ["0.1", "0.10"])])
def test_a_number_twice_is_refused(tmp_path, name, numbers):
    settings = {**dict.fromkeys(studies.OF_SOME), "model": [], "static": ["glove.txt"], "tasks": ["pos"],
                "train": "a", "dev": "b", "test": "c", "fractions": ["1"], "seeds": ["0"], name: numbers}  # fmt: skip
    with pytest.raises(ValueError, match=f"^--{name}={','.join(numbers)} has a number twice: name each once$"):
        studies.run_study("efficiency", tmp_path, settings)
