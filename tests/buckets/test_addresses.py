"""Addresses in place of paths: models, task files and corpora that are read, and what programs write."""

from contextlib import nullcontext
from unittest import mock

import pytest
from absl import flags

from bert_elmo_jax import load
from bert_elmo_jax.buckets import published_folder
from bert_elmo_jax.buckets.cache import fetch
from bert_elmo_jax.buckets.objects import list_objects, open_place
from bert_elmo_jax.data.corpora.run_preparation import prepare_from_flags
from bert_elmo_jax.data.tasks.annotated import read_semcor, read_treebank
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.task import read_examples, task_named
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.generate_file import generate_file
from bert_elmo_jax.sharing.push_model import push_model


def put(address, data):
    place = open_place(address)
    place.system.pipe_file(place.path, data)


def test_a_model_is_loaded(bucket, goldens):
    for file in (goldens / "bert_tiny").iterdir():
        put(f"{bucket}/models/tiny/{file.name}", file.read_bytes())
    assert load(f"{bucket}/models/tiny").config.hidden_size == 64


def test_task_files_are_read(bucket):
    for name in ("a", "b"):
        put(f"{bucket}/{name}.csv", f"text,label\n{name},1\n".encode())
    task = task_named("classification")
    for files in (f"{bucket}/*.csv", f"{bucket}/a.csv,{bucket}/b.csv"):
        assert [example.text for example in read_examples(files, task)] == ["a", "b"]


def test_a_program_names_the_address_of_a_file_with_a_mistake(bucket, capsys):
    from experiments.command_line.start import refuse

    put(f"{bucket}/a.csv", b"text,label\na,1\nb\n")
    with pytest.raises(BadRow) as mistake:
        read_examples(f"{bucket}/*.csv", task_named("classification"))
    with pytest.raises(SystemExit):
        refuse("finetune", mistake.value)
    assert capsys.readouterr().err.startswith(f"finetune: {bucket}/a.csv:3: ")


def test_annotated_texts_are_read(bucket):
    put(f"{bucket}/dev.conllu", b"1\tbirds\tbird\tNOUN\t_\t_\t0\troot\t_\t_\n\n")
    assert read_treebank(f"{bucket}/dev.conllu")[0].words == ("birds",)
    put(f"{bucket}/semcor.tsv", b"birds\tbird\tn\t1\t1:05:00::\t_\n\n")
    assert read_semcor(f"{bucket}/semcor.tsv")[0].words == ("birds",)


def test_prompts_are_read(bucket, goldens, tmp_path):
    put(f"{bucket}/prompts.txt", b"a\nb\n")
    options = {"target": str(tmp_path / "texts.jsonl"), "max_new": 1, "beams": 1, "n_best": 1}
    assert generate_file(str(goldens / "gpt2_tiny"), source=f"{bucket}/prompts.txt", **options) == 2


def test_a_model_is_shared(bucket, goldens, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in (goldens / "bert_tiny").iterdir():
        put(f"{bucket}/models/tiny/{file.name}", file.read_bytes())
    push_model(f"{bucket}/models/tiny", "me/tiny", dry_run=True, say=lambda line: None)
    assert (tmp_path / "tiny_hub" / "README.md").is_file()


@pytest.mark.long
def test_a_corpus_is_prepared_from_one_address_to_another(bucket, program, tmp_path, capsys):
    from experiments.command_line.outputs import local_outputs

    text = "a river and a stone\n\nthe bird is in the tree\n\n" * 20
    put(f"{bucket}/text.txt", text.encode())
    (tmp_path / "text.txt").write_text(text)
    program("prepare_data")
    values = {"tokenizer": "words", "workers": 1, "heldout": 0.1}
    for folder in (str(tmp_path), bucket):
        for name, value in {**values, "input": [f"{folder}/*.txt"], "output": f"{folder}/store"}.items():
            flags.FLAGS[name].value = value
        with local_outputs("prepare_data", ["output", "runner"]):
            prepare_from_flags(flags.FLAGS.flag_values_dict(), list(values))
    stored, local = fetch(f"{bucket}/store"), tmp_path / "store"
    names = sorted(
        path.relative_to(local).as_posix() for path in local.rglob("*") if path.is_file() and path.name != ".lock"
    )
    assert [(stored / name).read_bytes() for name in names] == [(local / name).read_bytes() for name in names]
    assert sorted(list_objects(open_place(f"{bucket}/store"))) == sorted(["lease.json", *names])


def test_a_model_whose_upload_failed_is_converted_again(bucket, program, goldens, monkeypatch):
    from experiments.command_line.outputs import local_outputs

    # The program itself has flags that prepare_data has, too. `program` removes this one.
    flags.DEFINE_string("to", f"{bucket}/converted", "Where to write.")
    flags.FLAGS.mark_as_parsed()
    for is_down in (True, False):
        flags.FLAGS.to = f"{bucket}/converted"
        with monkeypatch.context() as patch, pytest.raises(OSError, match="cut") if is_down else nullcontext():
            if is_down:
                patch.setattr(published_folder, "upload", mock.Mock(side_effect=ConnectionError("cut")))
            with local_outputs("convert", ["to"]):
                convert(str(goldens / "bert_tiny"), flags.FLAGS.to)
    assert load(f"{bucket}/converted", verify=True).width


def test_runs_of_several_machines_are_refused(program):
    from experiments.command_line.outputs import local_outputs

    program("pretrain")
    flags.FLAGS.workdir, flags.FLAGS.coordinator = "s3://reviews/run", "host:1234"
    message = "--workdir=s3://reviews/run is written by one machine, and --coordinator=host:1234 is for several"
    with pytest.raises(ValueError, match=message), local_outputs("pretrain", ["workdir", "coordinator"]):
        pass
