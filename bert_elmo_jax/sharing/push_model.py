"""Share a model: write a folder with its files and a model card, and upload it to the hub."""

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bert_elmo_jax.addresses import is_address, local_copy
from bert_elmo_jax.buckets.lease import LEASE
from bert_elmo_jax.families import find_family
from bert_elmo_jax.files import SUMS, read_json, read_sums, write_json, write_sums, write_text
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.model_kinds import find_kind
from bert_elmo_jax.inference.read_model import checkpoint_of, read_model
from bert_elmo_jax.inference.released_task import find_task
from bert_elmo_jax.inference.rerank import is_reranker
from bert_elmo_jax.inference.run_directory import StoredModel, read_figures, read_run_directory
from bert_elmo_jax.nn.int8_kernels import is_int8
from bert_elmo_jax.report.language import Language
from bert_elmo_jax.sharing.model_card import Card, read_run, write_card
from bert_elmo_jax.train.checkpoint import save_params, write_file_list

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*", re.ASCII)
RUN_FILES = ("model.json", "tokenizer")  # what `load` reads of a run directory, next to the parameters of one step
SENTENCES = "texts = ['a text', 'another text']"
USES = {
    "": f"{SENTENCES}\nprint(model.encode(texts))",
    "sentences": f"{SENTENCES}\nprint(model.sentences(texts))",
    "questions": "print(model.predict([('a question', 'a text with the answer')]))",
    "choice": "print(model.predict([('a text', ['a continuation', 'another continuation'])]))",
    "rank": "print(model.rank('a query', ['a text', 'another text']))",
}
# The kind of a task, by that of an export.
EXPORTED_KINDS = {
    "classify": "classification", "regress": "regression", "tag": "tags", "network": "tags", "read": "questions",
    "sentences": "sentences",
}  # fmt: skip


def push_model(
    model: str | Path,
    to: str,
    *,
    license: str = "",
    language: Language = "en",
    private: bool = False,
    output: str | Path | None = None,
    dry_run: bool = False,
    say: Callable[[str], Any] = print,
) -> Path | None:
    """Upload a model to the repository `to` (OWNER/NAME) of the hub, with a model card as its README.md.

    Encoders and models with a head are written in the family's own format, task networks, int8 models and classifiers
    of two directions as run directories with nothing but what `load` reads, and of a folder of `export_model` the files
    that it wrote.
    Return the folder if it stays: with `output`, or with `dry_run`, which uploads nothing and by default writes
    `MODEL_hub` next to the model.

    >>> import tempfile
    >>> folder = push_model("tests/goldens/bert_tiny", "me/tiny", dry_run=True, output=f"{tempfile.mkdtemp()}/tiny",
    ...                     say=lambda line: None)
    >>> {"README.md", "SHA256SUMS", "model.safetensors"} <= {file.name for file in folder.iterdir()}
    True
    """
    if not REPOSITORY.fullmatch(to):
        raise ValueError(f"to={to!r}: expected OWNER/NAME, such as my-name/reviews")
    source = Path(local_copy(str(model)))
    if not source.is_dir():
        raise ValueError(f"{source} is not a folder: give the folder of a run or of a model")
    api = None if dry_run else connect(to)
    if output is None and dry_run:
        output = (Path() if is_address(model) else source.parent) / f"{source.resolve().name}_hub"
    if output is not None:
        folder = write_folder(source, to, Path(output).expanduser(), license=license, language=language)
        say(f"Written: {folder}, with {', '.join(sorted(file.name for file in folder.iterdir()))}")
        if api is not None:
            upload(api, folder, to, private, say)
        return folder
    with tempfile.TemporaryDirectory() as place:
        folder = write_folder(source, to, Path(place) / "model", license=license, language=language)
        upload(api, folder, to, private, say)
    return None


def write_folder(source: Path, to: str, target: Path, *, license: str, language: Language) -> Path:
    """Write the model's files, its card and `SHA256SUMS` into a new or empty folder, and return it."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} is not empty; give another --output")
    export = read_json(source / "export.json", default={}) if (source / "export.json").is_file() else None
    if export is not None:
        _copy_export(source, target)
        card = describe_export(export, to, license)
    else:
        card = describe(source, to, license)
        _write_model(source, target)
    (target / "README.md").unlink(missing_ok=True)  # of the model that was copied
    write_text(target / "README.md", write_card(card, language))
    write_sums(target)
    return target


def _copy_export(source: Path, target: Path) -> None:
    """Copy the files that `export_model` wrote: a user of `run.py` may keep others next to them."""
    names = read_sums(source)
    if names is None:  # of a folder that was copied without its hashes
        ignored = shutil.ignore_patterns("__pycache__", LEASE)
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignored)
        return
    if missing := [name for name in names if not (source / name).is_file()]:
        raise ValueError(f"{source} lacks {', '.join(missing)}, listed in its {SUMS}: copy it again, or export again")
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)


def describe_export(export: Mapping[str, Any], to: str, license: str) -> Card:
    """Return the facts of an exported model, from its `export.json`; older ones lack some."""
    kind = "rank" if export.get("is_reranker") else EXPORTED_KINDS.get(export.get("kind", ""), "")
    load = f"from huggingface_hub import snapshot_download\n\nprint(snapshot_download('{to}'))  # run.py is there"
    return Card(
        to, "an exported model", kind, tuple(export.get("labels", ())), export.get("parameters", 0),
        export.get("max_length"), license, load,
    )  # fmt: skip


def describe(source: Path, to: str, license: str) -> Card:
    """Return the facts of a model; raise ValueError if the folder has none."""
    try:
        stored = read_model(str(source))
    except FileNotFoundError as error:
        raise ValueError(f"{source} is not a model: {error}") from None
    task = stored.task
    if task is None and not stored.network and find_family(stored.config).inputs.takes_heads:
        positions = stored.config.max_positions
        task = find_task(stored.params, str(source), positions=positions, extras=stored.task_fields)
    kind: str = "" if task is None else task.kind
    if task is not None and is_reranker(task):
        kind = "rank"
    labels = tuple(map(str, (task.labels if task is not None else stored.labels) or ()))
    longest = task.max_length if task is not None else getattr(stored.config, "max_positions", None)
    reads_files = not (stored.network or is_int8(stored.params) or stored.average_with)
    pieces = reads_files and not stored.network and find_family(stored.config).inputs.takes_heads
    lines = ["from bert_elmo_jax import load", ""]
    if pieces:  # `load` downloads these files
        lines.append(f"model = load('{to}')")
    else:
        lines[1:1] = ["from huggingface_hub import snapshot_download"]
        lines.append(f"model = load(snapshot_download('{to}'))")
    if stored.sentences is not None:
        kind = kind or "sentences"
    use = USES.get(kind, "print(model.predict(['a text', 'another text']))")
    if task is not None and kind not in USES and task.pairs:
        use = "print(model.predict([('a text', 'another text')]))"
    elif task is not None and task.tag_column:
        use = f"print(model.predict([(['a', 'text'], {[*(2 * task.tags)[:2]]})]))"
    count = sum(int(np.size(leaf)) for leaf in jax.tree.leaves(stored.params))
    return Card(
        to, find_kind(stored.config).called, kind, labels, count, longest, license, "\n".join([*lines, use]),
        **read_run(source),
    )  # fmt: skip


def _write_model(source: Path, target: Path) -> None:
    """Write a model in its family's own format, or copy what `load` reads of a run directory."""
    stored = read_model(str(source))
    if not (stored.network or is_int8(stored.params) or stored.average_with):
        both_orders = stored.task is not None and stored.task.both_orders
        pools_otherwise = stored.sentences is not None and not find_family(stored.config).sentence_files
        if stored.features is None and not both_orders and not pools_otherwise:
            convert(str(source), target)
            return
        convert(str(source), target, to_format="run")  # transformers has no place for what the head reads
        (target / "run.json").unlink()  # it names the source
        for checkpoint in (target / "checkpoints").iterdir():
            _hide_path(checkpoint)
        return
    run, _ = checkpoint_of(source)
    _copy_run(run, target, stored)
    for name in stored.average_with:
        if (run / name).resolve().parent != run.resolve():
            raise ValueError(f"{run / 'model.json'}: average_with names {name!r}; expected a folder of this run")
        _copy_run(run / name, target / name, read_run_directory(run / name))
    if stored.encoder is not None:
        _copy_run(run / "encoder", target / "encoder", read_run_directory(run / "encoder"))


def _copy_run(run: Path, target: Path, stored: StoredModel) -> None:
    """Copy what `load` reads of a run directory: no texts, and of its checkpoints only the parameters of `stored`."""
    target.mkdir(parents=True, exist_ok=True)
    for name in RUN_FILES:
        if (run / name).is_dir():
            shutil.copytree(run / name, target / name)
        elif (run / name).is_file():
            shutil.copyfile(run / name, target / name)
    if figures := read_figures(run, stored.step):  # the threshold of unanswerable questions is one of them
        write_json(target / "checkpoints" / str(stored.step) / "facts.json", {"figures": figures})
    _hide_path(save_params(target, stored.step, stored.params))


def _hide_path(checkpoint: Path) -> None:
    """Remove the file of a checkpoint into which orbax writes the folder's path."""
    (checkpoint / "params" / "commit_success.txt").unlink(missing_ok=True)
    write_file_list(checkpoint)


def connect(to: str) -> Any:
    """Return the hub's client; raise if there is no token, or if it belongs to another owner."""
    import huggingface_hub

    if not huggingface_hub.get_token():
        raise ValueError("no token of the hub was found: run `hf auth login`, set HF_TOKEN, or give --dry_run")
    api = huggingface_hub.HfApi()
    account = _call("asking who the token belongs to", api.whoami)
    owners = [account["name"], *(group["name"] for group in account.get("orgs", []))]
    owner = to.partition("/")[0]
    if owner not in owners:
        raise ValueError(f"the token belongs to {', '.join(owners)}, and --to={to} to {owner}: give --to={owners[0]}/…")
    return api


def upload(api: Any, folder: Path, to: str, private: bool, say: Callable[[str], Any]) -> None:
    """Upload a folder to a repository, which is made if it is not there."""
    _call(f"making {to}", api.create_repo, to, repo_type="model", private=private, exist_ok=True)
    message = "Upload a model of bert_elmo_jax"
    commit = _call(f"uploading to {to}", api.upload_folder, repo_id=to, folder_path=str(folder), commit_message=message)
    say(f"Uploaded: {getattr(commit, 'commit_url', commit)}")


def _call(action: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return the result of a call of the hub; raise its error in one line."""
    try:
        return function(*args, **options)
    except Exception as error:  # the client and its dependencies raise a dozen kinds of errors
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConnectionError(f"{action} failed: {reason}") from error
