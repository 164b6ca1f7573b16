"""Works that belong to no family: ULMFiT's stages, task networks with an encoder, a grid, a search and a study."""

import csv
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.campaigns.works import TUNE, Hashes, Work, hash_bytes, hash_files, hash_run

if TYPE_CHECKING:
    from tests.campaigns.works import Workshop

ULMFIT = {"lm.epochs": 2, "lm.batch_size": 4, "lm.length": 8, "lm.spread": 1, "lm.eval_every": 6,
          "lm.checkpoint_every": 3, "documents.part": 6, "documents.gradient_words": 12}  # fmt: skip
NETWORK = {"lstm_size": 4, "word_size": 6}
CELLS = {"unknown": "unk"}
# name: (recipe, task, fields)
NETWORKS = {
    "taglm": ("taglm.py", "entities", NETWORK | CELLS | {"character_size": 4, "character_embedding_size": 4}),
    "bcn": ("bcn.py", "qnli", NETWORK | {"feed_size": 4, "max_length": 12}),
    "esim": ("esim.py", "qnli", NETWORK | {"max_length": 12}),
    "bidaf": ("bidaf.py", "squad", NETWORK | {"max_length": 32, "longest_answer": 4}),
}
ENDINGS = {"entities": "conll", "qnli": "tsv", "squad": "json"}


def fields(values: dict[str, object]) -> list[str]:
    """Return the fields of a config as flags."""
    return [f"--config.{name}={value}" for name, value in values.items()]


def task_works(shop: "Workshop") -> Iterable[Work]:
    """Yield the works of this file."""
    tune = [f"--config.{field}" for field in TUNE]
    yield Work("finetune ulmfit", partial(_ulmfit, shop, tune), hash_run, ("pretrain awd_lstm",))
    for name, (recipe, task, values) in NETWORKS.items():
        files = [shop.folder / "data" / f"{part}.{ENDINGS[task]}" for part in ("train", "dev")]
        words = ["finetune", f"--config=experiments/configs/{recipe}", f"--task={task}", f"--train={files[0]}",
                 f"--dev={files[1]}", f"--config.encoder={shop.place('pretrain elmo')}/run"]  # fmt: skip
        yield Work(f"finetune {name}", _writing(shop, [*words, *tune, *fields(values)]), hash_run, ("pretrain elmo",))
    bert = [f"--init={shop.place('pretrain bert')}/run", "--task=classification", "--text=review", "--label=verdict",
            f"--train={shop.folder}/data/train.csv", f"--dev={shop.folder}/data/dev.csv", *tune,
            "--config.max_length=32"]  # fmt: skip
    yield Work("finetune seeds", _writing(shop, ["finetune", *bert, "--seeds=0,1"]), _hash_grid, ("pretrain bert",))
    search = ["search", "--over=optimizer.learning_rate=1e-4..1e-2,log", "--trials=2", "--sampler=random",
              "--noend_bad"]  # fmt: skip
    yield Work("search bert", _writing(shop, search, ["--", *bert]), _hash_search, ("pretrain bert",))
    study = ["probe", "--what=neighbours", f"--model={shop.place('pretrain elmo')}/run", "--words=서울",
             f"--train={shop.folder}/data/texts.txt"]  # fmt: skip
    yield Work(
        "probe elmo",
        lambda folder: [[*study, f"--output={folder}/run"]] if shop.data else [],
        hash_files("run/neighbours/table.csv"),
        ("pretrain elmo",),
    )
    yield from file_works(shop)


def file_works(shop: "Workshop") -> Iterable[Work]:
    """Yield the works that write files of other formats: tables, int8, adapters, and exports."""
    tuned, data = shop.place("finetune bert") / "run", shop.folder / "data"
    words = ["finetune", f"--init={shop.place('pretrain bert')}/run", "--task=classification", "--text=review",
             "--label=verdict", f"--train={data}/train.csv", f"--dev={data}/dev.csv", "--config.transfer=lora",
             "--config.max_length=32", *(f"--config.{field}" for field in TUNE)]  # fmt: skip
    yield Work("finetune lora", _writing(shop, words), hash_run, ("pretrain bert",))
    merged = ["convert", f"--from={shop.place('finetune lora')}/run"]
    yield Work("convert lora", partial(_adding, merged, "--to=FOLDER/model"), _hash_model, ("finetune lora",))
    int8 = ["convert", f"--from={tuned}", "--dtype=int8"]
    yield Work("convert int8", partial(_adding, int8, "--to=FOLDER/model"), _hash_model, ("finetune bert",))
    for form, name in (("onnx", "onnx/model.onnx"), ("stablehlo", "model.stablehlo")):
        export = ["export", f"--model={tuned}", f"--to={form}"]
        files = hash_files(f"model/{name}", "model/export.json", "model/tokenizer.json")
        yield Work(f"export {form}", partial(_adding, export, "--output=FOLDER/model"), files, ("finetune bert",))
    predict = ["predict", f"--model={tuned}", "--batch_size=4", f"--input={data}/bad.csv", "--on_bad=skip"]
    for ending in ("parquet", "csv"):
        files = hash_files(f"out.{ending}", f"out.{ending}.skipped.jsonl")
        yield Work(
            f"predict {ending}", partial(_adding, predict, f"--output=FOLDER/out.{ending}"), files, ("finetune bert",)
        )
    extract = ["extract", f"--model={shop.place('pretrain bert')}/run", f"--input={data}/texts.txt", "--batch_size=4"]
    yield Work("extract npz", partial(_adding, extract, "--output=FOLDER/vectors.npz"), hash_files("vectors.npz"),
               ("pretrain bert",))  # fmt: skip


def _adding(words: list[str], output: str, folder: Path) -> list[list[str]]:
    """Return a command line with its output in a folder."""
    return [[*words, output.replace("FOLDER", str(folder))]]


def _hash_model(folder: Path) -> Hashes:
    """Hash the parameters of a converted model."""
    from bert_elmo_jax import load
    from bert_elmo_jax.weights.digest import digest

    return {"model": digest(load(folder / "model", verify=True).params)}


def _ulmfit(shop: "Workshop", tune: list[str], folder: Path) -> list[list[str]]:
    """Both stages after the general language model; the second also reads texts without labels."""
    words = ["finetune", "--config=experiments/configs/ulmfit.py", f"--init={shop.place('pretrain awd_lstm')}/run",
             "--task=classification", "--text=review", "--label=verdict", f"--train={shop.data['train.csv']}",
             f"--dev={shop.data['dev.csv']}", f"--config.unlabelled={shop.data['texts.txt']}",
             f"--workdir={folder}/run", *tune, *fields(ULMFIT)]  # fmt: skip
    return [words]


def _writing(shop: "Workshop", words: list[str], last: list[str] | None = None) -> Callable[[Path], list[list[str]]]:
    """Return a function that adds the working directory to a command; it makes sure that the inputs are there."""
    return lambda folder: [[*words, f"--workdir={folder}/run", *(last or [])]] if shop.data else []


def _hash_grid(folder: Path) -> Hashes:
    """Hash the scores of a grid, and the model of the best run, which has no figures of its own."""
    from bert_elmo_jax.inference.run_directory import read_run_directory
    from bert_elmo_jax.weights.digest import digest

    grid = json.loads((folder / "run" / "grid.json").read_text(encoding="utf-8"))
    scores = [(result["seed"], result["dev"]) for result in grid["runs"]]
    model = read_run_directory(folder / "run")
    return {"grid.json": hash_bytes(json.dumps([grid["best"], scores]).encode()), "model": digest(model.params)}


def _hash_search(folder: Path) -> Hashes:
    """Hash the table of a search, without the paths in its commands."""
    with (folder / "run" / "table.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [{name: cell for name, cell in row.items() if name != "command"} for row in csv.DictReader(file)]
    return {"table.csv": hash_bytes(json.dumps(rows).encode())}
