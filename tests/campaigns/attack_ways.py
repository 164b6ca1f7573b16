"""The changes that attacks make to a valid model on purpose, and the valid models."""

import copy
import json
import os
import pickle
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.campaigns.readers import GOLDENS, SKIPPED

SECRET = "TOPSECRET"  # the content of a file outside of the model's folder
MODELS = ("bert_tiny", "bert_tiny_tf", "elmo_tiny", "gpt2_tiny", "gpt_tiny", "roberta_tiny", "modernbert_tiny",
          "modernbert_packed", "distilbert_tiny", "electra_tiny/discriminator", "mpnet_tiny", "flax_msgpack", "tf_h5",
          "released_heads/bert_ner", "released_heads/bert_multilabel", "transformer_tiny", "cove_tiny",
          "awd_lstm_tiny")  # fmt: skip
TOKENIZERS = ("gpt2_tiny", "gpt_tiny", "marian", "modernbert_packed", "roberta_tiny", "xlmr_tiny")
WRONG: tuple[Any, ...] = ("x", "false", "", [], ["a"], {}, {"a": 1}, [[1]], True, 0.5, 7)
ABSURD: tuple[Any, ...] = (
    -1, -(10**9), 10**9, 10**12, 10**30, float("nan"), float("inf"), float("-inf"), 1e300, -0.5,
)  # fmt: skip
PARTS: tuple[Any, ...] = (
    {"type": "Replace", "pattern": {"String": ""}, "content": "a"},
    {"type": "Replace", "pattern": {"Regex": ""}, "content": "ab"},
    {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""},
    {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 9}] * 40},
    {"type": "Replace", "pattern": {"Regex": "(.*)*(.*)*z"}, "content": "a"},
    {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 50_000},
    {"type": "Precompiled", "precompiled_charsmap": "AAAAAP////8="},
    {"type": "Precompiled", "precompiled_charsmap": ""},
    {"type": "Split", "pattern": {"Regex": "(?<=a)+("}, "behavior": "Isolated", "invert": False},
    {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated", "invert": False},
    {"type": "ByteLevel", "add_prefix_space": "x"}, {"type": "Unheard"}, {"type": ["a"]}, {}, [], "ByteLevel", 5,
    {"type": "Sequence", "pretokenizers": 5}, {"type": "Sequence", "normalizers": [None]},
    {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "a", "type_id": 0}}], "pair": []},
    {"type": "TemplateProcessing"}, {"type": "RobertaProcessing", "sep": 1, "cls": "x"},
    {"type": "BertProcessing", "sep": ["</s>", 10**12], "cls": ["<s>", -1]},
)  # fmt: skip


class Evil:
    """A pickle that writes a file when it is read."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.marker}",)


def list_bases(folder: Path) -> dict[str, Path]:
    """Return the valid folders by name; `folder` gets those that are no goldens."""
    base_folder = folder / "bases"
    if not (base_folder / "written").is_file():
        shutil.rmtree(base_folder, ignore_errors=True)
        write_bases(base_folder)
        (base_folder / "written").touch()
    bases = {name.replace("/", "_"): GOLDENS / name for name in MODELS}
    bases |= {f"tokenizer_{name}": GOLDENS / "tokenizers" / name for name in TOKENIZERS}
    return bases | {name: base_folder / name for name in ("run", "sentences", "sums", "int8", "static")}


def write_bases(folder: Path) -> None:
    """Write a run of a task, models with pooling, with the hashes of files, and in int8, and static vectors."""
    import jax

    from bert_elmo_jax import load
    from bert_elmo_jax.families.static.config import StaticConfig
    from bert_elmo_jax.families.static.model import init_static_params
    from bert_elmo_jax.heads.sentence_head import Dense, SentenceHead, init_sentence_head
    from bert_elmo_jax.inference import write_run_directory
    from bert_elmo_jax.inference.convert import convert
    from bert_elmo_jax.text.words import WORD_SPECIALS, WordVocabulary
    from tests.experiments.task_files import write_model

    folder.mkdir(parents=True)
    write_model(folder / "run")
    encoder: Any = load(GOLDENS / "bert_tiny")
    encoder.sentence_head = SentenceHead(("mean",), (Dense(64, 8), "normalize"), 20, prompts=(("query", "q: "),))
    encoder.params["sentence"] = init_sentence_head(encoder.sentence_head, jax.random.key(0))
    encoder.save_sentences(folder / "sentences")
    convert(str(folder / "sentences"), folder / "sums")
    convert(str(GOLDENS / "bert_tiny"), folder / "int8", dtype="int8")
    config, words = StaticConfig(6, 4, method="fasttext", buckets=20), WordVocabulary([*WORD_SPECIALS, *"abc"])
    params = init_static_params(config, jax.random.key(0), ())
    write_run_directory(folder / "static", config, params, words, run={"program": "save"})


def list_files(folder: Path, ending: str = "") -> list[Path]:
    """Return the files of a model, without the hashes and without outputs of other programs."""
    files = (file for file in sorted(folder.rglob(f"*{ending}")) if file.is_file() and file.name not in SKIPPED)
    return [file for file in files if file.name not in ("SHA256SUMS", "files.json")]


def list_places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (holder, key) of every value of a JSON tree; few of a long list."""
    items: Any = list(tree.items())[:60] if isinstance(tree, dict) else list(enumerate(tree))[:8]
    for key, value in items:
        yield tree, key
        if isinstance(value, dict | list):
            yield from list_places(value)


def change_json(folder: Path, coins: random.Random, values: tuple[Any, ...], names: tuple[str, ...] = ()) -> str:
    """Replace a value of a JSON file, preferably one near the top, and return where."""
    files = list_files(folder, ".json")
    file = coins.choice([file for file in files if not names or file.name in names] or files)
    tree = json.loads(file.read_bytes())
    places = list(list_places(tree)) if isinstance(tree, dict | list) and tree else []
    if not places:
        raise LookupError
    near = [place for place in places if place[0] is tree]
    holder, key = coins.choice(near if near and coins.random() < 0.6 else places)
    before = holder[key]
    fitting = [value for value in values if type(value) is not type(before) or value != before]
    if values is WRONG and isinstance(before, int | float):  # true is 1 for JSON's readers in some languages
        fitting = [value for value in fitting if not isinstance(value, int | float) or isinstance(before, bool)]
    if before is None:  # the type of the field is unknown: true may be intended
        fitting = [value for value in fitting if isinstance(value, list | dict)] or fitting
    other_types = [value for value in fitting if type(value) is not type(before)]
    holder[key] = copy.deepcopy(coins.choice(other_types or fitting))
    file.write_text(json.dumps(tree, ensure_ascii=False), encoding="utf-8")
    return f"{file.name} {key} = {str(holder[key])[:30]}"


def wrong_type(folder: Path, coins: random.Random) -> str:
    """Give a field a value of another type."""
    return change_json(folder, coins, WRONG)


def absurd_number(folder: Path, coins: random.Random) -> str:
    """Give a field a number that no model has."""
    return change_json(folder, coins, ABSURD, ("config.json", "options.json", "bert_config.json", "model.json"))


def long_number(folder: Path, coins: random.Random) -> str:
    """Give a field a number of thousands of digits."""
    where = change_json(folder, coins, (12345678987654321,))
    for file in list_files(folder, ".json"):
        text = file.read_text(encoding="utf-8")
        if "12345678987654321" in text:
            file.write_text(text.replace("12345678987654321", "9" * coins.choice([400, 4000, 5000])), encoding="utf-8")
    return where


def deep(folder: Path, coins: random.Random) -> str:
    """Nest a JSON file deeply."""
    file = coins.choice(list_files(folder, ".json"))
    depth = coins.choice([70, 900, 100_000])
    file.write_text('{"a": ' * depth + "1" + "}" * depth, encoding="utf-8")
    return file.name


def cut(folder: Path, coins: random.Random) -> str:
    """Cut a file anywhere, or at the end of a line."""
    file = coins.choice(list_files(folder))
    data = file.read_bytes()
    at = coins.randrange(max(1, len(data)))
    if coins.random() < 0.4 and b"\n" in data:
        at = data.rfind(b"\n", 0, at) + 1
    file.write_bytes(data[:at])
    return f"{file.name} at {at}"


def link(folder: Path, coins: random.Random) -> str:
    """Replace a file by a link to one outside."""
    file = coins.choice(list_files(folder))
    file.unlink()
    file.symlink_to(folder.parent / "secret")
    return file.name


def pipe(folder: Path, coins: random.Random) -> str:
    """Replace a file with a pipe that has no writer."""
    file = coins.choice(list_files(folder))
    file.unlink()
    os.mkfifo(file)
    return file.name


def huge(folder: Path, coins: random.Random) -> str:
    """Lengthen a file to a terabyte of zeros, which take no room."""
    file = coins.choice(list_files(folder))
    with file.open("ab") as opened:
        opened.truncate(1 << 40)
    return file.name


def directory(folder: Path, coins: random.Random) -> str:
    """Replace a file by a folder."""
    file = coins.choice(list_files(folder))
    file.unlink()
    file.mkdir()
    return file.name


def execute(folder: Path, coins: random.Random) -> str:
    """Replace or add a pickle that starts a program."""
    names = ["pytorch_model.bin", "lm.pth", "wmtlstm.pth", "itos.pkl", "training_args.bin", "model.pkl"]
    file = folder / coins.choice(names)
    if coins.random() < 0.7:
        for weights in folder.glob("*.safetensors"):
            weights.unlink()
        (folder / "itos.json").unlink(missing_ok=True)
    content = pickle.dumps({"a": Evil(folder.parent / "executed")}, protocol=coins.choice([2, 4]))
    file.write_bytes(content)
    return file.name


def other_file(folder: Path, coins: random.Random) -> str:
    """Let a file of the model name one outside."""
    outside = coins.choice(["../secret", str(folder.parent / "secret"), "a/../../secret", "..\\secret"])
    way = coins.choice(["index", "modules", "auto_map", "hdf5", "vocab"])
    if way == "index":
        for weights in folder.glob("*.safetensors"):
            weights.unlink()
        content: Any = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": outside}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(content), encoding="utf-8")
    elif way == "modules":
        names = ("Transformer", "Pooling")
        content = [{"idx": n, "name": str(n), "path": outside, "type": f"sentence_transformers.models.{name}"}
                   for n, name in enumerate(names)]  # fmt: skip
        (folder / "modules.json").write_text(json.dumps(content), encoding="utf-8")
    elif way == "auto_map":
        file = folder / "config.json"
        fields = json.loads(file.read_bytes()) if file.is_file() else {}
        file.write_text(json.dumps(fields | {"auto_map": {"AutoModel": "evil.Model"}}), encoding="utf-8")
        (folder / "evil.py").write_text(f"open({str(folder.parent / 'executed')!r}, 'w')\nclass Model: pass\n")
    elif way == "hdf5":
        _store_outside(folder, coins)
    else:
        file = folder / "tokenizer_config.json"
        fields = json.loads(file.read_bytes()) if file.is_file() else {}
        file.write_text(json.dumps(fields | {"vocab_file": outside, "name_or_path": outside}), encoding="utf-8")
    return way


def _store_outside(folder: Path, coins: random.Random) -> None:
    import h5py

    [file] = list(folder.glob("*.hdf5")) or [folder / "weights.hdf5"]
    with h5py.File(file, "a") as opened:
        names: list[str] = []
        opened.visititems(lambda name, member: names.append(name) if isinstance(member, h5py.Dataset) else None)
        name = coins.choice(sorted(names) or ["char_embed"])
        shape = opened[name].shape if names else (4, 4)
        if names:
            del opened[name]
        secret, way = str(folder.parent / "secret"), coins.randrange(3)
        if way == 0:
            opened.create_dataset(name, shape=shape, dtype="f4", external=[(secret, 0, h5py.h5f.UNLIMITED)])
        elif way == 1:
            opened[name] = h5py.ExternalLink(secret, "/a")
        else:
            layout = h5py.VirtualLayout(shape=shape, dtype="f4")
            layout[...] = h5py.VirtualSource(secret, "a", shape=shape)
            opened.create_virtual_dataset(name, layout)


def rules(folder: Path, coins: random.Random) -> str:
    """Give a tokenizer a part that the library crashes on, or runs without end."""
    file = folder / "tokenizer.json"
    spec = json.loads(file.read_bytes())
    name = coins.choice(["normalizer", "pre_tokenizer", "post_processor", "decoder", "model", "added_tokens"])
    spec[name] = copy.deepcopy(coins.choice(PARTS))
    file.write_text(json.dumps(spec), encoding="utf-8")
    return f"{name} = {str(spec[name])[:40]}"


def unlisted(folder: Path, coins: random.Random) -> str:
    """Change or add a file that the list of hashes does not have, or list one twice."""
    way = coins.randrange(3)
    if way == 0:
        name = coins.choice(["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"])
        (folder / name).write_text('{"x": 1}', encoding="utf-8")
    elif way == 1:
        change_json(folder, coins, (7, "x"))
    else:
        file = coins.choice(list_files(folder, ".json"))
        file.write_bytes(file.read_bytes() + b" ")
        with (folder / "SHA256SUMS").open("a", encoding="utf-8") as sums:
            from bert_elmo_jax.files import hash_file

            sums.write(f"{hash_file(file)}  {file.relative_to(folder).as_posix()}\n")
    return str(way)


def relisted(folder: Path, coins: random.Random) -> str:
    """Damage a file of a checkpoint, and make its list of hashes right again."""
    from bert_elmo_jax.train.checkpoint import write_file_list

    [checkpoint] = (folder / "checkpoints").iterdir()
    file = coins.choice([file for file in sorted((checkpoint / "params").rglob("*")) if file.is_file()])
    data = bytearray(file.read_bytes())
    for _ in range(coins.choice([1, 3, 20])):
        at = coins.randrange(max(1, len(data)))
        data[at : at + 1] = coins.choice([b"", b"\xff", b"{", b"\0" * 9, b"9" * 30, b"../", b'"x"'])
    file.write_bytes(bytes(data))
    write_file_list(checkpoint)
    return file.name


def bomb(folder: Path, coins: random.Random) -> str:
    """Let a small HDF5 file promise gigabytes or a billion names, or hide a long number in a large JSON file."""
    files = sorted([*folder.glob("*.hdf5"), *folder.glob("*.h5")])
    if files and coins.random() < 0.7:
        return f"{files[0].name} {_promise(files[0], coins)}"
    where = change_json(folder, coins, (12345678987654321,))
    for file in list_files(folder, ".json"):
        text = file.read_text(encoding="utf-8")
        if "12345678987654321" in text:
            file.write_text(text.replace("12345678987654321", "9" * 400) + " " * (1 << 21), encoding="utf-8")
    return where


def _promise(file: Path, coins: random.Random) -> str:
    import h5py

    with h5py.File(file, "a") as opened:
        if coins.random() < 0.5:
            inner = opened.create_group("inner")
            for number in range(30):
                outer = opened.create_group(f"outer_{number}")
                outer["a"] = outer["b"] = inner
                inner = outer
            return "names"
        names: list[str] = []
        opened.visititems(lambda name, member: names.append(name) if isinstance(member, h5py.Dataset) else None)
        name = coins.choice(sorted(names))
        shape = coins.choice([opened[name].shape, (10**6, 10**4)])
        del opened[name]
        opened.create_dataset(name, shape=shape, dtype="f4", chunks=True)
    return f"{name} {shape}"


def deep_link(folder: Path, coins: random.Random) -> str:
    """Move a module into deep folders, with a link to a file outside instead of one of its files."""
    file = folder / "modules.json"
    modules = json.loads(file.read_bytes())
    module = coins.choice([module for module in modules if module["path"]])
    inner = folder.joinpath(*coins.choice(["ab", "abc", "abcdef"]), module["path"])
    inner.parent.mkdir(parents=True)
    shutil.move(folder / module["path"], inner)
    module["path"] = inner.relative_to(folder).as_posix()
    file.write_text(json.dumps(modules), encoding="utf-8")
    moved = coins.choice(sorted(inner.iterdir()))
    shutil.move(moved, folder.parent / "moved")
    moved.symlink_to(folder.parent / "moved")
    return f"{file.name} {module['path']}"


WAYS: dict[str, Callable[[Path, random.Random], str]] = {
    "wrong_type": wrong_type, "absurd_number": absurd_number, "long_number": long_number, "deep": deep, "cut": cut,
    "link": link, "pipe": pipe, "huge": huge, "directory": directory, "execute": execute, "other_file": other_file,
    "rules": rules, "unlisted": unlisted, "relisted": relisted, "bomb": bomb, "deep_link": deep_link,
}  # fmt: skip
# Of the cases; other ways have 1.
SHARES = {
    "unlisted": 9,
    "relisted": 9,
    "deep_link": 9,
    "wrong_type": 5,
    "absurd_number": 3,
    "cut": 3,
    "rules": 3,
    "bomb": 3,
}
# Changes that no author can have meant.
DAMAGE = ("wrong_type", "absurd_number", "cut", "long_number", "deep", "pipe", "directory", "huge")


def prepare(base: Path, way: str, place: Path, coins: random.Random) -> str | None:
    """Copy a valid folder to `place`, change it, and return the change; None if this way cannot change it."""
    shutil.rmtree(place.parent, ignore_errors=True)
    shutil.copytree(base, place)
    (place.parent / "secret").write_text(SECRET * 5000, encoding="utf-8")
    if way == "unlisted" and not (place / "SHA256SUMS").is_file():
        return None
    try:
        return WAYS[way](place, coins)
    except (IndexError, LookupError, FileNotFoundError, ValueError):
        return None
