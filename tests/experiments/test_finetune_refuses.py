"""Errors in flags, config or data: one message, status 2, and no file written."""

import re

import pytest

from bert_elmo_jax.runs.config_files import show_value

from ..data.tasks.test_broken_files import BROKEN, NUMBERS, OWN, PAIR
from .programs import run_program
from .task_files import write_model, write_task

FIELDS = {
    OWN: {"task": "classification", "text": "review", "label": "stars"},
    PAIR: {"task": "classification", "text": "a", "pair": "b", "label": "label"},
    NUMBERS: {"task": "regression", "text": "review", "label": "stars"},
}


def fields_of(read):
    """Return the flags for the files of a test of broken files."""
    if read.__name__ != "<lambda>":
        return {"labels": FIELDS[OWN], "read_squad": {"task": "squad"}, "read_qamr": {"task": "qamr"}}.get(
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
        status, _, said = run_program("finetune", f"--workdir={tmp_path / 'run'}", *flags)
        assert status == 2, said
        assert not (tmp_path / "run" / "run.json").exists()
        return said

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
    said = refused({**fields, **files}, tokenizer=str(tmp_path))
    assert said.startswith(f"finetune: {path}:{line}: "), said
    assert message in said
    assert said.count("\n") == 1


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_model(tmp_path_factory.mktemp("model") / "bert"))


@pytest.mark.parametrize(
    ("fields", "more", "message"),
    [
        ({"dev": None}, {}, "--dev is needed, such as"),
        ({"task": "poetry"}, {}, "there is no task 'poetry'; there are classification"),
        ({"text": "review"}, {}, "text='review': 'sst2' has fixed columns"),
        ({"train": "/nowhere.tsv"}, {}, "/nowhere.tsv: there is no such file"),
        ({}, {"init": "/nowhere/at/all"}, "nowhere"),
        ({}, {"init": None}, "--init=… is needed"),
        ({}, {"tokenizer": "tok"}, "--tokenizer=tok was given with --init"),
        ({}, {"grid": "colour=1"}, "--grid: the config has no field 'colour'; --config=FILE"),
        ({}, {"grid": "batchsize=16"}, "no field 'batchsize'; did you mean batch_size?"),
        ({"task": "SST-2"}, {}, "; did you mean sst2?"),
        ({}, {"config": {"transfer": "head-first"}}, "chain_thaw, upper; did you mean head_first?"),
        ({}, {"config": {"transfer": "upper"}}, "config.transfer=upper needs config.upper_layers=…, from 1 to 1"),
        ({}, {"config": {"transfer": "upper", "upper_layers": 2}}, "config.upper_layers=2: expected 1 to 1"),
        ({}, {"config": {"upper_layers": 1}}, "config.upper_layers=1 with transfer=all is for transfer=upper"),
        ({}, {"config": {"optimizer.schedule": "cosin"}}, "; did you mean cosine?"),
        (
            {},
            {"init": None, "tokenizer": "tests/goldens/bert_tiny", "config": {"preset": "Bass"}},
            "did you mean base?",
        ),
        ({}, {"grid": "epochs=many"}, "--grid: epochs='many': expected a value like 3.0"),
        ({}, {"seeds": "1,1"}, "seed has a value twice: 1, 1"),
        ({}, {"config": {"transfer": "half"}}, "config.transfer='half' is not known; it is one of all, frozen"),
        ({}, {"config": {"optimizer.name": "adamx"}}, "config.optimizer.name='adamx' is not known"),
        ({}, {"config": {"max_length": 400}}, "max_length=400: use 8 to 48, the positions of this model"),
        ({}, {"config": {"accumulate": 5}}, "config.batch_size=32 cannot be shared by 1 devices in 5 parts"),
        ({}, {"config": {"epochs": 0.0}}, "--config.epochs=0.0: expected a number above 0"),
        ({}, {"config": {"epochs": 0.001}}, "is less than a step: use more epochs"),
        ({}, {"config": {"checkpoint_every": 2, "eval_every": 3}}, "the best model could not be kept"),
        ({}, {"config": {"class_weights": "0=1"}}, "config.class_weights='0=1': expected balanced, or a number"),
        ({}, {"config": {"features.layers": "top"}}, "config.features.layers='top': use numbers"),
        ({}, {"config": {"features.layers": "7"}}, "there is no layer 7"),
        ({}, {"config": {"context": True}}, "config.context is for tasks with words, and sst2 has texts"),
        ({}, {"config": {"layer_decay": 2.0}}, "--config.layer_decay=2.0: expected a number above 0 and at most 1"),
        ({}, {"config": {"patience": -1}}, "--config.patience=-1: expected a whole number from 0"),
        ({}, {"config": {"features.combine": "foo"}}, "features.combine='foo' is not known; it is one of concat, mix"),
        ({"seeds": ""}, {}, "--seeds= is empty: give a value, or leave it out"),
        ({"grid": ""}, {}, "--grid= is empty"),
        ({"seeds": "-1"}, {}, "--seeds: seed=-1: expected a whole number from 0 to 4,294,967,295"),
        ({"seeds": "1,99999999999999999999"}, {}, "--seeds: seed=99999999999999999999: expected a whole number"),
        ({"grid": "optimizer.clip=1,-1"}, {}, "--grid: optimizer.clip=-1.0: expected a number above 0"),
    ],
)
def test_what_cannot_be_meant(fields, more, message, refused, model, tmp_path):
    given = {**write_task(tmp_path / "files", "sst2", count=16), **fields}
    said = refused(given, **{"init": model, **more})
    assert message in said, said
    assert re.fullmatch(r"((new, and untrained at the start|finetune: ).*\n)+", said)


def test_a_label_that_only_dev_has(refused, model, tmp_path):
    fields = write_task(tmp_path / "files", "sst2", count=16)
    with open(fields["dev"], "a", encoding="utf-8") as file:
        file.write("good\t7\n")
    said = refused(fields, init=model)
    assert re.match(r"finetune: .*dev\.tsv:10: the label '7' is not in the training data \('0', '1'\)", said)
