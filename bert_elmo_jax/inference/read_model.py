"""Read a model in any format, and find out which format a folder holds."""

import dataclasses
import errno
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families import Family, all_formats, find_family, get_family
from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.families.huggingface_config import describe_own_code, refuse_unknown_fields
from bert_elmo_jax.files import check_links, read_json, read_json_value, read_sums
from bert_elmo_jax.heads.sentence_head import NAME, SentenceHead
from bert_elmo_jax.inference.model_kinds import find_kind
from bert_elmo_jax.inference.run_directory import StoredModel, is_run_directory, read_run_directory
from bert_elmo_jax.inference.verify import check_listed, verify_folder
from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.text import Tokenizer
from bert_elmo_jax.weights.hub import check_path, resolve
from bert_elmo_jax.weights.parameter_tree import Report

TORCH_FILES = (".pth", ".pt")  # some models are released as single files; their tensors tell them apart
FEW_PIECES = (
    "%s: the tokenizer has %s pieces, the model embeddings for %s; if its file is cut short, known words become "
    "unknown: copy it again"
)
_torch_names = lazy_function("bert_elmo_jax.weights.torch_pickle", "read_torch_pickle")


def read_model(
    path: str | Path,
    *,
    format: str | None = None,
    classifier: str | None = None,
    lowercase: bool | None = None,
    verify: bool = False,
    revision: str | None = None,
    token: str | bool | None = None,
    adapter: str | Path | None = None,
    untrusted: bool = False,
    strict: bool = False,
) -> StoredModel:
    """Read the model of a folder in any format, a checkpoint's prefix, a file of ELMo's weights, or a hub name.

    A run directory gives its newest checkpoint, or the one in the path: `runs/bert/checkpoints/2000`. The tokenizer is
    None if its files are missing, or if an ELMo needs none. `verify` first checks the files' hashes. `revision` and
    `token` are for the hub. `adapter` is a folder of peft, whose adapters are added to the weights. `untrusted` reads
    the model in a process of its own first; see `isolated`. `strict` refuses fields of unknown meaning in a
    `config.json`.
    """
    if strict:
        with refuse_unknown_fields():
            return read_model(
                path, format=format, classifier=classifier, lowercase=lowercase, verify=verify, revision=revision,
                token=token, adapter=adapter, untrusted=untrusted,
            )  # fmt: skip
    check_adapter = verify
    if untrusted:
        from bert_elmo_jax.inference.isolated import check_isolated

        path = resolve(path, revision=revision, token=token)
        revision = token = None
        settings: dict[str, Any] = {"format": format, "classifier": classifier, "lowercase": lowercase}
        settings["adapter"] = None if adapter is None else str(adapter)
        verify |= check_isolated(path, checkpoint_of(path)[0] if path.is_dir() else path.parent, settings)
    if adapter is not None:
        from bert_elmo_jax.inference.adapter_files import add_adapter

        if check_adapter or (untrusted and read_sums(adapter)):
            check_listed(Path(adapter), (), verify_folder(adapter))
        options: dict[str, Any] = {"format": format, "classifier": classifier, "lowercase": lowercase}
        return add_adapter(read_model(path, verify=verify, revision=revision, token=token, **options), adapter)
    run_of, step = checkpoint_of(check_path(path))
    try:
        folder = run_of if step is not None else resolve(path, revision=revision, token=token)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise FileNotFoundError(f"{str(path)[:57]}… is too long to be a path or a hub name") from None
    if verify:
        listed = folder if folder.is_dir() else folder.parent
        checked = verify_folder(listed)
        check_listed(listed, [name for names in _find(listed).values() for name in names], checked)
    if is_run_directory(folder):
        options = {"format": format, "classifier": classifier, "lowercase": lowercase}
        useless = [f"{name}={value!r}" for name, value in options.items() if value is not None]
        if useless:
            raise ValueError(f"{folder} is a run directory, which knows this: leave out {', '.join(useless)}")
        return read_run_directory(folder, step=step)
    check_links(folder)
    if (cross_encoder := _read_cross_encoder(folder)) is not None:
        model = _read_folder(folder, format, classifier, lowercase)
        model.report.extras.update(cross_encoder)
        return model
    if not (folder / "modules.json").is_file():
        model = _read_folder(folder, format, classifier, lowercase)
        return dataclasses.replace(model, pooling_unread=_find_unread_pooling(folder))
    from bert_elmo_jax.families.sentence_files import read_sentence_folder, refuse_decoder_states

    encoder, head, dense, size = read_sentence_folder(folder)
    model = _read_folder(encoder, format, classifier, lowercase)
    refuse_decoder_states(
        find_family(model.config), folder / "modules.json", "copy config.json, weights and tokenizer alone to read it"
    )
    if size not in (None, model.config.hidden_size):
        raise ValueError(
            f"{folder}: its pooling is of vectors of {size}, but the model has {model.config.hidden_size}: its modules "
            "do not belong together"
        )
    try:
        head.width(model.config.hidden_size)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}: its modules do not belong together") from None
    return dataclasses.replace(model, params={**model.params, **({NAME: dense} if dense else {})}, sentences=head)


def _read_cross_encoder(folder: Path) -> dict[str, Any] | None:
    """Return activation and default prompt of a reranker of sentence-transformers 6, None for any other folder."""
    fields = read_json(folder / "config_sentence_transformers.json", default={})
    if fields.get("model_type") != "CrossEncoder":
        return None
    from bert_elmo_jax.families.sentence_files import read_settings

    modules = read_json_value(folder / "modules.json") if (folder / "modules.json").is_file() else [{}]
    if not isinstance(modules, list) or len(modules) != 1:
        raise ValueError(
            f"{folder}/modules.json: only rerankers of one module, a transformer with its head, are supported"
        )
    settings = read_settings(folder)
    try:
        extras = {"activation": fields.get("activation_fn"), "prompt": SentenceHead(**settings).prompt}
        if extras["activation"]:
            extras["activation_file"] = "config_sentence_transformers.json"
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None
    return {"reranker": True} | {name: value for name, value in extras.items() if value}


def _find_unread_pooling(folder: Path) -> str:
    """Return why the pooling of a folder without `modules.json` could not be read, "" if it has none."""
    traces = ("config_sentence_transformers.json", "sentence_*_config.json", "*_Pooling")
    files = [file.name for trace in traces for file in sorted(folder.glob(trace))]
    return f"{folder} has {' and '.join(files)}, but not the modules.json that belongs to them" if files else ""


def _read_folder(source: Path, format: str | None, classifier: str | None, lowercase: bool | None) -> StoredModel:
    """Read the model of a folder that is no run directory."""
    try:
        format = format or detect(source)
    except FileNotFoundError as error:
        if (source / "checkpoints").is_dir():
            raise FileNotFoundError(
                f"{source} has checkpoints/ but no model.json, which is written last: the run was stopped before it "
                "was complete, or model.json was not copied with it"
            ) from error
        raise
    params, config, report = read_weights(source, format=format, classifier=classifier)
    report.raise_if_unusable()
    if report.unexpected:
        logging.getLogger(__name__).warning(
            "%s: the model of the configuration has no place for %s", *report.left_over()
        )
    for lost in report.lost_heads:
        logging.getLogger(__name__).warning("%s: %s", report.source, lost)
    kind, family = find_kind(config), find_family(config)
    if lowercase is not None and not kind.folds_case:
        raise ValueError(
            f"lowercase={lowercase} was given for {source}, but {family.called} never folds case: leave it out"
        )
    folder = source if source.is_dir() else source.parent
    needed = family.inputs.reads_vocabulary(config, report.heads)
    tokenizer = report.extras.pop("vocabulary", None)  # of a file that has its words next to their vectors
    if tokenizer is None and needed:
        tokenizer = kind.find_tokenizer(folder, config, lowercase)
    _check_rows(tokenizer, config, folder)
    labels, problem_type = report.extras.get("labels"), report.extras.get("problem_type")
    length = read_json(folder / "tokenizer_config.json", default={}).get("model_max_length")
    if isinstance(length, int):
        report.extras["max_length"] = length
    return StoredModel(kind.name, config, params, tokenizer, report, labels, problem_type)


def _check_rows(tokenizer: Any, config: Any, folder: Path) -> None:
    """Log it if a tokenizer has far fewer pieces than the model embeddings: its file may be cut short.

    Many models have up to 127 unused embeddings, to fill a multiple of 64 or 128.
    """
    if isinstance(tokenizer, Tokenizer):
        pieces, rows = tokenizer.vocab_size, config.vocab_size
        if rows > -(-pieces // 128) * 128 and rows - pieces > rows // 100:
            logging.getLogger(__name__).warning(FEW_PIECES, folder, f"{pieces:,}", f"{rows:,}")


def checkpoint_of(path: Path) -> tuple[Path, int | None]:
    """Return the run directory and the step of a checkpoint's folder, or any other path and None."""
    if path.parent.name == "checkpoints" and path.name.isdecimal() and is_run_directory(path.parent.parent):
        return path.parent.parent, int(path.name)
    return path, None


def read_weights(
    path: str | Path, *, format: str | None = None, config: Any = None, classifier: str | None = None
) -> tuple[dict[str, Any], Any, Report]:
    """Return the parameter tree, the configuration and the report of a folder in any format."""
    family, reader = choose_reader(path, format or detect(path), config)
    if config is not None and not isinstance(config, family.config):
        raise ValueError(f"config= is {type(config).__name__}, but the weights in {path} need {family.config.__name__}")
    if classifier is not None and not reader.classifiers:
        raise ValueError(
            f"classifier={classifier!r} was given for {path}, but {reader.owner} has no classifier: leave it out"
        )
    config = config or reader.read_config(path)
    options = {} if classifier is None else {"classifier": classifier}
    params, report = reader.read_weights(path, config=config, **options)
    if classifier is not None and classifier not in params:
        raise ValueError(f"classifier={classifier!r} was given for {path}, which has no classifier: leave it out")
    return params, config, report


def choose_reader(path: str | Path, name: str, config: Any = None) -> tuple[Family, WeightFormat]:
    """Return the family and the format for a folder whose format has this name.

    Several families may have a format of one name; `model_type` in the folder's configuration, or `config`, chooses.
    """
    readers = [(family, form) for family, key, form in all_formats() if key == name]
    if not readers:
        raise ValueError(f"format={name!r} was given; expected one of {', '.join(map(repr, list_formats()))}")
    if config is not None:
        name_of_config = find_family(config).name
        family, reader = next((pair for pair in readers if pair[0] == name_of_config), readers[0])
        return get_family(family), reader
    if len(readers) == 1:
        return get_family(readers[0][0]), readers[0][1]
    model_type = readers[0][1].model_type(Path(path))
    types = {name: pair for pair in readers for name in pair[1].model_types}
    if model_type not in types:
        supported = sorted(filter(None, types))
        fields = read_json(Path(path) / "config.json", default={})
        own_code = f" ({describe_own_code(fields)})" if fields.get("auto_map") else ""
        raise ValueError(
            f"{path} holds a model with model_type {model_type!r}, which is not supported{own_code}; supported are "
            f"{', '.join(supported)}{did_you_mean(model_type, supported)}"
        )
    return get_family(types[model_type][0]), types[model_type][1]


def list_formats() -> dict[str, WeightFormat]:
    """Return every weight format by name; of several families' formats of one name, the first."""
    formats: dict[str, WeightFormat] = {}
    for _, name, format in all_formats():
        formats.setdefault(name, format)
    return formats


def detect(path: str | Path) -> str:
    """Return the name of the only format of a folder's weights, of a checkpoint's prefix, or of a single file."""
    path, formats = Path(path), list_formats()
    if not path.is_dir():
        for name, format in formats.items():
            if format.is_file(path):
                return name
        if path.suffix.lower() in TORCH_FILES and path.is_file():
            names = ", ".join(list(_torch_names(path))[:5])
            looked = [f"{format.owner} ({format.looks_like})" for format in formats.values()]
            raise ValueError(
                f"{path} is a file of PyTorch, but of no model known here: its tensors are {names}, …. Known single "
                f"files: {', '.join(one for one in looked if '.pth' in one)}"
            )
        if path.is_file():
            raise ValueError(f"{path} is a file: give its folder, which also holds the configuration")
        raise FileNotFoundError(
            f"{path} is neither a folder nor the prefix of a TensorFlow checkpoint ({path.name}.index does not exist)"
        )
    by_format = _find(path)
    if len(by_format) > 1:
        listed = " and ".join(f"{formats[name].owner} ({', '.join(files)})" for name, files in by_format.items())
        choices = " or ".join(f'format="{name}"' for name in by_format)
        raise ValueError(
            f"{path} holds weights in {len(by_format)} formats: {listed}. Choose one ({choices}), or move the others "
            "away."
        )
    if not by_format:
        raise FileNotFoundError(" ".join(_explain(path)))
    return next(iter(by_format))


def _find(folder: Path) -> dict[str, list[str]]:
    """Return the files of each format that a folder holds."""
    return {name: files for name, form in list_formats().items() if (files := form.files(folder))}


def _explain(path: Path) -> Iterator[str]:
    """Yield the sentences of the error about a folder without weights."""
    names = sorted(child.name + "/" * child.is_dir() for child in path.iterdir())
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    formats = list(list_formats().values())
    looked = [f"{format.owner} ({format.looks_like})" for format in formats]
    listed = f"{', '.join(looked[:-1])} and {looked[-1]}"
    yield f"{path} holds no weights. Looked for {listed}. Found {shown or 'nothing'}."
    if (path / "adapter_config.json").is_file():
        yield f"It is an adapter of peft; add it to the model that it is for: load(MODEL, adapter={str(path)!r})."
    yield from filter(None, (format.advice(path) for format in formats))
    broken = [child.name for child in sorted(path.iterdir()) if child.is_symlink() and not child.exists()]
    if broken:
        targets = ", ".join(f"{name} to {(path / name).readlink()}" for name in broken[:3])
        yield f"{len(broken)} of these are links to files that do not exist ({targets}): copy the files themselves."
    inside = [child.name for child in sorted(path.iterdir()) if child.is_dir() and _find(child)]
    if inside:
        yield f"Subfolders with weights: {', '.join(inside)}; give that path."
