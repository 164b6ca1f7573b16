"""Broken files of tasks: one message, status 2, and no file written. test_refusals.py has errors of flags."""

import re

import pytest

from bert_elmo_jax.runs.config_files import show_value

from ..data.tasks.test_broken_files import BROKEN, CSV, NUMBERS, PAIR
from .programs import run_program
from .task_files import write_model, write_task

FIELDS = {
    CSV: {"task": "classification", "text": "review", "label": "stars"},
    PAIR: {"task": "classification", "text": "a", "pair": "b", "label": "label"},
    NUMBERS: {"task": "regression", "text": "review", "label": "stars"},
}


def fields_of(read):
    """Return the flags for the files of a test of broken files."""
    if read.__name__ != "<lambda>":
        return {"labels": FIELDS[CSV], "read_squad": {"task": "squad"}, "read_qamr": {"task": "qamr"}}.get(
            read.__name__, {"task": "swag"}
        )
    layout = read.__closure__[0].cell_contents
    if isinstance(layout, str):
        return {"task": layout}
    return FIELDS.get(layout) or {"task": "entities", "text": str(layout.word), "label": str(layout.tag)}


@pytest.fixture
def refused(tmp_path):
    def run(fields, config=None, **more):
        flags = [f"--{name}={value}" for name, value in {**fields, **more}.items() if value is not None]
        flags += [f"--config.{name}={show_value(value)}" for name, value in (config or {}).items()]
        status, _, err = run_program("finetune", f"--workdir={tmp_path / 'run'}", *flags)
        assert status == 2, err
        assert not (tmp_path / "run" / "run.json").exists()
        return err

    return run


# Dev data of one label are no mistake.
@pytest.mark.parametrize(
    ("case", "part"),
    [(case, part) for case in BROKEN for part in ("train", "dev") if (case, part) != ("one label only", "dev")],
)
def test_a_broken_file(case, part, refused, tmp_path):
    name, content, read, line, message = BROKEN[case]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "wiki-sentences.tsv").write_text("s1\tThe old ship sank\n")
    fields = fields_of(read)
    files = {"train": str(path), "dev": str(path)}
    if part == "dev" and fields["task"] in ("classification", "regression"):
        other = "train.csv"
        names = [fields["text"], *([fields["pair"]] if "pair" in fields else []), fields["label"]]
        rows = [",".join([*["x"] * (len(names) - 1), value]) for value in ("1", "5")]
        (tmp_path / other).write_text("\n".join([",".join(names), *rows]) + "\n")
        files["train"] = str(tmp_path / other)
    err = refused({**fields, **files}, tokenizer=str(tmp_path))
    assert err.startswith(f"finetune: {path}:{line}: "), err
    assert message in err
    assert err.count("\n") == 1


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_model(tmp_path_factory.mktemp("model") / "bert"))


def test_a_label_that_only_dev_has(refused, model, tmp_path):
    fields = write_task(tmp_path / "files", "sst2", count=16)
    with open(fields["dev"], "a", encoding="utf-8") as file:
        file.write("good\t7\n")
    err = refused(fields, init=model)
    assert re.match(r"finetune: .*dev\.tsv:10: the label '7' is not in the training data \('0', '1'\)", err)
