r"""Make the frozen runs and loss streams in this folder with the code of an earlier version.

    git worktree add ../earlier COMMIT
    cp tests/goldens/make_frozen_runs.py ../earlier/tests/goldens/
    cd ../earlier && python -m tests.goldens.make_frozen_runs            # all
    cd ../earlier && python -m tests.goldens.make_frozen_runs frozen/bert stream/bcn

`frozen_runs/NAME.zip` is a run directory that was stopped in the middle, and `frozen_runs/NAME.json` has the results of
the earlier code after it resumed that directory. `loss_streams/NAME.json` has the results of an uninterrupted run.
`tests/runs/test_frozen_runs.py` compares today's code with both. The cases are commands, which stay when functions
move.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

GOLDENS = Path("tests/goldens")  # below the checkout, where tests and this program start: runs store these paths
FROZEN, STREAMS = GOLDENS / "frozen_runs", GOLDENS / "loss_streams"
MODELS, TASKS = FROZEN / "models", FROZEN / "tasks"
TEXTS = [["the", "bank", "of", "the", "river"], ["강가", "의", "배"]]
# Files of a run that no resumed run reads, or that differ from start to start.
LEFT_OUT = ("events", "lock", ".lock", "costs.jsonl")


@dataclass(frozen=True)
class Case:
    """A command, and where it is stopped: in this folder of the run directory, after this step."""

    program: str
    config: str
    fields: dict[str, Any]
    flags: dict[str, Any] = field(default_factory=dict)
    stop: tuple[str, int] | None = None

    def words(self, workdir: Path) -> list[str]:
        """Return the words of the command after its program."""
        config = f"--config=experiments/configs/{self.config}"
        fields = [f"--config.{name}={value}" for name, value in self.fields.items()]
        flags = [f"--{name}={value}" for name, value in self.flags.items()]
        return [config, *fields, *flags, f"--workdir={workdir}"]


def pretrain(config: str, stop: int | None = None, flags: Any = None, **fields: Any) -> Case:
    """Return a pretraining of a tiny model; `model__x` is the field `model.x`."""
    common = {"data": "toyworld", "toyworld.documents": 80, "toyworld.topics": 2, "toyworld.words": 3}
    common |= {"toyworld.vocab_size": 500, "batch_size": 4, "eval_batches": 1, "log_every": 1, "keep": 1}
    length = {"steps": 12, "eval_every": 6, "checkpoint_every": 5} if stop else {"steps": 40, "eval_every": 20}
    named = {name.replace("__", "."): value for name, value in fields.items()}
    return Case("pretrain", config, {**common, **length, **named}, flags or {}, (".", stop) if stop else None)


PIECES = {"length": 16, "model__num_layers": 1, "model__hidden_size": 16, "model__num_heads": 2}
PIECES |= {"model__feed_forward_size": 32, "model__max_positions": 16}
DROPOUT = {"model__dropout": 0.1, "model__attention_dropout": 0.1}
BERT = {**PIECES, **DROPOUT, "long_share": 0.0}
ELMO = {"length": 8, "model__cell_size": 16, "model__projection_size": 8, "model__dropout": 0.1, "negatives": 16}
ELMO |= {"model__filters": "((1,4),(2,4))", "model__max_characters": 12}
TRANSFORMER = {
    **PIECES,
    "target_length": 16,
    "model__dropout": 0.1,
    "translations": 2,
    "beams": 2,
    "average": 2,
    "keep": 2,
}
TRANSFORMER |= {"toyworld__documents": 200, "toyworld__heldout": 0.05}
AWD_LSTM = {"length": 8, "model__embedding_size": 8, "model__cell_size": 12, "model__weight_dropout": 0.2}
COVE = {"length": 16, "target_length": 16, "model__vector_size": 8, "model__lstm_size": 8, "model__target_size": 8}
COVE |= {"model__dropout": 0.1, "translations": 2, "toyworld__documents": 200, "toyworld__heldout": 0.05}


def finetune(config: str, task: str, stop: tuple[str, int] | None = None, flags: Any = None, **fields: Any) -> Case:
    """Return a training on one of the small tasks of `write_inputs`."""
    files = json.loads((TASKS / task / "fields.json").read_text(encoding="utf-8"))
    common = {"epochs": 2.0, "batch_size": 4, "log_every": 1, "checkpoint_every": 2}
    if files.pop("context", False) and config == "finetune.py":
        common["context"] = True
    named = {name.replace("__", "."): value for name, value in fields.items()}
    return Case("finetune", config, {**common, **named}, {**files, **(flags or {})}, stop)


HEAD = {"optimizer__learning_rate": 1e-3, "dropout": 0.1}
WITH_BERT = {"init": MODELS / "bert"}
NETWORK = {"optimizer__learning_rate": 1e-2, "word_size": 8, "encoder": "tests/goldens/elmo_tiny"}
NETWORK |= {"character_size": 4, "character_embedding_size": 4}
TAGGER = {**NETWORK, "lstm_layers": 1, "lstm_size": 8}
DOCUMENTS = {"drop_factor": 0.1, "documents__part": 8, "documents__sizes": "(8,)", "optimizer__learning_rate": 0.03}
DOCUMENTS |= {"lm__epochs": 1.0, "lm__batch_size": 2, "lm__length": 16, "lm__spread": 2, "lm__checkpoint_every": 2}
WITH_LM = {"init": MODELS / "lm_forward"}


def frozen_cases() -> dict[str, Case]:
    """Return the runs that are stopped in the middle."""
    both = {**DOCUMENTS, "backward": MODELS / "lm_backward"}
    return {
        "bert": pretrain("bert.py:toy", 7, **BERT),
        "elmo": pretrain("elmo.py:toy", 7, **ELMO),
        "transformer": pretrain("transformer.py:toy", 7, **TRANSFORMER),
        "head": finetune("finetune.py", "classification", (".", 5), WITH_BERT, **HEAD),
        "network": finetune("tagger.py", "ud_upos", (".", 5), **TAGGER),
        "network_adapting": finetune("tagger.py", "ud_upos", ("adapted", 3), **TAGGER, adapt__epochs=2.0),
        "documents": finetune("ulmfit.py", "classification", (".", 5), WITH_LM, **both),
        "documents_tuning": finetune("ulmfit.py", "classification", ("adapted", 3), WITH_LM, **DOCUMENTS),
        "grid": finetune(
            "finetune.py", "classification", ("runs/epochs=2.0,seed=1", 3),
            {**WITH_BERT, "grid": "epochs=2", "seeds": "0,1"}, **HEAD,
        ),
    }  # fmt: skip


def stream_cases() -> dict[str, Case]:
    """Return the runs that nothing interrupts: each family, each head and each network."""
    return {
        "bert": pretrain("bert.py:toy", **BERT),
        "bert_two_lengths": pretrain(
            "bert.py:toy", **{**BERT, "model__max_positions": 32}, long_length=32, long_batch_size=2
        ),
        "elmo": pretrain("elmo.py:toy", **ELMO),
        "transformer": pretrain("transformer.py:toy", **TRANSFORMER),
        "cove": pretrain("cove.py:toy", **COVE),
        "awd_lstm": pretrain("awd_lstm.py:toy", **AWD_LSTM),
        "gpt": pretrain("gpt.py:toy", **PIECES, **DROPOUT),
        "roberta": pretrain("roberta.py:toy", **PIECES, **DROPOUT),
        "electra": pretrain("electra.py:toy", **PIECES, **DROPOUT, model__embedding_size=8),
        "modernbert": pretrain("modernbert.py:toy", **PIECES),
        "bert_modern": pretrain("bert_modern.py:toy", **PIECES),
        "distilbert": pretrain("distilbert.py:toy", **PIECES, **DROPOUT),
        "given_weights": pretrain("bert.py:toy", flags=WITH_BERT, length=16, long_share=0.0),
        "accumulated": pretrain("bert.py:toy", **BERT, accumulate=2, average=2),
        "pmap": pretrain("bert.py:toy", flags={"parallel": "pmap"}, **BERT),
        "sst2": finetune("finetune.py", "sst2", flags=WITH_BERT, **HEAD),
        "top_down": finetune("finetune.py", "sst2", flags=WITH_BERT, **HEAD, transfer="top_down", layer_decay=0.5),
        "qnli": finetune("finetune.py", "qnli", flags=WITH_BERT, **HEAD),
        "regression": finetune("finetune.py", "regression", flags=WITH_BERT, **HEAD),
        "sentences": finetune("finetune.py", "sentences", flags=WITH_BERT, **HEAD),
        "entities": finetune("finetune.py", "entities", flags=WITH_BERT, **HEAD),
        "ud_upos": finetune("finetune.py", "ud_upos", flags=WITH_BERT, **HEAD),
        "swag": finetune("finetune.py", "swag", flags=WITH_BERT, **HEAD),
        "squad": finetune("finetune.py", "squad", flags=WITH_BERT, **HEAD),
        "features": finetune("finetune.py", "ud_upos", flags=WITH_BERT, **HEAD, features__layers="all"),
        "tagger": finetune("tagger.py", "entities", **TAGGER),
        "tagger_tuned": finetune("tagger.py", "ud_upos", **TAGGER, tune_encoder=True),
        "bcn": finetune("bcn.py", "classification", **NETWORK, lstm_size=8, feed_size=8),
        "esim": finetune("esim.py", "qnli", **NETWORK, lstm_size=8),
        "bidaf": finetune("bidaf.py", "squad", **NETWORK, lstm_size=8),
    }


def write_inputs() -> None:
    """Write the models that the runs begin with, and the files of their tasks, unless they are there."""
    from ..experiments.task_files import WRITERS, write_model
    from ..runs.test_with_documents import write_lm

    if not (MODELS / "bert").is_dir():
        write_model(MODELS / "bert", num_layers=2)
        for direction in ("forward", "backward"):
            write_lm(MODELS / f"lm_{direction}", direction)
    for task, (write, ending, fields) in WRITERS.items():
        folder = TASKS / task
        if not (folder / "fields.json").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            files = {part: folder / f"{part}.{ending}" for part in ("train", "dev")}
            write(files["train"], random.Random(1), 24)
            write(files["dev"], random.Random(2), 8)
            named = {"task": task, **{part: str(file) for part, file in files.items()}, **fields}
            (folder / "fields.json").write_text(json.dumps(named) + "\n", encoding="utf-8")


def run(case: Case, workdir: Path) -> int:
    """Start or resume a run in this process as its command does, and return its exit status."""
    from ..experiments.programs import run_program

    done = run_program(case.program, *case.words(workdir))
    assert done.status in (0, 75), done.err
    return done.status


LATER = ("comparison",)  # fields of `result.json` that the frozen runs lack


def read_results(workdir: Path) -> dict[str, Any]:
    """Return everything that a finished run has computed, as JSON."""
    from bert_elmo_jax import load
    from bert_elmo_jax.train.checkpoint import load_params
    from bert_elmo_jax.train.metrics import read_metrics
    from bert_elmo_jax.weights.parameter_tree import flatten

    results: dict[str, Any] = {"params": {}, "hash": {}, "metrics": {}, "files": {}}
    for folder in sorted({path.parents[1] for path in workdir.rglob("checkpoints/*/files.json")}):
        if "checkpoints" in folder.relative_to(workdir).parts:
            continue
        name, params = str(folder.parent.relative_to(workdir)), flatten(load_params(folder.parent)[1])
        digest = hashlib.sha256()
        for path, value in sorted(params.items()):
            digest.update(path.encode() + np.asarray(value).tobytes())
        results["hash"][name] = digest.hexdigest()
        results["params"][name] = {
            path: [float(np.sum(value, dtype=np.float64)), float(np.linalg.norm(value))]
            for path, value in sorted(params.items())
        }
    for file in sorted(workdir.rglob("metrics.jsonl")):
        results["metrics"][str(file.parent.relative_to(workdir))] = read_metrics(file.parent)
    for name in ("result.json", "grid.json", "before.json", "translations.json"):
        for file in sorted(workdir.rglob(name)):
            results["files"][str(file.relative_to(workdir))] = json.loads(file.read_text(encoding="utf-8"))
    model = load(workdir)
    if hasattr(model, "predict"):
        results["predictions"] = [repr(each) for each in model.predict(*example_inputs(workdir))]
    else:
        results["encoding"] = np.asarray(model.encode(TEXTS).last, np.float64).round(6).tolist()
    text = json.dumps(results).replace(str(workdir), "RUN")
    return json.loads(text, object_hook=lambda fields: {k: v for k, v in fields.items() if k not in LATER})


def example_inputs(workdir: Path) -> tuple[Any, ...]:
    """Return the arguments of `predict` for the task of a run."""
    task = json.loads((workdir / "run.json").read_text(encoding="utf-8"))["task"]
    texts = ["a good film", "배우 의 bad 연기"]
    if task in ("qnli", "sentences"):
        return ([(texts[0], texts[1]), (texts[1], texts[1])],)
    if task in ("entities", "ud_upos"):
        return ([text.split() for text in texts],)
    if task == "squad":
        return ([("where ?", "the film 서울에 있다")],)
    if task == "swag":
        return ([(texts[0], ["bad", "good", "poor", "배"])],)
    return (texts,)


def describe_machine() -> dict[str, str]:
    """Return what the last bits of a result depend on."""
    from bert_elmo_jax.compilation_cache import default_folder

    flags = " ".join(sorted(os.environ.get("XLA_FLAGS", "").split()))
    return {
        "jax_and_processor": default_folder().name, "flags": flags,
        "optimised": os.environ.get("JAX_DISABLE_MOST_OPTIMIZATIONS", "0"),
    }  # fmt: skip


@contextlib.contextmanager
def stopped_at(workdir: Path, folder: str, step: int) -> Any:
    """Ask the run to stop when it writes the metrics of a step in a folder of the run directory."""
    from bert_elmo_jax.train.metrics import Metrics

    init, write = Metrics.__init__, Metrics.write

    def remember(self: Any, run: Any, start: int) -> None:
        self.run = Path(run)
        init(self, run, start)

    def stop(self: Any, at: int, *args: Any, **options: Any) -> None:
        if at == step and self.run.resolve() == (workdir / folder).resolve():
            os.kill(os.getpid(), signal.SIGTERM)
        write(self, at, *args, **options)

    Metrics.__init__, Metrics.write = remember, stop
    try:
        yield
    finally:
        Metrics.__init__, Metrics.write = init, write


def write_expected(file: Path, results: Any) -> None:
    """Write results with the machine that computed them."""
    text = json.dumps({"machine": describe_machine(), **results}, ensure_ascii=False, separators=(",", ":"))
    file.write_text(text + "\n", encoding="utf-8")


def freeze(name: str, case: Case, scratch: Path) -> None:
    """Stop a run in the middle, keep its directory, and resume a copy for the expected results."""
    workdir, resumed = scratch / name, scratch / f"{name}_resumed"
    with stopped_at(workdir, *case.stop):
        assert run(case, workdir) == 75, name
    shutil.copytree(workdir, resumed, ignore=shutil.ignore_patterns(*LEFT_OUT))
    shutil.make_archive(str(FROZEN / name), "zip", resumed)
    assert run(case, resumed) == 0, name
    write_expected(FROZEN / f"{name}.json", read_results(resumed))


def main(names: list[str]) -> None:
    """Make the goldens with these names, or all."""
    import tempfile

    from .. import conftest  # noqa: F401 -- the settings of JAX that tests have

    write_inputs()
    STREAMS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, case in frozen_cases().items():
            if not names or f"frozen/{name}" in names:
                print(f"frozen run {name}", flush=True)
                freeze(name, case, Path(scratch))
        for name, case in stream_cases().items():
            if not names or f"stream/{name}" in names:
                print(f"loss stream {name}", flush=True)
                assert run(case, Path(scratch, "streams", name)) == 0
                write_expected(STREAMS / f"{name}.json", read_results(Path(scratch, "streams", name)))


if __name__ == "__main__":
    main(sys.argv[1:])
